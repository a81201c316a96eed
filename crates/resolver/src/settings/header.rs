//! How a header is named on the command line.

use http::HeaderName;

/// A header's name, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaybeHeader(pub(super) Option<HeaderName>);

/// Empty turns the header off.
pub(super) fn header(text: &str) -> Result<MaybeHeader, String> {
    if text.is_empty() {
        return Ok(MaybeHeader(None));
    }
    HeaderName::from_bytes(text.as_bytes())
        .map(|name| MaybeHeader(Some(name)))
        .map_err(|_| format!("`{text}` is not the name of a header"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nothing_panics(text in ".{0,30}") {
            let _ = header(&text);
        }
    }
}
