//! What all of it comes to: figures by their ids, and a table of where the time of a wake goes. Functions of values.

use std::collections::BTreeMap;

use super::{
    campaign::{Campaign, Cycle},
    fault,
    plain::Plain,
};
use crate::{
    bench::{Figure, quantile, real},
    cli::Fault,
    load::report::{Failure, Report},
    table::{self, Align},
};

/// Requests that were meant to be sent so long before or after count to a wake as well: clients count by the second.
const AROUND_SECONDS: f64 = 1.0;

/// First attempts, by whose fault it was that they failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Attempts {
    sent: u64,
    cut_by_target: u64,
    explained: u64,
    failed: u64,
}

/// A rolling restart without us.
pub(super) fn of_plain(plain: &Plain) -> Vec<Figure> {
    let attempts = count(&plain.reports, None, &[]);
    let id = |what: &str| format!("hold.plain_restart.{what}");
    let per_end = real(attempts.cut_by_target) / f64::from(plain.pod_ends.max(1));
    vec![
        Figure::new(id("sent"), real(attempts.sent), "requests"),
        Figure::new(id("failed"), real(attempts.failed), "requests"),
        Figure::new(id("cut_by_target_per_pod"), per_end, "requests"),
    ]
}

/// The goals are for what nobody disturbed; of a fault only what is lost counts.
pub(super) fn of_campaign(campaign: &Campaign, is_dev: bool) -> Vec<Figure> {
    let id = |what: &str| match campaign.fault {
        None => format!("hold.{what}"),
        Some(fault) => format!("hold.{}.{what}", name(fault)),
    };
    let struck: Vec<f64> = campaign.cycles.iter().filter_map(|it| it.struck).collect();
    let attempts = count(&campaign.reports, campaign.fault, &struck);
    let cycles = u64::try_from(campaign.cycles.len()).unwrap_or(0);
    let per_end = real(attempts.cut_by_target) / real(cycles.max(1));
    let mut figures = vec![
        Figure::new(id("cycles"), real(cycles), "count"),
        Figure::new(id("first_attempts.sent"), real(attempts.sent), "requests"),
        Figure::new(
            id("first_attempts.failed"),
            real(attempts.failed),
            "requests",
        )
        .exactly(0),
        Figure::new(id("cut_by_target_per_pod"), per_end, "requests"),
    ];
    if campaign.fault.is_some() {
        let lost = real(attempts.explained);
        figures.push(Figure::new(
            id("first_attempts.lost_with_fault"),
            lost,
            "requests",
        ));
        return figures;
    }
    let starts = pod_starts(campaign);
    let over = differences(&slowest(campaign), &starts);
    let overhead: Vec<f64> = differences(&phase(campaign, FIRST_BYTE), &starts)
        .iter()
        .map(|seconds| seconds * 1e3)
        .collect();
    let seconds = |what: &str, values: &[Option<f64>], share| {
        let measured: Vec<f64> = values.iter().copied().flatten().collect();
        (!measured.is_empty()).then(|| Figure::new(id(what), quantile(&measured, share), "s"))
    };
    figures.extend(seconds("pod_start_seconds.p50", &starts, 0.5));
    figures.extend(seconds("pod_start_seconds.p99", &starts, 0.99));
    figures.extend(seconds("wake_seconds.p50", &slowest(campaign), 0.5));
    figures.extend(seconds("wake_seconds.p99", &slowest(campaign), 0.99));
    if !over.is_empty() {
        let p99 = quantile(&over, 0.99);
        let figure = Figure::new(id("wake_p99_over_pod_start_seconds"), p99, "s");
        figures.push(if is_dev { figure } else { figure.at_most(0.5) });
    }
    if !overhead.is_empty() {
        for (which, share, bound) in [("p50", 0.5, 50.0), ("p99", 0.99, 200.0)] {
            let value = quantile(&overhead, share);
            let id = id(&format!("wake_overhead_ms.{which}"));
            let figure = Figure::new(id, value, "ms");
            figures.push(if is_dev { figure } else { figure.below(bound) });
        }
    }
    figures
}

