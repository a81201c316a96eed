//! What a watch's conditions say of its nodes: whether all give figures, whether enough are fit, whether the watch has
//! begun. In sentences that name the nodes, but not a thousand of them. Times are the caller's.

use std::collections::BTreeMap;

use weir_api::place::names::ConditionType;

use crate::{
    judge::{Outcome, State, Why},
    measure::{Measurement, Reason},
    plan::WatchName,
    settings::Settings,
};

/// The most nodes that a message names.
const NAMED: usize = 5;

/// A condition without its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Which.
    pub type_: ConditionType,
    /// Whether all is well.
    pub holds: bool,
    /// In a word.
    pub reason: &'static str,
    /// In a sentence.
    pub message: String,
}

/// Whether every judged node gives figures. The first reason that any of them has is told, the ones that a user can do
/// something about first.
pub fn measured(outcome: &Outcome, measurements: &BTreeMap<String, Measurement>) -> Said {
    let mut by_reason: BTreeMap<Reason, Vec<&str>> = BTreeMap::new();
    for name in outcome.verdicts.keys() {
        let reason = match measurements
            .get(name)
            .map(|measurement| &measurement.figure)
        {
            Some(Ok(_)) => continue,
            Some(Err(unknown)) => unknown.reason,
            None => Reason::NeverAnswered,
        };
        by_reason.entry(reason).or_default().push(name);
    }
    // `Reason` has those last that only a user can change.
    match by_reason.last_key_value() {
        None => said(ConditionType::Measured, true, "AllMeasured", String::new()),
        Some((reason, nodes)) => {
            let message = format!("{} {}", named(nodes), reason.as_str());
            said(ConditionType::Measured, false, word(*reason), message)
        }
    }
}

/// Whether enough nodes are fit by themselves. False does not mean that pods have no place: the least loaded nodes are
/// kept fit.
pub fn enough_fit(outcome: &Outcome, settings: &Settings) -> Said {
    let kept: Vec<&str> = (outcome.verdicts.iter())
        .filter(|(_, verdict)| verdict.why == Why::KeptFit)
        .map(|(name, _)| name.as_str())
        .collect();
    let is_fit = |verdict: &&crate::judge::Verdict| verdict.eligible && verdict.state == State::Fit;
    let fit = outcome.verdicts.values().filter(is_fit).count();
    let wanted = settings.min_fit_nodes;
    if !kept.is_empty() {
        let message = format!(
            "too few nodes are below the limit, so the least loaded stay fit: {}",
            named(&kept)
        );
        said(ConditionType::Placed, false, "KeptFit", message)
    } else if fit < wanted {
        let message = format!(
            "{fit} nodes could take the pods and {wanted} are wanted: check that nodes are ready and schedulable, and the template's selector, affinity and tolerations"
        );
        said(ConditionType::Placed, false, "TooFewNodes", message)
    } else {
        said(ConditionType::Placed, true, "EnoughFit", String::new())
    }
}

/// Another watch holds the key of this one.
pub fn key_held_by(holder: &WatchName, key: &str) -> Said {
    let message =
        format!("{holder} is older and writes {key} on nodes: give this watch another spec.label");
    said(ConditionType::Placed, false, "LabelTaken", message)
}

/// Whether the watch has begun; `waited_for` is what [`crate::ready::waited_for`] gives.
pub fn ready(is_ready: bool, waited_for: Option<&[&str]>) -> Said {
    let message = match waited_for {
        _ if is_ready => return said(ConditionType::Ready, true, "Begun", String::new()),
        None => "there is no worker yet".to_owned(),
        Some(nodes) => format!("waiting for the first figures of {}", named(nodes)),
    };
    said(ConditionType::Ready, false, "Waiting", message)
}

fn said(type_: ConditionType, holds: bool, reason: &'static str, message: String) -> Said {
    Said {
        type_,
        holds,
        reason,
        message,
    }
}

const fn word(reason: Reason) -> &'static str {
    match reason {
        Reason::NeverAnswered => "NeverAnswered",
        Reason::TooOld => "TooOld",
        Reason::WindowTooShort => "WindowTooShort",
        Reason::NoInterface => "NoInterface",
        Reason::NoCapacity => "NoCapacity",
    }
}

/// The first names, and how many more there are.
fn named(names: &[&str]) -> String {
    let first = names.get(..NAMED).unwrap_or(names).join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        fixture,
        judge::Verdict,
        measure::{Figure, Unknown},
        moment::Moment,
    };

    fn outcome(nodes: &[(&str, State, Why)]) -> Outcome {
        let own = |(name, state, why): &(&str, State, Why)| {
            let verdict = Verdict {
                state: *state,
                why: *why,
                since: Moment::default(),
                load: None,
                last_load: None,
                eligible: true,
            };
            ((*name).to_owned(), verdict)
        };
        Outcome {
            verdicts: nodes.iter().map(own).collect(),
            ..Outcome::default()
        }
    }

    fn measurement(figure: Result<f64, Reason>) -> Measurement {
        let figure = figure.map(|percent| Figure {
            percent,
            interface: "eth0".to_owned(),
            at: Moment::default(),
        });
        Measurement {
            figure: figure.map_err(|reason| Unknown { reason, age: None }),
            interfaces: Vec::new(),
            transmit_total: 0,
            time: None,
        }
    }

    #[test]
    fn what_cannot_be_measured_is_named_with_what_to_do() {
        let nodes = ["a", "b", "c"].map(|name| (name, State::Fit, Why::Measured));
        let outcome = outcome(&nodes);
        let mut measurements: BTreeMap<String, Measurement> = BTreeMap::from([
            ("a".to_owned(), measurement(Ok(1.0))),
            ("b".to_owned(), measurement(Err(Reason::NoCapacity))),
        ]);
        let found = measured(&outcome, &measurements);
        assert_eq!((found.holds, found.reason), (false, "NoCapacity"));
        assert!(
            found.message.starts_with("b does not say"),
            "{}",
            found.message
        );
        measurements.insert("b".to_owned(), measurement(Ok(1.0)));
        let found = measured(&outcome, &measurements);
        assert_eq!(found.message, "c has not answered yet");
        measurements.insert("c".to_owned(), measurement(Ok(1.0)));
        assert!(measured(&outcome, &measurements).holds);
    }

    #[test]
    fn nodes_that_are_kept_fit_are_said() {
        let settings = fixture::settings(&json!({}));
        let kept = outcome(&[
            ("a", State::Fit, Why::KeptFit),
            ("b", State::Unfit, Why::Measured),
        ]);
        let found = enough_fit(&kept, &settings);
        assert_eq!((found.holds, found.reason), (false, "KeptFit"));
        assert!(found.message.ends_with("stay fit: a"), "{}", found.message);
        let none = enough_fit(&outcome(&[]), &settings);
        assert_eq!((none.holds, none.reason), (false, "TooFewNodes"));
        let fit = outcome(&[("a", State::Fit, Why::Measured)]);
        assert!(enough_fit(&fit, &settings).holds);
    }

    #[test]
    fn not_more_than_a_few_nodes_are_named() {
        let names: Vec<String> = (0..5000).map(|number| format!("n{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let found = ready(false, Some(&names));
        assert!(
            found.message.ends_with("n4 and 4995 more"),
            "{}",
            found.message
        );
        assert!(ready(true, None).holds);
    }

    #[test]
    fn a_key_that_another_watch_holds_is_said_with_its_name() {
        let holder = WatchName {
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
        };
        let found = key_held_by(&holder, "x.traffic.example.com/unfit");
        assert!(
            found.message.starts_with("shop/web is older"),
            "{}",
            found.message
        );
    }
}
