//! When which node is asked. Every node once per round however many watches there are; one that does not answer less and
//! less often. Values only: the caller has the clock, and asks.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use weir_api::place::defaults::SCRAPE_RETRY;
use weir_place::{moment::Moment, node::Asked};

/// The longest time between two questions to a node that does not answer.
const LONGEST_RETRY: Duration = Duration::from_mins(5);
/// A retry comes later by up to this part of its time, so that a thousand nodes behind one switch do not come at once.
const SPREAD: f64 = 0.1;

/// All nodes that are asked.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    nodes: BTreeMap<String, Entry>,
}

/// A node to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// A node of the same name with another one is another node.
    pub uid: String,
    /// The shortest interval of the watches that judge it.
    pub interval: Duration,
}

#[derive(Clone, Debug)]
struct Entry {
    wanted: Wanted,
    due: Moment,
    /// When it was last asked.
    began: Moment,
    is_running: bool,
    failures: u32,
    asked: Option<Asked>,
    /// It refuses to be asked for some collectors alone.
    is_plain: bool,
}

impl Schedule {
    /// These are the nodes to ask from now on.
    pub fn follow(&mut self, wanted: BTreeMap<String, Wanted>, now: Moment) {
        let mut before = std::mem::take(&mut self.nodes);
        for (name, wanted) in wanted {
            let known = before.remove(&name);
            let known = known.filter(|entry| entry.wanted.uid == wanted.uid);
            let entry = match known {
                Some(entry) => {
                    // Who is asked more often now does not wait for what was longer.
                    let sooner = entry.began.plus(wanted.interval);
                    let due = if entry.failures == 0 {
                        entry.due.min(sooner)
                    } else {
                        entry.due
                    };
                    Entry {
                        wanted,
                        due,
                        ..entry
                    }
                }
                None => Entry {
                    wanted,
                    due: now,
                    began: now,
                    is_running: false,
                    failures: 0,
                    asked: None,
                    is_plain: false,
                },
            };
            self.nodes.insert(name, entry);
        }
    }

    /// Up to so many that are due; they count as asked.
    pub fn take(&mut self, most: usize, now: Moment) -> Vec<String> {
        let is_due = |entry: &Entry| !entry.is_running && entry.due <= now;
        let mut due: Vec<(Moment, String)> = (self.nodes.iter())
            .filter(|(_, entry)| is_due(entry))
            .map(|(name, entry)| (entry.due, name.clone()))
            .collect();
        due.sort_unstable();
        due.truncate(most);
        for (_, name) in &due {
            if let Some(entry) = self.nodes.get_mut(name) {
                entry.is_running = true;
                entry.began = now;
                entry.asked.get_or_insert(Asked {
                    since: now,
                    failing: false,
                });
            }
        }
        due.into_iter().map(|(_, name)| name).collect()
    }

    /// It answered.
    pub fn answered(&mut self, name: &str, uid: &str, is_plain: bool) {
        let Some(entry) = self.entry(name, uid) else {
            return;
        };
        entry.is_running = false;
        entry.is_plain = is_plain;
        entry.failures = 0;
        entry.due = entry.began.plus(entry.wanted.interval);
        if let Some(asked) = &mut entry.asked {
            asked.failing = false;
        }
    }

    /// It did not, or not in a way that helps.
    pub fn failed(&mut self, name: &str, uid: &str) {
        let Some(entry) = self.entry(name, uid) else {
            return;
        };
        entry.is_running = false;
        let doublings = entry.failures.min(8);
        entry.failures = entry.failures.saturating_add(1);
        let pause = SCRAPE_RETRY.saturating_mul(1 << doublings);
        let pause = pause.max(entry.wanted.interval).min(LONGEST_RETRY);
        entry.due = entry.began.plus(pause.mul_f64(1.0 + SPREAD * share(name)));
        if let Some(asked) = &mut entry.asked {
            asked.failing = true;
        }
    }

    /// Since when a node is asked.
    pub fn asked(&self, name: &str) -> Option<Asked> {
        self.nodes.get(name)?.asked
    }

    /// Whether a node is to be asked for everything.
    pub fn is_plain(&self, name: &str) -> bool {
        self.nodes.get(name).is_some_and(|entry| entry.is_plain)
    }

