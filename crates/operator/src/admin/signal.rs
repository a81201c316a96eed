//! A wake signal as it is sent: `{"count":N,"svc":"…","namespace":"…"}`.

use serde_json::Value;
use thiserror::Error;
use weir_api::dns::check_dns_label;
use weir_role::cluster::ObjectId;

/// Who is wanted, and by how many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signal {
    pub(super) service: ObjectId,
    pub(super) held: u64,
}

/// Why it is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum SignalError {
    #[error("the body is not JSON; send {{\"count\": 1, \"svc\": \"…\", \"namespace\": \"…\"}}")]
    NotJson,
    #[error("`{0}` is missing; it must be the name of a Service or a namespace")]
    Missing(&'static str),
    #[error("`{0}` is not a name that a Service or a namespace can have")]
    NotAName(&'static str),
    #[error("`count` is not a whole number from 0 on")]
    Count,
}

impl Signal {
    pub(super) fn parse(body: &[u8]) -> Result<Self, SignalError> {
        let body: Value = serde_json::from_slice(body).map_err(|_| SignalError::NotJson)?;
        if !body.is_object() {
            return Err(SignalError::NotJson);
        }
        let held = match body.get("count") {
            // Who sends a signal holds one at least.
            None | Some(Value::Null) => 1,
            Some(count) => count.as_u64().ok_or(SignalError::Count)?,
        };
        Ok(Self {
            service: ObjectId::new(name(&body, "namespace")?, name(&body, "svc")?),
            held,
        })
    }
}

fn name<'a>(body: &'a Value, field: &'static str) -> Result<&'a str, SignalError> {
    let value = body.get(field).ok_or(SignalError::Missing(field))?;
    match value.as_str() {
        Some(name) if check_dns_label(name).is_ok() => Ok(name),
        _ => Err(SignalError::NotAName(field)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_signal_is_read_as_the_peers_send_it() {
        let body = br#"{"count":3,"svc":"web","namespace":"shop","more":[]}"#;
        let signal = Signal::parse(body).unwrap();
        assert_eq!(signal.service, ObjectId::new("shop", "web"));
        assert_eq!(signal.held, 3);
        let signal = Signal::parse(br#"{"svc":"web","namespace":"shop"}"#).unwrap();
        assert_eq!(signal.held, 1);
    }

    #[test]
    fn an_error_names_the_field() {
        for (body, names) in [
            (r#"{"namespace":"shop"}"#, "`svc`"),
            (r#"{"svc":"web"}"#, "`namespace`"),
            (r#"{"svc":"","namespace":"shop"}"#, "`svc`"),
            (r#"{"svc":7,"namespace":"shop"}"#, "`svc`"),
            (r#"{"svc":"web","namespace":"a/b"}"#, "`namespace`"),
            (r#"{"svc":"web","namespace":"shop","count":-1}"#, "`count`"),
            (r#"{"svc":"web","namespace":"shop","count":"1"}"#, "`count`"),
            ("[]", "svc"),
            ("", "JSON"),
        ] {
            let error = Signal::parse(body.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(names), "{body}: {error}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Signal::parse(&body);
        }
    }
}
