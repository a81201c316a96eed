//! Which processes belong to a server: those that carry its mark in their environment.
//!
//! Every process that the lab starts has `WEIR_LAB=<state directory>` and `WEIR_LAB_PART=<what it is>`. A
//! list of recorded process ids would miss what was started just before its starter was killed, and would
//! name a stranger once an id is used again; the mark can do neither. `keeper.sh` looks for the same mark.

use std::{
    ffi::OsString,
    fs,
    io::Read,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, getsid, kill_process};

/// Names the state directory of the server that a process belongs to.
pub const SERVER: &str = "WEIR_LAB";
/// Names what the process is: `etcd`, `keeper`, …
pub const PART: &str = "WEIR_LAB_PART";
/// The part that keeps a server up by hand: a user of it, which outlives the server's own processes.
pub const HOLDER: &str = "holder";
/// The part that waits for the end of the last user, see [`crate::keeper`].
pub const KEEPER: &str = "keeper";

/// How long a process may take to end before it is killed.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long one that was killed may take: the kernel may be busy with its disk or its memory.
const PATIENCE_WITH_THE_KERNEL: Duration = Duration::from_mins(1);
const GLANCE: Duration = Duration::from_millis(20);
/// With pauses of 0.1 ms: the kernel makes an environment by an end that moves away from its beginning, so for a moment it
/// looks like one that is empty for good.
const LOOKS_AT_AN_EMPTY_ENVIRONMENT: u32 = 100;
/// How long a process may be about to execute a program: a busy machine may let it wait in the midst of that.
const EXECUTION: Duration = Duration::from_secs(5);
/// In bytes. Linux allows arguments and environment together 2 MiB by default; the lab's are a few kB.
const LONGEST_ENVIRONMENT: usize = 256 * 1024;

/// A process of the lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marked {
    /// Its id.
    pub pid: i32,
    /// The state directory of its server.
    pub server: PathBuf,
    /// What it is.
    pub part: String,
}

/// Marks what this command will start.
pub fn mark(command: &mut Command, state_directory: &Path, part: &str) {
    command.env(SERVER, state_directory).env(PART, part);
}

/// All processes of the lab on this machine that we may look at.
pub fn all() -> Vec<Marked> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let ids = processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut buffer = vec![0; LONGEST_ENVIRONMENT];
    ids.filter_map(|pid: i32| {
        let (server, part) = parse(environ(pid, &mut buffer)?)?;
        Some(Marked { pid, server, part })
    })
    .collect()
}

/// The environment of a process; `None` where it has none for us.
///
/// A process that executes another program has an empty one for a moment, in which a look would miss it; so
/// an empty one is looked at again.
fn environ(pid: i32, buffer: &mut [u8]) -> Option<&[u8]> {
    let deadline = Instant::now() + EXECUTION;
    let mut given_empty = 0;
    loop {
        // In one read, or what was there before an `execve` is cut off in its midst.
        let mut file = fs::File::open(format!("/proc/{pid}/environ")).ok()?;
        let length = file.read(buffer).ok()?;
        if length > 0 {
            return buffer.get(..length);
        }
        match why_empty(pid) {
            Empty::Over => return None,
            Empty::Given => given_empty += 1,
            Empty::ForNow => given_empty = 0,
        }
        if given_empty >= LOOKS_AT_AN_EMPTY_ENVIRONMENT || Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// What `/proc/…/stat` says of a process with an empty environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Empty {
    /// It has ended, or ends, or is a thread of the kernel: it will never have one.
    Over,
    /// It was given an empty one, or is just being given one.
    Given,
    /// It executes a program, and will have one when that is done; or has it since.
    ForNow,
}

fn why_empty(pid: i32) -> Empty {
    const ENDING: u32 = 0x4;
    const THREAD_OF_THE_KERNEL: u32 = 0x0020_0000;
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return Empty::Over;
    };
    // The name in parentheses may hold anything, also parentheses.
    let Some((_, after_name)) = stat.rsplit_once(')') else {
        return Empty::Over;
    };
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let (state, flags) = (fields.first(), fields.get(6));
    // Where it begins and ends; nowhere until the kernel has made it.
    let (begin, end) = (fields.get(47), fields.get(48));
    let has_ended = matches!(state, Some(&("Z" | "X")));
    let ends_or_of_the_kernel = flags
        .and_then(|flags| flags.parse::<u32>().ok())
        .is_none_or(|flags| flags & (ENDING | THREAD_OF_THE_KERNEL) != 0);
    match end {
        _ if has_ended || ends_or_of_the_kernel => Empty::Over,
        Some(&"0") => Empty::ForNow,
        _ if begin == end => Empty::Given,
        // By now the program is executed, and there is something to read.
        _ => Empty::ForNow,
    }
}

/// The processes of one server.
pub fn of(state_directory: &Path) -> Vec<Marked> {
    all()
        .into_iter()
        .filter(|process| process.server == state_directory)
        .collect()
}

