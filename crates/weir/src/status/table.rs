//! Text in columns, as wide as their widest cell.

/// The lines of a table; the first row is its head. The last column may be long, so nothing is filled up behind it.
pub(super) fn render(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, &width)| format!("{cell:<width$}"))
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// How long ago, in the unit that tells enough.
pub(super) fn age(seconds: i64) -> String {
    match seconds {
        ..=-1 => "in the future".to_owned(),
        0..=119 => format!("{seconds}s"),
        120..=7199 => format!("{}m", seconds / 60),
        7200..=172_799 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["NODE", "LOAD"], ["a-long-name", "5.0%"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(render(&rows), "NODE         LOAD\na-long-name  5.0%\n");
    }

    #[test]
    fn ages_are_told_in_a_unit_that_fits() {
        for (seconds, text) in [
            (7, "7s"),
            (119, "119s"),
            (150, "2m"),
            (9000, "2h"),
            (400_000, "4d"),
            (-3, "in the future"),
        ] {
            assert_eq!(age(seconds), text);
        }
    }
}
