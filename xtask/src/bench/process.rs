//! A program that runs beside a benchmark, and ends with the value that stands for it.
//!
//! It also ends when the benchmark is killed: `setpriv` (util-linux) has the kernel tell it. What `/proc` says
//! about it is read by [`usage`].

pub(super) mod usage;

use std::{
    ffi::OsStr,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

/// How long a program may take to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(3);

/// A running program.
pub(super) struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    is_asked_first: bool,
}

/// A command that ends when the thread that started it does, on one core if one is given.
pub(super) fn command(program: impl AsRef<OsStr>, core: Option<usize>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "--"]);
    if let Some(core) = core {
        command.args(["taskset", "--cpu-list", &core.to_string()]);
    }
    command.arg(program);
    command
}

/// Waits until `is_so`, asking again and again.
pub(super) fn wait_until(
    what: &str,
    patience: Duration,
    mut is_so: impl FnMut() -> bool,
) -> Result<()> {
    let deadline = Instant::now() + patience;
    while !is_so() {
        if Instant::now() > deadline {
            bail!("waited {} s in vain: {what}", patience.as_secs());
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

impl Process {
    /// Starts it, with what it says in a log below `home`.
    pub(super) fn start(name: &str, mut command: Command, home: &Path) -> Result<Self> {
        let log = home.join(format!("{name}.log"));
        let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?);
        let child = command.stderr(file).spawn();
        Ok(Self {
            name: name.to_owned(),
            child: child.with_context(|| format!("cannot run {name}"))?,
            log,
            is_asked_first: true,
        })
    }

    /// It will be killed at its end instead of being asked to end; for programs without children that take their
    /// time.
    pub(super) fn killed_at_the_end(mut self) -> Self {
        self.is_asked_first = false;
        self
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.id()).ok().and_then(Pid::from_raw);
        let pid = pid.with_context(|| format!("{} has no process id", self.name))?;
        kill_process(pid, signal).with_context(|| format!("cannot signal {}", self.name))
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Waits until it ends by itself.
    pub(super) fn wait(&mut self) -> Result<ExitStatus> {
        let status = self.child.wait();
        status.with_context(|| format!("cannot wait for {}", self.name))
    }

    /// Waits until `is_ready`; fails with what the program has said if it ends or takes too long.
    pub(super) fn wait_until_ready(&mut self, mut is_ready: impl FnMut() -> bool) -> Result<()> {
        let mut ended = None;
        let waited = wait_until("it is not ready", Duration::from_secs(10), || {
            ended = self.ended();
            ended.is_some() || is_ready()
        });
        if waited.is_ok() && ended.is_none() {
            return Ok(());
        }
        let how = ended.map_or_else(
            || "did not become ready".to_owned(),
            |s| format!("ended: {s}"),
        );
        bail!("{} {how}; it said:\n{}", self.name, self.said());
    }

    /// The end of its log.
    pub(super) fn said(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_asked_first && self.ended().is_none() {
            // nginx's master must be asked, or its worker would stay.
            let _ = self.signal(Signal::TERM);
            let _ = wait_until("it ends", PATIENCE, || self.ended().is_some());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
