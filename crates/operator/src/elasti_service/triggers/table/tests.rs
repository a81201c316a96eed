//! The table under random hands: objects come, change and go, rounds begin, answers arrive late, in
//! any order or never.

use std::collections::BTreeMap;

use http::Uri;
use proptest::prelude::*;

use super::{
    super::queue::{PARALLEL, PER_SERVER},
    *,
};

const INTERVAL: Duration = Duration::from_secs(30);
const TIMEOUT: Duration = Duration::from_secs(5);
const BELIEVED: Duration = Duration::from_secs(65);

fn question(server: &str, query: &str) -> Arc<Question> {
    Arc::new(Question {
        endpoint: Uri::from_static("http://any/api/v1/query"),
        server: server.into(),
        headers: Vec::new(),
        query: query.to_owned(),
    })
}

/// A trigger that is idle while the value is below 1.
fn ask(server: &str, query: &str, uptime: &str) -> Ask {
    Ask::Prometheus {
        value: question(server, query),
        threshold: 1.0,
        uptime: question(server, uptime),
    }
}

fn object(name: &str) -> ObjectId {
    ObjectId::new("default", name)
}

/// A table that asks, with its clock.
struct Bench {
    table: Table,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        let mut bench = Self {
            table: Table::new(INTERVAL, TIMEOUT),
            now: Instant::now(),
        };
        bench.table.set_active(true, bench.now);
        bench
    }

    fn set(&mut self, name: &str, asks: Vec<Ask>) -> bool {
        self.table.set(object(name), asks, self.now)
    }

    fn verdict(&self, name: &str) -> Triggers {
        self.table.verdict(&object(name), self.now).triggers
    }

    /// All questions that may be sent now.
    fn sent(&mut self) -> Vec<Asking> {
        std::iter::from_fn(|| self.table.next(self.now)).collect()
    }

    fn answer(&mut self, asking: &Asking, number: f64) -> Vec<ObjectId> {
        self.table.answered(asking, Ok(number), self.now)
    }

    /// Sends and answers until nothing is due: values with this, uptime with 1. What was asked, and
    /// who was told.
    fn play(&mut self, value: f64) -> (Vec<String>, Vec<ObjectId>) {
        let (mut asked, mut told) = (Vec::new(), Vec::new());
        told.extend(self.table.begin_round(self.now));
        loop {
            let sent = self.sent();
            if sent.is_empty() {
                return (asked, told);
            }
            for asking in sent {
                let query = asking.question.query.clone();
                let number = if query.starts_with("up") { 1.0 } else { value };
                asked.push(query);
                told.extend(self.answer(&asking, number));
            }
        }
    }
}

#[test]
fn a_new_object_is_asked_at_once_and_told_of() {
    let mut bench = Bench::new();
    assert_eq!(bench.verdict("a"), Triggers::Unknown);
    bench.play(0.0);
    assert!(bench.set("a", vec![ask("s", "q", "up")]));
    assert_eq!(bench.verdict("a"), Triggers::Unknown);
    let (asked, told) = bench.play(0.0);
    assert_eq!(asked, ["q", "up"]);
    assert_eq!(told, [object("a")]);
    assert_eq!(bench.verdict("a"), Triggers::Idle);
    // The same again is no news.
    assert!(!bench.set("a", vec![ask("s", "q", "up")]));
    assert_eq!(bench.play(0.0), (vec![], vec![]));
}

#[test]
fn a_question_that_many_ask_is_held_once() {
    let mut bench = Bench::new();
    for number in 0..100 {
        bench.set(&number.to_string(), vec![ask("s", "q", "up")]);
    }
    for (question, slot) in &bench.table.slots {
        assert_eq!(slot.askers.len(), 100);
        // Once for each who asks, and once for the slot.
        assert_eq!(
            Arc::strong_count(question),
            101 + usize::from(slot.state == State::Waiting)
        );
    }
}

