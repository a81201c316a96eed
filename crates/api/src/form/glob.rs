//! Globs over the names of network interfaces: `veth*`, `br-*`, `eth?`.
//!
//! `interfaces.include` and `.exclude` of a `TrafficWatch` hold them. `*` stands for any characters,
//! `?` for exactly one; there are no classes and no escapes, as no interface name needs them.

use std::str::Chars;

use thiserror::Error;

/// What a glob looks like; RE2, for the schema.
pub const GLOB_PATTERN: &str = r"^[A-Za-z0-9_.:@*?-]+$";

/// The most characters that a glob may have; an interface name has at most 15.
pub const GLOB_MAX_LENGTH: usize = 64;

/// A pattern that whole interface names either match or do not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Glob {
    pattern: String,
}

/// Why a text is not a glob.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GlobError {
    /// Nothing; it could match no interface.
    #[error("the glob is empty; write an interface name such as eth0, or a pattern such as veth*")]
    Empty,
    /// More characters than [`GLOB_MAX_LENGTH`].
    #[error("the glob has {0} characters; at most {GLOB_MAX_LENGTH} are allowed")]
    TooLong(usize),
    /// A character that no glob may hold.
    #[error("`{character}` in `{glob}` is not allowed; use letters, digits, `_.:@-`, and * and ?")]
    BadCharacter {
        /// The whole text.
        glob: String,
        /// The first character in it that is not allowed.
        character: char,
    },
}

impl Glob {
    /// Checks the text and makes a glob of it.
    pub fn parse(text: &str) -> Result<Self, GlobError> {
        if text.is_empty() {
            return Err(GlobError::Empty);
        }
        let length = text.chars().count();
        if length > GLOB_MAX_LENGTH {
            return Err(GlobError::TooLong(length));
        }
        if let Some(character) = text.chars().find(|c| !is_allowed(*c)) {
            return Err(GlobError::BadCharacter {
                glob: text.to_owned(),
                character,
            });
        }
        Ok(Self {
            pattern: text.to_owned(),
        })
    }

    /// The text that the glob was made of.
    pub fn as_str(&self) -> &str {
        &self.pattern
    }

    /// Whether the whole name matches.
    ///
    /// Of all stars only the last one met is ever tried again, since whatever an earlier one could
    /// take the later one can take too. So each character of the name costs at most one run over
    /// the pattern, and the time is linear in the name. Nothing is copied: in a large cluster this is asked some
    /// million times a second.
    pub fn matches(&self, name: &str) -> bool {
        let (mut pattern, mut name) = (self.pattern.chars(), name.chars());
        // What stands behind the last star, and what that has not taken of the name.
        let mut last_star: Option<(Chars<'_>, Chars<'_>)> = None;
        loop {
            let (mut pattern_rest, mut name_rest) = (pattern.clone(), name.clone());
            let Some(character) = name_rest.next() else {
                return pattern.all(|rest| rest == '*');
            };
            match (pattern_rest.next(), &mut last_star) {
                (Some('*'), _) => {
                    last_star = Some((pattern_rest.clone(), name.clone()));
                    pattern = pattern_rest;
                }
                (Some(expected), _) if expected == '?' || expected == character => {
                    (pattern, name) = (pattern_rest, name_rest);
                }
                (_, Some((behind, left))) => {
                    left.next();
                    (pattern, name) = (behind.clone(), left.clone());
                }
                (_, None) => return false,
            }
        }
    }
}

fn is_allowed(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_.:@*?-".contains(character)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    fn matches(glob: &str, name: &str) -> bool {
        Glob::parse(glob).unwrap().matches(name)
    }

    /// Says the same in the plainest way, in exponential time.
    fn naive(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (Some((b'*', rest)), None) => naive(rest, name),
            (Some((b'*', rest)), Some((_, shorter))) => {
                naive(rest, name) || naive(pattern, shorter)
            }
            (Some((expected, rest)), Some((character, shorter))) => {
                (*expected == b'?' || expected == character) && naive(rest, shorter)
            }
            _ => false,
        }
    }

    #[test]
    fn interface_names() {
        for (glob, name, expected) in [
            ("veth*", "veth1a2b", true),
            ("veth*", "veth", true),
            ("veth*", "eth0", false),
            ("br-*", "br-lan", true),
            ("br-*", "br0", false),
            ("eth?", "eth0", true),
            ("eth?", "eth", false),
            ("eth?", "eth10", false),
            ("lo", "lo", true),
            ("lo", "lo0", false),
            ("*", "", true),
            ("*a*b", "xaabab", true),
            ("*a*b", "xaaba", false),
            ("e*.100", "eth0.100", true),
        ] {
            assert_eq!(matches(glob, name), expected, "{glob} {name}");
        }
    }

    #[test]
    fn what_is_not_a_glob() {
        assert_eq!(Glob::parse(""), Err(GlobError::Empty));
        assert!(Glob::parse(&"a".repeat(64)).is_ok());
        assert_eq!(Glob::parse(&"a".repeat(65)), Err(GlobError::TooLong(65)));
        for (glob, character) in [("eth[0-9]", '['), ("a b", ' '), ("a/b", '/'), ("é*", 'é')] {
            let error = GlobError::BadCharacter {
                glob: glob.to_owned(),
                character,
            };
            assert_eq!(Glob::parse(glob), Err(error));
        }
    }

    #[test]
    fn many_stars_take_no_longer() {
        // Exponential matchers never finish this one.
        let glob = "*a".repeat(32);
        assert!(!matches(&glob, &format!("{}b", "a".repeat(10_000))));
    }

    proptest! {
        #[test]
        fn agrees_with_the_naive_matcher(glob in "[ab*?]{1,7}", name in "[ab]{0,9}") {
            let expected = naive(glob.as_bytes(), name.as_bytes());
            prop_assert_eq!(matches(&glob, &name), expected, "{} {}", glob, name);
        }

        #[test]
        fn parser_and_pattern_agree(text in "[ -~]{0,5}|[a-z0-9_.:@*?-]{1,64}|\\PC{0,3}") {
            let expected = Regex::new(GLOB_PATTERN).unwrap().is_match(&text);
            prop_assert_eq!(Glob::parse(&text).is_ok(), expected);
        }
    }
}
