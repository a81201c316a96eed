//! What was read before, per node and device, so that counters become rates. A node that joins or leaves changes nothing
//! for the others. [`crate::measure`] asks for rates over a window.

use std::collections::{BTreeMap, VecDeque};

use crate::moment::Moment;

/// The most readings that are kept of one device.
pub const READINGS_LIMIT: usize = 64;

/// Everything that was read.
#[derive(Clone, Debug, Default)]
pub struct History {
    nodes: BTreeMap<String, NodeHistory>,
}

/// What was read on one node.
#[derive(Clone, Debug, Default)]
pub struct NodeHistory {
    uid: String,
    /// When the last answer came, by both clocks: the wall clock's seconds are for people only.
    pub last: Option<(Moment, i64)>,
    devices: BTreeMap<String, Ring>,
}

/// Readings of one device, the oldest first: both counters never fall, and time grows by a second at least.
#[derive(Clone, Debug, Default)]
struct Ring(VecDeque<Reading>);

#[derive(Clone, Copy, Debug, PartialEq)]
struct Reading {
    at: Moment,
    transmit: Option<u64>,
    receive: Option<u64>,
    speed: Option<f64>,
}
