//! Every source file opens with `//!`, which says what it is for and who its neighbours are.

use std::fs;

use anyhow::{Context, Result};

use super::{Outcome, files, report};
use crate::repository;

pub(super) fn check() -> Result<Outcome> {
    let root = repository::root();
    let mut findings = Vec::new();
    for file in files::all(&root)? {
        if file.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = fs::read_to_string(root.join(&file));
        let text = text.with_context(|| format!("cannot read {}", file.display()))?;
        if !opens_with_its_purpose(&text) {
            findings.push(format!(
                "{}: open with `//!` and say what it is for",
                file.display()
            ));
        }
    }
    Ok(report(&findings))
}

fn opens_with_its_purpose(text: &str) -> bool {
    text.lines()
        .next()
        .and_then(|line| line.strip_prefix("//!"))
        .is_some_and(|said| !said.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_must_say_something() {
        assert!(opens_with_its_purpose("//! What it is for.\n"));
        assert!(!opens_with_its_purpose("//!\n//! Later.\n"));
        assert!(!opens_with_its_purpose("use std::fs;\n"));
        assert!(!opens_with_its_purpose(""));
    }
}
