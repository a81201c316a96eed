//! Builds a [`Tool`] from its Go module, with nothing but a Go toolchain and a module proxy.
//!
//! `go install package@version` refuses modules with replace directives, so each tool gets a small wrapper
//! module that repeats them ([`super::replace`]) and builds the packages as its dependencies. Checksum
//! verification stays on. One build at a time on a machine: the lock file is shared by all that build.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde::Deserialize;

use super::{Package, Tool, go, replace};
use crate::cache::Cache;

/// How many lines of Go's output an error carries.
const LINES_OF_LOG: usize = 20;

/// What is going on, for whoever waits.
#[derive(Debug)]
pub enum Progress {
    /// Someone else builds; we wait for them and then see what is left to do.
    WaitingForAnotherBuild,
    /// Source is being fetched.
    Fetching(&'static Tool),
    /// A program is being compiled.
    Compiling(&'static Tool, &'static str),
    /// A program is done.
    Built {
        /// Its name.
        program: &'static str,
        /// Its size.
        bytes: u64,
        /// How long compiling took.
        took: Duration,
    },
}

/// Why a tool could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No usable Go.
    #[error(transparent)]
    Go(#[from] go::GoError),
    /// The cache cannot be written to.
    #[error(
        "cannot write to the cache at {path}; make it writable or set WEIR_CACHE to another directory"
    )]
    Cache {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// `go` could not be started at all.
    #[error("cannot run `{command}`")]
    Run {
        /// What was to be run.
        command: String,
        /// Why it was not.
        source: io::Error,
    },
    /// The disk is full.
    #[error(
        "no space left on the disk while building {tool}: Go's caches need 5 GB and the programs 0.3 GB; free some or set WEIR_CACHE, GOCACHE and GOMODCACHE to a larger disk"
    )]
    DiskFull {
        /// What was being built.
        tool: &'static str,
    },
    /// `go` failed.
    #[error(
        "`{command}` failed while building {tool}; its last lines (all of them are in {log}):\n{lines}"
    )]
    Failed {
        /// What was being built.
        tool: &'static str,
        /// What was run.
        command: String,
        /// Where all output is.
        log: PathBuf,
        /// The end of it.
        lines: String,
    },
    /// `go` printed something that we do not understand.
    #[error("`{command}` printed something unexpected")]
    Output {
        /// What was run.
        command: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// Builds those of `tools` that are missing; `tell` hears what happens meanwhile.
pub fn build(
    tools: &[&'static Tool],
    cache: &Cache,
    tell: &mut dyn FnMut(Progress),
) -> Result<(), BuildError> {
    if super::missing(tools, cache).is_empty() {
        return Ok(());
    }
    go::find()?;
    let _only_builder = lock(cache, tell)?;
    for tool in super::missing(tools, cache) {
        Build::new(tool, cache)?.run(tell)?;
    }
    Ok(())
}

/// Held while building; the kernel releases it, however we end.
fn lock(cache: &Cache, tell: &mut dyn FnMut(Progress)) -> Result<File, BuildError> {
    let path = cache.tools().join("build.lock");
    let cannot_write = |source| BuildError::Cache {
        path: path.clone(),
        source,
    };
    fs::create_dir_all(cache.tools()).map_err(cannot_write)?;
    let file = File::create(&path).map_err(cannot_write)?;
    if file.try_lock().is_err() {
        tell(Progress::WaitingForAnotherBuild);
        file.lock().map_err(cannot_write)?;
    }
    Ok(file)
}

/// One tool on its way.
struct Build<'a> {
    tool: &'static Tool,
    cache: &'a Cache,
    /// The wrapper module.
    wrapper: PathBuf,
    log: PathBuf,
}

impl<'a> Build<'a> {
    fn new(tool: &'static Tool, cache: &'a Cache) -> Result<Self, BuildError> {
        let wrapper = cache.tools().join("build").join(tool.name);
        let build = Self {
            tool,
            cache,
            log: wrapper.join("build.log"),
            wrapper,
        };
        if build.wrapper.exists() {
            fs::remove_dir_all(&build.wrapper)
                .map_err(|e| build.cannot_write(&build.wrapper, e))?;
        }
        for directory in [&build.wrapper, &tool.directory(cache)] {
            fs::create_dir_all(directory).map_err(|e| build.cannot_write(directory, e))?;
        }
        Ok(build)
    }

    fn run(&self, tell: &mut dyn FnMut(Progress)) -> Result<(), BuildError> {
        tell(Progress::Fetching(self.tool));
        self.make_wrapper()?;
        for package in self.tool.packages {
            tell(Progress::Compiling(self.tool, package.program));
            let began = Instant::now();
            let bytes = self.compile(package)?;
            tell(Progress::Built {
                program: package.program,
                bytes,
                took: began.elapsed(),
            });
        }
        let stamp = self.tool.stamp(self.cache);
        let unfinished = stamp.with_extension("building");
        fs::write(&unfinished, self.tool.recipe())
            .map_err(|e| self.cannot_write(&unfinished, e))?;
        fs::rename(&unfinished, &stamp).map_err(|e| self.cannot_write(&stamp, e))
    }

    fn make_wrapper(&self) -> Result<(), BuildError> {
        let Tool {
            name,
            module,
            version,
            packages,
            ..
        } = self.tool;
        self.go(&["mod", "init", &format!("weir-lab/{name}")])?;

        let downloaded = self.go(&["mod", "download", "-json", &format!("{module}@{version}")])?;
        let Download { go_mod } = parse("go mod download -json", &downloaded)?;
        let go_mod = self.go(&["mod", "edit", "-json", &go_mod])?;
        let flags =
            replace::wrapper_flags(&go_mod, version).map_err(|source| BuildError::Output {
                command: "go mod edit -json".to_owned(),
                source,
            })?;
        self.go(&[
            vec!["mod", "edit"],
            flags.iter().map(String::as_str).collect(),
        ]
        .concat())?;

        let wanted = |package: &Package| format!("{}@{version}", package.import_path(module));
        let wanted: Vec<String> = packages.iter().map(wanted).collect();
        self.go(&[
            vec!["get", "-tool"],
            wanted.iter().map(String::as_str).collect(),
        ]
        .concat())?;
        Ok(())
    }

    /// Compiles to a name of its own first, so that half a program never has the real name.
    fn compile(&self, package: &Package) -> Result<u64, BuildError> {
        let program = self.tool.directory(self.cache).join(package.program);
        let unfinished = program.with_extension("building");
        let ldflags = format!("-ldflags=-s -w {}", self.tool.ldflags);
        let import_path = package.import_path(self.tool.module);
        let out = unfinished.to_string_lossy();
        let built = self.go(&["build", "-trimpath", &ldflags, "-o", &out, &import_path]);
        built.inspect_err(|_| {
            // Half a program is of use to nobody, least of all on a full disk.
            let _ = fs::remove_file(&unfinished);
        })?;
        fs::rename(&unfinished, &program).map_err(|e| self.cannot_write(&program, e))?;
        fs::metadata(&program)
            .map(|m| m.len())
            .map_err(|e| self.cannot_write(&program, e))
    }

    /// Runs `go` in the wrapper and returns what it prints; what it says on stderr goes to the log.
    fn go(&self, args: &[&str]) -> Result<String, BuildError> {
        let command = format!("go {}", args.join(" "));
        let output = Command::new("go")
            .args(args)
            .current_dir(&self.wrapper)
            .env("CGO_ENABLED", "0")
            .env("GOFLAGS", "-buildvcs=false")
            .env("GOWORK", "off")
            .stdin(Stdio::null())
            .output()
            .map_err(|source| BuildError::Run {
                command: command.clone(),
                source,
            })?;
        let told = String::from_utf8_lossy(&output.stderr);
        self.note(&format!("$ {command}\n{told}\n"));
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let tool = self.tool.name;
        if told.contains("no space left on device") {
            return Err(BuildError::DiskFull { tool });
        }
        let lines = last_lines(&told, LINES_OF_LOG);
        Err(BuildError::Failed {
            tool,
            command,
            log: self.log.clone(),
            lines,
        })
    }

    /// The log is for people; that a line of it is missing, on a full disk say, must not hide what went wrong.
    fn note(&self, text: &str) {
        if let Ok(mut log) = File::options().create(true).append(true).open(&self.log) {
            let _ = log.write_all(text.as_bytes());
        }
    }

    fn cannot_write(&self, path: &Path, source: io::Error) -> BuildError {
        if source.kind() == io::ErrorKind::StorageFull {
            return BuildError::DiskFull {
                tool: self.tool.name,
            };
        }
        BuildError::Cache {
            path: path.to_owned(),
            source,
        }
    }
}

/// The part of `go mod download -json` that matters here.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Download {
    go_mod: String,
}

fn parse<T: for<'de> Deserialize<'de>>(command: &str, output: &str) -> Result<T, BuildError> {
    serde_json::from_str(output).map_err(|source| BuildError::Output {
        command: command.to_owned(),
        source,
    })
}

/// The end of a text, for an error message.
pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}
