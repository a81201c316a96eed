//! Single decisions, by value: what the model leaves out, and what a reader looks up first.

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use jiff::Timestamp;
use weir_api::hold::{Phase, names::report::ConditionType};

use super::{
    Facts, Memory, Plan, Settings, Step,
    facts::{
        Autoscaler, Deletion, Group, Knows, Pause, Slice, StoredPhase, Target, Triggers, Version,
        Wanted, Window,
    },
    next,
};

const NOW: i64 = 100_000;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn version(text: &str) -> Version {
    Version(text.into())
}

/// Awake for long, idle, and with one resolver that knows it.
fn awake() -> Facts {
    Facts {
        stored: Some(StoredPhase {
            phase: Phase::Serving,
            since: at(1_000),
        }),
        wanted: Wanted {
            min_replicas: 2,
            cooldown: Duration::from_mins(15),
            window: Window::Open(None),
            triggers: Triggers::Idle,
            created: at(0),
            last_scaled_up: None,
            cut_over_failed: None,
            cannot_be_probed: false,
        },
        deletion: None,
        service_exists: true,
        target: Some(Target {
            replicas: 2,
            version: version("7"),
            generation: 1,
            ready_pods: 2,
            fenced_for: None,
        }),
        endpoints: BTreeMap::from([(address("10.0.0.1"), version("3"))]),
        slice: None,
        resolvers: BTreeMap::from([(address("10.0.1.1"), Knows::Yes)]),
        autoscaler: None,
        group: Group::ALONE,
        wake_wanted: false,
    }
}

/// Asleep, with the slice in place.
fn asleep() -> Facts {
    let mut facts = in_phase(awake(), Phase::Asleep);
    facts.endpoints.clear();
    facts.slice = Some(Slice {
        resolvers: facts.usable_resolvers(),
        version: version("9"),
        mark: None,
    });
    set_replicas(facts, 0)
}

fn in_phase(mut facts: Facts, phase: Phase) -> Facts {
    facts.stored = Some(StoredPhase {
        phase,
        since: at(NOW - 60),
    });
    facts
}

fn set_replicas(mut facts: Facts, replicas: i32) -> Facts {
    if let Some(target) = &mut facts.target {
        target.replicas = replicas;
        target.ready_pods = replicas;
    }
    facts
}

fn paused(mut facts: Facts, pause: Pause) -> Facts {
    facts.autoscaler = Some(Autoscaler {
        version: version("5"),
        generation: 1,
        pause,
        fenced_for: None,
    });
    facts
}

fn plan(facts: &Facts) -> Plan {
    let mut memory = Memory::default();
    memory.see(facts, at(NOW));
    next(facts, &memory, &Settings::default(), at(NOW))
}

fn step(facts: &Facts) -> Step {
    plan(facts).step
}

fn says(plan: &Plan, kind: ConditionType) -> bool {
    plan.conditions
        .iter()
        .any(|condition| condition.kind == kind)
}

#[test]
fn an_idle_target_begins_to_drain_by_storing_it() {
    assert_eq!(step(&awake()), Step::StorePhase(Phase::Draining));
}

#[test]
fn what_keeps_a_target_awake() {
    let reasons: [fn(&mut Facts); 10] = [
        |facts| facts.wanted.triggers = Triggers::Absent,
        |facts| facts.wanted.triggers = Triggers::Unknown,
        |facts| facts.wanted.window = Window::Closed(None),
        |facts| facts.wanted.window = Window::Unreadable,
        |facts| facts.wanted.created = at(NOW - 899),
        |facts| facts.wanted.last_scaled_up = Some(at(NOW - 899)),
        |facts| facts.wanted.cut_over_failed = Some(at(NOW - 899)),
        |facts| facts.group.others_agree = false,
        |facts| facts.group.others_wake = true,
        |facts| facts.resolvers = BTreeMap::from([(address("10.0.1.1"), Knows::NotYet)]),
    ];
    for (number, reason) in reasons.into_iter().enumerate() {
        let mut facts = awake();
        reason(&mut facts);
        assert_eq!(step(&facts), Step::Rest, "reason {number}");
    }
}

#[test]
fn the_end_of_the_cooldown_is_looked_at_again() {
    let mut facts = awake();
    facts.wanted.last_scaled_up = Some(at(NOW - 100));
    assert_eq!(plan(&facts).look_again, Some(at(NOW + 800)));
}

