//! A directory for the files of one run; it goes when the run is over, however that ended.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process,
};

use anyhow::{Context, Result};

/// The directory.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new() -> Result<Self> {
        let path = env::temp_dir().join(format!("weir-bench-{}", process::id()));
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// A directory of its own for one program.
    pub(super) fn part(&self, name: &str) -> Result<PathBuf> {
        let path = self.0.join(name);
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left there is small, and nobody misses it.
        let _ = fs::remove_dir_all(&self.0);
    }
}
