//! `schedule` triggers: windows in which a workload counts as idle, and when that changes.
//!
//! Pure. These need nobody to be asked, so they are no part of the board; [`together`] is what both say.

use jiff::Timestamp;
use weir_api::hold::{EnabledPeriod, Trigger, TriggerType};
use weir_hold::facts::{Triggers, Window};

use super::{triggers::Verdict, window::window};

/// What the schedules of an object say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calendar {
    /// All of them together; absent without any.
    pub verdict: Verdict,
    /// When one of them says something else.
    pub changes: Option<Timestamp>,
}

/// What the `schedule` triggers among these say now.
pub fn calendar(triggers: &[Trigger], now: Timestamp) -> Calendar {
    let mut all = Calendar {
        verdict: silent(),
        changes: None,
    };
    let schedules = triggers
        .iter()
        .filter(|it| it.type_ == TriggerType::Schedule);
    for trigger in schedules {
        let (verdict, changes) = one(trigger, now);
        all.verdict = together(all.verdict, verdict);
        all.changes = all.changes.into_iter().chain(changes).min();
    }
    all
}

/// What two say together: busy wins over unknown, unknown over idle, and who has nothing to say has no say. Of two that do not
/// know, the one that says why.
pub fn together(one: Verdict, other: Verdict) -> Verdict {
    if weight(&other) > weight(&one) {
        other
    } else {
        one
    }
}

fn one(trigger: &Trigger, now: Timestamp) -> (Verdict, Option<Timestamp>) {
    let metadata = &trigger.metadata;
    let schedule = metadata.schedule.as_deref().unwrap_or_default();
    let zone = metadata.time_zone.as_deref();
    let period = EnabledPeriod {
        schedule: zone.map_or_else(
            || schedule.to_owned(),
            |zone| format!("CRON_TZ={zone} {schedule}"),
        ),
        duration: metadata.duration.clone().unwrap_or_default(),
    };
    let because = |triggers, why: Option<&str>| Verdict::new(triggers, why.map(str::to_owned));
    match window(Some(&period), now) {
        Window::Open(until) => (because(Triggers::Idle, None), until),
        Window::Closed(until) => {
            let why = format!("it is not in a window of the schedule {schedule:?}");
            (because(Triggers::Busy, Some(&why)), until)
        }
        Window::Unreadable => {
            let why =
                "a schedule trigger cannot be read; see the conditions about metadata.schedule";
            (because(Triggers::Unknown, Some(why)), None)
        }
    }
}

fn silent() -> Verdict {
    Verdict::new(Triggers::Absent, None)
}

fn weight(verdict: &Verdict) -> (u8, bool, bool) {
    let triggers = match verdict.triggers {
        Triggers::Absent => 0,
        Triggers::Idle => 1,
        Triggers::Unknown => 2,
        Triggers::Busy => 3,
    };
    (triggers, verdict.why.is_some(), verdict.is_unheard)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn trigger(schedule: &str, duration: &str, zone: Option<&str>) -> Trigger {
        let mut metadata = json!({ "schedule": schedule, "duration": duration });
        if let Some(zone) = zone {
            metadata["timeZone"] = zone.into();
        }
        serde_json::from_value(json!({ "type": "schedule", "metadata": metadata })).unwrap()
    }

    fn at(triggers: &[Trigger], now: &str) -> (Triggers, Option<String>) {
        let found = calendar(triggers, now.parse().unwrap());
        let changes = found.changes.map(|change| change.to_string());
        (found.verdict.triggers, changes)
    }

    #[test]
    fn in_a_window_it_is_idle_and_outside_busy() {
        let night = [trigger("0 20 * * MON-FRI", "10h", None)];
        let change = |text: &str| Some(text.to_owned());
        assert_eq!(
            at(&night, "2026-11-16T21:00:00Z"),
            (Triggers::Idle, change("2026-11-17T06:00:00Z"))
        );
        assert_eq!(
            at(&night, "2026-11-17T06:00:00Z"),
            (Triggers::Busy, change("2026-11-17T20:00:00Z"))
        );
    }

    #[test]
    fn the_time_zone_is_that_of_the_trigger() {
        let night = [trigger("0 20 * * *", "1h", Some("Europe/Berlin"))];
        assert_eq!(at(&night, "2026-11-16T19:30:00Z").0, Triggers::Idle);
        assert_eq!(at(&night, "2026-11-16T20:30:00Z").0, Triggers::Busy);
    }

    #[test]
    fn of_several_all_must_agree_and_the_next_change_of_any_is_told() {
        let both = [
            trigger("0 20 * * *", "10h", None),
            trigger("0 22 * * *", "2h", None),
        ];
        let (triggers, changes) = at(&both, "2026-11-16T21:00:00Z");
        assert_eq!(triggers, Triggers::Busy);
        assert_eq!(changes.as_deref(), Some("2026-11-16T22:00:00Z"));
        assert_eq!(at(&both, "2026-11-16T23:00:00Z").0, Triggers::Idle);
    }

    #[test]
    fn what_cannot_be_read_is_not_idle_and_says_so() {
        let bad = [trigger("@nightly", "10h", None)];
        let found = calendar(&bad, Timestamp::UNIX_EPOCH);
        assert_eq!(found.verdict.triggers, Triggers::Unknown);
        assert!(found.verdict.why.is_some());
    }

    #[test]
    fn other_triggers_are_left_to_the_board() {
        let other = json!({ "type": "prometheus", "metadata": { "query": "up", "threshold": 1 } });
        let other: Trigger = serde_json::from_value(other).unwrap();
        assert_eq!(calendar(&[other], Timestamp::UNIX_EPOCH).verdict, silent());
    }

    fn verdicts() -> impl Strategy<Value = Verdict> {
        prop::sample::select(vec![
            Verdict::new(Triggers::Absent, None),
            Verdict::new(Triggers::Idle, None),
            Verdict::new(Triggers::Unknown, None),
            Verdict::unheard(),
            Verdict::new(Triggers::Unknown, Some("nobody knows".to_owned())),
            Verdict::new(Triggers::Busy, Some("it is busy".to_owned())),
        ])
    }

    proptest! {
        #[test]
        fn neither_order_nor_grouping_matters(a in verdicts(), b in verdicts(), c in verdicts()) {
            let both = |one: &Verdict, other: &Verdict| together(one.clone(), other.clone());
            prop_assert_eq!(both(&a, &b), both(&b, &a));
            prop_assert_eq!(both(&both(&a, &b), &c), both(&a, &both(&b, &c)));
            prop_assert_eq!(both(&a, &silent()), a);
        }
    }
}