/// The last phase that resolvers measure: a held request goes to a pod.
const FIRST_BYTE: &str = "first_byte";

/// Where the time of a wake goes.
pub(super) fn table(campaign: &Campaign) -> String {
    let head = ["wake, in ms", "p50", "p99", "longest"].map(str::to_owned);
    let mut rows = vec![head.to_vec()];
    let starts = pod_starts(campaign);
    let share = differences(&phase(campaign, FIRST_BYTE), &starts);
    for (what, values) in [
        (
            "first request held → operator answers",
            phase(campaign, "signalled"),
        ),
        (
            "first request held → a pod is ready",
            phase(campaign, "ready"),
        ),
        (
            "first request held → first byte to it",
            phase(campaign, FIRST_BYTE),
        ),
        ("/scale → pod ready, which is the pod's own", starts),
        (
            "the rest of it, which is ours",
            share.into_iter().map(Some).collect(),
        ),
        ("slowest request of a client", slowest(campaign)),
    ] {
        let values: Vec<f64> = values.into_iter().flatten().map(|it| it * 1e3).collect();
        if values.is_empty() {
            continue;
        }
        let mut row = vec![what.to_owned()];
        row.extend([0.5, 0.99, 1.0].map(|share| format!("{:.0}", quantile(&values, share))));
        rows.push(row);
    }
    let right = Align::Right;
    let under = campaign
        .fault
        .map_or_else(String::new, |fault| format!(" ({})", name(fault)));
    let table = table::render(&[Align::Left, right, right, right], &rows);
    let failures = failures(&campaign.reports);
    format!(
        "\n{} cycles{under}\n{table}{failures}",
        campaign.cycles.len()
    )
}

/// How requests failed and on what, for whoever has to find out why; each client tells its first ones.
fn failures(reports: &[Report]) -> String {
    let mut kinds: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for failure in reports.iter().flat_map(|report| &report.failures) {
        *kinds.entry((&failure.outcome, &failure.link)).or_default() += 1;
    }
    let line = |((outcome, link), count)| format!("\n  failed: {count} × {outcome} ({link})");
    kinds.into_iter().map(line).collect()
}

fn name(fault: Fault) -> &'static str {
    match fault {
        Fault::Operator => "operator_killed",
        Fault::Resolver => "resolver_killed",
        Fault::Api => "api_server_away",
        Fault::Node => "node_lost",
    }
}

fn count(reports: &[Report], fault: Option<Fault>, struck: &[f64]) -> Attempts {
    let mut all = Attempts::default();
    for report in reports {
        let is_explained = |failure: &&Failure| {
            let started = report.started_unix_seconds;
            let by = |fault| {
                struck
                    .iter()
                    .any(|at| fault::explains(fault, *at, failure, started))
            };
            failure.link != "kept-to-server" && fault.is_some_and(by)
        };
        let explained = report.failures.iter().filter(is_explained).count();
        let explained = u64::try_from(explained).unwrap_or(0);
        all.sent += report.sent;
        all.cut_by_target += report.cut_by_server;
        all.explained += explained;
        let others = report.failed().saturating_sub(report.cut_by_server);
        all.failed += others.saturating_sub(explained);
    }
    all
}

fn pod_starts(campaign: &Campaign) -> Vec<Option<f64>> {
    of_each(campaign, |cycle| Some(cycle.passage.pod_start()))
}

fn phase(campaign: &Campaign, phase: &str) -> Vec<Option<f64>> {
    of_each(campaign, |cycle| cycle.wakes.get(phase).copied())
}

/// From when it was meant to be sent to the whole answer, of those that came while there was no pod.
fn slowest(campaign: &Campaign) -> Vec<Option<f64>> {
    of_each(campaign, |cycle| {
        let from = cycle.passage.slept - AROUND_SECONDS;
        let to = cycle.passage.ready + AROUND_SECONDS;
        let reports = campaign.reports.iter();
        let slowest = reports.filter_map(|report| report.slowest_between(from, to));
        slowest.reduce(f64::max)
    })
}

