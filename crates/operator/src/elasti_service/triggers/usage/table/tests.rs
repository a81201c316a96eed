//! Answers of resolvers, with the clock in the test's hand, and a model of two resolvers that count.

use proptest::prelude::*;

use super::*;

const INTERVAL: Duration = Duration::from_secs(30);
const COOLDOWN: Duration = Duration::from_mins(5);

fn object() -> ObjectId {
    ObjectId::new("shop", "web")
}

fn service() -> ObjectId {
    ObjectId::new("shop", "web-service")
}

fn wanted() -> Wanted {
    Wanted {
        service: service(),
        cooldown: COOLDOWN,
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn usage(open: usize, ended: Option<u64>, counted: u64) -> Usage {
    Usage {
        open,
        ended: ended.map(seconds),
        counted: seconds(counted),
    }
}

type Said = Result<HashMap<ObjectId, Usage>, Silence>;

/// A resolver's answer: of the service, or of none.
#[expect(clippy::unnecessary_wraps, reason = "the other answer is silence")]
fn says(usage: Option<Usage>) -> Said {
    Ok(usage.map(|usage| (service(), usage)).into_iter().collect())
}

fn silent() -> Said {
    Err(Silence {
        reason: "timeout",
        why: "no answer within 750 ms".to_owned(),
    })
}

fn answers(said: impl IntoIterator<Item = Result<HashMap<ObjectId, Usage>, Silence>>) -> Answers {
    let addresses = (1..).map(|last| IpAddr::from([192, 0, 2, last]));
    addresses.zip(said).collect()
}

/// A table that asks, with one object.
fn table(now: Instant) -> Table {
    let mut table = Table::new(INTERVAL);
    assert!(table.set_active(true, now));
    assert!(!table.begin_round(now), "nobody wants to know");
    assert!(table.set(object(), Some(wanted())), "the first");
    table
}

fn triggers(table: &Table, now: Instant) -> Triggers {
    table.verdict(&object(), now).triggers
}

#[test]
fn nobody_is_asked_but_for_those_who_want_to_know() {
    let now = Instant::now();
    let mut table = table(now);
    assert_eq!(table.verdict(&object(), now), Verdict::unheard());
    assert!(table.begin_round(now));
    assert!(!table.begin_round(now), "once a round");
    assert_eq!(table.next_round(), Some(now + INTERVAL));
    assert!(!table.set(object(), Some(wanted())), "nothing is new");
    table.set(object(), None);
    assert_eq!(table.next_round(), None);
    assert_eq!(triggers(&table, now), Triggers::Absent);
}

#[test]
fn each_answer_has_its_verdict() {
    let idle = || says(Some(usage(0, Some(300), 400)));
    for (what, said, expected) in [
        (
            "unused",
            vec![says(Some(usage(0, None, 300)))],
            Triggers::Idle,
        ),
        ("for long", vec![idle(), idle()], Triggers::Idle),
        (
            "one is new",
            vec![idle(), says(Some(usage(0, None, 299)))],
            Triggers::Unknown,
        ),
        (
            "one knows it not",
            vec![idle(), says(None)],
            Triggers::Unknown,
        ),
        (
            "of late",
            vec![idle(), says(Some(usage(0, Some(299), 400)))],
            Triggers::Unknown,
        ),
        (
            "just now",
            vec![idle(), says(Some(usage(0, Some(30), 400)))],
            Triggers::Busy,
        ),
        (
            "open",
            vec![idle(), says(Some(usage(1, None, 400)))],
            Triggers::Busy,
        ),
        (
            "open at a new one",
            vec![says(None), says(Some(usage(1, None, 0)))],
            Triggers::Busy,
        ),
        (
            "open beside a silent one",
            vec![silent(), says(Some(usage(2, None, 9)))],
            Triggers::Busy,
        ),
        ("nobody", vec![], Triggers::Unknown),
    ] {
        let now = Instant::now() + seconds(1000);
        let mut table = table(now);
        assert!(table.begin_round(now));
        let changed = table.heard(now, answers(said.clone()), now);
        let verdict = table.verdict(&object(), now);
        assert_eq!(verdict.triggers, expected, "{what}");
        assert_eq!(changed, [object()], "{what}");
        let again = table.heard(now, answers(said), now);
        assert_eq!(again, [], "{what}: the same is told once");
        let is_trouble = what == "nobody";
        assert_eq!(
            verdict.why.is_some(),
            is_trouble || expected == Triggers::Busy,
            "{what}"
        );
    }
}

#[test]
fn one_that_does_not_answer_is_told_of_when_it_misses_again() {
    let now = Instant::now() + seconds(1000);
    let mut table = table(now);
    let idle = || says(Some(usage(0, None, 400)));
    let why = |table: &mut Table, round: u32, said: Said| {
        let now = now + INTERVAL * round;
        assert!(table.begin_round(now));
        table.heard(now, answers([idle(), said]), now);
        let verdict = table.verdict(&object(), now);
        let is_idle = verdict.triggers == Triggers::Idle;
        (is_idle, verdict.why.unwrap_or_default())
    };
    assert_eq!(why(&mut table, 0, idle()), (true, String::new()));
    assert_eq!(why(&mut table, 1, silent()), (false, String::new()));
    assert_eq!(why(&mut table, 2, idle()), (true, String::new()));
    assert_eq!(why(&mut table, 3, silent()), (false, String::new()));
    let (_, told) = why(&mut table, 4, silent());
    assert!(told.contains("192.0.2.2 does not say"), "{told}");
    assert!(told.contains("no answer within 750 ms"), "{told}");
}

#[test]
fn a_resolver_that_is_gone_is_remembered() {
    let now = Instant::now() + seconds(1000);
    let idle = || says(Some(usage(0, None, 10_000)));
    for (last, meanwhile) in [
        (Ok(usage(1, None, 400)), Triggers::Busy),
        // Nobody knows whether there was more after that.
        (Ok(usage(0, Some(100), 400)), Triggers::Unknown),
        (Ok(usage(0, None, 400)), Triggers::Unknown),
        (Err(()), Triggers::Unknown),
    ] {
        let mut table = table(now);
        table.begin_round(now);
        let said = last.map_or_else(|()| silent(), |usage| says(Some(usage)));
        table.heard(now, answers([idle(), said]), now);
        let next = now + INTERVAL;
        table.begin_round(next);
        table.heard(next, answers([idle()]), next);
        assert_eq!(triggers(&table, next), meanwhile, "{last:?}");
        let mut at = next;
        let idle_after = loop {
            if triggers(&table, at) == Triggers::Idle {
                break at.duration_since(next);
            }
            at += seconds(1);
            table.heard(at, answers([idle()]), at);
        };
        assert_eq!(idle_after, COOLDOWN, "{last:?}");
    }
}

#[test]
fn old_answers_say_nothing() {
    let now = Instant::now() + seconds(1000);
    let mut table = table(now);
    table.begin_round(now);
    table.heard(now, answers([says(Some(usage(0, None, 400)))]), now);
    assert_eq!(triggers(&table, now + INTERVAL * RUN_OUT), Triggers::Idle);
    let late = now + INTERVAL * RUN_OUT + seconds(1);
    assert_eq!(table.verdict(&object(), late), Verdict::unheard());
    // Nor what another leader heard long ago.
    assert!(table.set_active(false, now));
    assert_eq!(table.heard(now, answers([silent()]), now), []);
    assert_eq!(table.verdict(&object(), now), Verdict::unheard());
}

#[test]
fn another_service_begins_anew() {
    let now = Instant::now() + seconds(1000);
    let mut table = table(now);
    table.begin_round(now);
    let both = |open| {
        let mut said = says(Some(usage(open, None, 400))).unwrap();
        said.insert(ObjectId::new("shop", "other"), usage(0, None, 400));
        answers([Ok(said)])
    };
    table.heard(now, both(1), now);
    assert_eq!(triggers(&table, now), Triggers::Busy);
    let edited = Wanted {
        service: ObjectId::new("shop", "other"),
        ..wanted()
    };
    table.set(object(), Some(edited));
    assert_eq!(triggers(&table, now), Triggers::Idle);
    table.set(
        object(),
        Some(Wanted {
            cooldown: seconds(60),
            ..wanted()
        }),
    );
    assert_eq!(triggers(&table, now), Triggers::Busy);
}

/// What one resolver counts: when requests begin and end.
#[derive(Clone, Debug)]
struct Request {
    resolver: usize,
    begins: u64,
    lasts: u64,
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let request = (0_usize..2, 0_u64..2000, prop_oneof![0_u64..5, 0_u64..500]);
    let request = request.prop_map(|(resolver, begins, lasts)| Request {
        resolver,
        begins,
        lasts,
    });
    prop::collection::vec(request, 0..8)
}

proptest! {
    /// Two resolvers count since 0 and are asked each round: whatever is called idle was not used for a cooldown, and what was
    /// used since the last round is busy.
    #[test]
    fn idle_is_unused_for_a_cooldown_and_busy_is_used(requests in requests(), first in 0_u64..30) {
        let zero = Instant::now() + seconds(1000);
        let mut table = table(zero);
        for second in (first..3000).step_by(30) {
            let now = zero + seconds(second);
            prop_assert!(table.begin_round(now));
            let of = |resolver: usize| {
                let begun = requests.iter().filter(|it| it.resolver == resolver && it.begins <= second);
                let open = begun.clone().filter(|it| it.begins + it.lasts > second).count();
                let ended = begun.map(|it| it.begins + it.lasts).filter(|end| *end <= second).max();
                says(Some(usage(open, ended.map(|end| second - end), second)))
            };
            table.heard(now, answers([of(0), of(1)]), now);
            let used = requests.iter().filter(|it| it.begins <= second);
            let last = used.map(|it| (it.begins + it.lasts).min(second)).max();
            let age = last.map(|last| second - last);
            let expected = match age {
                Some(age) if age <= INTERVAL.as_secs() => Triggers::Busy,
                Some(age) if age < COOLDOWN.as_secs() => Triggers::Unknown,
                _ if second < COOLDOWN.as_secs() => Triggers::Unknown,
                _ => Triggers::Idle,
            };
            prop_assert_eq!(triggers(&table, now), expected, "{} s", second);
        }
    }
}
