//! `cargo xtask tools`: which programs of the lab are built, and building the rest.
//!
//! The table of tools and the builder are [`weir_lab::tools`]; here is only what people see of it.

use std::process::ExitCode;

use anyhow::{Context, Result};
use weir_lab::{
    cache::Cache,
    tools::{
        self, ALL, CONTROL_PLANE, Tool,
        build::{self, Progress as Building},
    },
};

use crate::{
    cli::ToolsCommand,
    progress::{Progress, human},
    table::{self, Align},
};

pub(crate) fn run(command: Option<&ToolsCommand>) -> Result<ExitCode> {
    let cache = Cache::of_environment()?;
    match command {
        Some(ToolsCommand::Build { names }) => {
            ensure(&chosen(names)?, &cache)?;
            println!("{}", list(&cache));
        }
        None => {
            println!("{}", list(&cache));
            println!(
                "\nEach is built when it is first needed; `cargo xtask tools build [TOOL]…` builds it now."
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The tools of these names; those of the control plane if none is given.
fn chosen(names: &[String]) -> Result<Vec<&'static Tool>> {
    if names.is_empty() {
        return Ok(CONTROL_PLANE.to_vec());
    }
    let find = |name: &String| {
        let found = ALL.iter().copied().find(|tool| tool.name == name);
        found.with_context(|| {
            let known: Vec<&str> = ALL.iter().map(|tool| tool.name).collect();
            format!("there is no tool {name}; there are {}", known.join(", "))
        })
    };
    names.iter().map(find).collect()
}

/// Builds those that are missing, and says so; says nothing when all are there.
pub(crate) fn ensure(wanted: &[&'static Tool], cache: &Cache) -> Result<()> {
    let missing = tools::missing(wanted, cache);
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = missing.iter().map(ToString::to_string).collect();
    println!(
        "Building {} from Go modules into {} (once; usually about {} on two cores).",
        names.join(" and "),
        cache.tools().display(),
        human(missing.iter().map(|tool| tool.usual_build).sum()),
    );
    let progress = Progress::new();
    build::build(wanted, cache, &mut |event| match event {
        Building::WaitingForAnotherBuild => {
            progress.doing("another process builds the tools: waiting for it");
        }
        Building::Fetching(tool) => progress.doing(&format!("{tool}: fetching modules")),
        Building::Compiling(tool, program) => {
            progress.doing(&format!("{tool}: compiling {program}"));
        }
        Building::Built {
            program,
            bytes,
            took,
        } => {
            progress.done(&format!(
                "{program}: {} in {}",
                megabytes(bytes),
                human(took)
            ));
        }
    })?;
    progress.done(&format!(
        "all tools are built, after {}",
        human(progress.elapsed())
    ));
    Ok(())
}

fn list(cache: &Cache) -> String {
    let head = [
        "tool",
        "version",
        "state",
        "size",
        "a build takes",
        "programs",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(ALL.iter().map(|tool| row(tool, cache)));
    let align = [
        Align::Left,
        Align::Left,
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Left,
    ];
    table::render(&align, &rows)
}

fn row(tool: &Tool, cache: &Cache) -> Vec<String> {
    let built = tool.is_built(cache);
    let programs: Vec<&str> = tool
        .packages
        .iter()
        .map(|package| package.program)
        .collect();
    vec![
        tool.name.to_owned(),
        tool.version.to_owned(),
        if built { "built" } else { "missing" }.to_owned(),
        if built {
            megabytes(tool.size(cache))
        } else {
            "-".to_owned()
        },
        human(tool.usual_build),
        programs.join(", "),
    ]
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes / 1_000_000)
}
