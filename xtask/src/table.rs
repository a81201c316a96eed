//! Text in columns: the first is to the left, the others are as told.

/// How a column is set.
#[derive(Clone, Copy)]
pub(crate) enum Align {
    Left,
    Right,
}

/// The lines of a table; the first row is its head. Columns are as wide as their widest cell.
pub(crate) fn render(align: &[Align], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
    };
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let width = width(column).unwrap_or(0);
            match align.get(column) {
                Some(Align::Right) => format!("{cell:>width$}"),
                _ => format!("{cell:<width$}"),
            }
        });
        format!("  {}", cells.collect::<Vec<_>>().join("  "))
            .trim_end()
            .to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["tool", "MB"], ["etcd", "26"], ["kubernetes", "256"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        let expected = "  tool         MB\n  etcd         26\n  kubernetes  256";
        assert_eq!(render(&[Align::Left, Align::Right], &rows), expected);
    }
}
