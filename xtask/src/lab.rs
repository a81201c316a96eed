//! `cargo xtask lab`: the shared API server by hand.
//!
//! It is the server that tests take, under the same rules ([`weir_lab::server`]): `up` leaves behind a process
//! that counts as a user of it, and `down` ends that process.

use std::{ffi::OsString, fs, io, path::Path, process::ExitCode, time::Duration};

use anyhow::{Context, Result, bail};
use weir_lab::{
    cache::Cache,
    keeper, marks, pki,
    server::{self, Server},
    state::State,
    tools::{CONTROL_PLANE, Programs},
};

use crate::{
    cli::LabCommand,
    progress::{Progress, human},
    table, tools,
};

pub(crate) fn run(command: LabCommand) -> Result<ExitCode> {
    let cache = Cache::of_environment()?;
    let directory = Server::shared_directory(&cache);
    match command {
        LabCommand::Up => up(&cache),
        LabCommand::Down => down(&directory),
        LabCommand::Status => {
            status(&directory);
            Ok(ExitCode::SUCCESS)
        }
        LabCommand::Kubectl { arguments } => kubectl(&cache, &directory, &arguments),
        LabCommand::Logs { part } => logs(&directory, &part),
    }
}

/// Takes the shared server and says how long that took, if it had to be started.
pub(crate) fn take(cache: &Cache) -> Result<Server> {
    let progress = Progress::new();
    progress.doing("taking the shared API server, or starting it");
    let server = Server::shared(cache)?;
    progress.done(&format!(
        "the API server is ready, after {}",
        human(progress.elapsed())
    ));
    Ok(server)
}

fn up(cache: &Cache) -> Result<ExitCode> {
    tools::ensure(CONTROL_PLANE, cache)?;
    let server = take(cache)?;
    let directory = server.state_directory();
    if marks::of(directory)
        .iter()
        .all(|process| process.part != marks::HOLDER)
    {
        keeper::hold(directory).context("cannot keep the server up")?;
    }
    println!("\nThe server stays until `cargo xtask lab down`. Use it with");
    println!("  cargo xtask lab kubectl get ns");
    println!("or with anything else:");
    println!("  export KUBECONFIG={}", server.kubeconfig().display());
    println!(
        "Its data, logs and certificates are in {}",
        directory.display()
    );
    Ok(ExitCode::SUCCESS)
}

fn down(directory: &Path) -> Result<ExitCode> {
    if marks::of(directory).is_empty() {
        println!("no server runs");
        return Ok(ExitCode::SUCCESS);
    }
    let left = marks::release(directory);
    if !left.is_empty() {
        bail!("cannot end {left:?}");
    }
    // Longer than the keeper's patience with the server's processes.
    if marks::until(Duration::from_secs(12), || marks::of(directory).is_empty()) {
        println!("the server has ended and its data is removed");
    } else {
        println!("the server is let go; others still use it, and it ends with the last of them");
    }
    Ok(ExitCode::SUCCESS)
}

fn status(directory: &Path) {
    let processes = marks::of(directory);
    if processes.is_empty() {
        println!("no server runs; start one with `cargo xtask lab up`");
        return;
    }
    let mut rows = vec![vec![
        "part".to_owned(),
        "process".to_owned(),
        "log".to_owned(),
    ]];
    for process in &processes {
        let log = keeper::log_file(directory, &process.part);
        rows.push(vec![
            process.part.clone(),
            process.pid.to_string(),
            log.display().to_string(),
        ]);
    }
    println!(
        "{}",
        table::render(&[table::Align::Left, table::Align::Right], &rows)
    );
    match State::read(directory) {
        Some(state) => println!(
            "\nKubernetes {} at {}, started in {}\nKUBECONFIG={}",
            state.kubernetes,
            state.url,
            human(Duration::from_millis(state.started_in_milliseconds)),
            pki::admin_kubeconfig(directory).display(),
        ),
        None => println!("\nit is starting, or did not start"),
    }
    let held = processes
        .iter()
        .any(|process| process.part == marks::HOLDER);
    println!(
        "held by hand (`lab up`): {}",
        if held { "yes" } else { "no, tests use it" }
    );
}

fn kubectl(cache: &Cache, directory: &Path, arguments: &[OsString]) -> Result<ExitCode> {
    let kubeconfig = pki::admin_kubeconfig(directory);
    if State::read(directory).is_none() {
        bail!("no server runs: start one with `cargo xtask lab up`");
    }
    let program = Programs::of(cache).kubectl;
    let mut command = server::kubectl(&program, &kubeconfig);
    let status = command.args(arguments).status();
    let status = status.with_context(|| format!("cannot run {}", program.display()))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

fn logs(directory: &Path, part: &str) -> Result<ExitCode> {
    let path = keeper::log_file(directory, part);
    let mut log = match fs::File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!("no server runs: start one with `cargo xtask lab up`")
        }
        opened => opened.with_context(|| format!("cannot read {}", path.display()))?,
    };
    io::copy(&mut log, &mut io::stdout().lock())?;
    Ok(ExitCode::SUCCESS)
}
