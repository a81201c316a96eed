//! What is typed for flavours and windows, as values.

use thiserror::Error;
use weir_carbon::flavour::{Flavour, FlavourError, Flavours};
use weir_carbon::unit::{Precision, UnitError};

use super::BudgetWindow;

/// Why text is no such value.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ParseError {
    /// Not `percent:cost`.
    #[error("`{0}` is not a flavour; write precision and cost, such as 50:0.6")]
    Flavour(String),
    /// Not a precision.
    #[error("in `{0}`: {1}")]
    Precision(String, UnitError),
    /// Not a set.
    #[error(transparent)]
    Set(#[from] FlavourError),
    /// Not a window.
    #[error("`{0}` is not a window; write 168h, 30d, 2w, or `trace` for all of it")]
    Window(String),
}

/// `100:1.0,50:0.6,30:0.3`: precision in percent, cost relative or in Wh.
pub fn flavours(text: &str) -> Result<Flavours, ParseError> {
    let mut all = Vec::new();
    for one in text.split(',').map(str::trim) {
        let bad = || ParseError::Flavour(one.to_owned());
        let (percent, cost) = one.split_once(':').ok_or_else(bad)?;
        let percent: f64 = percent.trim().parse().map_err(|_| bad())?;
        let cost: f64 = cost.trim().parse().map_err(|_| bad())?;
        let precision = Precision::from_fraction(percent / 100.0)
            .map_err(|error| ParseError::Precision(one.to_owned(), error))?;
        all.push(Flavour::new(precision, cost));
    }
    Ok(Flavours::new(all)?)
}

/// `168h`, `30d`, `2w`, `5400s`, `90m`, or `trace`.
pub fn window(text: &str) -> Result<BudgetWindow, ParseError> {
    let bad = || ParseError::Window(text.to_owned());
    if text == "trace" {
        return Ok(BudgetWindow::WholeTrace);
    }
    let unit = match text.chars().last() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3_600,
        Some('d') => 86_400,
        Some('w') => 7 * 86_400,
        _ => return Err(bad()),
    };
    let count: i64 = text
        .get(..text.len() - 1)
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(bad)?;
    let seconds = count.checked_mul(unit).ok_or_else(bad)?;
    Ok(BudgetWindow::Seconds(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flavours_and_windows_are_read_as_written() {
        assert_eq!(flavours("100:1.0, 30:0.3").unwrap().count(), 2);
        for bad in [
            "",
            "50",
            "x:1",
            "50:y",
            "120:1",
            "50:0.5,50:0.4",
            "50:-1",
            "50:NaN",
        ] {
            assert!(flavours(bad).is_err(), "{bad}");
        }
        assert_eq!(window("2w"), Ok(BudgetWindow::Seconds(1_209_600)));
        assert_eq!(window("trace"), Ok(BudgetWindow::WholeTrace));
        for bad in ["", "h", "5", "5y", "-", "99999999999999999w", "é"] {
            assert!(window(bad).is_err(), "{bad}");
        }
    }
}
