//! How a request ended: exactly one [`Outcome`] each, and [`Counts`] of them.

use std::{collections::BTreeMap, fmt, io};

use serde::{Deserialize, Serialize};

/// The longest text that is kept of an outcome that has no name.
const LONGEST_TEXT: usize = 200;
/// How many different such texts are kept; the rest are counted under [`FURTHER`].
const MOST_TEXTS: usize = 16;
const FURTHER: &str = "(further kinds)";

/// How a request that was sent ended. Nothing is tried again, so this is what a user would have seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Status 2xx, and the body is right.
    Ok,
    /// Another status.
    Status(u16),
    /// No connection: the other side does not listen.
    Refused,
    /// The connection was reset, at whatever moment.
    Reset,
    /// No whole answer in time.
    TimeOut,
    /// Status 2xx with another body than it should be, or the answer to another request.
    WrongBody,
    /// The connection was closed before the answer was whole.
    Cut,
    /// Anything else, in a few words.
    Other(String),
}

impl Outcome {
    /// What became of a request whose connection failed so.
    pub(super) fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => Self::Reset,
            io::ErrorKind::UnexpectedEof => Self::Cut,
            // The kernel's own patience with a connection, which may be less than ours.
            io::ErrorKind::TimedOut => Self::TimeOut,
            _ => Self::Other(error.to_string()),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => f.write_str("ok"),
            Self::Status(status) => write!(f, "status {status}"),
            Self::Refused => f.write_str("refused"),
            Self::Reset => f.write_str("reset"),
            Self::TimeOut => f.write_str("time-out"),
            Self::WrongBody => f.write_str("wrong body"),
            Self::Cut => f.write_str("cut"),
            Self::Other(text) => f.write_str(
                text.get(..text.floor_char_boundary(LONGEST_TEXT))
                    .unwrap_or_default(),
            ),
        }
    }
}

/// How many requests ended how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Status 2xx, and the body is right.
    pub ok: u64,
    /// Any other status, by number.
    pub status: BTreeMap<u16, u64>,
    /// The other side did not listen.
    pub refused: u64,
    /// The connection was reset.
    pub reset: u64,
    /// No whole answer in time.
    pub time_out: u64,
    /// A wrong body, or the answer to another request.
    pub wrong_body: u64,
    /// Closed before the answer was whole.
    pub cut: u64,
    /// Anything else, by a few words on it; bounded.
    pub other: BTreeMap<String, u64>,
}

impl Counts {
    /// Counts one more.
    pub fn add(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Ok => self.ok += 1,
            Outcome::Status(status) => *self.status.entry(*status).or_default() += 1,
            Outcome::Refused => self.refused += 1,
            Outcome::Reset => self.reset += 1,
            Outcome::TimeOut => self.time_out += 1,
            Outcome::WrongBody => self.wrong_body += 1,
            Outcome::Cut => self.cut += 1,
            Outcome::Other(text) => self.add_other(text, 1),
        }
    }

    /// Adds all of another's.
    pub fn merge(&mut self, other: &Self) {
        self.ok += other.ok;
        self.refused += other.refused;
        self.reset += other.reset;
        self.time_out += other.time_out;
        self.wrong_body += other.wrong_body;
        self.cut += other.cut;
        for (status, count) in &other.status {
            *self.status.entry(*status).or_default() += count;
        }
        for (text, count) in &other.other {
            self.add_other(text, *count);
        }
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.ok + self.failed()
    }

    /// All but those that were right.
    pub fn failed(&self) -> u64 {
        let named = self.refused + self.reset + self.time_out + self.wrong_body + self.cut;
        named + self.status.values().sum::<u64>() + self.other.values().sum::<u64>()
    }

    fn add_other(&mut self, text: &str, count: u64) {
        let text: String = text.chars().take(LONGEST_TEXT).collect();
        let known = self.other.contains_key(&text) || self.other.len() < MOST_TEXTS;
        let text = if known { text } else { FURTHER.to_owned() };
        *self.other.entry(text).or_default() += count;
    }
}

impl fmt::Display for Counts {
    /// `ok 990, status 503: 8, cut 2`; what did not happen is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ok {}", self.ok)?;
        for (status, count) in &self.status {
            write!(f, ", status {status}: {count}")?;
        }
        let named = [
            ("refused", self.refused),
            ("reset", self.reset),
            ("time-out", self.time_out),
            ("wrong body", self.wrong_body),
            ("cut", self.cut),
        ];
        for (name, count) in named.into_iter().filter(|(_, count)| *count > 0) {
            write!(f, ", {name} {count}")?;
        }
        for (text, count) in &self.other {
            write!(f, ", {text:?}: {count}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_outcome() -> impl Strategy<Value = Outcome> {
        prop_oneof![
            Just(Outcome::Ok),
            (300_u16..600).prop_map(Outcome::Status),
            Just(Outcome::Refused),
            Just(Outcome::Reset),
            Just(Outcome::TimeOut),
            Just(Outcome::WrongBody),
            Just(Outcome::Cut),
            "[a-z]{0,2}".prop_map(Outcome::Other),
        ]
    }

    proptest! {
        #[test]
        fn every_outcome_is_counted_exactly_once_however_they_are_split(
            first in prop::collection::vec(any_outcome(), 0..200),
            second in prop::collection::vec(any_outcome(), 0..200),
        ) {
            let count = |outcomes: &[Outcome]| {
                let mut counts = Counts::default();
                for outcome in outcomes {
                    counts.add(outcome);
                }
                counts
            };
            let mut merged = count(&first);
            merged.merge(&count(&second));
            prop_assert_eq!(merged.total(), (first.len() + second.len()) as u64);
            let all = first.iter().chain(&second);
            let ok = all.filter(|outcome| **outcome == Outcome::Ok).count() as u64;
            prop_assert_eq!((merged.ok, merged.failed()), (ok, merged.total() - ok));
            prop_assert!(merged.other.len() <= MOST_TEXTS + 1);
        }
    }

    #[test]
    fn texts_are_bounded_in_length() {
        let mut counts = Counts::default();
        counts.add(&Outcome::Other("ü".repeat(1000)));
        assert!(
            counts
                .other
                .keys()
                .all(|text| text.chars().count() == LONGEST_TEXT)
        );
    }

    #[test]
    fn what_did_not_happen_is_not_told() {
        let mut counts = Counts::default();
        for outcome in [Outcome::Ok, Outcome::Status(503), Outcome::Cut] {
            counts.add(&outcome);
        }
        assert_eq!(counts.to_string(), "ok 1, status 503: 1, cut 1");
    }
}
