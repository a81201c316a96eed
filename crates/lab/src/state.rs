//! What `state.json` in a state directory says: written when a server is ready, read by the next user.
//!
//! It is a hint where to look, never proof: [`crate::server`] asks the server itself whether it is well.

use std::{fs, io, path::Path};

use serde::{Deserialize, Serialize};

const FILE: &str = "state.json";

/// A server that was ready once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The API server's version: a newer lab does not take an older server.
    pub kubernetes: String,
    /// Where the API server listens.
    pub url: String,
    /// How long the start took.
    pub started_in_milliseconds: u64,
}

impl State {
    /// None if there is none, or none that we understand.
    pub fn read(state_directory: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(state_directory.join(FILE)).ok()?).ok()
    }

    /// Written under another name first: a reader sees all of it or nothing.
    pub fn write(&self, state_directory: &Path) -> io::Result<()> {
        let unfinished = state_directory.join("state.json.new");
        fs::write(&unfinished, serde_json::to_vec_pretty(self)?)?;
        fs::rename(unfinished, state_directory.join(FILE))
    }

    /// Forgets it, before anything that it speaks of is touched.
    pub fn forget(state_directory: &Path) -> io::Result<()> {
        match fs::remove_file(state_directory.join(FILE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_anything_else_is_no_state() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(State::read(home.path()), None);
        State::forget(home.path()).unwrap();

        let state = State {
            kubernetes: "v1.34.4".to_owned(),
            url: "https://127.0.0.1:4321".to_owned(),
            started_in_milliseconds: 4000,
        };
        state.write(home.path()).unwrap();
        assert_eq!(State::read(home.path()), Some(state));

        fs::write(home.path().join(FILE), r#"{"kubernetes": "v1.3"#).unwrap();
        assert_eq!(State::read(home.path()), None);
        State::forget(home.path()).unwrap();
        assert!(!home.path().join(FILE).exists());
    }
}
