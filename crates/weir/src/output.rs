//! Standard output as the product of a command: written whole, and a reader that has seen enough
//! (`weir crds | head`) is no failure.

use std::io::{self, Write};

#[derive(Debug, thiserror::Error)]
pub(crate) enum OutputError {
    #[error("standard output cannot be written")]
    Write(#[from] io::Error),
    #[error("an object cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    #[error("an object cannot be written as YAML")]
    Yaml(#[from] serde_saphyr::ser::Error),
}

pub(crate) fn print(text: &[u8]) -> Result<(), OutputError> {
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}
