//! The services of a file, for running a resolver without Kubernetes.
//!
//! [`read`] gives the same views that `index` makes of a cluster, [`diff`] what is to be done when the file has
//! changed. What may stand in it is in [`mod@file`].

mod file;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use file::File;
use thiserror::Error;

use crate::{
    change_order::place,
    view::{Change, ServiceId, ServiceView},
};

/// Why a file of targets cannot be used.
#[derive(Debug, Error)]
pub enum TargetsError {
    /// It is not there, or is not text.
    #[error("the targets in {} cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is not YAML, or something in it has another form; the source says in which line.
    #[error("the targets in {} are not in the form of `weir resolver --help`", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong, and in which line.
        source: Box<serde_saphyr::Error>,
    },
    /// A value that cannot be.
    #[error("the targets in {} cannot be used: {field}: {message}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// Such as `services[2].ports[0].number`.
        field: String,
        /// What is wrong with it.
        message: String,
    },
}

/// The services of a file, in its order.
pub fn read(path: &Path) -> Result<Vec<ServiceView>, TargetsError> {
    let text = fs::read_to_string(path).map_err(|source| TargetsError::Read {
        path: path.to_owned(),
        source,
    })?;
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<Vec<ServiceView>, TargetsError> {
    if text.trim().is_empty() {
        return Err(TargetsError::Value {
            path: path.to_owned(),
            field: "services".to_owned(),
            message: "the file is empty; `services: []` is the least that can stand in it"
                .to_owned(),
        });
    }
    // Our own file: it may be as long as a cluster is large.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_nodes: 10_000_000, max_events: 20_000_000 }
    };
    let file: File = serde_saphyr::from_str_with_options(text, options).map_err(|source| {
        TargetsError::Form {
            path: path.to_owned(),
            source: Box::new(source),
        }
    })?;
    file.views()
        .map_err(|file::Bad { field, message }| TargetsError::Value {
            path: path.to_owned(),
            field,
            message,
        })
}

/// What has changed from one reading to the next.
pub fn diff(old: &[ServiceView], new: &[ServiceView]) -> Vec<Change> {
    let before: HashMap<&ServiceId, &ServiceView> =
        old.iter().map(|view| (&view.id, view)).collect();
    let after: HashMap<&ServiceId, &ServiceView> =
        new.iter().map(|view| (&view.id, view)).collect();
    let gone = old
        .iter()
        .filter(|view| !after.contains_key(&view.id))
        .map(|view| Change::Gone(view.id.clone()));
    let set = new
        .iter()
        .filter(|view| before.get(&view.id) != Some(view))
        .map(|view| Change::Set(Arc::new(view.clone())));
    let mut changes: Vec<Change> = gone.chain(set).collect();
    changes.sort_by_key(|change| {
        let old = match change {
            Change::Set(view) => before.get(&view.id).copied(),
            Change::Gone(_) => None,
        };
        place(old, change)
    });
    changes
}
