//! `cargo xtask fuzz`: the targets in `fuzz/`, one after another, each for as long as told.
//!
//! That is a workspace of its own, since it needs the nightly toolchain; what it takes is installed here. What each target
//! promises is written at its top.

use std::{
    env,
    ffi::OsString,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use weir_lab::cache::Cache;

use crate::{
    progress::{Progress, human},
    repository,
    table::{self, Align},
};

const TOOLCHAIN: &str = "nightly";
const VERSION: &str = "0.13.2";
/// More than any target should ever need, so that one which takes memory without bound is found.
const MEMORY_MIB: u32 = 2048;

/// How a target did.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    target: String,
    is_clean: bool,
    figures: Figures,
}

/// What libFuzzer says of a run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Figures {
    /// How many inputs were tried.
    runs: Option<u64>,
    /// How many edges of the program they have reached.
    coverage: Option<u64>,
    /// The file with the input that was found.
    found: Option<String>,
}

pub(crate) fn run(target: Option<&str>, seconds: u64) -> Result<ExitCode> {
    let directory = repository::root().join("fuzz");
    let targets = chosen(target, known(&directory.join("fuzz_targets"))?)?;
    let tool = Tool::ensure(&directory)?;
    println!(
        "Fuzzing {}, {} each. What is found is kept in fuzz/artifacts, logs are in fuzz/target.",
        targets.join(", "),
        human(Duration::from_secs(seconds)),
    );
    let progress = Progress::new();
    progress.doing("building, which takes some minutes the first time");
    let built = tool.command("build").status();
    if !built.context("cannot run cargo")?.success() {
        bail!("the targets cannot be built");
    }
    let mut outcomes = Vec::new();
    for target in targets {
        progress.doing(&format!("fuzzing {target}"));
        let outcome = fuzz(&tool, &target, seconds)?;
        let told = if outcome.is_clean { "clean" } else { "FOUND" };
        progress.done(&format!("{target}: {told}"));
        outcomes.push(outcome);
    }
    println!("\n{}", summary(&outcomes));
    for outcome in outcomes.iter().filter(|outcome| !outcome.is_clean) {
        println!("\nThe end of fuzz/target/{}.log:", outcome.target);
        println!("{}", end_of(&tool.log(&outcome.target)));
    }
    Ok(if outcomes.iter().all(|outcome| outcome.is_clean) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// All targets, in the order of their names.
fn known(directory: &Path) -> Result<Vec<String>> {
    let cannot_read = || format!("cannot read {}", directory.display());
    let mut targets = Vec::new();
    for entry in fs::read_dir(directory).with_context(cannot_read)? {
        let path = entry.with_context(cannot_read)?.path();
        if let (Some(name), Some("rs")) = (
            path.file_stem().and_then(|name| name.to_str()),
            path.extension().and_then(|kind| kind.to_str()),
        ) {
            targets.push(name.to_owned());
        }
    }
    targets.sort();
    Ok(targets)
}

fn chosen(target: Option<&str>, known: Vec<String>) -> Result<Vec<String>> {
    match target {
        None => Ok(known),
        Some(target) if known.iter().any(|it| it == target) => Ok(vec![target.to_owned()]),
        Some(target) => bail!(
            "there is no target {target}; there are {}",
            known.join(", ")
        ),
    }
}

fn fuzz(tool: &Tool, target: &str, seconds: u64) -> Result<Outcome> {
    let corpus = tool.directory.join("corpus").join(target);
    let seeds = tool.directory.join("seeds").join(target);
    let log = tool.log(target);
    for directory in [Some(&*corpus), log.parent()].into_iter().flatten() {
        let cannot_make = || format!("cannot make {}", directory.display());
        fs::create_dir_all(directory).with_context(cannot_make)?;
    }
    let said = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let mut command = tool.command("run");
    // What is new goes to the first.
    command.arg(target).arg(&corpus);
    if seeds.is_dir() {
        command.arg(&seeds);
    }
    command.args([
        "--",
        &format!("-max_total_time={seconds}"),
        &format!("-rss_limit_mb={MEMORY_MIB}"),
        "-print_final_stats=1",
    ]);
    let status = command.stdout(Stdio::null()).stderr(said).status();
    let is_clean = status.context("cannot run cargo")?.success();
    let said = fs::read(&log).with_context(|| format!("cannot read {}", log.display()))?;
    Ok(Outcome {
        target: target.to_owned(),
        is_clean,
        figures: Figures::read(&String::from_utf8_lossy(&said)),
    })
}

fn summary(outcomes: &[Outcome]) -> String {
    let head = ["target", "inputs", "coverage", "found"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |it| it.to_string());
    for outcome in outcomes {
        let figures = &outcome.figures;
        let found = match (outcome.is_clean, &figures.found) {
            (true, _) => "nothing",
            (false, Some(file)) => file,
            (false, None) => "FAILED, see its log",
        };
        rows.push(vec![
            outcome.target.clone(),
            number(figures.runs),
            number(figures.coverage),
            found.to_owned(),
        ]);
    }
    let align = [Align::Left, Align::Right, Align::Right, Align::Left];
    table::render(&align, &rows)
}

/// As much as tells what was broken.
fn end_of(log: &Path) -> String {
    const LINES: usize = 40;
    let said = fs::read(log).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

impl Figures {
    fn read(log: &str) -> Self {
        let mut figures = Self::default();
        for line in log.lines() {
            if let Some(runs) = line.strip_prefix("stat::number_of_executed_units:") {
                figures.runs = runs.trim().parse().ok();
            }
            if let Some((_, rest)) = line.split_once(" cov: ") {
                let coverage = rest.split_whitespace().next();
                figures.coverage = coverage.and_then(|it| it.parse().ok()).or(figures.coverage);
            }
            if let Some((_, file)) = line.split_once("Test unit written to ") {
                figures.found = Some(file.trim().to_owned());
            }
        }
        figures
    }
}

/// cargo-fuzz, and where it works.
struct Tool {
    directory: PathBuf,
    /// Where programs are looked for, with the cache's first.
    path: OsString,
}

impl Tool {
    /// It and its toolchain, installed if need be.
    fn ensure(directory: &Path) -> Result<Self> {
        let in_cache = Cache::of_environment()?.cargo();
        let mut path = vec![in_cache.join("bin")];
        path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        let tool = Self {
            directory: directory.to_owned(),
            path: env::join_paths(path).context("PATH cannot be used")?,
        };
        let succeeds = |command: &mut Command| {
            let silent = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
            silent.is_ok_and(|status| status.success())
        };
        if !succeeds(Command::new("rustup").args(["run", TOOLCHAIN, "rustc", "--version"])) {
            println!("Installing the {TOOLCHAIN} toolchain.");
            let mut install = Command::new("rustup");
            install.args(["toolchain", "install", TOOLCHAIN, "--profile", "minimal"]);
            if !install.status().is_ok_and(|status| status.success()) {
                bail!(
                    "the {TOOLCHAIN} toolchain could not be installed: fuzzing needs it, and rustup"
                );
            }
        }
        if !succeeds(&mut tool.command("--version")) {
            println!(
                "Installing cargo-fuzz {VERSION} into {} (once; usually about a minute on two cores).",
                in_cache.display(),
            );
            let mut install = repository::cargo();
            install.args(["install", "--locked", "--force", "cargo-fuzz"]);
            install
                .args(["--version", VERSION, "--root"])
                .arg(&in_cache);
            if !install.status().is_ok_and(|status| status.success()) {
                bail!("cargo-fuzz could not be installed: install it yourself, in your path");
            }
        }
        Ok(tool)
    }

    /// `cargo fuzz`, by the nightly toolchain: the cargo that runs us is another one's.
    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new("rustup");
        command
            .args(["run", TOOLCHAIN, "cargo", "fuzz", verb])
            .current_dir(&self.directory)
            .env("PATH", &self.path)
            .env_remove("CARGO")
            .env_remove("RUSTUP_TOOLCHAIN");
        command
    }

    fn log(&self, target: &str) -> PathBuf {
        self.directory.join(format!("target/{target}.log"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_libfuzzer_says_is_read() {
        let clean = "#2\tINITED cov: 61 ft: 62 corp: 1/1b exec/s: 0 rss: 48Mb\n\
            #1048576\tpulse  cov: 412 ft: 1033 corp: 210/5Kb exec/s: 99864 rss: 71Mb\n\
            stat::number_of_executed_units: 1263401\n";
        let figures = Figures {
            runs: Some(1_263_401),
            coverage: Some(412),
            found: None,
        };
        assert_eq!(Figures::read(clean), figures);
        let found =
            "artifact_prefix='artifacts/host/'; Test unit written to artifacts/host/crash-1\n";
        let found = Figures::read(found).found;
        assert_eq!(found.as_deref(), Some("artifacts/host/crash-1"));
    }

    #[test]
    fn every_target_of_the_manifest_is_known_and_no_other_is_taken() {
        let directory = repository::root().join("fuzz");
        let known = known(&directory.join("fuzz_targets")).unwrap();
        let manifest = fs::read_to_string(directory.join("Cargo.toml")).unwrap();
        for target in &known {
            let path = format!("path = \"fuzz_targets/{target}.rs\"");
            assert!(manifest.contains(&path), "{target} is not in the manifest");
        }
        assert_eq!(manifest.matches("[[bin]]").count(), known.len());
        assert_eq!(chosen(Some("host"), known.clone()).unwrap(), ["host"]);
        let refused = chosen(Some("hosts"), known).unwrap_err();
        assert!(refused.to_string().contains("exposition"), "{refused}");
    }
}
