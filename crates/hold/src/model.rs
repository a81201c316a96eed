//! The planner against a small world, over all orders of what can happen.
//!
//! [`world`] is what there is and its rules of time, [`start`] how it begins, [`look`] how it is
//! read; [`act`] what can happen next; [`operate`] the
//! operator, which may die after any step and whose last write may arrive late; [`judge`] what must
//! never be; [`explore`] walks. [`mutant`] breaks the planner on purpose: each must be found out.

mod act;
mod explore;
mod judge;
mod key;
mod look;
mod mutant;
mod operate;
mod start;
mod world;

use proptest::prelude::*;

use self::{
    explore::{Report, every_order, one_walk},
    mutant::Mutant,
    start::Start,
};

fn hold(start: Start) -> Report {
    let report = every_order(start, Mutant::None).unwrap_or_else(|fault| panic!("{fault}"));
    println!("{start:?}: {report:?}");
    report
}

/// The mutant is found out, and for this reason.
fn found(mutant: Mutant, start: Start, reason: &str) {
    match every_order(start, mutant) {
        Ok(report) => panic!("{mutant:?} was not found out in {report:?}"),
        Err(fault) => assert!(fault.what.contains(reason), "{mutant:?}: {fault}"),
    }
}

#[test]
fn awake_with_one_disturbance_in_each_way() {
    hold(Start::awake().disturbed(1));
    hold(Start::awake().with_keda().disturbed(1));
    hold(Start::awake().without_probe().disturbed(1));
    hold(Start::awake().with_pods_that_end_at_once().disturbed(1));
    hold(Start::awake().with_a_stuck_node().disturbed(1));
}

#[test]
fn a_status_that_is_written_every_second_keeps_nothing_awake() {
    hold(Start::awake().with_a_busy_status());
    hold(Start::awake().with_keda().with_a_busy_status().disturbed(1));
}

#[test]
fn found_at_zero_with_one_disturbance() {
    hold(Start::at_zero().disturbed(1));
}

#[test]
fn two_disturbances_with_a_punctual_operator() {
    let awake = Start::awake().with_a_punctual_operator().disturbed(2);
    let report = hold(awake);
    assert!(report.states > 100_000, "{report:?}");
    hold(awake.with_pods_that_end_at_once());
}

#[test]
fn two_disturbances_with_keda_and_a_punctual_operator() {
    let awake = Start::awake().with_a_punctual_operator().disturbed(2);
    hold(awake.with_keda());
}

#[test]
fn two_disturbances_from_zero_with_a_punctual_operator() {
    let at_zero = Start::at_zero().with_a_punctual_operator().disturbed(2);
    hold(at_zero);
}

#[test]
#[ignore = "many minutes and gigabytes; for changes of the order itself"]
fn two_disturbances_with_any_operator() {
    hold(Start::awake().disturbed(2));
    hold(Start::awake().with_keda().disturbed(2));
    hold(Start::at_zero().disturbed(2));
}

#[test]
fn mutants_are_found_out() {
    let calm = Start::awake();
    let nowhere = "leads nowhere";
    found(
        Mutant::NoOverlap,
        calm.with_pods_that_end_at_once(),
        nowhere,
    );
    found(Mutant::ScaledBeforeTheSlice, calm, nowhere);
    found(Mutant::CutOverNotProbed, calm.with_a_stuck_node(), nowhere);
    found(Mutant::AnyResolverWillDo, calm.without_probe(), nowhere);
    found(Mutant::SliceGoesAtZero, calm, "removed at zero");
    found(Mutant::PhaseNotStoredFirst, calm, "outside Draining");
    let paused = "paused, but node";
    found(Mutant::PausedBeforeTheOverlap, calm.with_keda(), paused);
}

#[test]
fn mutants_that_need_a_disturbance_are_found_out() {
    let awake = Start::awake().with_a_punctual_operator().disturbed(1);
    found(Mutant::SliceGoesWhenReady, awake, "leads nowhere");
    let scaled = "scaled up while paused";
    found(Mutant::ScaledBeforeUnpaused, awake.with_keda(), scaled);
    let let_go = "let go, and a node leads";
    found(Mutant::LetGoAtOnce, awake, let_go);
}

/// A leader dies with its write on the way, and its successor changes its mind.
#[test]
fn mutants_that_need_a_late_write_are_found_out() {
    let awake = Start::awake()
        .with_a_punctual_operator()
        .with_pods_that_end_at_once()
        .disturbed(2);
    found(Mutant::NoFence, awake, "leads nowhere");
    found(Mutant::NoFence, awake.with_keda(), "paused, but node");
    found(Mutant::NoVersion, awake, "leads nowhere");
    found(Mutant::NoMark, awake, "leads nowhere");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn long_walks(
        choices in proptest::collection::vec(any::<u16>(), 600),
        keda in any::<bool>(),
        affinity in any::<bool>(),
        at_zero in any::<bool>(),
    ) {
        let mut start = if at_zero { Start::at_zero() } else { Start::awake() }.disturbed(u8::MAX);
        if keda {
            start = start.with_keda();
        }
        if affinity {
            start = start.without_probe();
        }
        prop_assert_eq!(one_walk(start, &choices), Ok(()));
    }
}
