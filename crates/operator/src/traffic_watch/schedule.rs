//! When which node is asked. Every node once per round however many watches there are; one that does not answer less and
//! less often. Values only: the caller has the clock, and asks. [`SharedSchedule`] is between the one who decides whom to
//! ask and the one who asks.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash, Hasher},
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

use weir_api::place::defaults::SCRAPE_RETRY;
use weir_place::{interfaces::Interfaces, moment::Moment, node::Asked};

/// The longest time between two questions to a node that does not answer.
const LONGEST_RETRY: Duration = Duration::from_mins(5);
/// A retry comes later by up to this part of its time, so that a thousand nodes behind one switch do not come at once.
const SPREAD: f64 = 0.1;

/// All nodes that are asked.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    nodes: BTreeMap<String, Entry>,
    /// Those that are not being asked, by the time at which they are to be.
    queue: BTreeSet<(Moment, String)>,
    counted: Counted,
}

/// What some watch counts; mostly all of them count the same.
pub type Counted = Arc<[Interfaces]>;

/// A schedule that two share. Its lock is held for moments only.
#[derive(Clone, Debug, Default)]
pub struct SharedSchedule {
    schedule: Arc<Mutex<Schedule>>,
    changed: Arc<Notify>,
}

/// A node to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// A node of the same name with another one is another node.
    pub uid: String,
    /// The shortest interval of the watches that judge it.
    pub interval: Duration,
    /// Where its exporter is, if anybody knows.
    pub address: Option<SocketAddr>,
}

/// A node whose time has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// Its name.
    pub name: String,
    /// Which of that name.
    pub uid: String,
    /// Where its exporter is, if anybody knows.
    pub address: Option<SocketAddr>,
    /// It refuses to be asked for some collectors alone.
    pub is_plain: bool,
    /// What is of use in its answer.
    pub counted: Counted,
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
    /// These are the nodes to ask from now on, and what of their answers is of use.
    pub fn follow(&mut self, wanted: BTreeMap<String, Wanted>, counted: Counted, now: Moment) {
        self.counted = counted;
        let mut before = std::mem::take(&mut self.nodes);
        self.queue.clear();
        for (name, wanted) in wanted {
            let known = before.remove(&name);
            let known = known.filter(|entry| entry.wanted.uid == wanted.uid);
            let entry = match known {
                // Whatever failed before was somewhere else.
                Some(entry) if entry.wanted.address != wanted.address => Entry {
                    wanted,
                    due: now,
                    failures: 0,
                    ..entry
                },
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
            if !entry.is_running {
                self.queue.insert((entry.due, name.clone()));
            }
            self.nodes.insert(name, entry);
        }
    }

    /// The one that has been due for longest, if any is; it counts as asked.
    pub fn take(&mut self, now: Moment) -> Option<Due> {
        let first = self.queue.first().filter(|(due, _)| *due <= now)?.clone();
        self.queue.remove(&first);
        let name = first.1;
        let entry = self.nodes.get_mut(&name)?;
        entry.is_running = true;
        entry.began = now;
        entry.asked.get_or_insert(Asked {
            since: now,
            failing: false,
        });
        Some(Due {
            name,
            uid: entry.wanted.uid.clone(),
            address: entry.wanted.address,
            is_plain: entry.is_plain,
            counted: Arc::clone(&self.counted),
        })
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
        let due = entry.due;
        self.queue.insert((due, name.to_owned()));
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
        let due = entry.due;
        self.queue.insert((due, name.to_owned()));
    }

    /// Since when a node is asked.
    pub fn asked(&self, name: &str) -> Option<Asked> {
        self.nodes.get(name)?.asked
    }

    /// When the next one is due.
    pub fn next(&self) -> Option<Moment> {
        self.queue.first().map(|(due, _)| *due)
    }

    /// The node that is being asked, unless it is another one by now.
    fn entry(&mut self, name: &str, uid: &str) -> Option<&mut Entry> {
        let entry = self.nodes.get_mut(name);
        entry.filter(|entry| entry.wanted.uid == uid && entry.is_running)
    }
}

impl SharedSchedule {
    /// These are the nodes to ask from now on, and what of their answers is of use.
    pub fn follow(&self, wanted: BTreeMap<String, Wanted>, counted: Counted, now: Moment) {
        self.lock().follow(wanted, counted, now);
        self.changed.notify_one();
    }

    /// Until the nodes to ask have changed.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The one that has been due for longest, if any is; it counts as asked.
    pub fn take(&self, now: Moment) -> Option<Due> {
        self.lock().take(now)
    }

    /// It answered.
    pub fn answered(&self, name: &str, uid: &str, is_plain: bool) {
        self.lock().answered(name, uid, is_plain);
    }

