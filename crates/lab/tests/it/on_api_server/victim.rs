//! A user of a server in a process of its own, which tests end in various ways.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use weir_lab::marks;

/// Longer than a keeper waits for a server's processes before it kills them, also on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// A running `lab-hold`.
pub(super) struct Victim {
    child: Child,
    pub(super) kubeconfig: PathBuf,
}

/// A `lab-hold` that may not have its server yet.
pub(super) struct Starting {
    child: Child,
}

impl Starting {
    pub(super) fn spawn(directory: &Path) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_lab-hold"))
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // One of them panics on purpose; its backtrace would only confuse.
            .env("RUST_BACKTRACE", "0")
            .process_group(0)
            .spawn()
            .unwrap();
        Self { child }
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn ready(mut self) -> Victim {
        let mut line = String::new();
        let output = self.child.stdout.as_mut().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "the victim ended before it had a server");
        Victim {
            kubeconfig: line.trim().into(),
            child: self.child,
        }
    }

    pub(super) fn signal(mut self, signal: Signal) {
        send(&self.child, signal);
        self.child.wait().unwrap();
    }
}

impl Victim {
    pub(super) fn start(directory: &Path) -> Self {
        Starting::spawn(directory).ready()
    }

    /// Is its server well? One that is slow to answer is.
    pub(super) fn serves(&self) -> bool {
        let cache = weir_lab::cache::Cache::of_environment().unwrap();
        let kubectl = weir_lab::tools::Programs::of(&cache).kubectl;
        marks::until(PATIENCE, || {
            let kubectl = weir_lab::server::kubectl(&kubectl, &self.kubeconfig);
            weir_lab::control_plane::answers(kubectl, "/readyz")
        })
    }

    /// Sends the signal to its whole process group, as Ctrl-C does, and waits for its end.
    pub(super) fn signal_group(mut self, signal: Signal) {
        let group = Pid::from_child(&self.child);
        rustix::process::kill_process_group(group, signal).unwrap();
        self.child.wait().unwrap();
    }

    pub(super) fn signal(mut self, signal: Signal) {
        send(&self.child, signal);
        self.child.wait().unwrap();
    }

    pub(super) fn panic(mut self) {
        self.child
            .stdin
            .take()
            .unwrap()
            .write_all(b"panic\n")
            .unwrap();
        assert!(!self.child.wait().unwrap().success());
    }

    /// The polite end: it sees the end of its input.
    pub(super) fn leave(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// The processes of this server that are this part.
pub(super) fn part(directory: &Path, part: &str) -> Vec<i32> {
    let of_server = marks::of(directory).into_iter();
    of_server
        .filter(|process| process.part == part)
        .map(|process| process.pid)
        .collect()
}

/// Waits until no process and no file of this server is left.
pub(super) fn assert_all_gone(directory: &Path) {
    let gone = marks::until(PATIENCE, || {
        marks::of(directory).is_empty() && !directory.exists()
    });
    assert!(
        gone,
        "left behind: {:?}, {}",
        marks::of(directory),
        directory.display()
    );
}

/// Waits until this part of the server runs: a process that is just being executed shows no mark yet.
pub(super) fn wait_for_part(directory: &Path, name: &str) {
    assert!(
        marks::until(PATIENCE, || !part(directory, name).is_empty()),
        "no {name}"
    );
}

/// Waits until this part has gone: a process that is sent a signal ends some time later.
pub(super) fn wait_for_no_part(directory: &Path, name: &str) {
    assert!(
        marks::until(PATIENCE, || part(directory, name).is_empty()),
        "still there: {name}"
    );
}
