//! Who sends: pods that run the lab's load generator, half of them with a new connection for each request and half with
//! kept ones; of a hundred requests one has a body of 1 MiB. Every body must come back as it was sent.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};

use super::{site::off_the_node_to_lose, target::Target};
use crate::{
    kube,
    load::report::Report,
    site::{APP_IMAGE, Site},
};

/// One request of so many is large.
const LARGE_EVERY: u32 = 100;
const LARGE_BYTES: u32 = 1 << 20;
const SMALL_BYTES: u32 = 200;
/// Longer than any wake: a client that gives up says nothing about when it would have been answered.
const TIME_OUT: Duration = Duration::from_mins(1);
/// So long may a pod take to start, or its log to be readable.
const PATIENCE: Duration = Duration::from_mins(1);
const GLANCE: Duration = Duration::from_secs(1);

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Client {
    name: &'static str,
    new_connections: bool,
    body_bytes: u32,
    rate: u32,
}

/// Clients that send.
pub(super) struct Clients<'a> {
    site: &'a Site,
    target: &'a Target,
    names: Vec<String>,
    until: Instant,
}

/// Together they send at this rate.
fn plan(rate: u32) -> [Client; 4] {
    let large = (rate / LARGE_EVERY / 2).max(1);
    let small = rate.saturating_sub(2 * large);
    let client = |name, new_connections, body_bytes, rate| Client {
        name,
        new_connections,
        body_bytes,
        rate,
    };
    [
        client("new", true, SMALL_BYTES, small / 2),
        client("kept", false, SMALL_BYTES, small - small / 2),
        client("new-large", true, LARGE_BYTES, large),
        client("kept-large", false, LARGE_BYTES, large),
    ]
}

impl<'a> Clients<'a> {
    /// Starts them; returns when all of them send.
    pub(super) fn start(
        site: &'a Site,
        target: &'a Target,
        rate: u32,
        duration: Duration,
    ) -> Result<Self> {
        let round = format!("{:.0}", kube::now() * 10.0);
        let plan = plan(rate);
        let named: Vec<(String, &Client)> = plan
            .iter()
            .map(|client| (format!("{}-{round}", client.name), client))
            .collect();
        let pods: Vec<Value> = named
            .iter()
            .map(|(name, client)| client.pod(name, target, duration))
            .collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": pods});
        site.cluster.apply(&list.to_string())?;
        let mut clients = Self {
            site,
            target,
            names: named.into_iter().map(|(name, _)| name).collect(),
            until: Instant::now(),
        };
        kube::until(PATIENCE, "all clients send", || {
            let phases = clients.phases()?;
            ensure!(phases.iter().all(|it| it == "Running"), "{phases:?}");
            Ok(())
        })?;
        clients.until = Instant::now() + duration;
        Ok(clients)
    }

    /// How long they will go on.
    pub(super) fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Waits until they are done; what they counted.
    pub(super) fn finish(self) -> Result<Vec<Report>> {
        let deadline = self.until + TIME_OUT + PATIENCE;
        while !self
            .phases()?
            .iter()
            .all(|phase| phase == "Succeeded" || phase == "Failed")
        {
            if Instant::now() > deadline {
                bail!("the clients do not end: {:?}", self.phases()?);
            }
            thread::sleep(GLANCE);
        }
        let namespace = &self.target.namespace;
        let log = |name: &String| {
            let log = kube::run(&self.site.cluster, &["-n", namespace, "logs", name])?;
            Report::in_log(&log)
        };
        self.names.iter().map(log).collect()
    }

    fn phases(&self) -> Result<Vec<String>> {
        let mut arguments = vec!["-n", &self.target.namespace, "pods"];
        arguments.extend(self.names.iter().map(String::as_str));
        let pods = kube::get(&self.site.cluster, &arguments)?;
        let items = pods["items"].as_array().into_iter().flatten();
        Ok(items
            .map(|pod| pod["status"]["phase"].as_str().unwrap_or("?").to_owned())
            .collect())
    }
}

impl Client {
    /// Enough connections for what comes while the target wakes.
    fn connections(&self) -> u32 {
        (self.rate * 20).clamp(50, 2000)
    }

    fn pod(&self, name: &str, target: &Target, duration: Duration) -> Value {
        let mut arguments = vec!["load".to_owned(), target.url()];
        for (flag, value) in [
            ("rate", self.rate.to_string()),
            ("duration", format!("{}s", duration.as_secs())),
            ("connections", self.connections().to_string()),
            ("time-out", format!("{}s", TIME_OUT.as_secs())),
            ("body-bytes", self.body_bytes.to_string()),
            ("threads", "1".to_owned()),
            ("json", "-".to_owned()),
        ] {
            arguments.extend([format!("--{flag}"), value]);
        }
        if self.new_connections {
            arguments.push("--new-connections".to_owned());
        }
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": target.namespace, "labels": {"app": "client"}},
            "spec": {
                "restartPolicy": "Never",
                "affinity": off_the_node_to_lose(),
                "containers": [{
                    "name": "load",
                    "image": APP_IMAGE,
                    "imagePullPolicy": "Never",
                    "args": arguments,
                }],
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn together_they_send_as_many_as_asked_for_and_one_in_a_hundred_is_large() {
        for rate in [4, 50, 200, 201, 1000] {
            let plan = plan(rate);
            assert_eq!(plan.iter().map(|it| it.rate).sum::<u32>(), rate);
            assert!(plan.iter().all(|it| it.rate > 0), "{plan:?}");
        }
        let large = |it: &&Client| it.body_bytes == LARGE_BYTES;
        let plan = plan(200);
        assert_eq!(plan.iter().filter(large).map(|it| it.rate).sum::<u32>(), 2);
        assert_eq!(
            plan.iter()
                .filter(|it| it.new_connections)
                .map(|it| it.rate)
                .sum::<u32>(),
            100
        );
    }
}
