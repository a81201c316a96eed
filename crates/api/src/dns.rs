//! What Kubernetes accepts as a name, a label key or a label value, and how a derived name is made
//! to fit.
//!
//! `validate` uses the checks, the schemas' CEL rules use the patterns (tests hold both together),
//! and each verb's `names` uses [`fit`].

use sha2::{Digest, Sha256};
use thiserror::Error;

/// The form of a DNS label (RFC 1123), such as a Service's or a namespace's name.
pub const DNS_LABEL_PATTERN: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
/// The most characters in a DNS label.
pub const DNS_LABEL_MAX_LENGTH: usize = 63;

/// The form of a DNS subdomain, such as most objects' names.
pub const DNS_SUBDOMAIN_PATTERN: &str =
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
/// The most characters in a DNS subdomain.
pub const DNS_SUBDOMAIN_MAX_LENGTH: usize = 253;

/// The form of the name in a label key: what follows the slash, or all of it where there is none.
pub const LABEL_NAME_PATTERN: &str = "^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$";
/// The form of a label value, which may be empty.
pub const LABEL_VALUE_PATTERN: &str = "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$";
/// The most characters in the name of a label key, and in a label value.
pub const LABEL_MAX_LENGTH: usize = 63;

/// How many hexadecimal digits of a SHA-256 tell derived names apart.
pub const HASH_DIGITS: usize = 10;

/// Why Kubernetes would not accept a name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// Nothing where a name is needed.
    #[error("the name is empty")]
    Empty,
    /// More characters than allowed.
    #[error("the name has {length} characters; at most {max} are allowed")]
    TooLong {
        /// How many characters it has.
        length: usize,
        /// How many it may have.
        max: usize,
    },
    /// A character that is not allowed anywhere in the name.
    #[error("`{character}` in `{name}` is not allowed; use only {allowed}")]
    BadCharacter {
        /// The name.
        name: String,
        /// The first character in it that is not allowed.
        character: char,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A part starts or ends with something else than a letter or a digit.
    #[error("`{0}` must start and end with a letter or a digit")]
    BadEdge(String),
    /// A subdomain with nothing between two dots, or before the first, or after the last.
    #[error("`{0}` has an empty part; there must be something on both sides of each dot")]
    EmptyPart(String),
    /// A label key with more than one slash.
    #[error("`{0}` has more than one slash; write a key as name or prefix/name")]
    TooManySlashes(String),
}

/// Checks a DNS label (RFC 1123): at most 63 lower-case letters, digits and hyphens.
pub fn check_dns_label(name: &str) -> Result<(), NameError> {
    check_length(name, DNS_LABEL_MAX_LENGTH)?;
    check_characters(name, "lower-case letters, digits and `-`", is_dns_character)?;
    check_edges(name)
}

/// Checks a DNS subdomain: at most 253 characters, parts like DNS labels between dots. As in
/// Kubernetes, a part may be longer than 63.
pub fn check_dns_subdomain(name: &str) -> Result<(), NameError> {
    check_length(name, DNS_SUBDOMAIN_MAX_LENGTH)?;
    check_characters(name, "lower-case letters, digits, `-` and `.`", |c| {
        c == '.' || is_dns_character(c)
    })?;
    if name.split('.').any(str::is_empty) {
        return Err(NameError::EmptyPart(name.to_owned()));
    }
    name.split('.').try_for_each(check_edges)
}

/// Checks the key of a label, an annotation or a taint: `name` or `prefix/name`.
pub fn check_label_key(key: &str) -> Result<(), NameError> {
    let (prefix, name) = match key.split_once('/') {
        Some((_, rest)) if rest.contains('/') => {
            return Err(NameError::TooManySlashes(key.to_owned()));
        }
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    prefix.map_or(Ok(()), check_dns_subdomain)?;
    check_length(name, LABEL_MAX_LENGTH)?;
    check_label_characters(name)
}

/// Checks the value of a label, which may be empty.
pub fn check_label_value(value: &str) -> Result<(), NameError> {
    if value.is_empty() {
        return Ok(());
    }
    check_length(value, LABEL_MAX_LENGTH)?;
    check_label_characters(value)
}

/// The first ten hexadecimal digits of the text's SHA-256.
pub fn short_hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let start = digest
        .iter()
        .take(HASH_DIGITS / 2)
        .fold(0_u64, |n, byte| n << 8 | u64::from(*byte));
    format!("{start:0HASH_DIGITS$x}")
}