#[test]
fn a_busy_trigger_is_noted_now_and_then() {
    let mut facts = awake();
    facts.wanted.triggers = Triggers::Busy;
    assert_eq!(step(&facts), Step::RecordActivity);
    // A tenth of the cooldown.
    facts.wanted.last_scaled_up = Some(at(NOW - 89));
    assert_eq!(step(&facts), Step::Rest);
}

#[test]
fn a_failing_trigger_says_so() {
    let mut facts = awake();
    facts.wanted.triggers = Triggers::Unknown;
    assert!(says(&plan(&facts), ConditionType::TriggerFailing));
    assert!(!says(&plan(&awake()), ConditionType::TriggerFailing));
}

#[test]
fn outside_the_window_the_minimum_is_kept() {
    let mut facts = set_replicas(awake(), 1);
    facts.wanted.window = Window::Closed(Some(at(NOW + 60)));
    assert_eq!(step(&facts), Step::ScaleUp { replicas: 2 });
    let above = set_replicas(facts, 5);
    assert_eq!(step(&above), Step::Rest);
    assert_eq!(plan(&above).look_again, Some(at(NOW + 60)));
}

#[test]
fn what_wakes_a_sleeping_target() {
    assert_eq!(step(&asleep()), Step::Rest);
    let reasons: [fn(&mut Facts); 5] = [
        |facts| facts.wake_wanted = true,
        |facts| facts.group.others_wake = true,
        |facts| facts.wanted.triggers = Triggers::Busy,
        |facts| facts.wanted.window = Window::Closed(None),
        |facts| facts.deletion = Some(Deletion::WakeFirst),
    ];
    for (number, reason) in reasons.into_iter().enumerate() {
        let mut facts = asleep();
        reason(&mut facts);
        let waking = Step::StorePhase(Phase::Waking);
        assert_eq!(step(&facts), waking, "reason {number}");
    }
}

#[test]
fn a_new_object_is_not_woken_by_its_triggers() {
    let mut facts = asleep();
    facts.wanted.triggers = Triggers::Busy;
    facts.wanted.created = at(NOW - 10);
    assert_eq!(step(&facts), Step::Rest);
    assert_eq!(plan(&facts).look_again, Some(at(NOW + 890)));
}

#[test]
fn without_resolvers_a_sleeping_target_wakes() {
    let mut facts = asleep();
    facts.resolvers.clear();
    let settings = Settings::default();
    let mut memory = Memory::default();
    memory.see(&facts, at(NOW));
    let first = next(&facts, &memory, &settings, at(NOW));
    assert_eq!(first.step, Step::Rest);
    assert_eq!(first.look_again, Some(at(NOW + 30)));
    memory.see(&facts, at(NOW + 30));
    let then = next(&facts, &memory, &settings, at(NOW + 30));
    assert_eq!(then.step, Step::StorePhase(Phase::Waking));
}

/// By each of the Service's addresses a resolver saw it; all of them must be there still.
#[test]
fn a_way_whose_resolver_has_gone_is_not_cut_over_though_the_other_is() {
    let (mut facts, settings) = (in_phase(awake(), Phase::Draining), Settings::default());
    facts.resolvers.insert(address("2001:db8::1"), Knows::Yes);
    facts.slice = Some(Slice {
        resolvers: facts.usable_resolvers(),
        version: version("9,10"),
        mark: facts.stored.map(|stored| stored.since),
    });
    let both = [address("10.0.1.1"), address("2001:db8::1")];
    let mut memory = Memory::default();
    memory.see(&facts, at(NOW));
    memory.cut_over_seen(both, at(NOW));
    let step =
        |facts: &Facts, memory: &Memory, now: i64| next(facts, memory, &settings, at(now)).step;
    assert_eq!(step(&facts, &memory, NOW), Step::Rest, "the overlap");
    facts.resolvers.remove(&both[1]);
    if let Some(slice) = &mut facts.slice {
        slice.resolvers.remove(&both[1]);
    }
    memory.see(&facts, at(NOW + 1));
    assert_eq!(step(&facts, &memory, NOW + 1), Step::ProbeCutOver);
    memory.cut_over_seen([both[0]], at(NOW + 1));
    assert_eq!(step(&facts, &memory, NOW + 1), Step::Rest);
}

#[test]
fn a_wake_unpauses_ours_and_the_peers_but_not_the_users() {
    let waking = in_phase(asleep(), Phase::Waking);
    for pause in [Pause::Ours, Pause::Peers] {
        let facts = paused(waking.clone(), pause);
        assert_eq!(step(&facts), Step::UnpauseAutoscaler);
    }
    let facts = paused(waking, Pause::Users);
    assert_eq!(step(&facts), Step::ScaleUp { replicas: 2 });
    assert!(says(&plan(&facts), ConditionType::PausedByUser));
}

