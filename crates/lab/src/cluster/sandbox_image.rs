//! Images of one static program: the sandbox of every pod, a small server for tests, and CoreDNS.
//!
//! The lab's general image maker may replace this one; it is here so that a cluster needs nothing but itself. The programs
//! of [`Program`] are Go without dependencies, built by the toolchain that has built everything else.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
};

use sha2::{Digest, Sha256};

use super::{ClusterError, network};
use crate::cache::Cache;

/// The image that holds a pod's namespaces open.
pub const PAUSE: &str = "localhost/weir-lab/pause:1";
/// The image of `probe.go`: serves HTTP, metrics and name resolution on port 8080.
pub const PROBE: &str = "localhost/weir-lab/probe:1";

/// Who programs in these images run as.
const USER: &str = "65532:65532";
const BLOCK: usize = 512;

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
        let version = &digest(self.source.as_bytes())[..12];
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

/// Writes an image of one static program, which is its entry point, as a tar that `ctr images import` takes.
pub fn of_file(reference: &str, program: &Path, image: &Path) -> Result<(), ClusterError> {
    let cannot_write = |source| ClusterError::Directory {
        path: image.to_owned(),
        source,
    };
    let content = fs::read(program).map_err(cannot_write)?;
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let unfinished = image.with_extension("tar.new");
    let write = |tar: Vec<u8>| fs::write(&unfinished, tar);
    layout(reference, &name, &content)
        .and_then(write)
        .and_then(|()| fs::rename(&unfinished, image))
        .map_err(cannot_write)
}

/// An OCI image layout in a tar: an index, a manifest, a configuration and one layer that is not compressed.
fn layout(reference: &str, name: &str, content: &[u8]) -> io::Result<Vec<u8>> {
    let mut layer = Vec::new();
    append(&mut layer, name, 0o755, content)?;
    finish(&mut layer);
    // A large one takes a while to sum up: once is enough.
    let layer_digest = digest(&layer);
    let configuration = serde_json::to_vec(&serde_json::json!({
        "architecture": architecture(),
        "os": "linux",
        "config": {"Entrypoint": [format!("/{name}")], "User": USER},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer_digest}")]},
    }))?;
    let manifest = serde_json::to_vec(&serde_json::json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob("application/vnd.oci.image.config.v1+json", &digest(&configuration), &configuration),
        "layers": [blob("application/vnd.oci.image.layer.v1.tar", &layer_digest, &layer)],
    }))?;
    let mut described = blob(
        "application/vnd.oci.image.manifest.v1+json",
        &digest(&manifest),
        &manifest,
    );
    described["annotations"] = serde_json::json!({
        "io.containerd.image.name": reference,
        "org.opencontainers.image.ref.name": reference,
    });
    let index = serde_json::to_vec(&serde_json::json!({
        "schemaVersion": 2,
        "manifests": [described],
    }))?;

    let mut tar = Vec::new();
    append(
        &mut tar,
        "oci-layout",
        0o644,
        br#"{"imageLayoutVersion":"1.0.0"}"#,
    )?;
    append(&mut tar, "index.json", 0o644, &index)?;
    for (digest, blob) in [
        (digest(&configuration), &configuration),
        (digest(&manifest), &manifest),
        (layer_digest, &layer),
    ] {
        append(&mut tar, &format!("blobs/sha256/{digest}"), 0o644, blob)?;
    }
    finish(&mut tar);
    Ok(tar)
}

fn blob(media_type: &str, digest: &str, content: &[u8]) -> serde_json::Value {
    serde_json::json!({
        "mediaType": media_type,
        "digest": format!("sha256:{digest}"),
        "size": content.len(),
    })
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn digest(content: &[u8]) -> String {
    let hex =
        |byte: u8| [byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]);
    let text = Sha256::digest(content).into_iter().flat_map(hex);
    text.map(char::from).collect()
}

/// One file in the `ustar` format: a header of 512 bytes, and the content in blocks of as many.
fn append(tar: &mut Vec<u8>, name: &str, mode: u32, content: &[u8]) -> io::Result<()> {
    let mut header = [0_u8; BLOCK];
    let mut field = |at: usize, text: &str| (&mut header[at..]).write_all(text.as_bytes());
    field(0, name)?;
    field(100, &format!("{mode:07o}"))?;
    field(108, "0000000")?;
    field(116, "0000000")?;
    field(124, &format!("{:011o}", content.len()))?;
    field(136, "00000000000")?;
    // The sum is taken as if its own field were spaces.
    field(148, "        ")?;
    field(156, "0")?;
    field(257, "ustar\u{0}00")?;
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    (&mut header[148..]).write_all(format!("{sum:06o}\u{0} ").as_bytes())?;
    tar.extend_from_slice(&header);
    tar.extend_from_slice(content);
    tar.resize(tar.len().next_multiple_of(BLOCK), 0);
    Ok(())
}

/// Two blocks of nothing end a tar.
fn finish(tar: &mut Vec<u8>) {
    tar.resize(tar.len() + 2 * BLOCK, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tar_reads_it_back_and_the_same_input_gives_the_same_image() {
        let home = tempfile::tempdir().unwrap();
        let program = home.path().join("program");
        fs::write(&program, "content").unwrap();
        let image = home.path().join("image.tar");
        of_file("localhost/x:1", &program, &image).unwrap();
        let first = fs::read(&image).unwrap();
        of_file("localhost/x:1", &program, &image).unwrap();
        assert_eq!(fs::read(&image).unwrap(), first);

        let listed = Command::new("tar").arg("tf").arg(&image).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert_eq!(listed.lines().count(), 5, "{listed}");
        assert!(listed.contains("index.json"));
    }
}
