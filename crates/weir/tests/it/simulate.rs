//! `weir simulate` as a user meets it.

use std::fs;

use serde_json::Value;

use crate::{output_of, weir};

#[test]
fn alone_it_plays_a_real_day_and_week() {
    let table = output_of(&["simulate"]);
    for part in [
        "gb-day: 48 slots",
        "gb-week: 336 slots",
        "optimal",
        "constant-mix",
        "random",
    ] {
        assert!(table.contains(part), "{part:?} is missing in\n{table}");
    }
    // Only the original's policies, as it ran them, break the budget; and they are told apart.
    for line in table.lines().filter(|line| line.contains("BUDGET BROKEN")) {
        assert!(line.trim_start().starts_with("original-"), "{line}");
    }
    assert!(
        table.contains("with no budget kept") && table.contains("why optimal"),
        "{table}"
    );
}

#[test]
fn a_file_of_ones_own_is_read_and_its_columns_are_named() {
    let path = std::env::temp_dir().join(format!("weir-simulate-{}.csv", std::process::id()));
    let rows: Vec<String> = (0..48)
        .map(|h| format!("2024-02-{:02} {:02}:00,{}", 28 + h / 24, h % 24, 100 + h))
        .collect();
    fs::write(
        &path,
        format!("when (UTC),grid intensity\n{}\n", rows.join("\n")),
    )
    .expect("a file");
    let file = path.to_str().expect("a name");
    let text = output_of(&[
        "simulate", "--trace", file, "--policy", "optimal", "--format", "json",
    ]);
    let table = output_of(&["simulate", "--trace", file, "--policy", "optimal"]);
    fs::remove_file(&path).expect("removed");
    let lines: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(lines[0]["slots"], 48);
    assert_eq!(lines[0]["budget_violations"], 0);
    assert_eq!(lines.as_array().map(Vec::len), Some(1));
    assert!(
        table.contains("intensity from column `grid intensity`"),
        "{table}"
    );
}

#[test]
fn what_is_wrong_is_said_and_what_to_do() {
    for (arguments, code, said) in [
        (&["--trace", "mars"][..], 1, "gb-week"),
        (&["--trace", "no/such.csv"], 1, "cannot be read"),
        (&["--policy", "best"], 1, "credit-greedy"),
        (&["--forecast", "crystal"], 1, "climatology"),
        (&["--forecast", "perfect", "x.csv"], 1, "only vintages"),
        (&["--flavours", "50"], 2, "50:0.6"),
        (&["--target-error", "1.5"], 2, "from 0 to 1"),
        (&["--budget-window", "5y"], 2, "168h"),
        (&["--budget-window", "1m"], 1, "1h"),
        (&["--format", "xml"], 2, "table, json, csv"),
    ] {
        let mut all = vec!["simulate"];
        all.extend(arguments);
        let output = weir(&all).output().expect("weir runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
    }
}
