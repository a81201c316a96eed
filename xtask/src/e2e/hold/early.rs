//! Wakes of a target that is ready some time after it runs, one at a time and each by a single request: does it matter how
//! often the kubelet asks, and how long after its first yes does the request arrive?
//!
//! The pod itself tells when it said to a resolver that it is ready, and when the first request came: all nodes share one
//! clock.

use std::{
    net::Ipv4Addr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use weir_lab::cluster::{http, layout::Node};

use super::target::{self, Target};
use crate::{
    bench::{Figure, quantile, real},
    kube,
    site::Site,
};

/// The kubelet's first question comes before that, and is answered with no.
const READY_AFTER: &str = "2s";
/// How often the kubelet asks then, in seconds.
const OFTEN: u32 = 1;
const SELDOM: u32 = 10;
const PATIENCE: Duration = Duration::from_mins(2);
/// The Service's.
const SERVICE_PORT: u16 = 80;

/// One wake.
struct Wake {
    period_seconds: u32,
    /// Of the request that woke it, whole.
    seconds: f64,
    /// From the first yes to a resolver until the request came; none if the kubelet was told before, and the resolver by it.
    first_byte_ms: Option<f64>,
}

/// So many wakes with each period, in turns. Goals are for whoever measures.
pub(super) fn run(site: &Site, target: &Target, wakes: u32, is_dev: bool) -> Result<Vec<Figure>> {
    println!(
        "  {wakes} wakes each of a target that the kubelet asks every {OFTEN} s, and {SELDOM} s …"
    );
    let mut all = Vec::new();
    for _ in 0..wakes {
        for period in [OFTEN, SELDOM] {
            let wake = wake(site, target, period)?;
            let first_byte = wake.first_byte_ms.map_or_else(
                || "the kubelet knew first".to_owned(),
                |ms| format!("{ms:.1} ms after its first yes"),
            );
            let seconds = wake.seconds;
            println!("  asked every {period} s: answered after {seconds:.2} s, {first_byte}");
            all.push(wake);
        }
    }
    Ok(figures(&all, is_dev))
}

fn wake(site: &Site, target: &Target, period_seconds: u32) -> Result<Wake> {
    kube::until(PATIENCE, "the target is scaled", || {
        target.scale_to_zero(site)
    })?;
    target.start_late(site, READY_AFTER, period_seconds)?;
    kube::until(PATIENCE, "it sleeps and its pods are gone", || {
        asleep(site, target)
    })?;
    let service = ["-n", &target.namespace, "service", target::NAME];
    let service = kube::get(&site.cluster, &service)?;
    let address = address(&service["spec"]["clusterIP"])?;
    let began = Instant::now();
    let answer = site
        .cluster
        .node_network(Node(1))
        .inside(|| http::get_within(PATIENCE, address, SERVICE_PORT, "/echo"))??;
    let seconds = began.elapsed().as_secs_f64();
    ensure!(answer.status == 200, "it was answered {}", answer.status);
    let first_byte_ms = kube::until(PATIENCE, "the pod tells when it was asked", || {
        told(site, target)
    })?;
    // The kubelet must have said so too before it can be put to sleep again.
    kube::until(PATIENCE, "the operator says that it serves", || {
        is_in_mode(site, target, "serve")
    })?;
    Ok(Wake {
        period_seconds,
        seconds,
        first_byte_ms,
    })
}

fn asleep(site: &Site, target: &Target) -> Result<()> {
    let pods = pods(site, target)?;
    ensure!(pods.is_empty(), "{} pods are there", pods.len());
    is_in_mode(site, target, "proxy")
}

fn is_in_mode(site: &Site, target: &Target, wanted: &str) -> Result<()> {
    let name = ["-n", &target.namespace, "elastiservice", target::NAME];
    let found = kube::get(&site.cluster, &name)?;
    let mode = &found["status"]["mode"];
    ensure!(*mode == wanted, "its mode is {mode}");
    Ok(())
}

/// From the pod's first yes to a resolver to its first request, in milliseconds. None if no resolver asked in time: on a busy
/// machine the kubelet's first question may come so late that it is answered with yes.
fn told(site: &Site, target: &Target) -> Result<Option<f64>> {
    let pods = pods(site, target)?;
    let pod = pods.first().context("there is no pod")?;
    let address = address(&pod["status"]["podIP"])?;
    let network = site.cluster.network();
    let answer = network.inside(|| http::get(address, target::PORT, "/metrics"))??;
    let request = first(&answer.body, "request").context("no request has come")?;
    let said_yes = first(&answer.body, "ready_told_resolver");
    let said_yes = said_yes.filter(|said_yes| *said_yes <= request);
    Ok(said_yes.map(|said_yes| (request - said_yes) * 1e3))
}

fn pods(site: &Site, target: &Target) -> Result<Vec<Value>> {
    let label = format!("-lapp={}", target::NAME);
    let mut found = kube::get(&site.cluster, &["-n", &target.namespace, "pods", &label])?;
    Ok(match found["items"].take() {
        Value::Array(pods) => pods,
        _ => Vec::new(),
    })
}

fn address(value: &Value) -> Result<Ipv4Addr> {
    let text = value.as_str().unwrap_or_default();
    text.parse()
        .with_context(|| format!("{text:?} is no address"))
}

fn first(metrics: &str, what: &str) -> Option<f64> {
    let series = format!("lab_first_seconds{{what=\"{what}\"}} ");
    let mut lines = metrics.lines();
    lines.find_map(|line| line.strip_prefix(&series)?.parse().ok())
}

fn figures(wakes: &[Wake], is_dev: bool) -> Vec<Figure> {
    let seconds = |period| -> Vec<f64> {
        let of = wakes.iter().filter(|it| it.period_seconds == period);
        of.map(|it| it.seconds).collect()
    };
    let (often, seldom) = (seconds(OFTEN), seconds(SELDOM));
    let more = quantile(&seldom, 0.5) - quantile(&often, 0.5);
    let bytes: Vec<f64> = wakes.iter().filter_map(|it| it.first_byte_ms).collect();
    let asked = real(u64::try_from(bytes.len()).unwrap_or(0));
    let id = |what: &str| format!("hold.early.{what}");
    let goal = |figure: Figure, bound| {
        if is_dev { figure } else { figure.below(bound) }
    };
    vec![
        Figure::new(id("period_1_wake_seconds.p50"), quantile(&often, 0.5), "s"),
        Figure::new(
            id("period_10_wake_seconds.p50"),
            quantile(&seldom, 0.5),
            "s",
        ),
        goal(Figure::new(id("period_10_over_1_seconds"), more, "s"), 0.2),
        Figure::new(id("first_byte_ms.wakes"), asked, "count"),
        Figure::new(id("first_byte_ms.p50"), quantile(&bytes, 0.5), "ms"),
        goal(
            Figure::new(id("first_byte_ms.p99"), quantile(&bytes, 0.99), "ms"),
            20.0,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_time_is_found_in_what_a_pod_tells() {
        let metrics = "# TYPE lab_first_seconds gauge\n\
            lab_first_seconds{what=\"ready_told_kubelet\"} 7.5\n\
            lab_first_seconds{what=\"request\"} 8.25\n";
        assert_eq!(first(metrics, "request"), Some(8.25));
        assert_eq!(first(metrics, "ready_told_resolver"), None);
    }

    #[test]
    fn medians_of_both_periods_are_compared_and_the_tail_of_all_counts() {
        let wake = |period_seconds, seconds, first_byte_ms| Wake {
            period_seconds,
            seconds,
            first_byte_ms,
        };
        let wakes = [
            wake(OFTEN, 3.0, Some(1.0)),
            wake(OFTEN, 3.2, None),
            wake(SELDOM, 3.3, Some(30.0)),
            wake(SELDOM, 9.0, Some(1.0)),
        ];
        let figures = figures(&wakes, false);
        let is = |id: &str, expected: f64| {
            let figure = figures.iter().find(|it| it.id.ends_with(id)).unwrap();
            (figure.value - expected).abs() < 1e-9
        };
        assert!(is("period_10_over_1_seconds", 5.8));
        assert!(is("first_byte_ms.p99", 30.0));
        assert!(is("first_byte_ms.wakes", 3.0));
    }
}
