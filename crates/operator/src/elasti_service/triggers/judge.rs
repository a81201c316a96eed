//! What the answers mean: the triggers of an object and what was heard → one verdict.
//!
//! Pure. [`super::question`] says what is asked; [`super::table`] keeps what was heard.

use std::time::Instant;

use super::question::{Ask, Question};
use weir_hold::facts::Triggers;

/// What a server said, or why it said nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// When it was asked.
    pub asked: Instant,
    /// A finite value, or a sentence that says what is wrong.
    pub said: Result<f64, String>,
}

/// What all triggers of an object say together.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// All of them together.
    pub triggers: Triggers,
    /// The busy trigger, or the first one that could not be asked.
    pub why: Option<String>,
    /// When that was asked without which it would not be so; none if no question is behind it.
    pub as_of: Option<Instant>,
}

/// What one trigger says.
enum Opinion {
    /// It needs an answer that is yet to come.
    Waiting,
    Idle(Instant),
    Busy(String, Instant),
    Failed(String, Option<Instant>),
}

/// This value is the metrics' way to say "I do not know", so it is never idle.
const NOT_IDLE: f64 = -1.0;

/// The verdict, or none while it hangs on an answer that is yet to come.
///
/// Busy wins over unknown, and unknown over idle.
pub fn judge<'a>(
    asks: &[Ask],
    heard: impl Fn(&Question) -> Option<&'a Reply>,
) -> Option<Judgement> {
    if asks.is_empty() {
        return Some(Judgement {
            triggers: Triggers::Absent,
            why: None,
            as_of: None,
        });
    }
    let mut waiting = false;
    let mut oldest: Option<Instant> = None;
    let mut failed = None;
    let mut busy: Option<(String, Instant)> = None;
    for ask in asks {
        let asked = match opinion(ask, &heard) {
            Opinion::Waiting => {
                waiting = true;
                None
            }
            Opinion::Idle(asked) => Some(asked),
            Opinion::Failed(why, asked) => {
                failed.get_or_insert(why);
                asked
            }
            Opinion::Busy(why, asked) => {
                // Any of them will do, so it is as new as the newest; the first one is named, so
                // that the name does not change with each answer.
                let (_, newest) = busy.get_or_insert((why, asked));
                *newest = asked.max(*newest);
                None
            }
        };
        oldest = oldest.into_iter().chain(asked).min();
    }
    if let Some((why, newest)) = busy {
        return Some(Judgement {
            triggers: Triggers::Busy,
            why: Some(why),
            as_of: Some(newest),
        });
    }
    let triggers = match failed {
        Some(_) => Triggers::Unknown,
        None => Triggers::Idle,
    };
    (!waiting).then_some(Judgement {
        triggers,
        why: failed,
        as_of: oldest,
    })
}

