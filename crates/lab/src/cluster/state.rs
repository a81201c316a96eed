//! What `cluster.json` in a cluster's state directory says: written when all nodes are ready.

use std::{fs, io, path::Path};

use serde::{Deserialize, Serialize};

const FILE: &str = "cluster.json";

/// A cluster that was ready once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// A newer lab does not take an older cluster.
    pub kubernetes: String,
    /// How many nodes it has.
    pub nodes: u8,
    /// The add-ons that were started, in that order.
    pub add_ons: Vec<String>,
    /// How long the start took, without add-ons.
    pub started_in_milliseconds: u64,
}

impl State {
    /// None if there is none, or none that we understand.
    pub fn read(state_directory: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(state_directory.join(FILE)).ok()?).ok()
    }

    /// Written under another name first: a reader sees all of it or nothing.
    pub fn write(&self, state_directory: &Path) -> io::Result<()> {
        let unfinished = state_directory.join("cluster.json.new");
        fs::write(&unfinished, serde_json::to_vec_pretty(self)?)?;
        fs::rename(unfinished, state_directory.join(FILE))
    }
}