/// The name `<prefix><core><suffix>` in at most `max` characters, different for different cores as
/// far as 40 bits of hash tell them apart: who makes objects still checks that a name is its own.
///
/// A name that is short enough stays as it is. Of a longer one the core is cut and gets a hash of
/// the whole core at its end, so that the name is exactly `max` long; where the cut leaves hyphens
/// or dots at the end, each becomes an `x`, since a dot before the hash's hyphen is no valid name
/// and a shorter result could be any natural name. A name that is short enough but looks like a cut
/// one (exactly `max` long, a hash at the core's end) is hashed too: nobody can take another's cut
/// name by asking for it.
///
/// `max` must leave room for prefix, suffix and hash, which all callers' constants do; otherwise the
/// result is longer than `max` rather than ambiguous.
pub fn fit(prefix: &str, core: &str, suffix: &str, max: usize) -> String {
    let length = prefix.len() + core.len() + suffix.len();
    if length < max || (length == max && !ends_like_a_cut_one(core)) {
        return format!("{prefix}{core}{suffix}");
    }
    let room = max.saturating_sub(prefix.len() + suffix.len() + 1 + HASH_DIGITS);
    // Names are ASCII; should one not be, `floor_char_boundary` keeps this from panicking.
    let cut = core
        .get(..core.floor_char_boundary(room))
        .unwrap_or_default();
    let kept = cut.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    let filler = "x".repeat(cut.len() - kept.len());
    format!("{prefix}{kept}{filler}-{}{suffix}", short_hash(core))
}

/// Whether the text ends as [`fit`] ends a core that it has cut.
fn ends_like_a_cut_one(core: &str) -> bool {
    core.rsplit_once('-').is_some_and(|(_, tail)| {
        tail.len() == HASH_DIGITS && tail.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    })
}

fn check_length(name: &str, max: usize) -> Result<(), NameError> {
    let length = name.chars().count();
    match length {
        0 => Err(NameError::Empty),
        _ if length > max => Err(NameError::TooLong { length, max }),
        _ => Ok(()),
    }
}

fn check_characters(
    name: &str,
    allowed: &'static str,
    is_allowed: impl Fn(char) -> bool,
) -> Result<(), NameError> {
    match name.chars().find(|c| !is_allowed(*c)) {
        Some(character) => Err(NameError::BadCharacter {
            name: name.to_owned(),
            character,
            allowed,
        }),
        None => Ok(()),
    }
}

fn check_label_characters(text: &str) -> Result<(), NameError> {
    check_characters(text, "letters, digits, `-`, `_` and `.`", |c| {
        c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
    })?;
    check_edges(text)
}

fn check_edges(name: &str) -> Result<(), NameError> {
    let is_good = |c: char| c.is_ascii_alphanumeric();
    if name.starts_with(is_good) && name.ends_with(is_good) {
        Ok(())
    } else {
        Err(NameError::BadEdge(name.to_owned()))
    }
}

