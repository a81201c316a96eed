//! What a watch's status says of its nodes, in the forms that the original's readers know; in large clusters only the
//! worst of them, and not with every reading. Conditions are the caller's, as they need a clock on the wall.

mod interfaces;
#[cfg(test)]
mod tests;

use std::{cmp::Ordering, collections::BTreeMap, time::Duration};

use weir_api::{
    form::decimal::go_scientific,
    place::{NodeStatus, Summary, TrafficWatchStatus, defaults::UNMEASURED_PERCENT},
};

use crate::{
    interfaces::Counted,
    judge::{Outcome, State, Verdict, Why},
    measure::Measurement,
};

/// Up to so many nodes all of them are in the status.
pub const WHOLE_UP_TO: usize = 200;
/// Above that, so many of the worst: some 10 kB.
pub const WORST: usize = 50;
/// In a large cluster figures alone are not written more often than this.
pub const FIGURES_INTERVAL: Duration = Duration::from_mins(1);

/// What a status says of nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nodes {
    /// All of them, or the worst.
    pub nodes: BTreeMap<String, NodeStatus>,
    /// Of all of them.
    pub summary: Summary,
}

/// What the status should say. Nodes that left the cluster have no verdict, so they are not in it. `there` is what it
/// says now: figures stay until there are newer ones, with their time, also over a restart. `not_counted` is asked for the
/// interfaces of a node that do not count.
pub fn nodes(
    outcome: &Outcome,
    measurements: &BTreeMap<String, Measurement>,
    there: &BTreeMap<String, NodeStatus>,
    not_counted: impl Fn(&str) -> Vec<(String, Counted)>,
) -> Nodes {
    let mut verdicts: Vec<(&String, &Verdict)> = outcome.verdicts.iter().collect();
    let count = |state| {
        let is = |verdict: &&Verdict| verdict.state == state;
        number(outcome.verdicts.values().filter(is).count())
    };
    let is_unknown = |verdict: &&Verdict| verdict.load.is_none();
    let loads = outcome.verdicts.iter();
    let loads = loads.filter_map(|(name, verdict)| verdict.load.map(|load| (load, name)));
    let worst = loads.max_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(one.1)));
    let summary = Summary {
        fit: count(State::Fit),
        unfit: count(State::Unfit),
        unknown: number(outcome.verdicts.values().filter(is_unknown).count()),
        worst: worst.map(|(load, name)| format!("{name} {load:.1}%")),
    };
    if verdicts.len() > WHOLE_UP_TO {
        verdicts.sort_by(worst_first);
        verdicts.truncate(WORST);
    }
    let entry = |(name, verdict): (&String, &Verdict)| {
        let there = there.get(name).filter(|_| verdict.why != Why::New);
        let measurement = measurements.get(name);
        let mut entry = node(verdict, measurement, there);
        entry.why = Some(verdict.why.as_str().to_owned());
        // Without an answer, what was known of them stays.
        if let Some(measurement) = measurement.filter(|it| it.time.is_some()) {
            let words = interfaces::words(&measurement.interfaces, &not_counted(name));
            entry.interfaces = Some(words);
        }
        (name.clone(), entry)
    };
    Nodes {
        nodes: verdicts.into_iter().map(entry).collect(),
        summary,
    }
}

/// Whether a status is worth a write. What somebody decided is, at once; so are figures, but in a large cluster not
/// often. `age` is that of the last write; none: not written by this process yet.
pub fn is_worth_writing(
    there: &TrafficWatchStatus,
    wanted: &TrafficWatchStatus,
    age: Option<Duration>,
) -> bool {
    if there == wanted {
        return false;
    }
    let summary = wanted.summary.clone().unwrap_or_default();
    let is_small = summary.fit + summary.unfit <= number(WHOLE_UP_TO);
    let is_old = || age.is_none_or(|age| age >= FIGURES_INTERVAL);
    is_small
        || decided(there) != decided(wanted)
        || (is_old() && without_times(there) != without_times(wanted))
}

/// That the same was measured again is no news, in a cluster where many would hear it.
fn without_times(status: &TrafficWatchStatus) -> TrafficWatchStatus {
    let mut status = status.clone();
    for node in status.nodes.values_mut() {
        node.time = 0;
    }
    status
}

/// The status without figures. Which nodes are the worst changes with the figures, so in a large cluster that is none.
fn decided(status: &TrafficWatchStatus) -> TrafficWatchStatus {
    let summary = status.summary.clone();
    TrafficWatchStatus {
        nodes: BTreeMap::new(),
        summary: summary.map(|summary| Summary {
            worst: None,
            ..summary
        }),
        ..status.clone()
    }
}

/// Those that are unfit first, then by load, then by name. One without a figure counts as full: somebody should look at
/// it.
fn worst_first(one: &(&String, &Verdict), other: &(&String, &Verdict)) -> Ordering {
    let load = |verdict: &Verdict| verdict.load.unwrap_or(f64::INFINITY);
    let unfit_first = other.1.state.cmp(&one.1.state);
    unfit_first
        .then_with(|| load(other.1).total_cmp(&load(one.1)))
        .then_with(|| one.0.cmp(other.0))
}

fn node(
    verdict: &Verdict,
    measurement: Option<&Measurement>,
    there: Option<&NodeStatus>,
) -> NodeStatus {
    let unfit = verdict.state == State::Unfit;
    let percent = verdict.last_load.map(go_scientific);
    if let (None, Some(there)) = (&percent, there) {
        return NodeStatus {
            unfit,
            ..there.clone()
        };
    }
    let total = measurement.map_or(0, |measurement| measurement.transmit_total);
    let time = measurement.and_then(|measurement| measurement.time);
    NodeStatus {
        current_bandwidth_percent: percent.unwrap_or_else(|| UNMEASURED_PERCENT.to_owned()),
        current_transmit_total: i64::try_from(total).unwrap_or(i64::MAX),
        time: time.unwrap_or_default(),
        unfit,
        interface: (measurement.and_then(|measurement| measurement.figure.as_ref().ok()))
            .map(|figure| figure.interface.clone()),
        ..NodeStatus::default()
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
