//! Who uses a server: each user holds a shared lock on the file `users.lock` in its state directory.
//!
//! The kernel releases a lock however its holder ends, so the [`crate::keeper`], which waits for an exclusive
//! lock, learns of every kind of death. Whoever removes a state directory holds the exclusive lock and first
//! renames the directory; whoever gets a lock therefore checks that the file still is the one in its place.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

/// The file that users lock.
pub fn lock_file(state_directory: &Path) -> PathBuf {
    state_directory.join("users.lock")
}

/// Becomes a user of this state directory, which is made if need be, for as long as the file is open.
///
/// Waits while a keeper clears the directory away.
pub fn join(state_directory: &Path) -> io::Result<File> {
    loop {
        let file = open(state_directory)?;
        file.lock_shared()?;
        if is_in_place(&file, state_directory)? {
            return Ok(file);
        }
    }
}

/// The exclusive lock, if nobody uses the state directory.
pub fn alone(state_directory: &Path) -> io::Result<Option<File>> {
    let file = open(state_directory)?;
    match file.try_lock() {
        Ok(()) if is_in_place(&file, state_directory)? => Ok(Some(file)),
        Ok(()) | Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

/// The standard library opens files such that children do not inherit them, and the lock with them.
fn open(state_directory: &Path) -> io::Result<File> {
    loop {
        // Ours alone: it will hold the keys of cluster-admin.
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(state_directory)?;
        let opened = File::options()
            .create(true)
            .append(true)
            .open(lock_file(state_directory));
        match opened {
            // The directory was renamed away between the two calls.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
    }
}

fn is_in_place(file: &File, state_directory: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match fs::metadata(lock_file(state_directory)) {
        Ok(there) => Ok(there.dev() == held.dev() && there.ino() == held.ino()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_share_and_only_without_them_is_anyone_alone() {
        let home = tempfile::tempdir().unwrap();
        let first = join(home.path()).unwrap();
        let second = join(home.path()).unwrap();
        assert!(alone(home.path()).unwrap().is_none());
        drop(first);
        assert!(alone(home.path()).unwrap().is_none());
        drop(second);
        assert!(alone(home.path()).unwrap().is_some());
    }

    #[test]
    fn a_lock_on_a_directory_that_was_cleared_away_does_not_count() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("shared");
        let old = join(&directory).unwrap();
        fs::rename(&directory, home.path().join("gone")).unwrap();
        assert!(!is_in_place(&old, &directory).unwrap());
        let new = join(&directory).unwrap();
        assert!(is_in_place(&new, &directory).unwrap());
    }
}
