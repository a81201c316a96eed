//! How one process of a cluster is started, and waited for.
//!
//! What was started is written down beside its log, so that [`crate::fault`] can start the same thing again.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use super::{ClusterError, cgroup, layout::Layout, network::Network};
use crate::{keeper, marks, tools::build::last_lines};

/// How long one part may take to become ready. Usual is 1 to 8 s; a busy machine takes longer.
pub const PATIENCE: Duration = Duration::from_mins(5);
const GLANCE: Duration = Duration::from_millis(100);
/// How many lines of a part's log an error carries.
const LINES_OF_LOG: usize = 20;

/// Enters the cgroups whose files are named before `--`, and then becomes what is named after it.
const JOIN_CGROUP: &str =
    r#"while [ "$1" != -- ]; do echo $$ >"$1" || exit 1; shift; done; shift; exec "$@""#;
/// Sees the network namespace's own devices in /sys, then becomes what is named.
const OWN_SYS: &str = r#"mount -t sysfs sysfs /sys && exec "$@""#;

/// A process to be.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Launch {
    /// Its name in marks, logs and messages.
    pub part: String,
    /// What to run.
    pub program: PathBuf,
    /// With what arguments.
    pub arguments: Vec<String>,
    /// With what in its environment, beside what all have.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// In which network namespace.
    pub network: PathBuf,
    /// In which cgroup, if not in the starter's.
    #[serde(default)]
    pub cgroup: Option<PathBuf>,
    /// Whether its /sys shows the devices of its network namespace. Not for those that need cgroups, which are
    /// mounted below the machine's /sys.
    #[serde(default)]
    pub own_sys: bool,
}

impl Launch {
    /// A program in this network namespace.
    pub fn new(part: impl Into<String>, program: PathBuf, network: &Network) -> Self {
        Self {
            part: part.into(),
            program,
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            network: network.file().to_owned(),
            cgroup: None,
            own_sys: false,
        }
    }

    /// The same, with these arguments as well.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// The same, with this in its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.insert(name.to_owned(), value.into());
        self
    }

    /// The same, in a cgroup.
    #[must_use]
    pub fn in_cgroup(mut self, path: PathBuf) -> Self {
        self.cgroup = Some(path);
        self
    }

    /// The one that was started as this part last.
    pub fn of_part(layout: &Layout, part: &str) -> Option<Self> {
        let text = fs::read(record(layout.state_directory(), part)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Starts it in a session of its own, marked as ours; its log goes on where an earlier one ended.
    pub fn start(&self, layout: &Layout) -> Result<Child, ClusterError> {
        let cannot_run = |source| ClusterError::Run {
            program: self.program.clone(),
            source,
        };
        let directory = layout.state_directory();
        let text = serde_json::to_vec_pretty(self).map_err(|e| cannot_run(e.into()))?;
        fs::write(record(directory, &self.part), text).map_err(cannot_run)?;
        let log = File::options()
            .create(true)
            .append(true)
            .open(keeper::log_file(directory, &self.part))
            .map_err(cannot_run)?;
        let mut command = self.command();
        command
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(cannot_run)?)
            .stderr(log);
        // What people set for programs of theirs is not meant for these: a proxy least of all.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().to_lowercase().ends_with("_proxy") {
                command.env_remove(name);
            }
        }
        command.envs(&self.environment);
        marks::mark(&mut command, directory, &self.part);
        let network = Network::at(self.network.clone());
        let started = network.inside(|| command.spawn());
        started.and_then(|child| child).map_err(cannot_run)
    }

    /// `setsid` and the shells become the program in the end, so the child's id is the program's.
    fn command(&self) -> Command {
        let mut command = Command::new("setsid");
        if let Some(path) = &self.cgroup {
            command.args(["sh", "-c", JOIN_CGROUP, "join-cgroup"]);
            command.args(cgroup::files_to_join(path)).arg("--");
        }
        if self.own_sys {
            command.args(["unshare", "--mount", "sh", "-c", OWN_SYS, "own-sys"]);
        }
        command.arg(&self.program).args(&self.arguments);
        command
    }
}

fn record(state_directory: &Path, part: &str) -> PathBuf {
    state_directory.join(format!("{part}.launch.json"))
}

/// Waits until this part is ready; if it ends or takes too long, the error has the end of its log.
pub fn wait_until_ready(
    layout: &Layout,
    part: &str,
    child: &mut Child,
    ready: impl FnMut() -> bool,
) -> Result<(), ClusterError> {
    wait(layout, part, ready, || {
        let status = child.try_wait().ok().flatten()?;
        Some(format!("has ended with {status}"))
    })
}

/// The same for something whose process is none of ours.
pub fn wait_for(
    layout: &Layout,
    part: &str,
    ready: impl FnMut() -> bool,
) -> Result<(), ClusterError> {
    wait(layout, part, ready, || None)
}

fn wait(
    layout: &Layout,
    part: &str,
    mut ready: impl FnMut() -> bool,
    mut has_ended: impl FnMut() -> Option<String>,
) -> Result<(), ClusterError> {
    let failed = |what: String| ClusterError::Part {
        part: part.to_owned(),
        what,
        lines: end_of_log(layout, part),
    };
    let deadline = Instant::now() + PATIENCE;
    while !ready() {
        if let Some(what) = has_ended() {
            return Err(failed(what));
        }
        if Instant::now() >= deadline {
            let what = format!("is not ready after {} s", PATIENCE.as_secs());
            return Err(failed(what));
        }
        std::thread::sleep(GLANCE);
    }
    Ok(())
}

/// The last lines of a part's log.
pub fn end_of_log(layout: &Layout, part: &str) -> String {
    let log: io::Result<Vec<u8>> = fs::read(keeper::log_file(layout.state_directory(), part));
    last_lines(
        &String::from_utf8_lossy(&log.unwrap_or_default()),
        LINES_OF_LOG,
    )
}
