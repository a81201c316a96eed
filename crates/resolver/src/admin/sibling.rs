//! The other resolver of this pod. Both listen on the same ports, and the kernel deals connections out: when one is killed,
//! nobody who comes after that is refused. To the operator and to Prometheus the two are one, so what one is asked it
//! answers for both.

use std::{
    collections::HashMap,
    mem,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::time::timeout;
use weir_api::hold::names::http::RESOLVER_CACHE_STATUS_PATH;

use super::{KnownService, ServiceUsage, Unreachable};

/// It is on the same machine: what takes longer is as good as nothing, and the operator waits.
const PATIENCE: Duration = Duration::from_millis(300);
/// As long as the longest list of services.
const ANSWER_LIMIT: usize = 32 << 20;
const IDLE: Duration = Duration::from_secs(5);

/// The way to it.
#[derive(Debug)]
pub struct Sibling {
    client: Client<HttpConnector, Empty<Bytes>>,
    address: SocketAddr,
    known: Mutex<Known>,
}

/// What is remembered from one question to the next.
#[derive(Debug)]
struct Known {
    /// The number of its list, and the list.
    list: Option<(u64, Vec<KnownService>)>,
    /// Our number and its, and the number that both have together.
    told: Option<((u64, Option<u64>), u64)>,
    /// The next such number.
    next: u64,
}

/// What it says of itself.
#[derive(Deserialize)]
struct Status {
    generation: u64,
    synced: bool,
    draining: bool,
    #[serde(default)]
    services: Option<Vec<KnownService>>,
    #[serde(default)]
    unreachable: Vec<Unreachable>,
}

/// What both are together.
pub(super) struct Both {
    /// Another number whenever what either of them knows is another.
    pub(super) generation: u64,
    /// Its list, where it is ready to serve.
    pub(super) theirs: Option<Vec<KnownService>>,
    /// To what it cannot connect, likewise.
    pub(super) unreachable: Vec<Unreachable>,
}

impl Sibling {
    /// The one with its internal port there. `first` is the first number to be told.
    pub fn new(address: SocketAddr, first: u64) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(PATIENCE));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(connector);
        let known = Known {
            list: None,
            told: None,
            next: first,
        };
        Self {
            client,
            address,
            known: Mutex::new(known),
        }
    }

    /// What it answers at this path when asked for itself alone; nothing if it does not answer.
    pub(super) async fn text(&self, path_and_query: &str) -> Option<String> {
        let body = timeout(PATIENCE, self.get(path_and_query)).await.ok()??;
        String::from_utf8(body.into()).ok()
    }

    /// The same as a value.
    pub(super) async fn json<T: DeserializeOwned>(&self, path_and_query: &str) -> Option<T> {
        serde_json::from_str(&self.text(path_and_query).await?).ok()
    }

    /// What it knows, beside our own list of this number.
    pub(super) async fn beside(&self, ours: u64) -> Both {
        let unless = self.lock().list.as_ref().map(|(generation, _)| *generation);
        let unless = unless.map_or_else(String::new, |unless| format!("&unless={unless}"));
        let path = format!("{RESOLVER_CACHE_STATUS_PATH}?alone=true{unless}");
        let status: Option<Status> = self.json(&path).await;
        let mut known = self.lock();
        // One that is about to end closes its ports, and one that has just begun has not opened them.
        let mut status = status.filter(|status| status.synced && !status.draining);
        let generation = status.as_ref().map(|status| status.generation);
        let unreachable = status.as_mut().map(|it| mem::take(&mut it.unreachable));
        if let Some(Status {
            generation,
            services: Some(services),
            ..
        }) = status
        {
            known.list = Some((generation, services));
        }
        let list = known.list.as_ref();
        let theirs = list.filter(|(number, _)| Some(*number) == generation);
        let theirs = theirs.map(|(_, services)| services.clone());
        Both {
            generation: known.number((ours, generation)),
            theirs,
            unreachable: unreachable.unwrap_or_default(),
        }
    }

    async fn get(&self, path_and_query: &str) -> Option<Bytes> {
        let uri = Uri::builder()
            .scheme("http")
            .authority(self.address.to_string())
            .path_and_query(path_and_query)
            .build()
            .ok()?;
        let request = Request::get(uri).body(Empty::new()).ok()?;
        let response = self.client.request(request).await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        let body = Limited::new(response.into_body(), ANSWER_LIMIT);
        Some(body.collect().await.ok()?.to_bytes())
    }

    /// Never kept across an await.
    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn number(&mut self, pair: (u64, Option<u64>)) -> u64 {
        match self.told {
            Some((told, number)) if told == pair => number,
            _ => {
                let number = self.next;
                self.next += 1;
                self.told = Some((pair, number));
                number
            }
        }
    }
}

