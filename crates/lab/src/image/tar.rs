//! Writes tar archives: ustar headers with nothing in them that differs between machines or days.
//!
//! The owner is root, the time is 1970, and there are no user names; order is up to the caller.

/// A tar archive in memory.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
}

/// What ustar cannot hold.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TarError {
    /// A name that fits neither the name field nor name and prefix.
    #[error(
        "the path {0:?} is too long for an image: ustar takes 100 bytes, or 155 and 100 around a slash"
    )]
    PathTooLong(String),
    /// A file of 8 GiB or more.
    #[error("{0:?} is too large for an image: a file in it must be below 8 GiB")]
    TooLarge(String),
}

const BLOCK: usize = 512;
/// Eleven octal digits.
const LARGEST: u64 = 0o777_7777_7777;

impl Archive {
    /// Adds a directory; its path has no slash at either end.
    pub fn directory(&mut self, path: &str, mode: u32) -> Result<(), TarError> {
        self.header(&format!("{path}/"), mode, 0, b'5')
    }

    /// Adds a file.
    pub fn file(&mut self, path: &str, mode: u32, bytes: &[u8]) -> Result<(), TarError> {
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.header(path, mode, size, b'0')?;
        self.bytes.extend_from_slice(bytes);
        self.bytes
            .resize(self.bytes.len().next_multiple_of(BLOCK), 0);
        Ok(())
    }

    /// The whole archive, with the two empty blocks that end it.
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len() + 2 * BLOCK, 0);
        self.bytes
    }

    fn header(&mut self, path: &str, mode: u32, size: u64, kind: u8) -> Result<(), TarError> {
        if size > LARGEST {
            return Err(TarError::TooLarge(path.to_owned()));
        }
        let (prefix, name) = split(path).ok_or_else(|| TarError::PathTooLong(path.to_owned()))?;
        let mut block = [0; BLOCK];
        let mut put = |at: usize, field: &[u8]| block[at..at + field.len()].copy_from_slice(field);
        put(0, name.as_bytes());
        put(100, format!("{mode:07o}").as_bytes());
        put(108, b"0000000"); // user
        put(116, b"0000000"); // group
        put(124, format!("{size:011o}").as_bytes());
        put(136, b"00000000000"); // time
        put(148, b"        "); // the checksum counts itself as spaces
        put(156, &[kind]);
        put(257, b"ustar\x0000");
        put(345, prefix.as_bytes());
        let sum: u32 = block.iter().copied().map(u32::from).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        self.bytes.extend_from_slice(&block);
        Ok(())
    }
}

/// A path as the prefix and the name of a ustar header.
fn split(path: &str) -> Option<(&str, &str)> {
    if path.len() <= 100 {
        return Some(("", path));
    }
    let cuts = path.match_indices('/').map(|(at, _)| at);
    cuts.map(|at| (&path[..at], &path[at + 1..]))
        .find(|(prefix, name)| prefix.len() <= 155 && (1..=100).contains(&name.len()))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, process::Command};

    use super::*;

    #[test]
    fn the_tar_of_this_machine_reads_what_we_write() {
        let home = tempfile::tempdir().unwrap();
        let long = format!("{}/{}", "d".repeat(120), "f".repeat(90));
        let mut archive = Archive::default();
        archive.directory("bin", 0o755).unwrap();
        archive.file("bin/x", 0o750, b"hello").unwrap();
        archive.file(&long, 0o644, &[7; 1024]).unwrap();
        fs::write(home.path().join("a.tar"), archive.finish()).unwrap();

        let mut tar = Command::new("tar");
        let status = tar.args(["-xf", "a.tar"]).current_dir(&home).status();
        assert!(status.unwrap().success());
        assert_eq!(fs::read(home.path().join("bin/x")).unwrap(), b"hello");
        let mode = fs::metadata(home.path().join("bin/x"))
            .unwrap()
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o750);
        assert_eq!(fs::read(home.path().join(long)).unwrap(), [7; 1024]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut archive = Archive::default();
        let refused = archive.file(&"x".repeat(101), 0o644, b"");
        assert_eq!(refused, Err(TarError::PathTooLong("x".repeat(101))));
    }
}