#[test]
fn a_group_is_put_to_sleep_together() {
    let mut facts = in_phase(awake(), Phase::Draining);
    facts.slice = Some(Slice {
        resolvers: facts.usable_resolvers(),
        version: version("9"),
        mark: facts.stored.map(|stored| stored.since),
    });
    facts.group.others_cut_over = false;
    let settings = Settings::default();
    let mut memory = Memory::default();
    memory.see(&facts, at(NOW));
    let probe = next(&facts, &memory, &settings, at(NOW));
    assert_eq!(probe.step, Step::ProbeCutOver);
    assert_eq!(probe.look_again, Some(at(NOW + 10)));
    memory.cut_over_seen([address("10.0.1.1")], at(NOW));
    let overlap = next(&facts, &memory, &settings, at(NOW));
    assert_eq!(
        (overlap.step, overlap.look_again),
        (Step::Rest, Some(at(NOW + 3)))
    );
    let others = next(&facts, &memory, &settings, at(NOW + 3));
    assert_eq!((others.step, others.look_again), (Step::Rest, None));
    facts.group.others_cut_over = true;
    let last = next(&facts, &memory, &settings, at(NOW + 3));
    let version = version("7");
    assert_eq!(last.step, Step::ScaleToZero { version });
}

#[test]
fn a_target_that_is_gone_is_held_for_and_never_scaled() {
    let mut facts = awake();
    facts.target = None;
    facts.endpoints.clear();
    assert!(matches!(step(&facts), Step::ApplySlice { .. }));
    facts.slice = Some(Slice {
        resolvers: facts.usable_resolvers(),
        version: version("9"),
        mark: facts.stored.map(|stored| stored.since),
    });
    assert_eq!(step(&facts), Step::StorePhase(Phase::Asleep));
    let waking = in_phase(facts, Phase::Waking);
    assert_eq!(step(&waking), Step::Rest);
    assert!(!says(&plan(&waking), ConditionType::Ready));
}

#[test]
fn a_deletion_works_without_target_or_service() {
    let mut facts = asleep();
    facts.deletion = Some(Deletion::WakeFirst);
    let mut without_target = facts.clone();
    without_target.target = None;
    let removal = Step::RemoveSlice {
        version: version("9"),
    };
    assert_eq!(step(&without_target), removal);
    without_target.slice = None;
    without_target.service_exists = false;
    assert_eq!(step(&without_target), Step::RemoveFinalizer);

    let mut without_service = in_phase(facts, Phase::Waking);
    without_service.service_exists = false;
    assert_eq!(step(&without_service), Step::ScaleUp { replicas: 2 });
    assert_eq!(step(&set_replicas(without_service, 2)), removal);
}

#[test]
fn a_deleted_object_is_let_go_when_no_node_leads_to_resolvers_any_more() {
    let mut facts = awake();
    facts.deletion = Some(Deletion::WakeFirst);
    let mut memory = Memory::default();
    memory.see(&facts, at(NOW));
    // Also if it was this process that took the slice away: nodes follow later.
    let after = |seconds| next(&facts, &memory, &Settings::default(), at(NOW + seconds));
    assert_eq!(after(0).step, Step::Rest);
    assert_eq!(after(0).look_again, Some(at(NOW + 3)));
    assert_eq!(after(3).step, Step::RemoveFinalizer);
}

#[test]
fn a_deletion_that_leaves_the_target_removes_the_slice_at_zero() {
    let mut facts = paused(asleep(), Pause::Ours);
    facts.deletion = Some(Deletion::Leave);
    assert_eq!(step(&facts), Step::UnpauseAutoscaler);
    let facts = paused(facts, Pause::No);
    assert!(matches!(step(&facts), Step::RemoveSlice { .. }));
}

#[test]
fn ready_pods_that_no_service_selects_are_reported_after_a_while() {
    let mut facts = awake();
    facts.endpoints.clear();
    let mut memory = Memory::default();
    memory.see(&facts, at(NOW));
    for (second, expected) in [(9, false), (10, true)] {
        let plan = next(&facts, &memory, &Settings::default(), at(NOW + second));
        assert_eq!(
            says(&plan, ConditionType::ServiceSelectsNoReadyPod),
            expected
        );
    }
}
