//! Finds the Go toolchain that [`super::build`] uses, and says what is wrong with it if it will not do.

use std::{io, process::Command};

/// The oldest Go that can build Kubernetes 1.34.
pub const OLDEST: (u32, u32) = (1, 24);

/// Why Go cannot be used here.
#[derive(Debug, thiserror::Error)]
pub enum GoError {
    /// The lab runs Linux programs.
    #[error("the lab runs on Linux only, and this is {0}")]
    NotLinux(&'static str),
    /// No `go` in the path.
    #[error("Go is not installed: install Go {}.{} or newer (https://go.dev/dl)", OLDEST.0, OLDEST.1)]
    Missing(#[source] io::Error),
    /// It is there but does not say its version.
    #[error("`go env GOVERSION` failed: {0}")]
    Broken(String),
    /// It is there but too old.
    #[error("{found} is too old: install Go {}.{} or newer (https://go.dev/dl)", OLDEST.0, OLDEST.1)]
    TooOld {
        /// What `go env GOVERSION` says.
        found: String,
    },
}

/// The version of a Go that will do.
pub fn find() -> Result<String, GoError> {
    if std::env::consts::OS != "linux" {
        return Err(GoError::NotLinux(std::env::consts::OS));
    }
    // Not in the current directory: a go.mod there could ask for another toolchain.
    let asked = Command::new("go")
        .args(["env", "GOVERSION"])
        .current_dir("/")
        .output();
    let output = asked.map_err(GoError::Missing)?;
    if !output.status.success() {
        return Err(GoError::Broken(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        ));
    }
    judge(String::from_utf8_lossy(&output.stdout).trim())
}

fn judge(found: &str) -> Result<String, GoError> {
    match parse(found) {
        Some(version) if version >= OLDEST => Ok(found.to_owned()),
        Some(_) => Err(GoError::TooOld {
            found: found.to_owned(),
        }),
        None => Err(GoError::Broken(format!(
            "it says {found:?}, which is no version"
        ))),
    }
}

/// `go1.26.8` or `go1.25rc1` to (1, 26) and (1, 25); a development build counts as new enough.
fn parse(version: &str) -> Option<(u32, u32)> {
    if version.starts_with("devel") {
        return Some((u32::MAX, 0));
    }
    let mut parts = version
        .strip_prefix("go")?
        .split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(judge("go1.24.0").is_ok());
        assert!(judge("go1.26.8").is_ok());
        assert!(judge("go1.25rc1").is_ok());
        assert!(judge("devel go1.27-abcdef").is_ok());
        assert!(matches!(judge("go1.9.7"), Err(GoError::TooOld { .. })));
        assert!(matches!(judge("go1.23.12"), Err(GoError::TooOld { .. })));
        assert!(matches!(judge("gopher"), Err(GoError::Broken(_))));
    }
}
