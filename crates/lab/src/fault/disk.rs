//! A part whose disk is small, and then full: its data is moved onto a tmpfs of a given size.
//!
//! The part is restarted for the move, and again for the way back. What is not covered: a disk that is slow or returns
//! errors.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::process;
use crate::cluster::{Cluster, ClusterError, network};

const BALLAST: &str = "weir-fault-ballast";

/// A part's directory on a disk of its own.
#[derive(Debug)]
#[must_use = "the part goes back to the real disk when this is dropped"]
pub struct SmallDisk<'a> {
    cluster: &'a Cluster,
    part: String,
    directory: PathBuf,
    ended: bool,
}

/// Moves a directory of a part onto a disk of this many bytes, until the value is dropped.
///
/// The directory is one below the cluster's state directory: `etcd`, or `n1/containerd`, say.
pub fn small_disk<'a>(
    cluster: &'a Cluster,
    part: &str,
    directory: &str,
    bytes: u64,
) -> Result<SmallDisk<'a>, ClusterError> {
    let directory = cluster.layout().state_directory().join(directory);
    process::kill(cluster, part)?;
    let disk = SmallDisk {
        cluster,
        part: part.to_owned(),
        directory,
        ended: false,
    };
    let aside = disk.aside();
    fs::create_dir_all(&aside).map_err(|source| cannot_use(&aside, source))?;
    copy(&disk.directory, &aside)?;
    let size = std::ffi::CString::new(format!("size={bytes},mode=0700")).unwrap_or_default();
    let mounted = mount(
        "weir-fault",
        &disk.directory,
        "tmpfs",
        MountFlags::empty(),
        size.as_c_str(),
    );
    mounted.map_err(|error| cannot_use(&disk.directory, error.into()))?;
    copy(&aside, &disk.directory)?;
    process::start(cluster, part)?;
    Ok(disk)
}

impl SmallDisk<'_> {
    /// Writes until there is no room; returns how many bytes there were.
    pub fn fill(&self) -> Result<u64, ClusterError> {
        let path = self.directory.join(BALLAST);
        let filled = File::options().create(true).append(true).open(&path);
        let mut file = filled.map_err(|source| cannot_use(&path, source))?;
        let mut written = 0;
        // Smaller and smaller: the last bytes count too.
        for size in [1 << 20, 4096, 1] {
            let piece = vec![0; size];
            loop {
                match file.write(&piece) {
                    Ok(count) => written += count as u64,
                    Err(error) if error.kind() == io::ErrorKind::StorageFull => break,
                    Err(source) => return Err(cannot_use(&path, source)),
                }
            }
        }
        Ok(written)
    }

    /// Makes room again.
    pub fn free(&self) -> Result<(), ClusterError> {
        let path = self.directory.join(BALLAST);
        fs::remove_file(&path).map_err(|source| cannot_use(&path, source))
    }

    /// Moves the part's data back to the real disk.
    pub fn end(mut self) -> Result<(), ClusterError> {
        self.move_back()
    }

    fn move_back(&mut self) -> Result<(), ClusterError> {
        self.ended = true;
        let _ = fs::remove_file(self.directory.join(BALLAST));
        // It may have died of the fault.
        let _ = process::kill(self.cluster, &self.part);
        let aside = self.aside();
        fs::remove_dir_all(&aside)
            .and_then(|()| fs::create_dir_all(&aside))
            .map_err(|source| cannot_use(&aside, source))?;
        copy(&self.directory, &aside)?;
        unmount(&self.directory, UnmountFlags::DETACH)
            .map_err(|error| cannot_use(&self.directory, error.into()))?;
        fs::remove_dir_all(&self.directory)
            .and_then(|()| fs::rename(&aside, &self.directory))
            .map_err(|source| cannot_use(&self.directory, source))?;
        process::start(self.cluster, &self.part)
    }

    fn aside(&self) -> PathBuf {
        self.directory.with_extension("aside")
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let _ = self.move_back();
        }
    }
}

/// With all that files have: owners, links, holes.
fn copy(from: &Path, to: &Path) -> Result<(), ClusterError> {
    let mut content = from.as_os_str().to_owned();
    content.push("/.");
    network::run(Command::new("cp").arg("-a").arg(content).arg(to))
}

fn cannot_use(path: &Path, source: io::Error) -> ClusterError {
    ClusterError::Directory {
        path: path.to_owned(),
        source,
    }
}
