//! How long a round takes, as others see it: from its first question to an exporter to the last label that it changed.
//!
//! Some nodes over the whole order in which they are asked, the last one too, send a lot for one round: it makes them
//! unfit, and the next one fit again. A watch sees when the API server has it.

use std::{
    collections::BTreeMap,
    io::BufRead,
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use serde_json::Value;

use super::{INTERVAL, Size, exporters::Exporters, objects};
use crate::bench::scale::api::Api;

/// So often there and back.
const TIMES: usize = 3;
/// A round that takes longer has failed.
const PATIENCE: Duration = Duration::from_mins(2);

/// A node whose labels all say the same.
struct Shown {
    node: String,
    unfit: bool,
    at: Instant,
}

/// What is heard of the probes, each change once.
struct Follower {
    told: Receiver<Shown>,
    /// Changes of a round that is still to be looked at.
    early: Vec<Shown>,
}

/// The seconds of each round.
pub(super) fn time(api: &Api, exporters: &Exporters, size: Size) -> Result<Vec<f64>> {
    let mut shown = Follower {
        told: follow(api, size)?,
        early: Vec::new(),
    };
    let probes = (0..size.nodes).filter(|number| objects::is_probe(*number, size.nodes));
    let probes: Vec<usize> = probes.collect();
    let mut seconds = Vec::new();
    for _ in 0..TIMES {
        exporters.wait_for_a_pause(INTERVAL);
        for probe in &probes {
            exporters.jump(*probe, objects::CAPACITY * 8 / 10 * INTERVAL.as_secs());
        }
        for unfit in [true, false] {
            let began = exporters.next_question(PATIENCE)?;
            let last = shown.until_all(&probes, unfit)?;
            seconds.push(last.duration_since(began).as_secs_f64());
            exporters.wait_for_a_pause(INTERVAL);
        }
    }
    Ok(seconds)
}

impl Follower {
    /// When the last of them had become so.
    fn until_all(&mut self, probes: &[usize], unfit: bool) -> Result<Instant> {
        let mut missing: Vec<String> = probes.iter().copied().map(objects::node_name).collect();
        let deadline = Instant::now() + PATIENCE;
        let mut last = Instant::now();
        let mut early = std::mem::take(&mut self.early).into_iter();
        while !missing.is_empty() {
            let next = if let Some(next) = early.next() {
                next
            } else {
                let left = deadline.saturating_duration_since(Instant::now());
                let next = self.told.recv_timeout(left);
                next.with_context(|| format!("{missing:?} did not become unfit={unfit}"))?
            };
            let at = missing.iter().position(|name| *name == next.node);
            match at.filter(|_| next.unfit == unfit) {
                Some(at) => {
                    missing.swap_remove(at);
                    last = next.at;
                }
                // One that was asked first is already what the next round makes of it.
                None => self.early.push(next),
            }
        }
        self.early.extend(early);
        Ok(last)
    }
}

/// Hears of the probes for as long as somebody listens.
fn follow(api: &Api, size: Size) -> Result<Receiver<Shown>> {
    let selector = format!("labelSelector={}%3Dyes", objects::PROBE.replace('/', "%2F"));
    let list = api.get_json(&format!("/api/v1/nodes?{selector}"))?;
    let version = list["metadata"]["resourceVersion"].as_str();
    let version = version.context("a list of nodes without a version")?;
    let path = format!("/api/v1/nodes?watch=true&{selector}&resourceVersion={version}");
    let lines = api.watch(&path)?.lines();
    // They are fit when this begins: only a change is told.
    let names = list["items"].as_array().into_iter().flatten();
    let names = names.filter_map(|node| node["metadata"]["name"].as_str());
    let mut known: BTreeMap<String, bool> = names.map(|name| (name.to_owned(), false)).collect();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let at = Instant::now();
            let Ok(event) = serde_json::from_str::<Value>(&line) else {
                continue;
            };
            let labels = &event["object"]["metadata"]["labels"];
            let is = |value: &str| (0..size.watches).all(|it| labels[objects::label(it)] == value);
            let unfit = is("true");
            let name = event["object"]["metadata"]["name"].as_str();
            if let Some(node) = name.filter(|_| unfit || is("false")) {
                let node = node.to_owned();
                if known.insert(node.clone(), unfit) == Some(unfit) {
                    continue;
                }
                if tell.send(Shown { node, unfit, at }).is_err() {
                    return;
                }
            }
        }
    });
    Ok(told)
}
