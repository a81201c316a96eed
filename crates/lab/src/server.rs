//! Takes the running server of a state directory, or starts one; a [`Server`] is one user of it.
//!
//! This is where the pieces meet: [`crate::users`] says that we use it, a start lock lets one process start
//! it while others wait, [`crate::control_plane`] says what to run, [`crate::keeper`] stops it in the end.

use std::{
    fs::{self, File},
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::{Path, PathBuf},
    process::{Child, Command},
    time::{Duration, Instant},
};

use crate::{
    cache::Cache,
    control_plane::{self, Part, Reach, Without},
    keeper, marks, pki,
    ports::{self, Ports},
    random::random_suffix,
    state::State,
    tools::{self, Programs, build::last_lines},
    users,
};

/// How long one part may take to become ready. Usual is 1 to 2 s; a busy machine takes longer.
const PATIENCE: Duration = Duration::from_mins(1);
const GLANCE: Duration = Duration::from_millis(50);
/// How many lines of a part's log an error carries.
const LINES_OF_LOG: usize = 20;

/// The controller that takes a Node which does not beat for lost, within a minute.
pub const NODE_LIFECYCLE: &str = "node-lifecycle-controller";

/// A running API server, and our right to use it: it ends when the last such value has gone.
#[derive(Debug)]
pub struct Server {
    state_directory: PathBuf,
    programs: Programs,
    without: Without,
    /// The shared lock; dropped with this value, or by the kernel with this process.
    _user: File,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Programs are missing.
    #[error("{0} is not built: run `cargo xtask tools build`")]
    NotBuilt(String),
    /// util-linux is missing.
    #[error("`{0}` is not installed: it is part of util-linux, which every Linux distribution has")]
    NoUtilLinux(&'static str),
    /// The state directory cannot be used.
    #[error("cannot use {path}; make it writable or set WEIR_CACHE to another directory")]
    StateDirectory {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Certificates could not be made.
    #[error(transparent)]
    Pki(#[from] pki::PkiError),
    /// No free port could be found.
    #[error("no free port on 127.0.0.1")]
    Ports(#[from] io::Error),
    /// A program could not be run at all.
    #[error("cannot run {program}")]
    Run {
        /// Which one.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A part ended or did not become ready.
    #[error("{part} {what}; the last lines of its log:\n{lines}")]
    Part {
        /// Which one.
        part: &'static str,
        /// What happened to it.
        what: String,
        /// The end of its log.
        lines: String,
    },
    /// Old processes do not go away.
    #[error("an old server cannot be stopped: end the processes {0:?} yourself")]
    Stuck(Vec<i32>),
}

impl StartError {
    fn is_taken_port(&self) -> bool {
        matches!(self, Self::Part { lines, .. } if lines.contains("address already in use"))
    }
}

impl Server {
    /// The server that everyone on this machine shares.
    pub fn shared(cache: &Cache) -> Result<Self, StartError> {
        Self::in_cache(cache, &shared())
    }

    /// A server that nobody else uses; it ends soon after this value is dropped.
    pub fn fresh(cache: &Cache) -> Result<Self, StartError> {
        Self::in_cache(cache, &format!("fresh-{}", random_suffix()))
    }

    /// The same, where these of Kubernetes' own controllers do not run: among thousands of objects they would be most of
    /// what happens.
    pub fn fresh_without(cache: &Cache, controllers: Without) -> Result<Self, StartError> {
        let name = format!("fresh-{}", random_suffix());
        Self::prepared(cache)?;
        Self::take_with(&cache.run().join(name), &Programs::of(cache), controllers)
    }

    /// The server of this name in the cache's run directory.
    pub fn in_cache(cache: &Cache, name: &str) -> Result<Self, StartError> {
        Self::prepared(cache)?;
        Self::take(&cache.run().join(name), &Programs::of(cache))
    }

    fn prepared(cache: &Cache) -> Result<(), StartError> {
        if let Some(tool) = tools::missing(tools::CONTROL_PLANE, cache).first() {
            return Err(StartError::NotBuilt(tool.to_string()));
        }
        keeper::sweep(&cache.run());
        Ok(())
    }

    /// Where the shared server has its state, whether it runs or not.
    pub fn shared_directory(cache: &Cache) -> PathBuf {
        cache.run().join(shared())
    }

    /// Takes the server of this state directory, and starts it if it does not run or is not well.
    pub fn take(state_directory: &Path, programs: &Programs) -> Result<Self, StartError> {
        Self::take_with(state_directory, programs, &[])
    }

    fn take_with(
        state_directory: &Path,
        programs: &Programs,
        without: Without,
    ) -> Result<Self, StartError> {
        for program in ["setsid", "flock"] {
            if !is_in_path(program) {
                return Err(StartError::NoUtilLinux(program));
            }
        }
        let cannot_use = |source| StartError::StateDirectory {
            path: state_directory.to_owned(),
            source,
        };
        let user = users::join(state_directory).map_err(cannot_use)?;
        let server = Self {
            state_directory: state_directory.to_owned(),
            programs: programs.clone(),
            without,
            _user: user,
        };

        // From here on nobody removes the directory: we are a user.
        let starts = File::create(state_directory.join("start.lock")).map_err(cannot_use)?;
        starts.lock().map_err(cannot_use)?;
        if server.is_well() {
            keeper::ensure(state_directory).map_err(cannot_use)?;
        } else {
            ports::retry(StartError::is_taken_port, |ports| server.start(ports))?;
        }
        Ok(server)
    }

    /// The kubeconfig of cluster-admin.
    pub fn kubeconfig(&self) -> PathBuf {
        pki::admin_kubeconfig(&self.state_directory)
    }

    /// Where the server's state is: logs, certificates, data.
    pub fn state_directory(&self) -> &Path {
        &self.state_directory
    }

    /// kubectl as cluster-admin, ready for arguments.
    pub fn kubectl(&self) -> Command {
        kubectl(&self.programs.kubectl, &self.kubeconfig())
    }

    /// Does the server of this directory run, and answer?
    ///
    /// One that runs is given time to answer: on a busy machine it may be slow, and others may be using it.
    fn is_well(&self) -> bool {
        let version = State::read(&self.state_directory).map(|state| state.kubernetes);
        if version.as_deref() != Some(tools::KUBERNETES.version) {
            return false;
        }
        let deadline = Instant::now() + PATIENCE;
        while self.all_parts_run() && Instant::now() < deadline {
            if control_plane::answers(self.kubectl(), "/readyz") {
                return true;
            }
            std::thread::sleep(GLANCE);
        }
        false
    }

    fn all_parts_run(&self) -> bool {
        let processes = marks::of(&self.state_directory);
        control_plane::PARTS
            .iter()
            .all(|part| processes.iter().any(|p| p.part == *part))
    }

    /// Clears away what is left of an older server and starts all parts.
    fn start(&self, ports: Ports) -> Result<(), StartError> {
        let began = Instant::now();
        self.clear()?;
        pki::write(&self.state_directory, ports.api_server)?;
        let cannot_use = |source| StartError::StateDirectory {
            path: self.state_directory.clone(),
            source,
        };
        // The keeper first: should we be killed while starting, it clears away what we had started.
        keeper::ensure(&self.state_directory).map_err(cannot_use)?;
        for part in control_plane::parts(
            &self.programs,
            &self.state_directory,
            ports,
            Reach::Loopback,
            self.without,
        ) {
            self.start_part(&part).inspect_err(|_| {
                marks::stop(&self.state_directory);
            })?;
        }
        let state = State {
            kubernetes: tools::KUBERNETES.version.to_owned(),
            url: format!("https://127.0.0.1:{}", ports.api_server),
            started_in_milliseconds: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        state.write(&self.state_directory).map_err(cannot_use)
    }

    fn clear(&self) -> Result<(), StartError> {
        let cannot_use = |source| StartError::StateDirectory {
            path: self.state_directory.clone(),
            source,
        };
        State::forget(&self.state_directory).map_err(cannot_use)?;
        let left = marks::stop(&self.state_directory);
        if !left.is_empty() {
            return Err(StartError::Stuck(
                left.iter().map(|process| process.pid).collect(),
            ));
        }
        match fs::remove_dir_all(self.state_directory.join("etcd")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot_use(error)),
            _ => Ok(()),
        }
    }

    fn start_part(&self, part: &Part) -> Result<(), StartError> {
        let cannot_run = |source| StartError::Run {
            program: part.program.clone(),
            source,
        };
        let mut command = keeper::detached(&part.program, &self.state_directory, part.name)
            .map_err(cannot_run)?;
        // A server of tests is short-lived: a third of its work would be to keep its memory small.
        command.args(&part.arguments).env("GOGC", "400");
        let mut child = command.spawn().map_err(cannot_run)?;
        self.wait_until_ready(part, &mut child)
    }

    fn wait_until_ready(&self, part: &Part, child: &mut Child) -> Result<(), StartError> {
        let failed = |what: String| {
            let log = fs::read(keeper::log_file(&self.state_directory, part.name));
            let log = log.unwrap_or_default();
            let lines = last_lines(&String::from_utf8_lossy(&log), LINES_OF_LOG);
            StartError::Part {
                part: part.name,
                what,
                lines,
            }
        };
        let deadline = Instant::now() + PATIENCE;
        while !part.ready.is_so(|| self.kubectl()) {
            if let Ok(Some(status)) = child.try_wait() {
                return Err(failed(format!("has ended with {status}")));
            }
            if Instant::now() >= deadline {
                return Err(failed(format!(
                    "is not ready after {} s",
                    PATIENCE.as_secs()
                )));
            }
            std::thread::sleep(GLANCE);
        }
        Ok(())
    }
}

/// kubectl for the server of this kubeconfig; what it caches lies beside it, not in the home directory.
pub fn kubectl(program: &Path, kubeconfig: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("KUBECONFIG", kubeconfig);
    if let Some(directory) = kubeconfig.parent() {
        command.env("KUBECACHEDIR", directory.join("kubectl-cache"));
    }
    command
}

/// The state directory of the shared server: one for each version, for each checkout, whose tests install
/// its own definitions, and for each container, which would not see the processes of another.
fn shared() -> String {
    let mut identity = DefaultHasher::new();
    env!("CARGO_MANIFEST_DIR").hash(&mut identity);
    fs::read_link("/proc/self/ns/pid").ok().hash(&mut identity);
    let identity = identity.finish() & 0xffff_ffff;
    format!("shared-{}-{identity:08x}", tools::KUBERNETES.version)
}

pub(crate) fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}
