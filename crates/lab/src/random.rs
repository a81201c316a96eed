//! Suffixes for names that nobody else has: of namespaces and of state directories.

use std::hash::{BuildHasher, RandomState};

/// Ten hexadecimal digits, different at every call: the standard library's hash keys are random.
pub(crate) fn random_suffix() -> String {
    let random = RandomState::new().hash_one("suffix");
    format!("{:010x}", random & 0xff_ffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_differ_and_fit_into_the_name_of_a_namespace() {
        let (first, second) = (random_suffix(), random_suffix());
        assert_ne!(first, second);
        assert_eq!(first.len(), 10);
        assert!(
            first
                .chars()
                .all(|c| c.is_ascii_hexdigit() && !c.is_ascii_uppercase())
        );
    }
}
