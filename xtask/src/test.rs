//! `cargo xtask test`: the tools, the shared API server, the test programs, and a summary.
//!
//! [`plan`] decides what to run, [`programs`] knows the test programs, [`output`] reads what they print, [`summary`]
//! says how it went; all are functions of values. [`lanes`] runs the programs beside each other. Here they are put
//! together; [`cluster`] does the same for tests that need nodes.

pub(crate) mod cluster;
mod lanes;
mod output;
mod plan;
mod programs;
mod summary;

use std::{
    env,
    io::{self, IsTerminal},
    process::{Command, ExitCode, Stdio},
    thread,
    time::Instant,
};

use anyhow::{Context, Result};
use weir_lab::{
    cache::Cache,
    server::Server,
    tools::{self, go},
};

use self::{
    lanes::Job,
    output::Output,
    plan::{Around, Plan, Selection},
    programs::TestProgram,
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
        is_built: false,
        no_server,
        is_ci: is_ci(),
        filters: plan.selection.filters.clone(),
        took: began.elapsed(),
    };
    if let Some(mut tests) = build(&plan, &metadata)? {
        summary.is_built = true;
        programs::longest_first(&mut tests);
        // They will be skipped, which the programs themselves do not tell.
        let without_server = match plan.listing() {
            Some(listing) => count_skipped(&tests, &listing)?,
            None => Vec::new(),
        };
        let jobs = jobs(&tests, &plan, server.as_ref());
        println!("running {} test programs, the longest first", jobs.len());
        summary.programs = lanes::run(jobs, how_many_lanes(arguments), Command::spawn)?;
        for program in &mut summary.programs {
            let of_it = |(name, _): &&(String, usize)| *name == program.name;
            program.skipped += without_server.iter().find(of_it).map_or(0, |(_, n)| *n);
        }
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

/// Builds the test programs, or returns nothing if that failed.
fn build(plan: &Plan, metadata: &Metadata) -> Result<Option<Vec<TestProgram>>> {
    let mut command = cargo(&plan.build());
    let built = command
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    let said = String::from_utf8_lossy(&built.stdout);
    let members: Vec<_> = metadata.members().collect();
    let programs = programs::parse(&said, &members);
    Ok(built.status.success().then_some(programs))
}

/// One more than there are processors, since most programs wait; one alone if the programs have been asked for something, which is then to be seen.
fn how_many_lanes(arguments: &[String]) -> usize {
    if arguments.is_empty() {
        1 + thread::available_parallelism().map_or(1, usize::from)
    } else {
        1
    }
}

/// How many tests of each program need a server.
fn count_skipped(tests: &[TestProgram], listing: &[String]) -> Result<Vec<(String, usize)>> {
    let count = |test: &TestProgram| {
        let listed = command(test, listing)
            .output()
            .context("cannot list tests")?;
        let mut output = Output::of(&test.name);
        let said = String::from_utf8_lossy(&listed.stdout);
        said.lines().for_each(|line| output.read(line));
        Ok((test.name.clone(), output.listed))
    };
    tests.iter().map(count).collect()
}

/// The programs and, if there may be any, the examples in the documentation.
fn jobs(tests: &[TestProgram], plan: &Plan, server: Option<&Server>) -> Vec<Job> {
    let arguments = plan.run();
    let programs = tests.iter().map(|test| Job {
        name: test.name.clone(),
        command: command(test, &arguments),
    });
    let mut jobs: Vec<Job> = programs.collect();
    let has_library = tests.iter().any(|test| test.name.ends_with(" src"));
    if let Some(arguments) = plan.documentation().filter(|_| has_library) {
        jobs.push(Job {
            name: "documentation".to_owned(),
            command: cargo(&arguments),
        });
    }
    if let Some(server) = server {
        for job in &mut jobs {
            job.command.env(KUBECONFIG, server.kubeconfig());
        }
    }
    jobs
}

/// Runs a test program as `cargo test` does.
fn command(test: &TestProgram, arguments: &[String]) -> Command {
    let mut command = Command::new(&test.file);
    command
        .args(arguments)
        .current_dir(&test.directory)
        .env("CARGO_MANIFEST_DIR", &test.directory);
    if io::stdout().is_terminal() {
        command.args(["--color", "always"]);
    }
    command
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

fn cargo(arguments: &[String]) -> Command {
    let mut command = repository::cargo();
    command.args(arguments);
    if io::stdout().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    command
}