    /// It did not, or not in a way that helps.
    pub fn failed(&self, name: &str, uid: &str) {
        self.lock().failed(name, uid);
    }

    /// Since when a node is asked.
    pub fn asked(&self, name: &str) -> Option<Asked> {
        self.lock().asked(name)
    }

    /// When the next one is due.
    pub fn next(&self) -> Option<Moment> {
        self.lock().next()
    }

    fn lock(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
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
                address: None,
            };
            ((*name).to_owned(), wanted)
        };
        names.iter().map(one).collect()
    }

    fn at(seconds: u64) -> Moment {
        Moment::from_secs(seconds)
    }

    fn take(schedule: &mut Schedule, most: usize, now: Moment) -> Vec<String> {
        let due = std::iter::from_fn(|| schedule.take(now));
        due.take(most).map(|due| due.name).collect()
    }

    #[test]
    fn every_node_is_asked_once_in_each_interval() {
        let mut schedule = Schedule::default();
        schedule.follow(wanted(&["a", "b"], 10), Counted::default(), at(0));
        assert_eq!(take(&mut schedule, 9, at(0)), ["a", "b"]);
        assert_eq!(
            take(&mut schedule, 9, at(60)),
            [""; 0],
            "never twice at a time"
        );
        schedule.answered("a", "uid of a", true);
        schedule.follow(wanted(&["a", "b"], 10), Counted::default(), at(1));
        assert_eq!(schedule.next(), Some(at(10)));
        assert_eq!(take(&mut schedule, 9, at(9)), [""; 0]);
        let due = schedule.take(at(10)).unwrap();
        assert!(due.name == "a" && due.is_plain, "{due:?}");
        schedule.answered("a", "uid of a", true);
        schedule.follow(wanted(&["a"], 5), Counted::default(), at(11));
        assert_eq!(
            schedule.next(),
            Some(at(15)),
            "a new watch looks more often"
        );
    }

    #[test]
    fn who_does_not_answer_is_asked_less_and_less_often() {
        let mut schedule = Schedule::default();
        schedule.follow(wanted(&["a"], 10), Counted::default(), at(0));
        let mut now = at(0);
        for least in [30, 60, 120, 240, 300, 300] {
            assert_eq!(take(&mut schedule, 9, now), ["a"]);
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
        assert_eq!(take(&mut schedule, 9, now), ["a"]);
        schedule.answered("a", "uid of a", false);
        assert!(!schedule.asked("a").unwrap().failing);
        assert_eq!(schedule.next(), Some(now.plus(Duration::from_secs(10))));
    }

    #[test]
    fn one_that_is_somewhere_else_now_is_asked_at_once() {
        let mut schedule = Schedule::default();
        schedule.follow(wanted(&["a"], 10), Counted::default(), at(0));
        take(&mut schedule, 9, at(0));
        schedule.failed("a", "uid of a");
        schedule.follow(wanted(&["a"], 10), Counted::default(), at(1));
        assert!(schedule.next() > Some(at(29)), "nothing is new");
        let mut moved = wanted(&["a"], 10);
        moved.get_mut("a").unwrap().address = "10.0.0.1:9100".parse().ok();
        schedule.follow(moved, Counted::default(), at(2));
        let due = schedule.take(at(2)).unwrap();
        assert_eq!(due.address, "10.0.0.1:9100".parse().ok());
    }

    #[test]
    fn a_node_made_anew_is_another_one() {
        let mut schedule = Schedule::default();
        schedule.follow(wanted(&["a"], 10), Counted::default(), at(0));
        take(&mut schedule, 9, at(0));
        let mut anew = wanted(&["a"], 10);
        anew.get_mut("a").unwrap().uid = "another".to_owned();
        schedule.follow(anew, Counted::default(), at(1));
        schedule.failed("a", "uid of a");
        assert_eq!(schedule.asked("a"), None);
        assert_eq!(take(&mut schedule, 9, at(1)), ["a"]);
    }

    proptest! {
        #[test]
        fn not_more_than_asked_for_and_the_longest_waiting_first(
            count in 0_usize..20, most in 0_usize..20, late in 0_u64..100,
        ) {
            let names: Vec<String> = (0..count).map(|number| format!("n{number:02}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let mut schedule = Schedule::default();
            schedule.follow(wanted(&names, 10), Counted::default(), at(0));
            let first = take(&mut schedule, most, at(late));
            let second = take(&mut schedule, count, at(late));
            prop_assert_eq!(first.len(), most.min(count));
            prop_assert_eq!(first.into_iter().chain(second).collect::<Vec<_>>(), names);
        }
    }
}
