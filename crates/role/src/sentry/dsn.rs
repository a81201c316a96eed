//! A DSN, the address of a project in Sentry: `https://KEY@HOST[:PORT][/PATH]/PROJECT`.

use std::{fmt, str::FromStr};

use http::Uri;
use thiserror::Error;

/// Where reports go, and the key that lets them in.
#[derive(Clone, PartialEq, Eq)]
pub struct Dsn {
    /// Where an envelope is posted to.
    pub envelopes: Uri,
    /// The public key.
    pub key: String,
}

/// Why an address is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DsnError {
    /// It is no URL of the web.
    #[error("it must be a URL such as https://KEY@sentry.example/42")]
    Url,
    /// It has no key.
    #[error("it has no key; it should look like https://KEY@sentry.example/42")]
    Key,
    /// It has no project.
    #[error("its path must end with the number of a project, as in https://KEY@sentry.example/42")]
    Project,
}

impl FromStr for Dsn {
    type Err = DsnError;

    fn from_str(text: &str) -> Result<Self, DsnError> {
        let uri: Uri = text.parse().map_err(|_| DsnError::Url)?;
        let scheme = uri.scheme_str().ok_or(DsnError::Url)?;
        let authority = uri.authority().ok_or(DsnError::Url)?.as_str();
        if !matches!(scheme, "http" | "https") || uri.query().is_some() {
            return Err(DsnError::Url);
        }
        let (user, host) = authority.rsplit_once('@').ok_or(DsnError::Key)?;
        // Old ones have a secret behind the key, which nobody asks for any more.
        let key = user.split(':').next().unwrap_or_default();
        let is_key = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if key.is_empty() || !key.bytes().all(is_key) {
            return Err(DsnError::Key);
        }
        let (before, project) = uri.path().rsplit_once('/').ok_or(DsnError::Project)?;
        if project.is_empty() || !project.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(DsnError::Project);
        }
        let envelopes = format!("{scheme}://{host}{before}/api/{project}/envelope/");
        Ok(Self {
            envelopes: envelopes.parse().map_err(|_| DsnError::Url)?,
            key: key.to_owned(),
        })
    }
}

/// Without the key, which lets anybody report.
impl fmt::Debug for Dsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.envelopes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_dsn_leads_to_where_envelopes_are_taken() {
        for (text, envelopes) in [
            (
                "https://abc@sentry.example/42",
                "https://sentry.example/api/42/envelope/",
            ),
            (
                "http://abc:old@10.0.0.1:9000/deep/er/7",
                "http://10.0.0.1:9000/deep/er/api/7/envelope/",
            ),
        ] {
            let dsn: Dsn = text.parse().unwrap();
            assert_eq!(dsn.envelopes, *envelopes);
            assert_eq!(dsn.key, "abc");
            assert!(!format!("{dsn:?}").contains("abc"));
        }
    }

    #[test]
    fn what_is_none_says_what_is_missing() {
        for (text, error) in [
            ("", DsnError::Url),
            ("sentry", DsnError::Url),
            ("ftp://abc@sentry.example/1", DsnError::Url),
            ("https://abc@sentry.example/1?a=b", DsnError::Url),
            ("https://sentry.example/1", DsnError::Key),
            ("https://@sentry.example/1", DsnError::Key),
            ("https://a%20b@sentry.example/1", DsnError::Key),
            ("https://abc@sentry.example", DsnError::Project),
            ("https://abc@sentry.example/", DsnError::Project),
            ("https://abc@sentry.example/web", DsnError::Project),
        ] {
            assert_eq!(text.parse::<Dsn>(), Err(error), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in "\\PC{0,80}") {
            let _ = text.parse::<Dsn>();
        }
    }
}
