//! Kubernetes quantities as numbers, for [`crate::scheduling`] to add and compare: in billionths, so that `1n` and `1Ei`
//! are both whole. `weir_api` only checks their form.

/// The quantity in billionths of its unit, rounded up; none if the text is no quantity of at least zero, or too large.
pub fn nanos(text: &str) -> Option<u128> {
    const MOST_DIGITS: usize = 40;
    let text = text.strip_prefix('+').unwrap_or(text);
    let end = text.find(|c: char| c != '.' && !c.is_ascii_digit());
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || digits.len() > MOST_DIGITS || fraction.contains('.') {
        return None;
    }
    let digits: u128 = digits.parse().ok()?;
    let (factor, exponent) = factor(suffix)?;
    // Billionths: nine powers of ten more, less those behind the point.
    let exponent = exponent + 9 - i32::try_from(fraction.len()).ok()?;
    let product = digits.checked_mul(factor)?;
    let power = 10_u128.checked_pow(exponent.unsigned_abs());
    if exponent >= 0 {
        if product == 0 {
            return Some(0);
        }
        product.checked_mul(power?)
    } else {
        Some(power.map_or(u128::from(product > 0), |power| product.div_ceil(power)))
    }
}

/// What a suffix multiplies by: a whole number, and a power of ten.
fn factor(suffix: &str) -> Option<(u128, i32)> {
    let binary = |power: u32| Some((1_u128 << (10 * power), 0));
    match suffix {
        "n" => Some((1, -9)),
        "u" => Some((1, -6)),
        "m" => Some((1, -3)),
        "" => Some((1, 0)),
        "k" => Some((1, 3)),
        "M" => Some((1, 6)),
        "G" => Some((1, 9)),
        "T" => Some((1, 12)),
        "P" => Some((1, 15)),
        "E" => Some((1, 18)),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => {
            let digits = suffix.strip_prefix(['e', 'E'])?;
            let exponent: i32 = digits.parse().ok()?;
            (exponent.abs() <= 100).then_some((1, exponent))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ONE: u128 = 1_000_000_000;

    #[test]
    fn known_quantities() {
        for (text, expected) in [
            ("0", 0),
            ("1", ONE),
            ("+1.5", ONE * 3 / 2),
            (".5", ONE / 2),
            ("5.", 5 * ONE),
            ("200m", ONE / 5),
            ("1n", 1),
            ("0.1n", 1),
            ("1k", 1000 * ONE),
            ("1Ki", 1024 * ONE),
            ("256Mi", (256 << 20) * ONE),
            ("1e3", 1000 * ONE),
            ("1E-3", ONE / 1000),
            ("1E", ONE * ONE * ONE),
            ("0e100", 0),
            ("1e-100", 1),
        ] {
            assert_eq!(nanos(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity() {
        for text in [
            "", ".", "-1", "m", "1 ", "1mi", "1.2.3", "1e", "1e999", "0x1", "1e40",
        ] {
            assert_eq!(nanos(text), None, "{text}");
        }
        assert_eq!(nanos(&"9".repeat(41)), None);
    }

    proptest! {
        #[test]
        fn any_text_gives_an_answer(text in "[0-9.+eEmkKMGi-]{0,50}") {
            let _ = nanos(&text);
        }

        #[test]
        fn whole_numbers_are_themselves(value in any::<u64>()) {
            prop_assert_eq!(nanos(&value.to_string()), Some(u128::from(value) * ONE));
        }
    }
}
