//! What can go wrong with a cluster, each with what to do about it.

use std::{io, path::PathBuf};

use super::layout;
use crate::pki;

/// Why there is no cluster, or why something could not be done to it.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// Namespaces, cgroups and mounts are root's.
    #[error(
        "a cluster with nodes needs root: run this as root, or use `cargo xtask lab` for an API server alone"
    )]
    NotRoot,
    /// A name that would not fit where names go.
    #[error("{0:?} is no name for a cluster: use up to 20 lower-case letters, digits and dashes")]
    Name(String),
    /// Too few or too many.
    #[error("{0} nodes are not possible: ask for 1 to {most}", most = layout::MOST_NODES)]
    Nodes(u8),
    /// Packages are missing and could not be installed.
    #[error("these are not installed, {why}: {names} (names of Debian's packages)")]
    Packages {
        /// Debian's names for them.
        names: String,
        /// Why they could not be installed.
        why: String,
    },
    /// Programs are missing.
    #[error("{0} is not built: run `cargo xtask cluster up`, which builds it")]
    NotBuilt(String),
    /// A file or directory cannot be used.
    #[error("cannot use {path}")]
    Directory {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Certificates could not be made.
    #[error(transparent)]
    Pki(#[from] pki::PkiError),
    /// A program could not be run at all.
    #[error("cannot run {}", program.display())]
    Run {
        /// Which one.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A short program failed.
    #[error("{command} failed: {said}")]
    Command {
        /// What was run.
        command: String,
        /// What it said.
        said: String,
    },
    /// A part ended or did not become ready.
    #[error(
        "{part} {what}; the rest is left as it is for you to look at (`cargo xtask cluster down` removes it); the last \
         lines of its log:\n{lines}"
    )]
    Part {
        /// Which one.
        part: String,
        /// What happened to it.
        what: String,
        /// The end of its log.
        lines: String,
    },
    /// There is no such part, or it does not run.
    #[error("there is no part {part} that runs; there are: {known}")]
    NoPart {
        /// What was asked for.
        part: String,
        /// What there is.
        known: String,
    },
    /// It is not up.
    #[error("the cluster {0} is not up: start it with `cargo xtask cluster up`")]
    NotUp(String),
    /// It runs with another number of nodes.
    #[error("the cluster {name} runs with {running} nodes: take it down first to have {wanted}")]
    OtherSize {
        /// Which cluster.
        name: String,
        /// How many it has.
        running: u8,
        /// How many were asked for.
        wanted: u8,
    },
    /// Old processes do not go away.
    #[error("an old cluster cannot be stopped: end the processes {0:?} yourself")]
    Stuck(Vec<i32>),
}
