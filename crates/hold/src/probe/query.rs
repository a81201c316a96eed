//! The parameters of a query, decoded as forms are: `%2F` is a slash, `+` is a space.

use std::borrow::Cow;

/// Names and values in their order. A parameter without `=` has an empty value.
pub(super) fn parameters(query: &str) -> impl Iterator<Item = (Cow<'_, [u8]>, Cow<'_, [u8]>)> {
    query
        .split('&')
        .filter(|part| !part.is_empty())
        .map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (decode(name), decode(value))
        })
}

/// What is no escape stays as it is, as browsers and most servers have it.
fn decode(text: &str) -> Cow<'_, [u8]> {
    let bytes = text.as_bytes();
    if !bytes.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return Cow::Borrowed(bytes);
    }
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        decoded.push(match first {
            b'+' => b' ',
            b'%' => match escaped(after) {
                Some((byte, after)) => {
                    rest = after;
                    byte
                }
                None => b'%',
            },
            other => other,
        });
    }
    Cow::Owned(decoded)
}

fn escaped(text: &[u8]) -> Option<(u8, &[u8])> {
    let ([high, low], rest) = text.split_first_chunk::<2>()?;
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()?;
    Some((byte, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pairs(query: &str) -> Vec<(String, String)> {
        let text = |bytes: Cow<'_, [u8]>| String::from_utf8_lossy(&bytes).into_owned();
        parameters(query)
            .map(|(name, value)| (text(name), text(value)))
            .collect()
    }

    #[test]
    fn known_queries() {
        for (query, expected) in [
            ("", &[][..]),
            ("&&", &[]),
            ("a", &[("a", "")]),
            ("a=1&b=2&a=3", &[("a", "1"), ("b", "2"), ("a", "3")]),
            ("a=b=c", &[("a", "b=c")]),
            ("=x", &[("", "x")]),
            ("a+b=%41%2b+", &[("a b", "A+ ")]),
            ("a=%", &[("a", "%")]),
            ("a=%4", &[("a", "%4")]),
            ("a=%zz%e2%82%ac", &[("a", "%zz€")]),
        ] {
            let expected: Vec<_> = expected
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            assert_eq!(pairs(query), expected, "{query:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_comes_back(value in any::<Vec<u8>>()) {
            let encoded: Vec<String> = value.iter().map(|byte| format!("%{byte:02X}")).collect();
            let encoded = encoded.concat();
            prop_assert_eq!(decode(&encoded).into_owned(), value);
        }
    }
}
