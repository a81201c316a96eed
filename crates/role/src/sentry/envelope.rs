//! An error in the form in which Sentry takes it: an *envelope*, lines of JSON of which the last is the event.
//! The form is that of Sentry's developer documentation ("Envelopes", "Event Payloads").

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
    time::SystemTime,
};

use serde::Serialize;
use serde_json::json;

/// A message is cut here, and each field.
const LONGEST: usize = 4096;

/// How bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Something failed.
    Error,
    /// The process ended.
    Fatal,
}

/// One error.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// How bad.
    pub level: Level,
    /// What happened.
    pub message: String,
    /// Who says so: a module.
    pub logger: String,
    /// What else is known.
    pub fields: BTreeMap<String, String>,
    /// When, in seconds since 1970.
    pub seconds: f64,
}

/// Who tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Operator, resolver and so on.
    pub role: String,
    /// The version.
    pub release: String,
    /// `production` and the like.
    pub environment: Option<String>,
    /// The pod.
    pub server: Option<String>,
}

impl Event {
    /// One that happens now.
    pub fn now(level: Level, message: &str, logger: &str) -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            level,
            message: message.to_owned(),
            logger: logger.to_owned(),
            fields: BTreeMap::new(),
            seconds: since.unwrap_or_default().as_secs_f64(),
        }
    }
}

/// A number that no other event has.
pub fn new_id() -> String {
    let half = || RandomState::new().hash_one(0_u8);
    format!("{:016x}{:016x}", half(), half())
}

/// The envelope. `left_out` is how many errors were not told since the last one.
pub fn envelope(id: &str, event: &Event, origin: &Origin, left_out: u64) -> String {
    let Event {
        level,
        message,
        logger,
        fields,
        seconds,
    } = event;
    let mut extra: BTreeMap<&str, &str> = fields
        .iter()
        .map(|(name, value)| (name.as_str(), cut(value)))
        .collect();
    let left_out = left_out.to_string();
    if left_out != "0" {
        extra.insert("left out before", &left_out);
    }
    let event = json!({
        "event_id": id,
        "timestamp": seconds,
        "platform": "native",
        "level": level,
        "logger": logger,
        "message": {"formatted": cut(message)},
        "release": format!("weir@{}", origin.release),
        "environment": origin.environment.as_deref().unwrap_or("production"),
        "server_name": origin.server,
        "tags": {"role": origin.role},
        "extra": extra,
    })
    .to_string();
    let head = json!({"event_id": id});
    let item = json!({"type": "event", "length": event.len()});
    format!("{head}\n{item}\n{event}\n")
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn origin() -> Origin {
        Origin {
            role: "operator".to_owned(),
            release: "0.1.0".to_owned(),
            environment: None,
            server: Some("weir-operator-1".to_owned()),
        }
    }

    proptest! {
        /// Whatever is in them, the lines stay lines, and the length is that of the last one.
        #[test]
        fn an_envelope_is_three_lines(message in any::<String>(), value in any::<String>(), left_out in 0_u64..3) {
            let mut event = Event::now(Level::Error, &message, "weir");
            event.fields.insert("error".to_owned(), value);
            let id = new_id();
            let text = envelope(&id, &event, &origin(), left_out);
            let lines: Vec<&str> = text.lines().collect();
            prop_assert_eq!(lines.len(), 3);
            let parsed: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
            prop_assert_eq!(&parsed[0]["event_id"], &Value::from(id.clone()));
            prop_assert_eq!(parsed[1]["length"].as_u64(), Some(lines[2].len() as u64));
            prop_assert_eq!(&parsed[2]["level"], "error");
            prop_assert_eq!(&parsed[2]["tags"]["role"], "operator");
            prop_assert_eq!(parsed[2]["extra"].get("left out before").is_some(), left_out > 0);
        }
    }

    #[test]
    fn what_is_long_is_cut_between_characters() {
        let event = Event::now(Level::Fatal, &"ä".repeat(LONGEST), "weir");
        let text = envelope(&new_id(), &event, &origin(), 0);
        assert!(text.len() < LONGEST + 1000);
    }

    #[test]
    fn ids_are_hexadecimal_and_differ() {
        let (one, other) = (new_id(), new_id());
        assert_ne!(one, other);
        assert!(one.len() == 32 && one.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}
