//! `cargo xtask cluster`: a real cluster by hand.
//!
//! The work is [`mod@weir_lab::cluster`]'s; here is only what people type and see of it.

use std::{
    ffi::OsString,
    fs, io,
    path::PathBuf,
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use weir_lab::{
    cache::Cache,
    cluster::{BY_HAND, Cluster, ClusterError, Options, Step, add_on, layout::Layout},
    keeper, marks,
    tools::CLUSTER,
};

use crate::{
    cli::ClusterCommand,
    progress::{Progress, human},
    table::{self, Align},
    tools,
};

pub(crate) fn run(name: &str, command: ClusterCommand) -> Result<ExitCode> {
    let cache = Cache::of_environment()?;
    match command {
        ClusterCommand::Up { nodes, with } => {
            let (name, add_ons) = (name.to_owned(), with);
            up(
                &cache,
                &Options {
                    name,
                    nodes,
                    add_ons,
                },
            )
        }
        ClusterCommand::Down => down(&cache, name),
        ClusterCommand::Status => status(&cache, name),
        ClusterCommand::Kubectl { arguments } => {
            pass_on(running(&cache, name)?.kubectl().args(arguments))
        }
        ClusterCommand::Exec { command } => exec(&running(&cache, name)?, &command),
        ClusterCommand::Load { images } => load(&running(&cache, name)?, &images),
        ClusterCommand::Logs { part } => logs(&Layout::new(&cache, name)?, &part),
    }
}

/// Takes the cluster or starts it, and says each step with its time.
pub(crate) fn take(cache: &Cache, options: &Options) -> Result<Cluster> {
    let mut wanted = CLUSTER.to_vec();
    for add_on in &options.add_ons {
        wanted.extend(add_on.tools());
    }
    tools::ensure(&wanted, cache)?;
    for crds in add_on::missing(&options.add_ons, cache).1 {
        crds.fetch(cache)?;
    }
    let progress = Progress::new();
    let mut steps = 0;
    let cluster = Cluster::up(cache, options, &mut |step| match step {
        Step::Doing(what) => progress.doing(&what),
        Step::Done(what, took) => {
            steps += 1;
            progress.done(&format!("{:>8}  {what}", human(took)));
        }
    })?;
    let took = human(progress.elapsed());
    progress.done(&match steps {
        0 => format!("the cluster {} is up already", options.name),
        _ => format!("the cluster {} is up, after {took}", options.name),
    });
    Ok(cluster)
}

fn up(cache: &Cache, options: &Options) -> Result<ExitCode> {
    let cluster = take(cache, options)?;
    let named = if options.name == BY_HAND {
        String::new()
    } else {
        format!(" --name {}", options.name)
    };
    println!("\nIt stays until `cargo xtask cluster down{named}`. Use it with");
    println!("  cargo xtask cluster kubectl{named} get nodes");
    println!("  cargo xtask cluster exec{named} sh    # a shell in its network, KUBECONFIG is set");
    println!(
        "Logs and data are in {}",
        cluster.layout().state_directory().display()
    );
    println!("Resident memory: {}", mebibytes(cluster.resident_memory()));
    Ok(ExitCode::SUCCESS)
}

fn down(cache: &Cache, name: &str) -> Result<ExitCode> {
    let began = Instant::now();
    if Cluster::down(cache, name)? {
        let took = human(began.elapsed());
        println!("the cluster {name} and all that it made are removed, after {took}");
    } else {
        println!("there is no cluster {name}");
    }
    Ok(ExitCode::SUCCESS)
}

fn running(cache: &Cache, name: &str) -> Result<Cluster> {
    // Not asked whether it is well: one that is not is what people want to look at.
    let cluster = Cluster::find(cache, name)?;
    cluster.with_context(|| ClusterError::NotUp(name.to_owned()).to_string())
}

fn status(cache: &Cache, name: &str) -> Result<ExitCode> {
    let layout = Layout::new(cache, name)?;
    let mut processes = marks::of(layout.state_directory());
    if processes.is_empty() {
        println!("the cluster {name} is not up; start it with `cargo xtask cluster up`");
        return Ok(ExitCode::SUCCESS);
    }
    processes.sort_by(|a, b| a.part.cmp(&b.part));
    let head = ["part", "process", "log"].map(str::to_owned).to_vec();
    let mut rows = vec![head];
    let mut shims = 0;
    for process in &processes {
        let is_leader = marks::leader(layout.state_directory(), &process.part)
            .is_some_and(|leader| leader.pid == process.pid);
        if !is_leader {
            shims += 1;
            continue;
        }
        rows.push(vec![
            process.part.clone(),
            process.pid.to_string(),
            keeper::log_file(layout.state_directory(), &process.part)
                .display()
                .to_string(),
        ]);
    }
    println!("{}", table::render(&[Align::Left, Align::Right], &rows));
    println!("and {shims} processes that these have started, beside what runs in containers");
    match Cluster::open(cache, name)? {
        Some(cluster) => println!(
            "\nKubernetes {} with {} nodes, started in {}; resident memory {}",
            cluster.state().kubernetes,
            cluster.state().nodes,
            human(Duration::from_millis(
                cluster.state().started_in_milliseconds
            )),
            mebibytes(cluster.resident_memory()),
        ),
        None => println!(
            "\nit is starting, or it is not well: `cluster up` or `cluster down` clears it away"
        ),
    }
    Ok(ExitCode::SUCCESS)
}

fn exec(cluster: &Cluster, command: &[OsString]) -> Result<ExitCode> {
    let [program, arguments @ ..] = command else {
        bail!("say what to run");
    };
    pass_on(cluster.command(program).args(arguments))
}

/// Runs it in our place: signals and the terminal are its own.
fn pass_on(command: &mut Command) -> Result<ExitCode> {
    use std::os::unix::process::CommandExt;
    Err(command.exec()).with_context(|| format!("cannot run {command:?}"))
}

fn load(cluster: &Cluster, images: &[PathBuf]) -> Result<ExitCode> {
    for image in images {
        let began = Instant::now();
        cluster.load(image)?;
        let nodes = cluster.nodes().len();
        let took = human(began.elapsed());
        println!("{} is on {nodes} nodes, after {took}", image.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn logs(layout: &Layout, part: &str) -> Result<ExitCode> {
    let path = keeper::log_file(layout.state_directory(), part);
    let mut log = match fs::File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!(
                "there is no log of {part}; there are: {}",
                known_logs(layout)
            )
        }
        opened => opened.with_context(|| format!("cannot read {}", path.display()))?,
    };
    io::copy(&mut log, &mut io::stdout().lock())?;
    Ok(ExitCode::SUCCESS)
}

fn known_logs(layout: &Layout) -> String {
    let entries = fs::read_dir(layout.state_directory());
    let mut names: Vec<String> = entries
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".log")?.to_owned()))
        .collect();
    names.sort();
    if names.is_empty() {
        return "none, because the cluster is not up".to_owned();
    }
    names.join(", ")
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes / (1 << 20))
}
