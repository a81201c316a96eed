//! The address of a Prometheus server, as people write it: with a path, a slash too many, or a name
//! and a password in it, which are sent as Go's client sends them and are shown to nobody.

use http::{Uri, uri::PathAndQuery};

/// A server's address, taken apart.
pub(super) struct Address {
    /// Where queries go.
    pub(super) endpoint: Uri,
    /// The address for people.
    pub(super) shown: String,
    /// An Authorization header, if there are a name and a password in it.
    pub(super) basic: Option<String>,
}

impl Address {
    /// Reads `http://` and `https://` with a host.
    pub(super) fn read(address: &str) -> Option<Self> {
        let uri: Uri = address.parse().ok()?;
        let scheme = uri.scheme_str()?;
        if !matches!(scheme, "http" | "https") {
            return None;
        }
        let authority = uri.authority()?.as_str();
        let (credentials, host) = match authority.rsplit_once('@') {
            Some((credentials, host)) => (Some(credentials), host),
            None => (None, authority),
        };
        let path = uri.path().trim_end_matches('/');
        // What stands behind a question mark is kept, as some servers want it, and not shown.
        let query = uri.query().map(|query| format!("?{query}"));
        let query = query.unwrap_or_default();
        let api = PathAndQuery::try_from(format!("{path}/api/v1/query{query}")).ok()?;
        let endpoint = Uri::builder()
            .scheme(scheme)
            .authority(host)
            .path_and_query(api)
            .build()
            .ok()?;
        endpoint.host().filter(|host| !host.is_empty())?;
        Some(Self {
            shown: format!("{scheme}://{host}{path}"),
            endpoint,
            basic: credentials.map(|text| format!("Basic {}", base64(&percent_decoded(text)))),
        })
    }
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let escaped = digits.and_then(|digits| Some(hex(digits[0])? << 4 | hex(digits[1])?));
        if let Some(byte) = escaped {
            decoded.push(byte);
            rest = &after[2..];
        } else {
            decoded.push(*first);
            rest = after;
        }
    }
    decoded
}

fn hex(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = (0..3).fold(0_usize, |bits, at| {
            bits << 8 | usize::from(chunk.get(at).copied().unwrap_or(0))
        });
        for at in 0..4 {
            let sign = if at <= chunk.len() {
                char::from(ALPHABET[bits >> (18 - 6 * at) & 63])
            } else {
                '='
            };
            text.push(sign);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_rfc_4648_has_it() {
        for (text, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
            ("\u{fb}\u{ff}", "w7vDvw=="),
        ] {
            assert_eq!(base64(text.as_bytes()), encoded, "{text}");
        }
    }

    #[test]
    fn what_is_no_escape_stays() {
        for (text, decoded) in [
            ("a%40b", "a@b"),
            ("%4", "%4"),
            ("%+f", "%+f"),
            ("100%", "100%"),
        ] {
            assert_eq!(percent_decoded(text), decoded.as_bytes(), "{text}");
        }
    }

    #[test]
    fn addresses() {
        for (text, endpoint, shown) in [
            ("http://a", "http://a/api/v1/query", "http://a"),
            ("HTTPS://a:1/", "https://a:1/api/v1/query", "https://a:1"),
            (
                "http://[::1]:9090/x//",
                "http://[::1]:9090/x/api/v1/query",
                "http://[::1]:9090/x",
            ),
            (
                "http://u:p@a/x?k=v",
                "http://a/x/api/v1/query?k=v",
                "http://a/x",
            ),
        ] {
            let address = Address::read(text).expect(text);
            assert_eq!(address.endpoint, endpoint);
            assert_eq!(address.shown, shown);
        }
        for text in [
            "",
            "a",
            "a:9090",
            "//a",
            "http://",
            "http:///x",
            "ftp://a",
            "http://a b",
            "http://@",
        ] {
            assert!(Address::read(text).is_none(), "{text}");
        }
    }
}
