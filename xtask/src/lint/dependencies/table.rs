//! Reads the table of dependencies from Markdown.
//!
//! It stands between two comments; its columns are: crate, may depend on, for tests also. Names are the
//! directories of crates, in backticks; `pure` after a crate's name says that it does no I/O.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

const BEGIN: &str = "<!-- dependencies:begin -->";
const END: &str = "<!-- dependencies:end -->";

/// One row.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    /// It may not even be built with anything that does I/O.
    pub(super) pure: bool,
    pub(super) may: BTreeSet<String>,
    pub(super) for_tests: BTreeSet<String>,
}

/// All rows.
pub(super) fn parse(markdown: &str) -> Result<Vec<Entry>> {
    let Some((_, rest)) = markdown.split_once(BEGIN) else {
        bail!("there is no `{BEGIN}`")
    };
    let Some((table, _)) = rest.split_once(END) else {
        bail!("there is no `{END}`")
    };
    let rows = table
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with('|'));
    // The first two are the head and the line below it.
    let entries: Vec<Entry> = rows.skip(2).map(entry).collect::<Result<_>>()?;
    if entries.is_empty() {
        bail!("it has no rows");
    }
    Ok(entries)
}

fn entry(row: &str) -> Result<Entry> {
    let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
    let [name, may, for_tests] = cells[..] else {
        bail!("`{row}` does not have three columns")
    };
    let mut names = names(name).into_iter();
    let (Some(first), None) = (names.next(), names.next()) else {
        bail!("`{row}` does not begin with one crate in backticks");
    };
    Ok(Entry {
        name: first,
        pure: name
            .rsplit('`')
            .next()
            .is_some_and(|note| note.contains("pure")),
        may: self::names(may),
        for_tests: self::names(for_tests),
    })
}

/// What stands in backticks: every second piece.
fn names(cell: &str) -> BTreeSet<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn rows_between_the_comments_are_read() {
        let text = "# How to\n| not | this | one |\n<!-- dependencies:begin -->\n\
            | crate | may depend on | for tests also |\n|---|---|---|\n\
            | `api` (pure) | | `lab` |\n| `weir` | `api`, `role` | |\n<!-- dependencies:end -->\n";
        let entries = parse(text).unwrap();
        assert_eq!(entries.len(), 2);
        assert_eq!(
            entries[0],
            Entry {
                name: "api".to_owned(),
                pure: true,
                may: set(&[]),
                for_tests: set(&["lab"])
            },
        );
        assert_eq!(entries[1].may, set(&["api", "role"]));
        assert!(!entries[1].pure);
    }

    #[test]
    fn what_is_no_table_is_refused_with_the_reason() {
        assert!(
            parse("nothing")
                .unwrap_err()
                .to_string()
                .contains("dependencies:begin")
        );
        assert!(
            parse(BEGIN)
                .unwrap_err()
                .to_string()
                .contains("dependencies:end")
        );
        assert!(parse(&format!("{BEGIN}{END}")).is_err());
        let two = format!("{BEGIN}\n|a|b|c|\n|-|-|-|\n|`x`|\n{END}");
        assert!(
            parse(&two)
                .unwrap_err()
                .to_string()
                .contains("three columns")
        );
        let nameless = format!("{BEGIN}\n|a|b|c|\n|-|-|-|\n|x|||\n{END}");
        assert!(parse(&nameless).is_err());
    }
}
