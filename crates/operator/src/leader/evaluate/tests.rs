//! What a look comes to, and a small world in which candidates look, write and pause at any time.

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn record(holder: &str, renewed: i64) -> Record {
    Record {
        holder: Some(holder.to_owned()),
        renewed: Timestamp::from_second(renewed).ok(),
        lasts: 15 * SECOND,
    }
}

#[test]
fn what_is_absent_or_given_back_is_free() {
    let mut sight = Sight::default();
    assert_eq!(evaluate(&sight, "a", SECOND), Verdict::Free);
    let given_back = Record {
        holder: None,
        ..record("", 1)
    };
    sight.look(Some(given_back), SECOND);
    assert_eq!(evaluate(&sight, "a", SECOND), Verdict::Free);
    assert_eq!(sight.holder(), None);
}

#[test]
fn the_other_clock_does_not_matter() {
    // Renewed in 1970, or in the far future: it is held for as long after the first look.
    for renewed in [0, 4_000_000_000] {
        let mut sight = Sight::default();
        sight.look(Some(record("b", renewed)), 100 * SECOND);
        sight.look(Some(record("b", renewed)), 110 * SECOND);
        let at = |seconds| evaluate(&sight, "a", SECOND * seconds);
        assert_eq!(at(100), Verdict::Held(15 * SECOND));
        assert_eq!(at(114), Verdict::Held(SECOND));
        assert_eq!(at(115), Verdict::Free);
        assert_eq!(evaluate(&sight, "b", 200 * SECOND), Verdict::Ours);
    }
}

#[test]
fn a_holder_is_silent_who_has_not_renewed_for_a_while_and_only_another() {
    let mut sight = Sight::default();
    let silent =
        |sight: &Sight, me: &str, seconds| sight.is_silent(me, SECOND * seconds, 3 * SECOND);
    assert!(!silent(&sight, "a", 100), "nobody holds it");
    sight.look(Some(record("b", 1)), 10 * SECOND);
    assert!(!silent(&sight, "a", 12));
    assert!(silent(&sight, "a", 13));
    assert!(!silent(&sight, "b", 13), "it is ours");
    sight.look(Some(record("b", 2)), 14 * SECOND);
    assert!(!silent(&sight, "a", 16));
}

#[test]
fn an_earlier_process_of_the_same_pod_is_known_by_its_name() {
    for (holder, me, is_so) in [
        ("weir-a_1", "weir-a_2", true),
        ("weir-a_1", "weir-a_1", false),
        ("weir-b_1", "weir-a_2", false),
        ("weir-a_b_1", "weir-a_2", false),
        ("weir-a", "weir-a_2", false),
        ("", "weir-a_2", false),
    ] {
        assert_eq!(is_predecessor(holder, me), is_so, "{holder} {me}");
    }
}

#[test]
fn a_leader_leads_until_its_deadline() {
    assert!(still_leads(SECOND, 10 * SECOND, 10 * SECOND));
    assert!(!still_leads(SECOND, 11 * SECOND, 10 * SECOND));
}

/// One that wants to lead.
#[derive(Clone, Debug)]
struct Candidate {
    life: u32,
    /// What its clock is ahead.
    offset: Duration,
    sight: Sight,
    doing: Doing,
}

#[derive(Clone, Debug)]
enum Doing {
    Looking,
    /// It has decided to take the Lease, from this version; the write is under way.
    Taking {
        version: u64,
        sent: Duration,
    },
    Leading {
        version: u64,
        sent: Duration,
    },
}

#[derive(Debug, Default)]
struct World {
    now: Duration,
    version: u64,
    record: Option<Record>,
}

const DEADLINE: Duration = Duration::from_secs(10);

impl Candidate {
    fn clock(&self, world: &World) -> Duration {
        world.now + self.offset
    }

    fn leads(&self, world: &World) -> bool {
        matches!(self.doing, Doing::Leading { sent, .. } if still_leads(sent, self.clock(world), DEADLINE))
    }

    /// One request, or the end of one that was sent before.
    fn act(&mut self, name: usize, world: &mut World) {
        let me = format!("{name}-{}", self.life);
        let now = self.clock(world);
        match self.doing.clone() {
            Doing::Looking => {
                self.sight.look(world.record.clone(), now);
                if evaluate(&self.sight, &me, now) == Verdict::Free {
                    self.doing = Doing::Taking {
                        version: world.version,
                        sent: now,
                    };
                }
            }
            Doing::Taking { version, sent } => {
                self.doing = match world.write(version, &me, now) {
                    Some(version) => Doing::Leading { version, sent },
                    None => Doing::Looking,
                };
            }
            Doing::Leading { version, sent } => {
                if still_leads(sent, now, DEADLINE)
                    && let Some(version) = world.write(version, &me, now)
                {
                    self.doing = Doing::Leading { version, sent: now };
                } else {
                    // The process ends, and another one starts.
                    self.life += 1;
                    self.sight = Sight::default();
                    self.doing = Doing::Looking;
                }
            }
        }
    }
}

impl World {
    /// As the API server does it: only from the version that was read.
    fn write(&mut self, version: u64, holder: &str, clock: Duration) -> Option<u64> {
        if version != self.version {
            return None;
        }
        self.version += 1;
        let renewed = i64::try_from(clock.as_secs()).unwrap();
        self.record = Some(record(holder, renewed));
        Some(self.version)
    }
}

proptest! {
    #[test]
    fn never_two_at_once(
        offsets in prop::array::uniform3(0_u64..1_000_000_000),
        steps in prop::collection::vec((0_u64..6000, 0_usize..3), 1..300),
    ) {
        let mut world = World::default();
        let mut all = offsets.map(|offset| Candidate {
            life: 0,
            offset: Duration::from_millis(offset),
            sight: Sight::default(),
            doing: Doing::Looking,
        });
        for (pause, who) in steps {
            world.now += Duration::from_millis(pause);
            prop_assert!(all.iter().filter(|one| one.leads(&world)).count() <= 1);
            all[who].act(who, &mut world);
            prop_assert!(all.iter().filter(|one| one.leads(&world)).count() <= 1);
        }
    }

    #[test]
    fn somebody_leads_soon_when_all_look_often(
        offsets in prop::array::uniform3(0_u64..1_000_000_000),
        who_last in 0_usize..3,
    ) {
        let mut world = World { record: Some(record("gone", 5)), ..World::default() };
        let mut all = offsets.map(|offset| Candidate {
            life: 0,
            offset: Duration::from_millis(offset),
            sight: Sight::default(),
            doing: Doing::Looking,
        });
        // Fifteen seconds from the first look, and two steps to take it.
        for _ in 0..=17 {
            for step in 0..3 {
                let who = (who_last + 1 + step) % 3;
                all[who].act(who, &mut world);
            }
            world.now += SECOND;
        }
        prop_assert_eq!(all.iter().filter(|one| one.leads(&world)).count(), 1);
    }

    #[test]
    fn it_is_never_free_before_its_time(
        seen in 0_u64..10_000, later in 0_u64..20_000, lasts in 0_u64..20_000,
    ) {
        let mut sight = Sight::default();
        let lasts = Duration::from_millis(lasts);
        sight.look(Some(Record { lasts, ..record("b", 1) }), Duration::from_millis(seen));
        let now = Duration::from_millis(seen + later);
        let expected = match lasts.checked_sub(Duration::from_millis(later)) {
            None | Some(Duration::ZERO) => Verdict::Free,
            Some(left) => Verdict::Held(left),
        };
        prop_assert_eq!(evaluate(&sight, "a", now), expected);
    }
}