fn of_each(campaign: &Campaign, value: impl Fn(&Cycle) -> Option<f64>) -> Vec<Option<f64>> {
    campaign.cycles.iter().map(value).collect()
}

/// Of the cycles in which both were measured.
fn differences(values: &[Option<f64>], less: &[Option<f64>]) -> Vec<f64> {
    let both = values.iter().zip(less);
    both.filter_map(|(value, less)| Some((*value)? - (*less)?))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        e2e::hold::passage::Passage,
        load::report::{Failure, tests::report},
    };

    fn cycle(slept: f64, first_byte: Option<f64>) -> Cycle {
        let wakes = first_byte.map(|seconds| (FIRST_BYTE.to_owned(), seconds));
        Cycle {
            passage: Passage {
                slept,
                scaled: slept + 0.5,
                ready: slept + 1.5,
                serving: slept + 4.0,
            },
            wakes: BTreeMap::from_iter(wakes),
            struck: None,
        }
    }

    fn campaign() -> Campaign {
        Campaign {
            fault: None,
            cycles: vec![cycle(102.0, Some(1.03)), cycle(106.0, Some(1.1))],
            reports: vec![report(
                100.0,
                &[9, 9, 9, 1_200_000, 9, 9, 9, 1_400_000, 9, 9],
            )],
        }
    }

    fn value(figures: &[Figure], id: &str) -> f64 {
        let found = figures.iter().find(|figure| figure.id == id);
        found.unwrap_or_else(|| panic!("{id} is not there")).value
    }

    #[test]
    fn what_is_ours_is_what_is_left_of_a_wake_without_the_pods_own_start() {
        let figures = of_campaign(&campaign(), false);
        let close = |id: &str, expected: f64| {
            let found = value(&figures, id);
            assert!((found - expected).abs() < 1e-6, "{id} is {found}");
        };
        close("hold.first_attempts.failed", 0.0);
        close("hold.first_attempts.sent", 100.0);
        close("hold.pod_start_seconds.p50", 1.0);
        close("hold.wake_seconds.p99", 1.4);
        close("hold.wake_p99_over_pod_start_seconds", 0.4);
        close("hold.wake_overhead_ms.p99", 100.0);
        let table = table(&campaign());
        assert!(
            table.contains("slowest request of a client") && table.contains("1400"),
            "{table}"
        );
        assert!(!table.contains("operator answers"), "not measured: {table}");
    }

    #[test]
    fn what_was_not_measured_is_absent() {
        let mut campaign = campaign();
        campaign.cycles = vec![cycle(102.0, None)];
        let figures = of_campaign(&campaign, false);
        assert!(!figures.iter().any(|it| it.id.contains("overhead")));
        assert!(figures.iter().any(|it| it.id.contains("pod_start")));
    }

    #[test]
    fn a_failure_is_the_targets_the_faults_or_ours() {
        let mut report = report(100.0, &[9; 10]);
        report.sent += 3;
        report.cut_by_server = 1;
        let failure = |at_seconds, link: &str| Failure {
            at_seconds,
            took_seconds: 1.0,
            outcome: "cut".to_owned(),
            link: link.to_owned(),
        };
        report.failures = vec![
            failure(4.5, "kept-to-server"),
            failure(4.5, "new"),
            failure(8.0, "new"),
        ];
        let reports = [report];
        let attempts = count(&reports, Some(Fault::Resolver), &[105.0]);
        let expected = Attempts {
            sent: 103,
            cut_by_target: 1,
            explained: 1,
            failed: 1,
        };
        assert_eq!(attempts, expected);
        assert_eq!(count(&reports, None, &[]).failed, 2);
        let told = failures(&reports);
        assert!(told.contains("2 × cut (new)"), "{told}");
    }
}
