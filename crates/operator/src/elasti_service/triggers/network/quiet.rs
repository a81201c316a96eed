//! The counters of one pod, one after another → since when its traffic has been below a threshold.
//!
//! Pure, and without a clock: time is what the kubelet says beside the counters, which is when they were read. The last
//! counters are kept and where the quiet began, and no history: a cooldown may be a week.

use std::time::Duration;

use jiff::Timestamp;

/// What the interfaces of a pod have counted until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// When they were read, by the node's clock.
    pub at: Timestamp,
    /// Bytes received.
    pub received: u64,
    /// Bytes sent.
    pub sent: u64,
}

/// What is called quiet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Bytes per second, in both directions together: quiet is what stays below.
    pub threshold: f64,
    /// Counters that are further apart say too little about what happened between them.
    pub longest_step: Duration,
}

/// Since when a pod has been quiet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quiet {
    last: Counters,
    since: Timestamp,
    is_busy: bool,
}

/// What counters have brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing: they are the ones that are known.
    Nothing,
    /// It was quiet since the last ones.
    Quiet,
    /// It was not.
    Busy,
    /// They cannot be compared with the last ones; all begins anew.
    Anew,
}

impl Quiet {
    /// By the first counters that are seen of it. They began at zero with the pod: of one that is new that is a step like any
    /// other, and so it is quiet from its start.
    pub fn begin(first: Counters, started: Option<Timestamp>, rule: Rule) -> Self {
        let Some(started) = started.filter(|started| *started < first.at) else {
            return Self::at(first);
        };
        let mut quiet = Self::at(Counters {
            at: started,
            received: 0,
            sent: 0,
        });
        quiet.hear(first, rule);
        quiet
    }

    /// Takes in what was counted since.
    pub fn hear(&mut self, next: Counters, rule: Rule) -> Heard {
        if next.at == self.last.at {
            return Heard::Nothing;
        }
        let Some(rate) = rate(self.last, next, rule.longest_step) else {
            *self = Self::at(next);
            return Heard::Anew;
        };
        self.last = next;
        self.is_busy = rate >= rule.threshold;
        if self.is_busy {
            self.since = next.at;
            return Heard::Busy;
        }
        Heard::Quiet
    }

    /// Whether it was not quiet when it was last looked at.
    pub fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// How long it was quiet when it was last looked at.
    pub fn lasted(&self) -> Duration {
        between(self.since, self.last.at).unwrap_or_default()
    }

    fn at(counters: Counters) -> Self {
        Self {
            last: counters,
            since: counters.at,
            is_busy: false,
        }
    }
}

/// Bytes per second; none where the clock or a counter went back, or nobody looked for too long.
fn rate(last: Counters, next: Counters, longest_step: Duration) -> Option<f64> {
    let step = between(last.at, next.at)?;
    if step > longest_step {
        return None;
    }
    let received = next.received.checked_sub(last.received)?;
    let sent = next.sent.checked_sub(last.sent)?;
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no 53rd bit")]
    let bytes = received.saturating_add(sent) as f64;
    Some(bytes / step.as_secs_f64())
}

