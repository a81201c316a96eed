//! How long a round takes, as others see it: from its first question to an exporter to the last label that it changed.
//!
//! Some nodes over the whole order in which they are asked, the last one too, send a lot for one round: it makes them
//! unfit, and the next one fit again. A watch sees when the API server has it.

use std::{
    io::BufRead,
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use serde_json::Value;

use super::{INTERVAL, Size, api::Api, exporters::Exporters, objects};

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

/// The seconds of each round.
pub(super) fn time(api: &Api, exporters: &Exporters, size: Size) -> Result<Vec<f64>> {
    let shown = follow(api, size)?;
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
            let last = until_all(&shown, &probes, unfit)?;
            seconds.push(last.duration_since(began).as_secs_f64());
            exporters.wait_for_a_pause(INTERVAL);
        }
    }
    Ok(seconds)
}

fn until_all(shown: &Receiver<Shown>, probes: &[usize], unfit: bool) -> Result<Instant> {
    let mut missing: Vec<String> = probes.iter().copied().map(objects::node_name).collect();
    let deadline = Instant::now() + PATIENCE;
    let mut last = Instant::now();
    while !missing.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        let next = shown.recv_timeout(left);
        let next = next.with_context(|| format!("{missing:?} did not become unfit={unfit}"))?;
        if next.unfit == unfit {
            let before = missing.len();
            missing.retain(|name| *name != next.node);
            if missing.len() < before {
                last = next.at;
            }
        }
    }
    Ok(last)
}

/// Hears of the probes for as long as somebody listens.
fn follow(api: &Api, size: Size) -> Result<Receiver<Shown>> {
    let selector = format!("labelSelector={}%3Dyes", objects::PROBE.replace('/', "%2F"));
    let list = api.get_json(&format!("/api/v1/nodes?{selector}"))?;
    let version = list["metadata"]["resourceVersion"].as_str();
    let version = version.context("a list of nodes without a version")?;
    let path = format!("/api/v1/nodes?watch=true&{selector}&resourceVersion={version}");
    let lines = api.watch(&path)?.lines();
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
                if tell.send(Shown { node, unfit, at }).is_err() {
                    return;
                }
            }
        }
    });
    Ok(told)
}
