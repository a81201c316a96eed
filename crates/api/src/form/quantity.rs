//! Kubernetes quantities: `200m`, `1`, `256Mi`, `1e3`. Checked, not computed with: a controller hands
//! them on as they are written.

use thiserror::Error;

/// Why a text is not a quantity of something that a container may ask for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QuantityError {
    /// Not a number with a suffix that Kubernetes knows.
    #[error("`{0}` is not a quantity; write a number such as 1, 200m, 256Mi or 1e3")]
    NotAQuantity(String),
    /// Below zero.
    #[error("`{0}` is negative; nobody can have less than nothing")]
    Negative(String),
}

/// Checks that a text is a quantity of at least zero.
pub fn check_quantity(text: &str) -> Result<(), QuantityError> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let number = unsigned.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let (number, suffix) = unsigned.split_at(unsigned.len() - number.len());
    let is_number = number.bytes().any(|byte| byte.is_ascii_digit())
        && number.bytes().filter(|byte| *byte == b'.').count() <= 1;
    if !is_number || !is_suffix(suffix) {
        return Err(QuantityError::NotAQuantity(text.to_owned()));
    }
    let is_zero = number.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    if text.starts_with('-') && !is_zero {
        return Err(QuantityError::Negative(text.to_owned()));
    }
    Ok(())
}

fn is_suffix(suffix: &str) -> bool {
    const SUFFIXES: [&str; 16] = [
        "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
    ];
    let exponent = suffix.strip_prefix(['e', 'E']).map(|digits| {
        let digits = digits.strip_prefix(['+', '-']).unwrap_or(digits);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    SUFFIXES.contains(&suffix) || exponent == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_quantities() {
        for text in [
            "0", "1", "200m", "256Mi", "1.5", ".5Gi", "5.", "1e3", "1E-3", "+1", "-0", "2E",
        ] {
            assert_eq!(check_quantity(text), Ok(()), "{text}");
        }
        for text in [
            "", "abc", "1.2.3", ".", "-", "1 Mi", "1mi", "1e", "1Kib", "m",
        ] {
            let expected = QuantityError::NotAQuantity(text.to_owned());
            assert_eq!(check_quantity(text), Err(expected), "{text}");
        }
        assert_eq!(
            check_quantity("-1m"),
            Err(QuantityError::Negative("-1m".to_owned()))
        );
    }
}