/// What both know, with the ports that both have bound. A connection may come to either.
pub(super) fn known_to_both(ours: Vec<KnownService>, theirs: &[KnownService]) -> Vec<KnownService> {
    let theirs: HashMap<_, _> = theirs
        .iter()
        .map(|service| ((&*service.namespace, &*service.service), &service.ports))
        .collect();
    let mut both = ours;
    both.retain_mut(|service| {
        let bound = theirs.get(&(&*service.namespace, &*service.service));
        if let Some(bound) = bound {
            service.ports.retain(|port| bound.contains(port));
        }
        bound.is_some()
    });
    both
}

/// To what one of them or both cannot connect, once for each service.
pub(super) fn unreachable_to_either(
    ours: Vec<Unreachable>,
    theirs: Vec<Unreachable>,
) -> Vec<Unreachable> {
    let mut either = ours;
    either.extend(theirs);
    either.sort_unstable();
    either.dedup_by(|next, kept| {
        (&next.namespace, &next.service) == (&kept.namespace, &kept.service)
    });
    either
}

/// How much services are used through both. What only one of them counts is about to be told to the other, and counted since
/// then.
pub(super) fn used_through_both(
    ours: Vec<ServiceUsage>,
    theirs: &[ServiceUsage],
) -> Vec<ServiceUsage> {
    let name = |usage: &ServiceUsage| (Arc::clone(&usage.namespace), Arc::clone(&usage.service));
    let theirs: HashMap<_, _> = theirs.iter().map(|usage| (name(usage), usage)).collect();
    let mut both = ours;
    for usage in &mut both {
        match theirs.get(&name(usage)) {
            Some(other) => usage.also(other),
            None => usage.counted_seconds = 0.0,
        }
    }
    both
}

/// The metrics of both: what the other counts has one label more.
pub(super) fn merge_metrics(ours: &str, theirs: &str) -> String {
    let mut samples: std::collections::BTreeMap<&str, Vec<String>> =
        std::collections::BTreeMap::new();
    let mut heads: Vec<(&str, Vec<&str>)> = Vec::new();
    for (family, line) in families(theirs) {
        if line.starts_with('#') {
            match heads.last_mut() {
                Some((last, lines)) if *last == family => lines.push(line),
                _ => heads.push((family, vec![line])),
            }
        } else {
            samples.entry(family).or_default().push(with_label(line));
        }
    }
    let mut text = String::with_capacity(ours.len() + theirs.len() * 2);
    let mut last = None;
    for (family, line) in families(ours) {
        if let Some(ended) = last
            && ended != family
        {
            text.extend(samples.remove(ended).unwrap_or_default());
        }
        last = Some(family);
        text.push_str(line);
        text.push('\n');
    }
    text.extend(
        last.and_then(|ended| samples.remove(ended))
            .unwrap_or_default(),
    );
    for (family, lines) in heads {
        if let Some(samples) = samples.remove(family) {
            text.extend(lines.iter().map(|line| format!("{line}\n")));
            text.extend(samples);
        }
    }
    text
}

/// Each line with the family that it belongs to: what the last `# HELP` or `# TYPE` names.
fn families(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut family = "";
    text.lines()
        .filter(|line| !line.is_empty())
        .map(move |line| {
            if let Some(rest) = line.strip_prefix("# ")
                && let Some(name) = rest.split(' ').nth(1)
            {
                family = name;
            }
            (family, line)
        })
}