    /// When the next one is due.
    pub fn next(&self) -> Option<Moment> {
        let waiting = self.nodes.values().filter(|entry| !entry.is_running);
        waiting.map(|entry| entry.due).min()
    }

    fn entry(&mut self, name: &str, uid: &str) -> Option<&mut Entry> {
        let entry = self.nodes.get_mut(name);
        entry.filter(|entry| entry.wanted.uid == uid)
    }
}

/// Between 0 and 1, always the same for one node.
fn share(name: &str) -> f64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let [first, second, ..] = hasher.finish().to_be_bytes();
    f64::from(u16::from_be_bytes([first, second])) / f64::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wanted(names: &[&str], interval: u64) -> BTreeMap<String, Wanted> {
        let one = |name: &&str| {
            let wanted = Wanted {
                uid: format!("uid of {name}"),
                interval: Duration::from_secs(interval),
            };
            ((*name).to_owned(), wanted)
        };
        names.iter().map(one).collect()
    }

    fn at(seconds: u64) -> Moment {
        Moment::from_secs(seconds)
    }

    #[test]
    fn every_node_is_asked_once_in_each_interval() {
        let mut schedule = Schedule::default();
        schedule.follow(wanted(&["a", "b"], 10), at(0));
        assert_eq!(schedule.take(9, at(0)), ["a", "b"]);
        assert_eq!(schedule.take(9, at(60)), [""; 0], "never twice at a time");
        schedule.answered("a", "uid of a", true);
        assert!(schedule.is_plain("a"));
        schedule.follow(wanted(&["a", "b"], 10), at(1));
        assert_eq!(schedule.next(), Some(at(10)));
        assert_eq!(schedule.take(9, at(9)), [""; 0]);
        assert_eq!(schedule.take(9, at(10)), ["a"]);
        schedule.answered("a", "uid of a", true);
        schedule.follow(wanted(&["a"], 5), at(11));
        assert_eq!(
            schedule.next(),
            Some(at(15)),
            "a new watch looks more often"
        );
    }

    #[test]
    fn who_does_not_answer_is_asked_less_and_less_often() {
        let mut schedule = Schedule::default();
        schedule.follow(wanted(&["a"], 10), at(0));
        let mut now = at(0);
        for least in [30, 60, 120, 240, 300, 300] {
            assert_eq!(schedule.take(9, now), ["a"]);
            schedule.failed("a", "uid of a");
            let next = schedule.next().unwrap();
            let pause = next.since(now);
            let most = Duration::from_secs(least).mul_f64(1.0 + SPREAD);
            assert!(
                (Duration::from_secs(least)..=most).contains(&pause),
                "{pause:?}"
            );
            now = next;
        }
        assert!(schedule.asked("a").unwrap().failing);
        assert_eq!(schedule.asked("a").unwrap().since, at(0));
        assert_eq!(schedule.take(9, now), ["a"]);
        schedule.answered("a", "uid of a", false);
        assert!(!schedule.asked("a").unwrap().failing);
        assert_eq!(schedule.next(), Some(now.plus(Duration::from_secs(10))));
    }

    #[test]
    fn a_node_made_anew_is_another_one() {
        let mut schedule = Schedule::default();
        schedule.follow(wanted(&["a"], 10), at(0));
        schedule.take(9, at(0));
        let mut anew = wanted(&["a"], 10);
        anew.get_mut("a").unwrap().uid = "another".to_owned();
        schedule.follow(anew, at(1));
        schedule.failed("a", "uid of a");
        assert_eq!(schedule.asked("a"), None);
        assert_eq!(schedule.take(9, at(1)), ["a"]);
    }

    proptest! {
        #[test]
        fn not_more_than_asked_for_and_the_longest_waiting_first(
            count in 0_usize..20, most in 0_usize..20, late in 0_u64..100,
        ) {
            let names: Vec<String> = (0..count).map(|number| format!("n{number:02}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let mut schedule = Schedule::default();
            schedule.follow(wanted(&names, 10), at(0));
            let first = schedule.take(most, at(late));
            let second = schedule.take(count, at(late));
            prop_assert_eq!(first.len(), most.min(count));
            prop_assert_eq!(first.into_iter().chain(second).collect::<Vec<_>>(), names);
        }
    }
}
