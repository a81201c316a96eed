//! Where the lab keeps things: built programs, running servers, tools for `xtask`.
//!
//! All of it is outside the source tree and may be deleted at any time that nothing runs. [`crate::tools`]
//! fills `tools/`, [`crate::server`] fills `run/`, [`mod@crate::cluster`] fills `clusters/`.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

/// The directory that everything is kept under.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

/// No place for the cache could be found.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// None of the variables is set.
    #[error("no place for the cache: set WEIR_CACHE to a directory that may be written to")]
    NoPlace,
    /// A relative path, and the current directory is gone.
    #[error("the cache directory {path} is not absolute: set WEIR_CACHE to an absolute path")]
    NotAbsolute {
        /// What was found.
        path: PathBuf,
        /// Why it could not be made absolute.
        source: std::io::Error,
    },
}

impl Cache {
    /// `$WEIR_CACHE`, else `$XDG_CACHE_HOME/weir`, else `~/.cache/weir`.
    pub fn of_environment() -> Result<Self, CacheError> {
        let root = locate(
            env::var_os("WEIR_CACHE"),
            env::var_os("XDG_CACHE_HOME"),
            env::home_dir(),
        )
        .ok_or(CacheError::NoPlace)?;
        let absolute = std::path::absolute(&root);
        Ok(Self {
            root: absolute.map_err(|source| CacheError::NotAbsolute { path: root, source })?,
        })
    }

    /// A cache at a given, absolute place.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Built programs, one directory per tool and version.
    pub fn tools(&self) -> PathBuf {
        self.root.join("tools")
    }

    /// Running servers, one state directory each.
    pub fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    /// Clusters with nodes, one state directory each.
    pub fn clusters(&self) -> PathBuf {
        self.root.join("clusters")
    }

    /// The `--root` of `cargo install` for tools that lint needs.
    pub fn cargo(&self) -> PathBuf {
        self.root.join("cargo")
    }
}

fn locate(own: Option<OsString>, xdg: Option<OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
    let set = |value: Option<OsString>| value.filter(|v| !v.is_empty()).map(PathBuf::from);
    set(own)
        .or_else(|| set(xdg).map(|xdg| xdg.join("weir")))
        .or_else(|| home.map(|home| home.join(".cache/weir")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_setting_wins_and_empty_ones_do_not_count() {
        let os = |s: &str| Some(OsString::from(s));
        let home = || Some(PathBuf::from("/home/ada"));
        assert_eq!(locate(os("/c"), os("/x"), home()), Some("/c".into()));
        assert_eq!(locate(os(""), os("/x"), home()), Some("/x/weir".into()));
        assert_eq!(
            locate(None, None, home()),
            Some("/home/ada/.cache/weir".into())
        );
        assert_eq!(locate(None, None, None), None);
    }
}