#[test]
fn a_round_asks_each_question_once_and_tells_changes_alone() {
    let mut bench = Bench::new();
    for name in ["a", "b", "c"] {
        bench.set(name, vec![ask("s", "q", "up"), ask("t", "q", "up")]);
    }
    bench.set("d", vec![ask("s", "other", "up")]);
    bench.play(0.0);
    for (value, changed) in [(0.0, 0), (5.0, 4), (6.0, 0), (0.0, 4)] {
        bench.now += INTERVAL;
        let (mut asked, told) = bench.play(value);
        asked.sort_unstable();
        assert_eq!(asked, ["other", "q", "q", "up", "up"]);
        // An object with two triggers may be told twice: one of them is still busy, then none is.
        let told: HashSet<ObjectId> = told.into_iter().collect();
        assert_eq!(told.len(), changed, "{value}");
    }
}

#[test]
fn idle_is_believed_only_of_an_uptime_asked_later() {
    let mut bench = Bench::new();
    bench.set("a", vec![ask("s", "q", "up")]);
    bench.play(5.0);
    bench.now += INTERVAL;
    bench.table.begin_round(bench.now);
    let sent = bench.sent();
    let queries: Vec<&str> = sent.iter().map(|one| one.question.query.as_str()).collect();
    assert_eq!(queries, ["q", "up"]);
    bench.now += Duration::from_secs(1);
    // The value is idle by now, but the uptime that is known is that of the last round.
    assert!(bench.answer(&sent[0], 0.0).is_empty());
    assert_eq!(bench.verdict("a"), Triggers::Busy);
    assert_eq!(bench.answer(&sent[1], 1.0), [object("a")]);
    assert_eq!(bench.verdict("a"), Triggers::Idle);
}

#[test]
fn another_object_has_the_uptime_asked_again_for_its_own_value() {
    let mut bench = Bench::new();
    bench.set("a", vec![ask("s", "q", "up")]);
    bench.table.begin_round(bench.now);
    let first = bench.sent();
    bench.now += Duration::from_secs(1);
    bench.set("b", vec![ask("s", "r", "up")]);
    let second = bench.sent();
    assert_eq!(second.len(), 1, "the uptime is under way");
    for asking in first.iter().chain(&second) {
        bench.answer(
            asking,
            if asking.question.query == "up" {
                1.0
            } else {
                0.0
            },
        );
    }
    assert_eq!(bench.verdict("a"), Triggers::Idle);
    assert_eq!(bench.verdict("b"), Triggers::Unknown);
    assert_eq!(bench.play(0.0).0, ["up"]);
    assert_eq!(bench.verdict("b"), Triggers::Idle);
}

#[test]
fn a_stalled_poller_makes_nobody_idle() {
    let mut bench = Bench::new();
    bench.set("a", vec![ask("s", "q", "up")]);
    bench.play(0.0);
    bench.now += BELIEVED;
    assert_eq!(bench.verdict("a"), Triggers::Idle);
    bench.now += Duration::from_nanos(1);
    assert_eq!(bench.verdict("a"), Triggers::Unknown);
    // The next round tells it, if nothing has been asked by then.
    assert_eq!(bench.table.begin_round(bench.now), [object("a")]);
}

#[test]
fn what_ran_out_and_was_read_is_news_when_it_is_heard_again() {
    let mut bench = Bench::new();
    bench.set("a", vec![ask("s", "q", "up")]);
    bench.play(0.0);
    assert_eq!(bench.verdict("a"), Triggers::Idle);
    bench.now += INTERVAL;
    bench.table.begin_round(bench.now);
    let sent = bench.sent();
    bench.now += BELIEVED.checked_sub(TIMEOUT).unwrap();
    // A controller looks for a reason of its own, before a round has told it.
    let read = bench.table.read(&object("a"), bench.now);
    assert_eq!(read.triggers, Triggers::Unknown);
    let answer = |asking| {
        bench.answer(
            asking,
            if asking.question.query == "up" {
                1.0
            } else {
                0.0
            },
        )
    };
    let told: Vec<ObjectId> = sent.iter().flat_map(answer).collect();
    assert_eq!(told, [object("a")]);
    assert_eq!(bench.verdict("a"), Triggers::Idle);
}

