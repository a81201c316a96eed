//! Images of one static program: the sandbox of every pod, a small server for tests, and CoreDNS.
//!
//! The programs of [`Program`] are Go without dependencies, built by the toolchain that has built everything else, so that a
//! cluster needs nothing but itself; [`crate::image`] packs them.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use sha2::{Digest, Sha256};

use super::{ClusterError, network};
use crate::{cache::Cache, image::program::gather};

/// The image that holds a pod's namespaces open.
pub const PAUSE: &str = "localhost/weir-lab/pause:1";
/// The image of `probe.go`: serves HTTP, metrics and name resolution on port 8080.
pub const PROBE: &str = "localhost/weir-lab/probe:1";

/// A program of ours that an image is made of.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its name in the image.
    pub name: &'static str,
    source: &'static str,
}

/// For [`PAUSE`].
pub const PAUSE_PROGRAM: Program = Program::new("pause", include_str!("images/pause.go"));
/// For [`PROBE`].
pub const PROBE_PROGRAM: Program = Program::new("probe", include_str!("images/probe.go"));

/// What Prometheus asks for its targets.
pub const DISCOVERY_PROGRAM: Program =
    Program::new("discovery", include_str!("add_on/discovery.go"));

/// The image of one of our programs as a tar.
pub fn of_program(
    cache: &Cache,
    reference: &str,
    program: Program,
) -> Result<PathBuf, ClusterError> {
    let built = program.build(cache)?;
    let image = built.with_extension("tar");
    of_file_if_newer(reference, &built, &image)?;
    Ok(image)
}

impl Program {
    /// A program of this name, from one file of Go without dependencies.
    pub const fn new(name: &'static str, source: &'static str) -> Self {
        Self { name, source }
    }

    /// Builds it, once per version of its source.
    pub fn build(self, cache: &Cache) -> Result<PathBuf, ClusterError> {
        let version = version(self.source);
        let directory = cache.tools().join(format!("{}-{version}", self.name));
        let program = directory.join(self.name);
        if program.exists() {
            return Ok(program);
        }
        let cannot_write = |source| ClusterError::Directory {
            path: directory.clone(),
            source,
        };
        fs::create_dir_all(&directory).map_err(cannot_write)?;
        let module = format!("module weir-lab/{}\n\ngo 1.24\n", self.name);
        fs::write(directory.join("go.mod"), module).map_err(cannot_write)?;
        fs::write(directory.join("main.go"), self.source).map_err(cannot_write)?;
        network::run(
            Command::new("go")
                .args(["build", "-trimpath", "-ldflags=-s -w", "-o", "building"])
                .current_dir(&directory)
                .env("CGO_ENABLED", "0")
                .env("GOFLAGS", "-buildvcs=false")
                .env("GOWORK", "off"),
        )?;
        fs::rename(directory.join("building"), &program).map_err(cannot_write)?;
        Ok(program)
    }
}

/// As [`of_file`], unless the image is there and the program has not been built anew since.
pub fn of_file_if_newer(reference: &str, program: &Path, image: &Path) -> Result<(), ClusterError> {
    let changed = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    match (changed(program), changed(image)) {
        (Some(program), Some(image)) if image >= program => Ok(()),
        _ => of_file(reference, program, image),
    }
}

/// Writes an image of one program, which is its entry point, as a tar that `ctr images import` takes.
pub fn of_file(reference: &str, program: &Path, image: &Path) -> Result<(), ClusterError> {
    let cannot_write = |source| ClusterError::Directory {
        path: image.to_owned(),
        source,
    };
    let gathered = gather(reference, program, &[]).map_err(io::Error::other);
    let packed = gathered.and_then(|gathered| gathered.image.pack().map_err(io::Error::other));
    let unfinished = image.with_extension("tar.new");
    packed
        .and_then(|packed| fs::write(&unfinished, packed.tar))
        .and_then(|()| fs::rename(&unfinished, image))
        .map_err(cannot_write)
}

/// What tells versions of a source apart.
fn version(source: &str) -> String {
    let digest = Sha256::digest(source.as_bytes());
    let start = digest.iter().take(6);
    start.fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tar_reads_it_back_and_the_same_input_gives_the_same_image() {
        let home = tempfile::tempdir().unwrap();
        let program = std::env::current_exe().unwrap();
        let image = home.path().join("image.tar");
        of_file("localhost/x:1", &program, &image).unwrap();
        let first = fs::read(&image).unwrap();
        of_file("localhost/x:1", &program, &image).unwrap();
        assert_eq!(fs::read(&image).unwrap(), first);

        let listed = Command::new("tar").arg("tf").arg(&image).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(listed.contains("index.json"), "{listed}");
    }
}
