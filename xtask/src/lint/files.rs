//! The files of the repository that are ours: neither built, nor hidden (but for `.ci`).

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// All of them, in order, relative to the root.
pub(super) fn all(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    collect(root, &mut files)?;
    for file in &mut files {
        if let Ok(relative) = file.strip_prefix(root) {
            *file = relative.to_owned();
        }
    }
    files.sort();
    Ok(files)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let cannot_read = || format!("cannot read {}", directory.display());
    for entry in fs::read_dir(directory).with_context(cannot_read)? {
        let entry = entry.with_context(cannot_read)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let kind = entry.file_type().with_context(cannot_read)?;
        if kind.is_dir() && name != "target" && (!name.starts_with('.') || name == ".ci") {
            collect(&entry.path(), files)?;
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}
