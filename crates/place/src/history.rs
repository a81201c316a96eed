//! What was read before, per node and device, so that counters become rates. A node that joins or leaves changes nothing
//! for the others. [`crate::exposition`] gives the counters, [`crate::measure`] asks for rates over a window; one device's
//! readings are in `ring`.

mod ring;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

use self::ring::{Reading, Ring};
use crate::{exposition::Scrape, moment::Moment};

pub use self::ring::{READINGS_LIMIT, Rates};

/// The most interfaces of a node that get a history: what comes behind them by name counts as if no watch counted it. No
/// host has as many of its own; a node that lies has any number.
pub const DEVICES_LIMIT: usize = 128;
/// The most names of interfaces without a history that are kept per node, to be shown.
pub const OTHERS_LIMIT: usize = 64;

/// Everything that was read. As large as the cluster: whoever lists the nodes calls [`History::retain`].
#[derive(Clone, Debug, Default)]
pub struct History {
    nodes: BTreeMap<String, NodeHistory>,
}

/// What was read on one node.
#[derive(Clone, Debug, Default)]
pub struct NodeHistory {
    uid: String,
    /// When the last answer came.
    last: Moment,
    /// The same by the wall clock, in seconds since 1970: for people only.
    time: i64,
    devices: BTreeMap<String, Ring>,
    /// Interfaces that no watch counts.
    others: Vec<String>,
}

/// An answer of a node's exporter.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The node's name.
    pub node: &'a str,
    /// A node of the same name with another one is another node, and its counters are others.
    pub uid: &'a str,
    /// When it came.
    pub at: Moment,
    /// The same by the wall clock, in seconds since 1970.
    pub time: i64,
    /// What it said.
    pub scrape: &'a Scrape,
}

/// Drops what [`History::observe`] would not keep: a liar's answer, which may wait to be taken in with those of many
/// others, is then no larger than an honest one.
pub fn cut_down(scrape: &mut Scrape, counts: impl Fn(&str) -> bool) {
    let (mut devices, mut others) = (DEVICES_LIMIT, OTHERS_LIMIT);
    scrape.interfaces.retain(|name, _| {
        let room = if devices > 0 && counts(name) {
            &mut devices
        } else {
            &mut others
        };
        let has_room = *room > 0;
        *room = room.saturating_sub(1);
        has_room
    });
}

impl History {
    /// Takes an answer in. Only interfaces that `counts` names get a history, and only as far back as `longest`, the
    /// longest window of all watches: a node may have a thousand interfaces that nobody counts.
    pub fn observe(
        &mut self,
        answer: &Answer<'_>,
        longest: Duration,
        counts: impl Fn(&str) -> bool,
    ) {
        let node = self.nodes.entry(answer.node.to_owned()).or_default();
        if node.uid != answer.uid {
            *node = NodeHistory::default();
            answer.uid.clone_into(&mut node.uid);
        }
        node.last = answer.at;
        node.time = answer.time;
        node.others.clear();
        let interfaces = &answer.scrape.interfaces;
        // A device that left and comes back may be another one.
        node.devices.retain(|name, _| interfaces.contains_key(name));
        let mut room = DEVICES_LIMIT;
        for (name, counters) in interfaces {
            if room > 0 && counts(name) {
                room -= 1;
                let reading = Reading::of(answer.at, counters);
                let ring = node.devices.entry(name.clone()).or_default();
                ring.push(reading, longest);
            } else {
                node.devices.remove(name);
                if node.others.len() < OTHERS_LIMIT {
                    node.others.push(name.clone());
                }
            }
        }
    }

    /// Forgets nodes that left the cluster.
    pub fn retain(&mut self, stays: impl Fn(&str) -> bool) {
        self.nodes.retain(|name, _| stays(name));
    }

    /// What was read on this node, if anything.
    pub fn of(&self, node: &str, uid: &str) -> Option<&NodeHistory> {
        self.nodes.get(node).filter(|history| history.uid == uid)
    }
}

impl NodeHistory {
    /// When the last answer came.
    pub const fn last(&self) -> Moment {
        self.last
    }

    /// The same by the wall clock, in seconds since 1970.
    pub const fn time(&self) -> i64 {
        self.time
    }

    /// The interfaces that some watch counts.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        self.devices.keys().map(String::as_str)
    }

    /// Interfaces that no watch counts, the first of them.
    pub fn others(&self) -> &[String] {
        &self.others
    }

    /// What the device sent so far.
    pub fn transmit_total(&self, device: &str) -> Option<u64> {
        self.devices.get(device)?.last()?.transmit
    }

    /// The speed that the device reports, in bytes per second.
    pub fn speed(&self, device: &str) -> Option<f64> {
        self.devices.get(device)?.last()?.speed
    }

    /// The device's traffic over this window, or over a somewhat longer one, but never over more than `longest`.
    pub fn rates(&self, device: &str, window: Duration, longest: Duration) -> Option<Rates> {
        self.devices.get(device)?.rates(window, longest)
    }
}
