//! Definitions of others' resources, taken from the Go modules that hold them.
//!
//! The sibling of the table of tools: a new set is a new row. Nothing is compiled; `go` fetches the module, checks it
//! against the checksum database, and we copy files out of it.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde::Deserialize;

use super::{KEDA as KEDA_TOOL, ROLLOUTS as ROLLOUTS_TOOL, build::BuildError};
use crate::cache::Cache;

/// One set of definitions.
#[derive(Debug)]
pub struct Crds {
    /// What people call it.
    pub name: &'static str,
    /// The Go module's path.
    pub module: &'static str,
    /// The module's version.
    pub version: &'static str,
    /// A file, or a directory of files, below the module.
    pub path: &'static str,
}

/// Of the Gateway API, its standard channel.
pub const GATEWAY_API: Crds = Crds {
    name: "gateway-api",
    module: "sigs.k8s.io/gateway-api",
    version: "v1.4.1",
    path: "config/crd/standard",
};
/// Of Istio.
pub const ISTIO: Crds = Crds {
    name: "istio",
    module: "istio.io/api",
    version: "v1.31.1",
    path: "kubernetes/customresourcedefinitions.gen.yaml",
};
/// Of KEDA.
pub const KEDA: Crds = Crds {
    name: "keda",
    module: KEDA_TOOL.module,
    version: KEDA_TOOL.version,
    path: "config/crd/bases",
};
/// Of Argo Rollouts.
pub const ROLLOUTS: Crds = Crds {
    name: "argo-rollouts",
    module: ROLLOUTS_TOOL.module,
    version: ROLLOUTS_TOOL.version,
    path: "manifests/crds",
};

impl fmt::Display for Crds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} (definitions)", self.name, self.version)
    }
}

/// The part of `go mod download -json` that matters here.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Download {
    dir: PathBuf,
}

impl Crds {
    /// Where the files are once they are fetched.
    pub fn directory(&self, cache: &Cache) -> PathBuf {
        let name = format!("{}-crds-{}", self.name, self.version);
        cache.tools().join(name)
    }

    /// Are they there?
    pub fn is_fetched(&self, cache: &Cache) -> bool {
        self.directory(cache).exists()
    }

    /// Fetches them.
    pub fn fetch(&self, cache: &Cache) -> Result<(), BuildError> {
        if self.is_fetched(cache) {
            return Ok(());
        }
        let module = format!("{}@{}", self.module, self.version);
        let command = format!("go mod download -json {module}");
        // Not in the current directory: a go.mod there could replace the module.
        let output = Command::new("go")
            .args(["mod", "download", "-json", &module])
            .current_dir("/")
            .env("GOWORK", "off")
            .stdin(Stdio::null())
            .output();
        let output = output.map_err(|source| BuildError::Run {
            command: command.clone(),
            source,
        })?;
        let Download { dir } = serde_json::from_slice(&output.stdout)
            .map_err(|source| BuildError::Output { command, source })?;
        let directory = self.directory(cache);
        copy(&dir.join(self.path), &directory).map_err(|source| BuildError::Cache {
            path: directory,
            source,
        })
    }
}

/// Copies to a name of its own first: half a set never has the real name.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let unfinished = to.with_extension("fetching");
    match fs::remove_dir_all(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => fs::create_dir_all(&unfinished)?,
    }
    let files: Vec<PathBuf> = if from.is_dir() {
        let entries = fs::read_dir(from)?.collect::<io::Result<Vec<_>>>()?;
        entries.iter().map(fs::DirEntry::path).collect()
    } else {
        vec![from.to_owned()]
    };
    for file in files {
        let name = file.file_name().unwrap_or_default();
        let is_wanted = file
            .extension()
            .is_some_and(|extension| extension == "yaml")
            && name != "kustomization.yaml";
        if is_wanted {
            // Read and written: what the module cache holds may not be written to, and a copy would take that over.
            fs::write(unfinished.join(name), fs::read(&file)?)?;
        }
    }
    fs::rename(unfinished, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_directory_only_definitions_are_copied() {
        let home = tempfile::tempdir().unwrap();
        let from = home.path().join("from");
        fs::create_dir(&from).unwrap();
        for name in ["a.yaml", "kustomization.yaml", "README.md"] {
            fs::write(from.join(name), name).unwrap();
        }
        let to = home.path().join("to-v1.2");
        copy(&from, &to).unwrap();
        let names: Vec<_> = fs::read_dir(&to)
            .unwrap()
            .flatten()
            .map(|e| e.file_name())
            .collect();
        assert_eq!(names, ["a.yaml"]);

        let one = home.path().join("one");
        copy(&from.join("a.yaml"), &one).unwrap();
        assert!(one.join("a.yaml").exists());
    }
}
