//! What `validate()` finds in an object that the API server let in.
//!
//! The schema refuses most bad objects before they are stored. What it cannot see, what an older
//! schema stored, and what an older system accepted in spite of itself is found here, by pure
//! functions. A controller turns the findings into conditions; a webhook may refuse by the same
//! findings.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// Condition type: whether the object can be acted upon.
pub const ACCEPTED: &str = "Accepted";

/// Condition type: whether something in the object was taken otherwise than it was written.
pub const ADJUSTED: &str = "Adjusted";

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where, as a path such as `spec.triggers[0].metadata.threshold`.
    pub field: String,
    /// What kind of thing: the reason of a condition.
    pub reason: &'static str,
    /// What is wrong and what would be right, as a sentence without its subject.
    pub message: String,
    /// What becomes of the object.
    pub consequence: Consequence,
}

/// What becomes of an object in which something was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Consequence {
    /// It works; the message says what was taken instead.
    Adjusted,
    /// Nothing is done with it until it is mended.
    Refused,
}

/// The list that a `validate()` fills.
#[derive(Debug, Default)]
pub(crate) struct Findings(Vec<Finding>);

impl Findings {
    pub(crate) fn refuse(
        &mut self,
        field: impl Into<String>,
        reason: &'static str,
        message: impl Into<String>,
    ) {
        self.add(Consequence::Refused, field.into(), reason, message.into());
    }

    pub(crate) fn adjust(
        &mut self,
        field: impl Into<String>,
        reason: &'static str,
        message: impl Into<String>,
    ) {
        self.add(Consequence::Adjusted, field.into(), reason, message.into());
    }

    pub(crate) fn into_vec(self) -> Vec<Finding> {
        self.0
    }

    fn add(
        &mut self,
        consequence: Consequence,
        field: String,
        reason: &'static str,
        message: String,
    ) {
        self.0.push(Finding {
            field,
            reason,
            message,
            consequence,
        });
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.field, self.message)
    }
}

/// The conditions that tell a user what was found: always [`ACCEPTED`], and [`ADJUSTED`] where
/// something was.
pub fn conditions(findings: &[Finding], generation: Option<i64>, now: &Time) -> Vec<Condition> {
    let condition = |type_: &str, status: &str, reason: &str, message: String| Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: generation,
        last_transition_time: now.clone(),
    };
    let of = |wanted: Consequence| -> Vec<&Finding> {
        findings
            .iter()
            .filter(|finding| finding.consequence == wanted)
            .collect()
    };
    let refused = of(Consequence::Refused);
    let adjusted = of(Consequence::Adjusted);

    let mut conditions = vec![if refused.is_empty() {
        condition(ACCEPTED, "True", "Valid", String::new())
    } else {
        condition(
            ACCEPTED,
            "False",
            common_reason(&refused),
            sentences(&refused),
        )
    }];
    if !adjusted.is_empty() {
        conditions.push(condition(
            ADJUSTED,
            "True",
            common_reason(&adjusted),
            sentences(&adjusted),
        ));
    }
    conditions
}

fn common_reason(findings: &[&Finding]) -> &'static str {
    match findings {
        [first, rest @ ..] if rest.iter().all(|other| other.reason == first.reason) => first.reason,
        _ => "Several",
    }
}

/// All messages in one. The API server takes 32 KiB; an object is never that wrong, but a name in it
/// may be long, so the text is cut at a character.
fn sentences(findings: &[&Finding]) -> String {
    const MOST: usize = 32 * 1024;
    let mut text = String::new();
    for finding in findings {
        if !text.is_empty() {
            text.push_str("; ");
        }
        text.push_str(&finding.to_string());
    }
    text.truncate(text.floor_char_boundary(MOST));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(reason: &'static str, consequence: Consequence) -> Finding {
        Finding {
            field: "spec.policy".to_owned(),
            reason,
            message: "is unknown".to_owned(),
            consequence,
        }
    }

    fn summary(findings: &[Finding]) -> Vec<(String, String, String)> {
        let now = Time(jiff::Timestamp::UNIX_EPOCH);
        conditions(findings, Some(3), &now)
            .into_iter()
            .map(|condition| (condition.type_, condition.status, condition.reason))
            .collect()
    }

    #[test]
    fn nothing_found_is_accepted_and_nothing_else() {
        assert_eq!(
            summary(&[]),
            [(ACCEPTED.to_owned(), "True".to_owned(), "Valid".to_owned())]
        );
    }

    #[test]
    fn each_consequence_has_its_condition_and_mixed_reasons_a_common_one() {
        use Consequence::{Adjusted, Refused};
        let found = [
            finding("UnknownPolicy", Adjusted),
            finding("Clamped", Adjusted),
            finding("NotFinite", Refused),
            finding("NotFinite", Refused),
        ];
        assert_eq!(
            summary(&found),
            [
                (
                    ACCEPTED.to_owned(),
                    "False".to_owned(),
                    "NotFinite".to_owned()
                ),
                (ADJUSTED.to_owned(), "True".to_owned(), "Several".to_owned()),
            ]
        );
    }

    #[test]
    fn a_message_fits_into_a_condition_whatever_was_found() {
        let mut long = finding("UnknownPolicy", Consequence::Adjusted);
        long.message = "ü".repeat(40 * 1024);
        let now = Time(jiff::Timestamp::UNIX_EPOCH);
        for condition in conditions(&[long], None, &now) {
            assert!(condition.message.len() <= 32 * 1024);
        }
    }
}
