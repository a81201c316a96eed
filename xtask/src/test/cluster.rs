//! `cargo xtask test --cluster`: the tests that need nodes, inside a real cluster with its add-ons.
//!
//! The addresses of a cluster exist in its network namespaces alone, so that is where the programs run, without a way
//! out. Everything that needs the network or takes long is done before: tools, packages, the build of the tests.

use std::{
    env,
    fs::{self, File},
    process::ExitCode,
    time::Instant,
};

use anyhow::Result;
use weir_lab::{
    cache::Cache,
    cluster::{self, Cluster, ClusterError, Options, add_on::AddOn, packages},
    tools::{self, go},
};

use super::{
    Metadata, build, is_ci, jobs, lanes,
    plan::{Around, Plan, Selection},
    summary::Summary,
};

/// Enough that pods can move from one to another and a third sees it.
const NODES: u8 = 3;
/// All but KEDA's adapter, whose build CI has no time for: its tests start it themselves where it is built.
const ADD_ONS: [AddOn; 8] = [
    AddOn::Dns,
    AddOn::Prometheus,
    AddOn::Keda,
    AddOn::Rollouts,
    AddOn::Rabbitmq,
    AddOn::Istio,
    AddOn::GatewayApi,
    AddOn::NodeExporter,
];

pub(crate) fn run(what: &[String], arguments: &[String]) -> Result<ExitCode> {
    let began = Instant::now();
    let metadata = Metadata::read(false)?;
    let crates: Vec<(&str, &str)> = metadata
        .members()
        .map(|package| (package.directory(), package.name.as_str()))
        .collect();
    let plan = Plan {
        selection: Selection::of(what, &crates)?,
        arguments: arguments.to_vec(),
        around: Around::Cluster,
    };
    let cache = Cache::of_environment()?;
    if let Some(reason) = why_no_cluster(&cache) {
        return Ok(skip(&reason));
    }
    // The tests themselves have no way out to install them.
    let absent = packages::missing(&[packages::BROWSER, packages::POSTGRES].concat());
    if !absent.is_empty()
        && let Err(error) = packages::install(&absent)
    {
        return Ok(skip(&error.to_string()));
    }
    let Some(tests) = build(&plan, &metadata)? else {
        return Ok(ExitCode::FAILURE);
    };

    let options = Options {
        name: cluster::FOR_TESTS.to_owned(),
        nodes: NODES,
        add_ons: ADD_ONS.to_vec(),
    };
    let _alone = alone(&cache)?;
    let was_up = Cluster::open(&cache, &options.name)?.is_some();
    let taken = crate::cluster::take(&cache, &options);
    let cluster = match taken {
        Err(error) => match error.downcast_ref() {
            Some(ClusterError::Packages { .. }) => return Ok(skip(&format!("{error:#}"))),
            _ => return Err(error),
        },
        Ok(cluster) => cluster,
    };

    let mut jobs = jobs(&tests, &plan, None);
    for job in &mut jobs {
        let state = cluster.layout().state_directory();
        job.command.env(cluster::STATE_DIRECTORY, state);
        if env::var_os("RUST_TEST_THREADS").is_none() {
            // One at a time: some of them break the cluster that all of them use.
            job.command.env("RUST_TEST_THREADS", "1");
        }
    }
    let network = cluster.network();
    let programs = lanes::run(jobs, 1, |command| {
        network
            .inside(|| command.spawn())
            .and_then(|spawned| spawned)
    })?;
    let summary = Summary {
        programs,
        is_built: true,
        no_server: None,
        is_ci: is_ci(),
        filters: plan.selection.filters.clone(),
        took: began.elapsed(),
    };
    end(&cache, &options.name, was_up, summary.is_success())?;
    println!("\n{summary}");
    Ok(if summary.is_success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Waits for other runs on this machine, which would take the cluster away from under us; the kernel ends the wait
/// however they end.
fn alone(cache: &Cache) -> Result<File> {
    let path = cache.clusters().join("tests.lock");
    fs::create_dir_all(cache.clusters())?;
    let file = File::create(&path)?;
    if file.try_lock().is_err() {
        println!("another run uses the cluster for tests: waiting for it");
        file.lock()?;
    }
    Ok(file)
}

/// Takes the cluster down if it is ours and nobody will want to look at it.
fn end(cache: &Cache, name: &str, was_up: bool, succeeded: bool) -> Result<()> {
    if was_up {
        return Ok(());
    }
    if succeeded || is_ci() {
        Cluster::down(cache, name)?;
        return Ok(());
    }
    println!("\nThe cluster is left as it is for you to look at:");
    println!("  cargo xtask cluster --name {name} kubectl get pods -A");
    println!("  cargo xtask cluster --name {name} down");
    Ok(())
}

fn why_no_cluster(cache: &Cache) -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("nodes need Linux".to_owned());
    }
    if !cluster::may_be_made() {
        return Some(ClusterError::NotRoot.to_string());
    }
    let mut wanted = tools::CLUSTER.to_vec();
    wanted.extend(ADD_ONS.iter().flat_map(|add_on| add_on.tools()));
    if tools::missing(&wanted, cache).is_empty() {
        return None;
    }
    go::find().err().map(|error| error.to_string())
}

/// On a desk that is a warning; CI must not take it for success.
fn skip(reason: &str) -> ExitCode {
    println!("\n*** NO CLUSTER: {reason}");
    println!("*** ALL tests that need one (`on_cluster`) are SKIPPED.\n");
    if is_ci() {
        println!("error: tests were skipped, which CI does not allow");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