fn opinion<'a>(ask: &Ask, heard: &impl Fn(&Question) -> Option<&'a Reply>) -> Opinion {
    let (value, threshold, uptime) = match ask {
        Ask::Refused(why) => return Opinion::Failed(why.clone(), None),
        Ask::Prometheus {
            value,
            threshold,
            uptime,
        } => (value, *threshold, uptime),
    };
    let Some(reply) = heard(value) else {
        return Opinion::Waiting;
    };
    // Sentences without the value: they go into a condition, which should not change at each round.
    match &reply.said {
        Err(why) => return Opinion::Failed(why.clone(), Some(reply.asked)),
        Ok(number) if *number == NOT_IDLE => {
            let why = format!("the value of {value} is -1, which is never idle");
            return Opinion::Busy(why, reply.asked);
        }
        Ok(number) if *number < threshold => {}
        Ok(_) => {
            let why = format!("the value of {value} is not below {threshold}");
            return Opinion::Busy(why, reply.asked);
        }
    }
    // Asked before the value, it says nothing about the moment at which the value was read.
    let Some(up) = heard(uptime).filter(|up| up.asked >= reply.asked) else {
        return Opinion::Waiting;
    };
    match &up.said {
        Err(why) => Opinion::Failed(why.clone(), Some(reply.asked)),
        #[expect(clippy::float_cmp, reason = "the samples of `up` are 0 or 1")]
        Ok(number) if *number == 1.0 => Opinion::Idle(reply.asked),
        Ok(_) => {
            let why = format!(
                "the value of {value} is not believed: Prometheus was not up for the whole cooldown, \
                 or metadata.uptimeFilter does not find it; {uptime} must be 1",
            );
            Opinion::Failed(why, Some(reply.asked))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashMap, sync::Arc, time::Duration};

    use http::Uri;
    use proptest::prelude::*;

    use super::*;

    fn question(query: &str) -> Arc<Question> {
        Arc::new(Question {
            endpoint: Uri::from_static("http://prometheus/api/v1/query"),
            server: "http://prometheus".into(),
            headers: Vec::new(),
            query: query.to_owned(),
        })
    }

    /// What was heard about a trigger: what was said and when it was asked, in seconds.
    type Said = Option<(Result<f64, ()>, u64)>;

    #[derive(Clone, Copy, Debug)]
    enum Case {
        Refused,
        Asked {
            threshold: f64,
            value: Said,
            uptime: Said,
        },
    }

    fn judged(cases: &[Case], began: Instant) -> Option<Judgement> {
        let mut heard = HashMap::new();
        let mut asks = Vec::new();
        for (number, case) in cases.iter().enumerate() {
            let Case::Asked {
                threshold,
                value: said,
                uptime: up_said,
            } = *case
            else {
                asks.push(Ask::Refused(format!("refused {number}")));
                continue;
            };
            let value = question(&format!("value {number}"));
            let uptime = question(&format!("uptime {number}"));
            for (question, said) in [(&value, said), (&uptime, up_said)] {
                if let Some((said, second)) = said {
                    let reply = Reply {
                        asked: began + Duration::from_secs(second),
                        said: said.map_err(|()| format!("{question} failed")),
                    };
                    heard.insert(Arc::clone(question), reply);
                }
            }
            asks.push(Ask::Prometheus {
                value,
                threshold,
                uptime,
            });
        }
        judge(&asks, |question| heard.get(question))
    }

    /// The rules once more, one trigger at a time: busy, unknown, idle, or none if it waits.
    fn expected(case: Case) -> Option<Triggers> {
        let Case::Asked {
            threshold,
            value,
            uptime,
        } = case
        else {
            return Some(Triggers::Unknown);
        };
        let (value, asked) = value?;
        let Ok(value) = value else {
            return Some(Triggers::Unknown);
        };
        if value >= threshold || (value + 1.0).abs() < f64::EPSILON {
            return Some(Triggers::Busy);
        }
        let (up, _) = uptime.filter(|(_, at)| *at >= asked)?;
        match up {
            Ok(up) if (up - 1.0).abs() < f64::EPSILON => Some(Triggers::Idle),
            _ => Some(Triggers::Unknown),
        }
    }

    fn said(numbers: Vec<f64>) -> impl Strategy<Value = Said> {
        let said = prop_oneof![
            5 => prop::sample::select(numbers).prop_map(Ok),
            1 => Just(Err(())),
        ];
        prop::option::weighted(0.9, (said, 0..5_u64))
    }

    fn cases() -> impl Strategy<Value = Case> {
        let asked = (
            prop::sample::select(vec![-5.0, 0.0, 0.5, 1.0, 100.0]),
            said(vec![-10.0, -1.0, 0.0, 0.5, 0.999, 1.0, 7.0, 1e300]),
            said(vec![0.0, 0.5, 1.0, 1.0, 1.0, 2.0]),
        );
        prop_oneof![
            8 => asked.prop_map(|(threshold, value, uptime)| Case::Asked { threshold, value, uptime }),
            1 => Just(Case::Refused),
        ]
    }

    proptest! {
        #[test]
        fn busy_wins_over_unknown_over_idle(cases in prop::collection::vec(cases(), 1..5)) {
            let began = Instant::now();
            let each: Vec<Option<Triggers>> = cases.iter().copied().map(expected).collect();
            let together = if each.contains(&Some(Triggers::Busy)) {
                Some(Triggers::Busy)
            } else if each.contains(&None) {
                None
            } else if each.contains(&Some(Triggers::Unknown)) {
                Some(Triggers::Unknown)
            } else {
                Some(Triggers::Idle)
            };
            let judgement = judged(&cases, began);
            prop_assert_eq!(judgement.as_ref().map(|found| found.triggers), together);
            if let Some(judgement) = judgement {
                prop_assert_eq!(judgement.why.is_none(), judgement.triggers == Triggers::Idle);
                // Idle is as old as the oldest value behind it, busy as new as the newest.
                let asked = |wanted: Triggers| {
                    let cases = cases.iter().zip(&each);
                    cases.filter_map(move |(case, found)| match case {
                        Case::Asked { value: Some((_, second)), .. } if *found == Some(wanted) => {
                            Some(began + Duration::from_secs(*second))
                        }
                        _ => None,
                    })
                };
                match judgement.triggers {
                    Triggers::Idle => {
                        prop_assert_eq!(judgement.as_of, asked(Triggers::Idle).min());
                    }
                    Triggers::Busy => {
                        prop_assert_eq!(judgement.as_of, asked(Triggers::Busy).max());
                    }
                    Triggers::Unknown | Triggers::Absent => {}
                }
            }
        }
    }

    #[test]
    fn what_is_said_names_query_and_server_but_not_the_value() {
        let idle = Case::Asked {
            threshold: 1.0,
            value: Some((Ok(0.0), 3)),
            uptime: Some((Ok(1.0), 3)),
        };
        let with = |value: f64, uptime: Said| Case::Asked {
            threshold: 1.0,
            value: Some((Ok(value), 3)),
            uptime,
        };
        let cases: [(Case, Triggers, Option<&str>); 5] = [
            (idle, Triggers::Idle, None),
            (
                with(17.5, None),
                Triggers::Busy,
                Some("the value of `value 0` at http://prometheus is not below 1"),
            ),
            (
                with(-1.0, None),
                Triggers::Busy,
                Some("the value of `value 0` at http://prometheus is -1, which is never idle"),
            ),
            (
                with(0.0, Some((Ok(0.0), 3))),
                Triggers::Unknown,
                Some(
                    "the value of `value 0` at http://prometheus is not believed: Prometheus was not up \
                     for the whole cooldown, or metadata.uptimeFilter does not find it; \
                     `uptime 0` at http://prometheus must be 1",
                ),
            ),
            (Case::Refused, Triggers::Unknown, Some("refused 0")),
        ];
        for (case, triggers, why) in cases {
            let judgement = judged(&[case], Instant::now()).expect("a judgement");
            assert_eq!(judgement.triggers, triggers);
            assert_eq!(judgement.why.as_deref(), why);
        }
    }

    #[test]
    fn without_triggers_there_is_nothing_to_wait_for() {
        let judgement = judge(&[], |_| None).expect("a judgement");
        assert_eq!(judgement.triggers, Triggers::Absent);
    }
}
