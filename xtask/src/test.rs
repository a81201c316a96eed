//! `cargo xtask test`: the tools, the shared API server, `cargo test`, and a summary.
//!
//! [`plan`] decides what to run, [`programs`] knows the test programs' names, [`output`] reads what `cargo test`
//! prints, [`summary`] says how it went; all are functions of values. Here they are put together; [`cluster`] does
//! the same for tests that need nodes.

pub(crate) mod cluster;
mod output;
mod plan;
mod programs;
mod summary;

use std::{
    env,
    io::{self, BufRead, BufReader, IsTerminal, Write},
    process::{Command, ExitCode, ExitStatus, Stdio},
    time::Instant,
};

use anyhow::{Context, Result};
use weir_lab::{
    cache::Cache,
    cluster::network::Network,
    server::Server,
    tools::{self, go},
};

use self::{
    output::Output,
    plan::{Around, Plan, Selection},
    programs::Names,
    summary::Summary,
};
use crate::{
    lab,
    repository::{self, Metadata},
    tools as tool_commands,
};

/// Names the server to the tests, see `weir_lab::api_server`.
const KUBECONFIG: &str = "WEIR_LAB_KUBECONFIG";

pub(crate) fn run(what: &[String], arguments: &[String]) -> Result<ExitCode> {
    let began = Instant::now();
    let metadata = Metadata::read(false)?;
    let crates: Vec<(&str, &str)> = metadata
        .members()
        .map(|package| (package.directory(), package.name.as_str()))
        .collect();
    let selection = Selection::of(what, &crates)?;

    let cache = Cache::of_environment()?;
    let no_server = why_no_server(&cache);
    let server = if let Some(reason) = &no_server {
        println!("\n*** NO API SERVER: {reason}");
        println!(
            "*** The tests that need one (`{}`) are SKIPPED.\n",
            plan::ON_API_SERVER
        );
        None
    } else {
        // Also with a server that was given to us: some tests start one of their own.
        tool_commands::ensure(tools::CONTROL_PLANE, &cache)?;
        let is_given = env::var_os(KUBECONFIG).is_some_and(|path| !path.is_empty());
        (!is_given).then(|| lab::take(&cache)).transpose()?
    };
    let plan = Plan {
        selection,
        arguments: arguments.to_vec(),
        around: if no_server.is_none() {
            Around::Server
        } else {
            Around::Nothing
        },
    };

    let mut summary = Summary {
        programs: Vec::new(),
        cargo_succeeded: false,
        no_server,
        is_ci: is_ci(),
        filters: plan.selection.filters.clone(),
        took: began.elapsed(),
    };
    if let Some(names) = build(&plan, &metadata)? {
        // Those that will not be run are counted first: cargo would only say "filtered out".
        let skipped = match plan.listing() {
            Some(listing) => {
                let mut output = Output::new(&names);
                stream(cargo(&listing, None), None, &mut output, false)?;
                output.listed
            }
            None => Vec::new(),
        };
        let mut output = Output::new(&names);
        let status = stream(cargo(&plan.run(), server.as_ref()), None, &mut output, true)?;
        summary.cargo_succeeded = status.success();
        summary.programs = output.finish(&skipped);
    }
    summary.took = began.elapsed();
    println!(
        "\nTests that need nodes are not among these: `cargo xtask test --cluster` runs them."
    );
    println!("\n{summary}");
    Ok(if summary.is_success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Builds the test programs and returns their names, or nothing if that failed.
fn build(plan: &Plan, metadata: &Metadata) -> Result<Option<Names>> {
    let mut command = cargo(&plan.build(), None);
    let built = command
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    let packages: Vec<(&str, &str)> = metadata
        .members()
        .map(|package| (package.id.as_str(), package.name.as_str()))
        .collect();
    let names = Names::parse(&String::from_utf8_lossy(&built.stdout), &packages);
    Ok(built.status.success().then_some(names))
}

fn is_ci() -> bool {
    env::var("CI").is_ok_and(|ci| ci == "true")
}

/// The reason why tests that need an API server cannot be run here, if there is one.
fn why_no_server(cache: &Cache) -> Option<String> {
    let all_built = tools::missing(tools::CONTROL_PLANE, cache).is_empty();
    if all_built && cfg!(target_os = "linux") {
        return None;
    }
    go::find().err().map(|error| error.to_string())
}

fn cargo(arguments: &[String], server: Option<&Server>) -> Command {
    let mut command = repository::cargo();
    command.args(arguments);
    if let Some(server) = server {
        command.env(KUBECONFIG, server.kubeconfig());
    }
    if io::stdout().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    command
}

/// Runs cargo and reads what it prints, passing it on if `aloud`.
///
/// Both of its outputs go through one pipe: which program a line belongs to shows only in their order.
fn stream(
    mut command: Command,
    network: Option<&Network>,
    output: &mut Output,
    aloud: bool,
) -> Result<ExitStatus> {
    let (reader, writer) = io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let spawned = match network {
        Some(network) => network
            .inside(|| command.spawn())
            .and_then(|spawned| spawned),
        None => command.spawn(),
    };
    let mut child = spawned.context("cannot run cargo")?;
    // It holds the writing end; with that open the pipe would never end.
    drop(command);

    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        if aloud {
            let mut stdout = io::stdout().lock();
            stdout.write_all(&line)?;
            stdout.flush()?;
        }
        output.read(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(child.wait()?)
}