fn between(earlier: Timestamp, later: Timestamp) -> Option<Duration> {
    later.duration_since(earlier).try_into().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULE: Rule = Rule {
        threshold: 100.0,
        longest_step: Duration::from_mins(1),
    };

    fn counters(second: i64, received: u64, sent: u64) -> Counters {
        Counters {
            at: Timestamp::from_second(1_000_000 + second).unwrap(),
            received,
            sent,
        }
    }

    fn lasted(quiet: Quiet) -> u64 {
        quiet.lasted().as_secs()
    }

    #[test]
    fn both_directions_count_together_and_the_threshold_itself_is_not_quiet() {
        let mut quiet = Quiet::begin(counters(0, 0, 0), None, RULE);
        assert_eq!(quiet.hear(counters(10, 500, 499), RULE), Heard::Quiet);
        assert_eq!((lasted(quiet), quiet.is_busy()), (10, false));
        assert_eq!(quiet.hear(counters(20, 1000, 999), RULE), Heard::Busy);
        assert_eq!((lasted(quiet), quiet.is_busy()), (0, true));
        assert_eq!(quiet.hear(counters(35, 1000, 999), RULE), Heard::Quiet);
        assert_eq!((lasted(quiet), quiet.is_busy()), (15, false));
    }

    #[test]
    fn the_same_counters_are_no_news() {
        let mut quiet = Quiet::begin(counters(0, 0, 0), None, RULE);
        quiet.hear(counters(10, 0, 0), RULE);
        let before = quiet;
        assert_eq!(quiet.hear(counters(10, 9999, 0), RULE), Heard::Nothing);
        assert_eq!(quiet, before);
    }

    #[test]
    fn what_cannot_be_compared_begins_anew() {
        let known = || {
            let mut quiet = Quiet::begin(counters(0, 500, 500), None, RULE);
            quiet.hear(counters(10, 500, 500), RULE);
            quiet
        };
        for next in [
            counters(20, 499, 500),
            counters(20, 500, 0),
            counters(9, 500, 500),
            counters(71, 500, 500),
        ] {
            let mut quiet = known();
            assert_eq!(quiet.hear(next, RULE), Heard::Anew, "{next:?}");
            assert_eq!((lasted(quiet), quiet.is_busy()), (0, false));
        }
        assert_eq!(known().hear(counters(70, 500, 500), RULE), Heard::Quiet);
    }

    #[test]
    fn a_new_pod_is_quiet_from_its_start_unless_it_began_with_a_noise() {
        let started = Some(counters(0, 0, 0).at);
        let begin = |first| Quiet::begin(first, started, RULE);
        assert_eq!(lasted(begin(counters(20, 500, 500))), 20);
        let noisy = begin(counters(20, 500_000, 500));
        assert_eq!((lasted(noisy), noisy.is_busy()), (0, true));
        // Of an old one the mean since its start says nothing.
        let old = begin(counters(3600, 500, 500));
        assert_eq!((lasted(old), old.is_busy()), (0, false));
        // A clock that was set.
        assert_eq!(lasted(begin(counters(-5, 500, 500))), 0);
        assert_eq!(lasted(begin(counters(0, 500, 500))), 0);
    }

    /// What was counted, and how long after the counters before.
    type Step = (i64, u64, u64);

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            6 => (1_i64..30, 0_u64..1000, 0_u64..1000),
            1 => (1_i64..30, 0_u64..100_000, 0_u64..1000),
            1 => (50_i64..80, 0_u64..1000, 0_u64..1000),
            1 => (-20_i64..=0, 0_u64..1000, 0_u64..1000),
        ];
        prop::collection::vec(step, 1..40)
    }

    proptest! {
        /// The whole history, looked at from its end.
        #[test]
        fn it_is_quiet_since_the_last_step_that_was_not(steps in steps()) {
            let mut history = vec![counters(0, 0, 0)];
            let mut quiet = Quiet::begin(history[0], None, RULE);
            for (seconds, received, sent) in steps {
                let last = history[history.len() - 1];
                let next = Counters {
                    at: Timestamp::from_second(last.at.as_second() + seconds).unwrap(),
                    received: last.received + received,
                    sent: last.sent + sent,
                };
                quiet.hear(next, RULE);
                if seconds != 0 {
                    history.push(next);
                }
            }
            let is_quiet = |pair: &[Counters]| {
                let seconds = pair[1].at.as_second() - pair[0].at.as_second();
                let bytes = pair[1].received - pair[0].received + pair[1].sent - pair[0].sent;
                (1..=60).contains(&seconds) && bytes < 100 * seconds.unsigned_abs()
            };
            let quiet_steps = history.windows(2).rev().take_while(|pair| is_quiet(pair)).count();
            let since = history[history.len() - 1 - quiet_steps];
            let expected = history[history.len() - 1].at.as_second() - since.at.as_second();
            prop_assert_eq!(i64::try_from(lasted(quiet)).unwrap(), expected);
        }
    }
}
