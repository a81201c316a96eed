//! OCI images without Docker: files and an entrypoint in, an image layout as one tar out.
//!
//! [`Image::pack`] is a function of values: the same input gives the same bytes, and so the same digest. [`tar`]
//! writes archives, [`elf`] reads which libraries a program needs, [`program`] gathers a program with all of them
//! from this machine. What comes out can be taken by `ctr images import` and by `docker load`.

pub mod elf;
pub mod program;
pub mod tar;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use self::tar::{Archive, TarError};

/// Who runs the program in all our images: nobody in particular, and not root.
pub const USER: u32 = 65532;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// Not compressed: a compressor's output differs between its versions, and then so would the digest.
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// What an image is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Its name with a tag, such as `localhost/weir:dev`.
    pub name: String,
    /// As container runtimes call it: `amd64`, `arm64`.
    pub architecture: String,
    /// The program and its first arguments.
    pub entrypoint: Vec<String>,
    /// Everything in it by absolute path; the directories above are made.
    pub files: BTreeMap<String, Node>,
    /// Labels such as `org.opencontainers.image.version`.
    pub labels: BTreeMap<String, String>,
}

/// One thing in the file system of an image. All belong to root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A file.
    File {
        /// Its permissions, such as `0o755`.
        mode: u32,
        /// What is in it.
        bytes: Vec<u8>,
    },
    /// A directory.
    Directory {
        /// Its permissions.
        mode: u32,
    },
}

/// An image as one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// The image layout, for `ctr images import` or `docker load`.
    pub tar: Vec<u8>,
    /// The digest of the manifest, by which registries and runtimes know the image.
    pub digest: String,
}

impl Image {
    /// The image as a tar of an OCI image layout; it holds what Docker wants to see as well.
    pub fn pack(&self) -> Result<Packed, TarError> {
        let layer = self.layer()?;
        let config = to_json(&self.config(&layer));
        let manifest = to_json(&json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": descriptor(CONFIG, &config),
            "layers": [descriptor(LAYER, &layer)],
        }));
        let mut described = descriptor(MANIFEST, &manifest);
        described["annotations"] = json!({
            "io.containerd.image.name": self.name,
            "org.opencontainers.image.ref.name": self.name,
        });
        let index = to_json(&json!({ "schemaVersion": 2, "manifests": [described] }));
        let for_docker = to_json(&json!([{
            "Config": blob(&config),
            "RepoTags": [self.name],
            "Layers": [blob(&layer)],
        }]));

        let mut archive = Archive::default();
        archive.directory("blobs", 0o755)?;
        archive.directory("blobs/sha256", 0o755)?;
        // A map: the config and the manifest may come in any order by their digests.
        let blobs = BTreeMap::from([&config, &manifest, &layer].map(|b| (blob(b), b)));
        for (path, bytes) in blobs {
            archive.file(&path, 0o644, bytes)?;
        }
        archive.file("index.json", 0o644, &index)?;
        archive.file("manifest.json", 0o644, &for_docker)?;
        let layout = to_json(&json!({ "imageLayoutVersion": "1.0.0" }));
        archive.file("oci-layout", 0o644, &layout)?;
        Ok(Packed {
            tar: archive.finish(),
            digest: digest(&manifest),
        })
    }

    /// The file system, in the order of its paths, parents before children.
    fn layer(&self) -> Result<Vec<u8>, TarError> {
        let mut nodes: BTreeMap<&str, Option<&Node>> = BTreeMap::new();
        for (path, node) in &self.files {
            let path = path.trim_matches('/');
            for (end, _) in path.match_indices('/') {
                nodes.entry(&path[..end]).or_insert(None);
            }
            nodes.insert(path, Some(node));
        }
        let mut archive = Archive::default();
        for (path, node) in nodes {
            match node {
                None => archive.directory(path, 0o755)?,
                Some(Node::Directory { mode }) => archive.directory(path, *mode)?,
                Some(Node::File { mode, bytes }) => archive.file(path, *mode, bytes)?,
            }
        }
        Ok(archive.finish())
    }

    fn config(&self, layer: &[u8]) -> Value {
        json!({
            "architecture": self.architecture,
            "os": "linux",
            "config": {
                "User": format!("{USER}:{USER}"),
                "Env": ["PATH=/"],
                "Entrypoint": self.entrypoint,
                "WorkingDir": "/",
                "Labels": self.labels,
            },
            "rootfs": { "type": "layers", "diff_ids": [digest(layer)] },
            "history": [{ "created_by": "cargo xtask image" }],
        })
    }
}

/// `sha256:` and the hash in hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hexadecimal(&Sha256::digest(bytes)))
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value & 15)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(*byte)])
        .collect()
}

fn blob(bytes: &[u8]) -> String {
    format!("blobs/{}", digest(bytes).replace(':', "/"))
}

fn descriptor(media_type: &str, bytes: &[u8]) -> Value {
    json!({ "mediaType": media_type, "digest": digest(bytes), "size": bytes.len() })
}

/// The keys of an object come in one order, always the same.
fn to_json(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> Image {
        let file = |text: &str| Node::File {
            mode: 0o755,
            bytes: text.as_bytes().to_vec(),
        };
        Image {
            name: "localhost/x:1".to_owned(),
            architecture: "amd64".to_owned(),
            entrypoint: vec!["/x".to_owned()],
            files: BTreeMap::from([
                ("/x".to_owned(), file("program")),
                ("/lib/a/libc.so.6".to_owned(), file("library")),
                ("/tmp".to_owned(), Node::Directory { mode: 0o1777 }),
            ]),
            labels: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
        }
    }

    #[test]
    fn the_same_input_gives_the_same_bytes_and_another_input_another_digest() {
        let packed = image().pack().unwrap();
        assert_eq!(image().pack().unwrap(), packed);

        let mut other = image();
        other.labels.clear();
        assert_ne!(other.pack().unwrap().digest, packed.digest);
        let mut other = image();
        other
            .files
            .insert("/tmp".to_owned(), Node::Directory { mode: 0o755 });
        assert_ne!(other.pack().unwrap().digest, packed.digest);

        let mut renamed = image();
        renamed.name = "localhost/x:2".to_owned();
        let renamed = renamed.pack().unwrap();
        assert_eq!(
            renamed.digest, packed.digest,
            "a tag is no part of the image"
        );
        assert_ne!(renamed.tar, packed.tar);
    }

    #[test]
    fn hashes_are_written_as_everyone_writes_them() {
        assert_eq!(
            digest(b""),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
