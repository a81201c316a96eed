//! What is mounted on this machine, and how to be rid of what a cluster mounted.

use std::{
    fs,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

use rustix::mount::{UnmountFlags, unmount};

/// One line of `/proc/self/mounts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Where.
    pub directory: PathBuf,
    /// `overlay`, `cgroup`, …
    pub kind: String,
}

/// All mounts, in the order in which they were made.
pub fn all() -> Vec<Mount> {
    let table = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    table.lines().filter_map(parse).collect()
}

/// Those at or below this directory.
pub fn below(directory: &Path) -> Vec<Mount> {
    all()
        .into_iter()
        .filter(|mount| mount.directory.starts_with(directory))
        .collect()
}

/// Unmounts all at or below this directory, the latest first. One in use goes when its last user does.
pub fn remove_below(directory: &Path) {
    for mount in below(directory).iter().rev() {
        if unmount(&mount.directory, UnmountFlags::empty()).is_err() {
            let _ = unmount(&mount.directory, UnmountFlags::DETACH);
        }
    }
}

fn parse(line: &str) -> Option<Mount> {
    let mut fields = line.split(' ').skip(1);
    Some(Mount {
        directory: unescape(fields.next()?),
        kind: fields.next()?.to_owned(),
    })
}

/// The kernel writes a space as `\040`, and so on.
fn unescape(path: &str) -> PathBuf {
    let bytes = path.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let octal = path.get(at + 1..at + 4);
        let code = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        if let (b'\\', Some(code)) = (bytes[at], code) {
            plain.push(code);
            at += 4;
        } else {
            plain.push(bytes[at]);
            at += 1;
        }
    }
    std::ffi::OsString::from_vec(plain).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_with_what_the_kernel_escapes() {
        let mount = parse(r"tmpfs /a\040b/c tmpfs rw,relatime 0 0").unwrap();
        assert_eq!(mount.directory, Path::new("/a b/c"));
        assert_eq!(mount.kind, "tmpfs");
        assert_eq!(unescape(r"/a\b"), Path::new(r"/a\b"));
        assert_eq!(parse("short"), None);
    }
}
