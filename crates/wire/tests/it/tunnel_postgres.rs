//! PostgreSQL that sleeps: Debian's server and its client, `psql`, which first asks whether the server speaks TLS.

use std::{
    env, fs,
    net::SocketAddr,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::{Duration, sleep},
};
use weir_wire::{backend::End, sniff::Spoken};

use crate::{
    bed::{Note, Way, in_time},
    endpoint::Endpoint,
    tunnel::bed,
};

/// PostgreSQL does not run as root.
const NOBODY: u32 = 65534;

/// A server with a directory of its own. It ends when it is dropped.
struct Postgres {
    programs: PathBuf,
    directory: TempDir,
    address: SocketAddr,
    server: Option<Child>,
}

/// Where the server's programs are. If there are none, that is said loudly, and in CI it is a failure.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let programs = versions.flatten().map(|version| version.path().join("bin"));
    let found = programs
        .filter(|programs| programs.join("initdb").exists() && programs.join("psql").exists())
        .max();
    if found.is_none() {
        let message =
            "PostgreSQL is not installed (apt-get install postgresql): its test is LEFT OUT";
        assert_ne!(env::var("CI").as_deref(), Ok("true"), "{message}");
        eprintln!("{message}");
    }
    found
}

impl Postgres {
    async fn new(programs: PathBuf) -> Self {
        let directory = tempfile::tempdir().unwrap();
        if geteuid().is_root() {
            chown(directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let postgres = Self {
            programs,
            directory,
            address: Endpoint::nowhere(),
            server: None,
        };
        let data = postgres.data();
        let mut initdb = postgres.program("initdb");
        initdb.args(["--username=weir", "--auth=trust", "--no-sync", "--pgdata"]);
        let output = in_time("initdb", initdb.arg(&data).output()).await.unwrap();
        assert!(output.status.success(), "{output:?}");
        postgres
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// One of the server's programs, as somebody who may run it.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.current_dir(self.directory.path());
        if geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// Starts it, as a pod would be; returns when it takes connections.
    async fn start(&mut self) {
        let port = self.address.port().to_string();
        let mut server = self.program("postgres");
        server.arg("-D").arg(self.data()).args(["-p", &port]);
        for setting in [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "fsync=off",
        ] {
            server.args(["-c", setting]);
        }
        let log = self.directory.path().join("log");
        let said = fs::File::create(&log).unwrap();
        server.stdout(Stdio::null()).stderr(said);
        let mut running = server.spawn().unwrap();
        let is_ready = async {
            loop {
                if let Some(ended) = running.try_wait().unwrap() {
                    let said = fs::read_to_string(&log).unwrap_or_default();
                    panic!("PostgreSQL has ended with {ended}:\n{said}");
                }
                let mut ask = Command::new(self.programs.join("pg_isready"));
                ask.args(["-q", "-h", "127.0.0.1", "-p", &port]);
                if ask.status().await.unwrap().success() {
                    return;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        in_time("the server is ready", is_ready).await;
        self.server = Some(running);
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let id = self.server.as_ref().and_then(Child::id);
        let id = id.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(id) = id {
            // Its children end with it.
            let _ = kill_process(id, Signal::QUIT);
        }
    }
}

/// What the client says to this.
async fn psql(programs: &Path, way: &Way, statement: &str) -> Output {
    let mut psql = Command::new(programs.join("psql"));
    let port = way.port.to_string();
    psql.args(["-X", "-A", "-t", "-h", "127.0.0.1", "-p", &port]);
    psql.args(["-U", "weir", "-d", "postgres", "-c", statement]);
    in_time(statement, psql.output()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_is_woken_by_its_client() {
    let Some(programs) = programs() else {
        return;
    };
    let mut postgres = Postgres::new(programs.clone()).await;
    let bed = bed(Spoken::Unknown);
    let named = bed.add("named", 1);
    bed.speaks(&named, Spoken::Tcp);
    // Both ask while it sleeps.
    let wakes = async {
        bed.main.waiting(1).await;
        named.waiting(1).await;
        postgres.start().await;
        for way in [&bed.main, &named] {
            way.backend.set_endpoints(&[postgres.address]);
        }
    };
    let ask = |way| psql(&programs, way, "select 6 * 7");
    let (first, second, ()) = tokio::join!(ask(&bed.main), ask(&named), wakes);
    for output in [first, second] {
        assert!(output.status.success(), "{output:?}");
        assert_eq!(output.stdout, b"42\n");
    }

    // Much in each direction, now that it is awake.
    let literal = "x".repeat(100_000);
    let statement = format!("select length('{literal}')");
    let output = psql(&programs, &named, &statement).await;
    assert_eq!(output.stdout, b"100000\n", "{output:?}");
    let rows = "select repeat('y', 1023) from generate_series(1, 8192)";
    let output = psql(&programs, &bed.main, rows).await;
    assert_eq!(output.stdout.len(), 8 << 20);
    for way in [&bed.main, &named] {
        way.notes.has(&Note::Carried(End::Done), 2).await;
        assert_eq!(way.notes.count(&Note::Waits(1)), 1);
    }
}