#[test]
fn nothing_is_asked_while_it_is_off() {
    let mut bench = Bench::new();
    bench.set("a", vec![ask("s", "q", "up")]);
    assert!(bench.table.set_active(false, bench.now));
    assert!(!bench.table.set_active(false, bench.now));
    bench.set("b", vec![ask("s", "r", "up")]);
    bench.now += INTERVAL * 2;
    assert!(bench.play(0.0).0.is_empty());
    assert_eq!(bench.table.next_round(), None);
    // Turned on, it begins at once.
    assert!(bench.table.set_active(true, bench.now));
    assert_eq!(bench.table.next_round(), Some(bench.now));
    assert_eq!(bench.play(0.0).0.len(), 3);
    assert_eq!(bench.verdict("b"), Triggers::Idle);
}

#[test]
fn one_server_that_hangs_leaves_room_for_others() {
    let mut bench = Bench::new();
    let many = (0..60).map(|number| ask("hangs", &format!("q{number}"), "up"));
    bench.set("a", many.collect());
    bench.set("b", vec![ask("works", "q", "up")]);
    let under_way = bench.sent();
    assert_eq!(under_way.len(), PER_SERVER + 2);
    for asking in under_way
        .iter()
        .filter(|one| &*one.question.server == "works")
    {
        let number = if asking.question.query == "up" {
            1.0
        } else {
            0.0
        };
        bench.answer(asking, number);
    }
    assert_eq!(bench.verdict("b"), Triggers::Idle);
}

#[test]
fn what_nobody_asks_any_more_is_forgotten() {
    let mut bench = Bench::new();
    bench.set("a", vec![ask("s", "q", "up"), ask("s", "r", "up")]);
    bench.set("b", vec![ask("s", "q", "up")]);
    let sent = bench.sent();
    bench.set("a", vec![ask("s", "r", "up")]);
    bench.table.forget(&object("b"));
    assert_eq!(bench.table.slots.len(), 2);
    bench.table.forget(&object("a"));
    for asking in &sent {
        assert!(bench.answer(asking, 0.0).is_empty());
    }
    assert!(bench.table.slots.is_empty() && bench.table.objects.is_empty());
    assert!(bench.sent().is_empty());
    let idle = format!("{:?}", Queue::default());
    assert_eq!(format!("{:?}", bench.table.queue), idle);
}

#[test]
fn without_triggers_they_are_absent() {
    let mut bench = Bench::new();
    bench.set("a", vec![ask("s", "q", "up")]);
    bench.set("a", vec![]);
    assert_eq!(bench.verdict("a"), Triggers::Absent);
    bench.now += BELIEVED * 10;
    assert_eq!(bench.verdict("a"), Triggers::Absent);
}

/// What a hand does.
#[derive(Clone, Debug)]
enum Act {
    Set(u8, Vec<(u8, u8, u8)>),
    Forget(u8),
    Active(bool),
    Wait(u64),
    Send,
    /// The number picks one of those under way.
    Answer(usize, Result<f64, ()>),
}

fn acts() -> impl Strategy<Value = Act> {
    let said = prop_oneof![
        4 => prop::sample::select(vec![0.0, 0.0, 1.0, 1.0, 1.0, 5.0, -1.0]).prop_map(Ok),
        1 => Just(Err(())),
    ];
    prop_oneof![
        3 => (0..6_u8, prop::collection::vec((0..3_u8, 0..4_u8, 0..2_u8), 0..3))
            .prop_map(|(name, asks)| Act::Set(name, asks)),
        1 => (0..6_u8).prop_map(Act::Forget),
        1 => prop::bool::weighted(0.7).prop_map(Act::Active),
        2 => (0..40_u64).prop_map(Act::Wait),
        4 => Just(Act::Send),
        8 => (any::<usize>(), said).prop_map(|(which, said)| Act::Answer(which, said)),
    ]
}

/// All that was ever said, by question, in the order in which it was heard.
type Log = BTreeMap<(String, String), Vec<(Instant, Result<f64, ()>)>>;

fn key(question: &Question) -> (String, String) {
    (question.server.to_string(), question.query.clone())
}