fn is_dns_character(character: char) -> bool {
    character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-'
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    #[test]
    fn labels_subdomains_keys_and_values() {
        let long = "a".repeat(63);
        let longer = "a".repeat(64);
        for good in ["a", "0", "httpbin", "a-b", "a--b", &long] {
            assert_eq!(check_dns_label(good), Ok(()), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a.b", "a_b", "é", &longer] {
            assert!(check_dns_label(bad).is_err(), "{bad}");
        }
        for good in ["a", "a.b", "a-b.c", &longer, &"a".repeat(253)] {
            assert_eq!(check_dns_subdomain(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            ".",
            "a.",
            ".a",
            "a..b",
            "a.-b",
            "a-.b",
            "a/b",
            &"a".repeat(254),
        ] {
            assert!(check_dns_subdomain(bad).is_err(), "{bad}");
        }
        for good in [
            "a",
            "A_b.c",
            "example.com/Name",
            &format!("example.com/{long}"),
        ] {
            assert_eq!(check_label_key(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "/",
            "/a",
            "a/",
            "a/b/c",
            "Example.com/a",
            &format!("example.com/{longer}"),
        ] {
            assert!(check_label_key(bad).is_err(), "{bad}");
        }
        for good in ["", "true", "A_b.c-9", &long] {
            assert_eq!(check_label_value(good), Ok(()), "{good}");
        }
        for bad in ["-", "a b", "a%", "_a", &longer] {
            assert!(check_label_value(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_refusal_says_what_is_wrong() {
        let message = |result: Result<(), NameError>| result.unwrap_err().to_string();
        assert_eq!(
            message(check_dns_label("Web")),
            "`W` in `Web` is not allowed; use only lower-case letters, digits and `-`"
        );
        assert_eq!(
            message(check_dns_label("web-")),
            "`web-` must start and end with a letter or a digit"
        );
        assert_eq!(
            message(check_label_value(&"a".repeat(70))),
            "the name has 70 characters; at most 63 are allowed"
        );
    }

    #[test]
    fn the_hash_is_that_of_sha256sum() {
        // printf httpbin | sha256sum
        assert_eq!(short_hash("httpbin"), "abbea20e59");
    }

    #[test]
    fn a_name_that_fits_stays_and_a_longer_one_is_cut() {
        assert_eq!(fit("a-", "web", "-z", 63), "a-web-z");
        // Ends like a cut one, but is not as long as one: left alone.
        assert_eq!(fit("", "job-1700000000", "", 63), "job-1700000000");
        let core = "a".repeat(64);
        // printf 'a%.0s' {1..64} | sha256sum
        assert_eq!(
            fit("", &core, "", 63),
            format!("{}-ffe054fe7a", "a".repeat(52))
        );
    }

    #[test]
    fn asking_for_a_cut_name_does_not_get_it() {
        // The cut falls into the hyphens.
        for core in [
            "a".repeat(64),
            format!("{}{}", "a-".repeat(30), "b".repeat(9)),
        ] {
            let cut = fit("", &core, "", 63);
            assert_eq!(cut.len(), 63);
            assert_ne!(fit("", &cut, "", 63), cut);
        }
    }

    proptest! {
        #[test]
        fn checks_and_patterns_agree(text in "[a-c0-1A_./-]{0,8}") {
            let is = |pattern: &str| Regex::new(pattern).unwrap().is_match(&text);
            prop_assert_eq!(check_dns_label(&text).is_ok(), is(DNS_LABEL_PATTERN));
            prop_assert_eq!(check_dns_subdomain(&text).is_ok(), is(DNS_SUBDOMAIN_PATTERN));
            prop_assert_eq!(check_label_value(&text).is_ok(), is(LABEL_VALUE_PATTERN));
            if !text.contains('/') {
                prop_assert_eq!(check_label_key(&text).is_ok(), is(LABEL_NAME_PATTERN));
            }
        }

        #[test]
        fn fitted_names_are_valid_and_not_too_long(
            core in "[a-z0-9]([a-z0-9-]{0,90}[a-z0-9])?",
            max in 40_usize..80,
        ) {
            let name = fit("pre-", &core, "-post", max);
            prop_assert!(name.len() <= max);
            prop_assert!(name.len() > 63 || check_dns_label(&name).is_ok(), "{}", name);
            if core.len() + 9 < max {
                prop_assert_eq!(name, format!("pre-{core}-post"));
            }
        }

        #[test]
        fn fitted_subdomains_are_valid(core in "[a-z0-9]{1,5}([.-][a-z0-9]{1,5}){0,60}") {
            let name = fit("", &core, ".example.com", 60);
            prop_assert!(name.len() <= 60);
            prop_assert!(check_dns_subdomain(&name).is_ok(), "{}", name);
        }

        /// Few letters and lengths around the limit, so that cores often share their first part;
        /// and for each core the cores that its own results would be.
        #[test]
        fn different_cores_get_different_names(
            cores in proptest::collection::btree_set("a(-{0,3}[ab]){8,16}", 1..24),
        ) {
            let name_of = |core: &str| fit("p-", core, "-s", 32);
            let core_of = |name: &str| {
                name.strip_prefix("p-").unwrap().strip_suffix("-s").unwrap().to_owned()
            };
            let mut names: BTreeMap<String, String> = BTreeMap::new();
            for core in cores {
                let mut asked = core;
                for _ in 0..3 {
                    let name = name_of(&asked);
                    let holder = names.entry(name.clone()).or_insert_with(|| asked.clone());
                    prop_assert_eq!(&*holder, &asked, "both are called {}", name);
                    asked = core_of(&name);
                }
            }
        }

        #[test]
        fn no_text_makes_it_panic(core in "\\PC{0,40}", max in 0_usize..40) {
            let _ = fit("p", &core, "s", max);
        }
    }
}
