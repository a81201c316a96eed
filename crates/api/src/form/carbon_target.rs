//! What part of Great Britain's grid a forecast is asked for: `national`, `region:13`, `postcode:RG10`.
//!
//! `scheduler.carbonTarget` holds one, where anything else means `national`, and so does the
//! provider's own `target`, where anything else is refused.

/// What a target looks like; RE2, for the schema.
pub const CARBON_TARGET_PATTERN: &str =
    "^(national|region:([1-9]|1[0-8])|postcode:[A-Za-z]{1,2}[0-9][A-Za-z0-9]?)$";

/// Whether a text is a target.
pub fn is_carbon_target(text: &str) -> bool {
    match text.split_once(':') {
        None => text == "national",
        Some(("region", id)) => {
            let number = id.parse().unwrap_or(0);
            (1..=18).contains(&number) && !id.starts_with(['0', '+'])
        }
        Some(("postcode", code)) => is_outward_code(code),
        Some(_) => false,
    }
}

/// The first half of a postcode: one or two letters, a digit, perhaps another letter or digit.
fn is_outward_code(code: &str) -> bool {
    let letters = code.bytes().take_while(u8::is_ascii_alphabetic).count();
    let rest = code.as_bytes().get(letters..).unwrap_or_default();
    (1..=2).contains(&letters)
        && match rest {
            [digit] => digit.is_ascii_digit(),
            [digit, last] => digit.is_ascii_digit() && last.is_ascii_alphanumeric(),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    #[test]
    fn known_targets() {
        for text in [
            "national",
            "region:1",
            "region:18",
            "postcode:RG10",
            "postcode:M1",
            "postcode:SW1A",
        ] {
            assert!(is_carbon_target(text), "{text}");
        }
        for text in [
            "",
            "150",
            "National",
            "region:0",
            "region:19",
            "region:+1",
            "postcode:1234",
            "city:Bath",
        ] {
            assert!(!is_carbon_target(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_pattern_and_the_function_agree(
            text in "(national|region:[0-9+]{0,3}|postcode:[A-Za-z0-9]{0,5}|[a-z:]{0,9})",
        ) {
            let pattern = Regex::new(CARBON_TARGET_PATTERN).unwrap();
            prop_assert_eq!(pattern.is_match(&text), is_carbon_target(&text), "{}", text);
        }
    }
}