fn with_label(sample: &str) -> String {
    const LABEL: &str = "process=\"sibling\"";
    let end = sample.find(['{', ' ']).unwrap_or(sample.len());
    let (name, rest) = sample.split_at(end);
    match rest.strip_prefix('{') {
        Some(rest) if rest.starts_with('}') => format!("{name}{{{LABEL}{rest}\n"),
        Some(rest) => format!("{name}{{{LABEL},{rest}\n"),
        None => format!("{name}{{{LABEL}}}{rest}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::BoundPort;

    fn service(name: &str, ports: &[u16]) -> KnownService {
        let ports = ports.iter().map(|port| BoundPort {
            name: "http".into(),
            resolver_port: *port,
        });
        KnownService {
            namespace: "shop".into(),
            service: name.into(),
            ports: ports.collect(),
        }
    }

    #[test]
    fn only_what_both_have_bound_is_known_to_both() {
        let ours = vec![service("a", &[1, 2]), service("b", &[3]), service("c", &[])];
        let theirs = [service("a", &[2, 9]), service("c", &[4])];
        let both = [service("a", &[2]), service("c", &[])];
        assert_eq!(known_to_both(ours, &theirs), both);
    }

    #[test]
    fn what_either_cannot_reach_is_told_once_for_each_service() {
        let one = |service: &str, port: u16| Unreachable {
            namespace: "shop".into(),
            service: service.into(),
            endpoint: ([192, 0, 2, 1], port).into(),
        };
        let ours = vec![one("a", 2), one("c", 1)];
        let theirs = vec![one("a", 1), one("b", 1)];
        let either = [one("a", 1), one("b", 1), one("c", 1)];
        assert_eq!(unreachable_to_either(ours.clone(), theirs), either);
        assert_eq!(unreachable_to_either(ours.clone(), Vec::new()), ours);
    }

    #[test]
    fn a_service_is_used_if_either_is_used_for_it() {
        let usage = |service: &str, open, ended, counted| ServiceUsage {
            namespace: "shop".into(),
            service: service.into(),
            open,
            ended_seconds_ago: ended,
            counted_seconds: counted,
        };
        let ours = vec![
            usage("a", 1, None, 9.0),
            usage("b", 0, Some(5.0), 9.0),
            usage("c", 4, None, 9.0),
        ];
        let theirs = [
            usage("b", 2, Some(3.0), 10.0),
            usage("a", 0, Some(7.0), 8.0),
            usage("d", 0, None, 8.0),
        ];
        let both = [
            usage("a", 1, Some(7.0), 8.0),
            usage("b", 2, Some(3.0), 9.0),
            usage("c", 4, None, 0.0),
        ];
        assert_eq!(used_through_both(ours, &theirs), both);
    }

    #[test]
    fn the_number_of_both_is_another_when_either_is() {
        let mut known = Known {
            list: None,
            told: None,
            next: 5,
        };
        let mut seen = Vec::new();
        for pair in [(1, None), (1, None), (1, Some(1)), (2, Some(1)), (2, None)] {
            seen.push(known.number(pair));
        }
        assert_eq!(seen, [5, 5, 6, 7, 8]);
    }

    #[test]
    fn metrics_of_both_stand_together_by_family() {
        let ours = "# HELP a x\n# TYPE a counter\na{s=\"1\"} 2\n# TYPE b gauge\nb 3\n";
        let theirs = "# HELP a x\n# TYPE a counter\na{s=\"1\"} 5\na{} 6\n# TYPE b gauge\nb 7\n# TYPE c gauge\nc 8\n";
        let both = "# HELP a x\n# TYPE a counter\na{s=\"1\"} 2\n\
            a{process=\"sibling\",s=\"1\"} 5\na{process=\"sibling\"} 6\n\
            # TYPE b gauge\nb 3\nb{process=\"sibling\"} 7\n\
            # TYPE c gauge\nc{process=\"sibling\"} 8\n";
        assert_eq!(merge_metrics(ours, theirs), both);
        assert_eq!(merge_metrics(ours, ""), ours);
    }
}
