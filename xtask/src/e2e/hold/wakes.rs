//! What the resolvers measured of a wake: the differences of their histograms' sums around it, which are exact where
//! a bucket is not.

use std::{collections::BTreeMap, net::Ipv4Addr};

use anyhow::{Context, Result};
use weir_lab::cluster::http;

use crate::{
    kube,
    site::{NAMESPACE, Site},
};

const METRIC: &str = "weir_resolver_wake_seconds";
const PORT: u16 = 8013;

/// Sum and count of a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sum {
    seconds: f64,
    count: f64,
}

/// By resolver, which is a process of a pod, and phase.
pub(super) type Sums = BTreeMap<(String, String), Sum>;

/// Asks all resolvers that answer; one that was killed begins anew, and is not missed.
pub(super) fn read(site: &Site, namespace: &str) -> Result<Sums> {
    let selector = "-lapp.kubernetes.io/component=resolver";
    let pods = kube::get(&site.cluster, &["-n", NAMESPACE, "pods", selector])?;
    let mut all = Sums::new();
    for pod in pods["items"].as_array().into_iter().flatten() {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let address = pod["status"]["podIP"].as_str().unwrap_or_default();
        let Ok(address) = address.parse::<Ipv4Addr>() else {
            continue;
        };
        let network = site.cluster.network();
        let asked = network.inside(|| http::get(address, PORT, "/metrics"));
        if let Ok(answer) = asked.context("cannot ask the resolvers")? {
            let found = parse(&answer.body, namespace).into_iter();
            all.extend(
                found.map(|((process, phase), sum)| ((format!("{name}{process}"), phase), sum)),
            );
        }
    }
    Ok(all)
}

/// By phase, what the wakes between two looks took: of the resolver where it took longest, since that is the one that
/// was asked first. More than one wake of a resolver count with their mean.
pub(super) fn between(before: &Sums, after: &Sums) -> BTreeMap<String, f64> {
    let mut phases = BTreeMap::new();
    for (key, sum) in after {
        let start = before.get(key).copied().unwrap_or_default();
        let count = sum.count - start.count;
        if count < 0.5 {
            continue;
        }
        let took = (sum.seconds - start.seconds) / count;
        let longest: &mut f64 = phases.entry(key.1.clone()).or_insert(took);
        *longest = longest.max(took);
    }
    phases
}

/// By process and phase, of the services of one namespace.
fn parse(metrics: &str, namespace: &str) -> BTreeMap<(String, String), Sum> {
    let mut phases: BTreeMap<(String, String), Sum> = BTreeMap::new();
    for line in metrics.lines() {
        let Some((series, value)) = line.rsplit_once(' ') else {
            continue;
        };
        let Some((name, labels)) = series.split_once('{') else {
            continue;
        };
        let is_ours = label(labels, "namespace") == Some(namespace);
        let (Some(phase), Ok(value), true) =
            (label(labels, "phase"), value.parse::<f64>(), is_ours)
        else {
            continue;
        };
        let process = label(labels, "process").unwrap_or_default();
        let key = (process.to_owned(), phase.to_owned());
        let sum = phases.entry(key).or_default();
        match name.strip_prefix(METRIC) {
            Some("_sum") => sum.seconds += value,
            Some("_count") => sum.count += value,
            _ => {}
        }
    }
    phases
}

/// None of our labels' values has a quote in it.
fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    let start = labels.find(&format!("{name}=\""))? + name.len() + 2;
    labels[start..].split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &str = "\
# TYPE weir_resolver_wake_seconds histogram
weir_resolver_wake_seconds_bucket{phase=\"ready\",namespace=\"shop\",source=\"echo\",le=\"0.05\"} 1
weir_resolver_wake_seconds_sum{phase=\"ready\",namespace=\"shop\",source=\"echo\"} 2.5
weir_resolver_wake_seconds_count{phase=\"ready\",namespace=\"shop\",source=\"echo\"} 2
weir_resolver_wake_seconds_sum{phase=\"ready\",namespace=\"other\",source=\"echo\"} 99
weir_resolver_wake_seconds_sum{process=\"sibling\",phase=\"ready\",namespace=\"shop\",source=\"echo\"} 1.5
weir_resolver_wake_seconds_count{process=\"sibling\",phase=\"ready\",namespace=\"shop\",source=\"echo\"} 1
weir_resolver_held_requests 7
";

    #[test]
    fn sums_are_read_of_one_namespace() {
        let found = parse(METRICS, "shop");
        let sum = |process: &str, seconds, count| {
            let key = (process.to_owned(), "ready".to_owned());
            (key, Sum { seconds, count })
        };
        assert_eq!(
            found,
            BTreeMap::from([sum("", 2.5, 2.0), sum("sibling", 1.5, 1.0)])
        );
    }

    #[test]
    fn the_longest_of_what_happened_between_two_looks_counts() {
        let sums = |all: &[(&str, f64, f64)]| -> Sums {
            all.iter()
                .map(|&(pod, seconds, count)| {
                    let key = (pod.to_owned(), "ready".to_owned());
                    (key, Sum { seconds, count })
                })
                .collect()
        };
        let before = sums(&[("a", 2.0, 1.0), ("b", 5.0, 2.0), ("killed", 9.0, 9.0)]);
        let after = sums(&[
            ("a", 3.5, 2.0),
            ("b", 5.0, 2.0),
            ("new", 0.5, 1.0),
            ("killed", 0.1, 1.0),
        ]);
        let found = between(&before, &after);
        assert_eq!(found.len(), 1);
        assert!((found["ready"] - 1.5).abs() < 1e-9);
    }
}
