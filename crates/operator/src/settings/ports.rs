//! A range of ports, as it is typed: `10240-32767`.

use std::ops::RangeInclusive;

/// Below are ports that only root may open.
const LOWEST: u16 = 1024;

/// `from-to`, both included.
pub(super) fn range(text: &str) -> Result<RangeInclusive<u16>, String> {
    let refuse =
        || format!("`{text}` is not a range of ports; write it as 10240-32767, from {LOWEST} on");
    let (from, to) = text.split_once('-').ok_or_else(refuse)?;
    let port = |text: &str| text.trim().parse::<u16>().map_err(|_| refuse());
    let range = port(from)?..=port(to)?;
    if range.is_empty() || *range.start() < LOWEST {
        return Err(refuse());
    }
    Ok(range)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_range_is_refused() {
        for text in [
            "",
            "-",
            "1-2",
            "1023-2000",
            "3000-2000",
            "2000",
            "2000-70000",
            "a-b",
        ] {
            let refusal = range(text).expect_err(text);
            assert!(refusal.contains("10240-32767"), "{refusal}");
        }
    }

    proptest! {
        #[test]
        fn what_is_typed_is_meant(from in LOWEST.., more in 0_u16..100) {
            let to = from.saturating_add(more);
            prop_assert_eq!(range(&format!("{from}-{to}")), Ok(from..=to));
        }

        #[test]
        fn nothing_panics(text in "[0-9-]{0,12}|\\PC{0,12}") {
            let _ = range(&text);
        }
    }
}