/// Whether the log bears out that a trigger is idle at this moment.
fn is_borne_out(log: &Log, ask: &Ask, now: Instant) -> bool {
    let Ask::Prometheus { value, uptime, .. } = ask else {
        return false;
    };
    let said = |question: &Question| log.get(&key(question)).cloned().unwrap_or_default();
    said(value).iter().any(|(asked, number)| {
        let idle = number.is_ok_and(|number| number < 1.0 && number > -1.0);
        let up = said(uptime).iter().any(|(later, up)| {
            later >= asked && up.is_ok_and(|up| (up - 1.0).abs() < f64::EPSILON)
        });
        idle && up && now.duration_since(*asked) <= BELIEVED
    })
}

proptest! {
    #[test]
    fn nobody_is_idle_without_reason_and_no_change_goes_untold(acts in prop::collection::vec(acts(), 1..120)) {
        let mut bench = Bench::new();
        let mut active = true;
        let mut log = Log::new();
        let mut under_way: Vec<Asking> = Vec::new();
        let mut known: HashMap<ObjectId, Vec<Ask>> = HashMap::new();
        // What a controller knows that reads a verdict when it sets triggers and when it is told.
        let mut read: HashMap<ObjectId, Verdict> = HashMap::new();
        for act in acts {
            let told = match act {
                Act::Set(name, asks) => {
                    let name = object(&name.to_string());
                    let asks: Vec<Ask> = asks
                        .into_iter()
                        .map(|(server, query, up)| ask(&server.to_string(), &query.to_string(), &format!("up{up}")))
                        .collect();
                    bench.table.set(name.clone(), asks.clone(), bench.now);
                    known.insert(name.clone(), asks);
                    vec![name]
                }
                Act::Forget(name) => {
                    let name = object(&name.to_string());
                    bench.table.forget(&name);
                    known.remove(&name);
                    read.remove(&name);
                    vec![]
                }
                Act::Active(on) => {
                    bench.table.set_active(on, bench.now);
                    active = on;
                    vec![]
                }
                Act::Wait(seconds) => {
                    bench.now += Duration::from_secs(seconds);
                    vec![]
                }
                Act::Send => {
                    let told = bench.table.begin_round(bench.now);
                    let sent = bench.sent();
                    prop_assert!(active || sent.is_empty());
                    for asking in &sent {
                        prop_assert!(known.values().flatten().flat_map(questions).any(|(one, _)| *one == asking.question));
                    }
                    under_way.extend(sent);
                    prop_assert!(under_way.len() <= PARALLEL);
                    told
                }
                Act::Answer(which, said) => {
                    if under_way.is_empty() {
                        continue;
                    }
                    let asking = under_way.swap_remove(which % under_way.len());
                    log.entry(key(&asking.question)).or_default().push((asking.asked, said));
                    let said = said.map_err(|()| "no answer".to_owned());
                    bench.table.answered(&asking, said, bench.now)
                }
            };
            for object in told {
                read.insert(object.clone(), bench.table.read(&object, bench.now));
            }
            for (object, asks) in &known {
                let verdict = bench.table.verdict(object, bench.now);
                if verdict.triggers == Triggers::Idle {
                    prop_assert!(asks.iter().all(|ask| is_borne_out(&log, ask, bench.now)));
                }
                prop_assert_eq!(asks.is_empty(), verdict.triggers == Triggers::Absent);
                // What has run out is told at the next round; anything else was told at once.
                let run_out = verdict.why.as_deref() == Some("the last answer is too old to be believed");
                prop_assert!(run_out || read.get(object) == Some(&verdict), "{object:?} {verdict:?}");
            }
        }
        // In the end all questions are those that somebody asks, and all can be answered.
        for asking in under_way.drain(..) {
            bench.table.answered(&asking, Ok(1.0), bench.now);
        }
        bench.table.set_active(true, bench.now);
        bench.now += INTERVAL;
        let distinct: HashSet<Arc<Question>> = known
            .values()
            .flatten()
            .flat_map(questions)
            .map(|(question, _)| Arc::clone(question))
            .collect();
        prop_assert_eq!(bench.table.slots.len(), distinct.len());
        bench.play(0.0);
        for (object, asks) in &known {
            let expected = if asks.is_empty() { Triggers::Absent } else { Triggers::Idle };
            prop_assert_eq!(bench.table.verdict(object, bench.now).triggers, expected);
        }
    }
}
