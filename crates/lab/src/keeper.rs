//! The process that stops a server when its last user has gone.
//!
//! It is `flock`, which waits for the exclusive lock on `users.lock` ([`crate::users`]), and then `keeper.sh`,
//! which ends all marked processes ([`crate::marks`]) and removes the state directory. It runs in a session
//! of its own, so neither Ctrl-C nor a closed terminal reaches it. Should it be killed all the same, the next
//! start of any server clears away what it left ([`sweep`]).

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{marks, users};

const SCRIPT: &str = include_str!("keeper.sh");

/// A command in a session of its own, out of reach of the terminal that we run on.
///
/// `setsid` becomes the program, so the child's id is the program's.
pub fn detached(program: &Path, state_directory: &Path, part: &str) -> io::Result<Command> {
    let mut command = Command::new("setsid");
    command.arg(program).current_dir("/").stdin(Stdio::null());
    let log = File::create(log_file(state_directory, part))?;
    command.stdout(log.try_clone()?).stderr(log);
    marks::mark(&mut command, state_directory, part);
    Ok(command)
}

/// Where a part's output goes.
pub fn log_file(state_directory: &Path, part: &str) -> PathBuf {
    state_directory.join(format!("{part}.log"))
}

/// Starts a keeper unless this server has one.
pub fn ensure(state_directory: &Path) -> io::Result<()> {
    if marks::of(state_directory)
        .iter()
        .any(|process| process.part == marks::KEEPER)
    {
        return Ok(());
    }
    detached(Path::new("flock"), state_directory, marks::KEEPER)?
        .arg("--exclusive")
        .arg(users::lock_file(state_directory))
        .args(["env", &format!("--unset={}", marks::SERVER), "sh"])
        // Not from a file in the state directory, which people may delete while the server runs.
        .args(["-c", SCRIPT, "keeper.sh"])
        .arg(state_directory)
        .spawn()?;
    Ok(())
}

/// Keeps a server up after this process has ended, until [`marks::release`].
///
/// Returns when the new process is a user of the server.
pub fn hold(state_directory: &Path) -> io::Result<()> {
    let mut command = detached(Path::new("flock"), state_directory, marks::HOLDER)?;
    command
        .arg("--shared")
        .arg("--no-fork")
        .arg(users::lock_file(state_directory));
    // It says so when it has the lock; only then may we let go of ours.
    command
        .args(["sh", "-c", "echo held; exec sleep infinity >/dev/null"])
        .stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let mut said = String::new();
    if let Some(mut output) = child.stdout.take() {
        io::Read::read_to_string(&mut output, &mut said)?;
    }
    if said.trim() == "held" {
        Ok(())
    } else {
        Err(io::Error::other("the holder ended at once"))
    }
}

/// Clears away servers below `run` that have no user and no keeper any more.
///
/// A directory that cannot be removed is left for the next time: it does no harm.
pub fn sweep(run: &Path) {
    // A server whose directory someone has deleted: nobody can use it any more.
    for process in marks::all() {
        if process.server.parent() == Some(run) && !process.server.exists() {
            marks::stop_with_keeper(&process.server);
        }
    }
    let Ok(entries) = fs::read_dir(run) else {
        return;
    };
    for directory in entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
    {
        if is_discarded(&directory) {
            let _ = fs::remove_dir_all(&directory);
        } else if let Ok(Some(_alone)) = users::alone(&directory) {
            discard(&directory);
        }
    }
}

/// Stops what runs there and removes it; the caller holds the exclusive lock.
fn discard(directory: &Path) {
    marks::stop_with_keeper(directory);
    let mut gone = directory.as_os_str().to_owned();
    gone.push(format!(".gone.{}", std::process::id()));
    // Renamed first, as in keeper.sh: a user that waits for the lock must find its file out of place.
    if fs::rename(directory, &gone).is_ok() {
        let _ = fs::remove_dir_all(&gone);
    }
}

fn is_discarded(directory: &Path) -> bool {
    directory
        .file_name()
        .is_some_and(|name| name.to_string_lossy().contains(".gone."))
}
