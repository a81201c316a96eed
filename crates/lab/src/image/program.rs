//! Gathers a program of this machine with the libraries that it needs, as an [`Image`].
//!
//! There is no static libc for us to build with, so the few files of glibc come along, at the paths where this
//! machine's own loader looks for them.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    Image, Node, USER,
    elf::{Elf, ElfError},
};

/// Where libraries lie, in the order in which they are looked for.
const LIBRARIES: &[&str] = &[
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// Where distributions keep the certificates of authorities; in the image they are at the first.
const CERTIFICATES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
];

/// Why a program could not be gathered.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    /// A file cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A program or library that is not understood.
    #[error("cannot use {path}")]
    Elf {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: ElfError,
    },
    /// A library is missing here.
    #[error("{path} needs {library}, which is in none of {LIBRARIES:?}: install it")]
    NotFound {
        /// Who needs it.
        path: PathBuf,
        /// Its name.
        library: String,
    },
}

/// A program with what it needs, and what this machine could not give.
#[derive(Debug)]
pub struct Gathered {
    /// The image, ready to be packed.
    pub image: Image,
    /// Things that are not there and might be missed.
    pub notes: Vec<String>,
}

/// An image called `name` of the program at `path`, which is run with `arguments` before the user's own.
///
/// In the image it lies at the root under the name of its file, and runs as [`USER`].
pub fn gather(name: &str, path: &Path, arguments: &[&str]) -> Result<Gathered, GatherError> {
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let inside = place_of(path);
    let bytes = read(path)?;
    let architecture = parse(path, &bytes)?.architecture.to_owned();
    let mut files = BTreeMap::new();
    add_with_needs(&mut files, inside.clone(), path, bytes)?;

    let text = |text: String| Node::File {
        mode: 0o644,
        bytes: text.into_bytes(),
    };
    let users = format!("root:x:0:0:root:/:/none\nnonroot:x:{USER}:{USER}:nonroot:/tmp:/none\n");
    files.insert("/etc/passwd".to_owned(), text(users));
    let groups = format!("root:x:0:\nnonroot:x:{USER}:\n");
    files.insert("/etc/group".to_owned(), text(groups));
    files.insert("/tmp".to_owned(), Node::Directory { mode: 0o1777 });

    let mut notes = Vec::new();
    match CERTIFICATES.iter().find_map(|path| fs::read(path).ok()) {
        Some(bytes) => {
            files.insert(CERTIFICATES[0].to_owned(), Node::File { mode: 0o644, bytes });
        }
        None => notes.push(format!(
            "this machine has no {}: the program will trust no public server; install ca-certificates",
            CERTIFICATES[0],
        )),
    }

    let mut entrypoint = vec![inside];
    entrypoint.extend(arguments.iter().map(|&argument| argument.to_owned()));
    let title = ("org.opencontainers.image.title", &*file_name);
    let licence = ("org.opencontainers.image.licenses", "Apache-2.0");
    let image = Image {
        name: name.to_owned(),
        architecture,
        entrypoint,
        files,
        labels: [title, licence]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
    };
    Ok(Gathered { image, notes })
}

/// Adds another program to an image, in the same way.
pub fn add(image: &mut Image, path: &Path) -> Result<(), GatherError> {
    add_with_needs(&mut image.files, place_of(path), path, read(path)?)
}

/// At the root, under the name of its file.
fn place_of(path: &Path) -> String {
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    format!("/{file_name}")
}

/// Adds a program or library and, after it, everything that it needs.
fn add_with_needs(
    files: &mut BTreeMap<String, Node>,
    inside: String,
    path: &Path,
    bytes: Vec<u8>,
) -> Result<(), GatherError> {
    let elf = parse(path, &bytes)?;
    // Before its needs: libraries may need each other.
    files.insert(inside, Node::File { mode: 0o755, bytes });
    for library in elf.needed {
        // The loader is a library to others; it has one place, which programs name in full.
        if library.starts_with("ld-linux") {
            continue;
        }
        let found = locate(&library).ok_or_else(|| GatherError::NotFound {
            path: path.to_owned(),
            library,
        })?;
        add_once(files, &found)?;
    }
    match elf.interpreter {
        Some(loader) => add_once(files, Path::new(&loader)),
        None => Ok(()),
    }
}

fn add_once(files: &mut BTreeMap<String, Node>, path: &Path) -> Result<(), GatherError> {
    let inside = path.to_string_lossy().into_owned();
    if files.contains_key(&inside) {
        return Ok(());
    }
    add_with_needs(files, inside, path, read(path)?)
}

fn locate(library: &str) -> Option<PathBuf> {
    LIBRARIES
        .iter()
        .map(|directory| Path::new(directory).join(library))
        .find(|path| path.is_file())
}

fn read(path: &Path) -> Result<Vec<u8>, GatherError> {
    fs::read(path).map_err(|source| GatherError::Read {
        path: path.to_owned(),
        source,
    })
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Elf, GatherError> {
    Elf::parse(bytes).map_err(|source| GatherError::Elf {
        path: path.to_owned(),
        source,
    })
}