/// The process that was started as this part, without those that it started itself.
///
/// Each part leads a session of its own, and what it starts stays in that session.
pub fn leader(state_directory: &Path, part: &str) -> Option<Marked> {
    of(state_directory).into_iter().find(|process| {
        let session = Pid::from_raw(process.pid).map(|pid| getsid(Some(pid)));
        process.part == part
            && session.is_some_and(|session| {
                session.is_ok_and(|session| session.as_raw_pid() == process.pid)
            })
    })
}

/// Ends the processes that a server consists of, first politely; its keeper and its holder stay.
///
/// This and the next two return what is left in the end: nothing, unless the kernel cannot end a process.
pub fn stop(state_directory: &Path) -> Vec<Marked> {
    end(state_directory, |part| part != HOLDER && part != KEEPER)
}

/// Ends a server that has no user, and its keeper too, which must not wake up to another server later.
pub fn stop_with_keeper(state_directory: &Path) -> Vec<Marked> {
    end(state_directory, |_| true)
}

/// Ends those that hold a server by hand.
pub fn release(state_directory: &Path) -> Vec<Marked> {
    end(state_directory, |part| part == HOLDER)
}

/// Ends the processes of those parts that are meant, first politely.
pub fn end(state_directory: &Path, is_meant: impl Fn(&str) -> bool) -> Vec<Marked> {
    let remaining = || -> Vec<Marked> {
        of(state_directory)
            .into_iter()
            .filter(|process| is_meant(&process.part))
            .collect()
    };
    for (signal, patience) in [
        (Signal::TERM, PATIENCE),
        (Signal::KILL, PATIENCE_WITH_THE_KERNEL),
    ] {
        // Sent at every glance: a process just started may have been missed by the first, and the API
        // server, asked twice, does not wait for its clients.
        let all_have_ended = || {
            let processes = remaining();
            for process in &processes {
                send(process, signal);
            }
            processes.is_empty()
        };
        if until(patience, all_have_ended) {
            return Vec::new();
        }
    }
    remaining()
}

/// Sends a signal to a process.
pub fn send(process: &Marked, signal: Signal) {
    if let Some(pid) = Pid::from_raw(process.pid) {
        // That it has ended by itself meanwhile is as good.
        let _ = kill_process(pid, signal);
    }
}

/// Looks again and again until `done` or the time is up; says whether it is done.
pub fn until(patience: Duration, mut done: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    while !done() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(GLANCE);
    }
    true
}

fn parse(environ: &[u8]) -> Option<(PathBuf, String)> {
    let value = |name: &str| {
        let with_name = |entry: &'_ &[u8]| {
            entry.starts_with(name.as_bytes()) && entry.get(name.len()) == Some(&b'=')
        };
        let entry = environ.split(|byte| *byte == 0).find(with_name)?;
        Some(OsString::from_vec(entry[name.len() + 1..].to_vec()))
    };
    let part = value(PART)?;
    Some((
        value(SERVER)?.into(),
        String::from_utf8_lossy(part.as_bytes()).into_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_seen_while_it_executes_another_program() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("script");
        fs::write(
            &script,
            "#!/bin/sh\n[ \"$1\" -gt 0 ] && exec sh \"$0\" $(($1 - 1))\n",
        )
        .unwrap();
        let mut command = Command::new("sh");
        command.arg(&script).arg("300");
        mark(&mut command, directory.path(), "one");
        let mut child = command.spawn().unwrap();
        while !of(directory.path()).is_empty() {}
        let why = why_empty(i32::try_from(child.id()).unwrap());
        let _ = child.kill();
        let _ = child.wait();
        assert_eq!(why, Empty::Over, "it was not seen, and had not ended");
    }

    #[test]
    fn one_that_was_given_an_empty_environment_is_not_waited_for() {
        let mut command = Command::new("sleep");
        let mut child = command.arg("600").env_clear().spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        // At first it executes.
        let is_there = until(PATIENCE_WITH_THE_KERNEL, || why_empty(pid) == Empty::Given);
        let began = Instant::now();
        let seen = environ(pid, &mut vec![0; LONGEST_ENVIRONMENT]).is_some();
        let took = began.elapsed();
        let _ = child.kill();
        let _ = child.wait();
        assert!(is_there && !seen, "{is_there} {seen}");
        assert!(took < EXECUTION, "it was waited for: {took:?}");
    }

    #[test]
    fn a_mark_is_a_whole_variable_with_both_names() {
        let marked = b"HOME=/\0WEIR_LAB=/run/a\0WEIR_LAB_PART=etcd\0";
        assert_eq!(parse(marked), Some(("/run/a".into(), "etcd".to_owned())));
        assert_eq!(parse(b"WEIR_LAB=/run/a\0"), None);
        assert_eq!(parse(b"WEIR_LAB_KUBECONFIG=/k\0WEIR_LAB_PART=etcd\0"), None);
        assert_eq!(parse(b"NOT_WEIR_LAB=/run/a\0WEIR_LAB_PART=etcd\0"), None);
        assert_eq!(parse(b""), None);
    }
}
