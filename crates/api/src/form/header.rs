//! Names of HTTP headers: a token, as RFC 9110 has it.

/// What the name of a header looks like; RE2, for the schema.
pub const HEADER_NAME_PATTERN: &str = "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$";

/// Whether a text is the name of a header.
pub fn is_header_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    #[test]
    fn known_names() {
        for name in ["User-Agent", "x", "x'y", "x`y", "1"] {
            assert!(is_header_name(name), "{name}");
        }
        for text in ["", "a b", "a:", "ä", "a\n"] {
            assert!(!is_header_name(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_pattern_and_the_function_agree(text in "[ -~äé\n]{0,4}") {
            let pattern = Regex::new(HEADER_NAME_PATTERN).unwrap();
            prop_assert_eq!(pattern.is_match(&text), is_header_name(&text));
        }
    }
}
