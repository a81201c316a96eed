//! How full a node's network is to one watch: a figure per interface that counts, the node's figure from the worst of
//! them, or why there is none. [`crate::judge`] decides what follows.

use std::time::Duration;

use crate::{capacity::Capacity, interfaces::Counted, moment::Moment};

/// What is known of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The node's figure, or why there is none.
    pub figure: Result<Figure, Unknown>,
    /// Every interface that the exporter named, counted or not.
    pub interfaces: Vec<Interface>,
    /// Bytes sent, over all interfaces that count.
    pub transmit_total: u64,
    /// Wall-clock seconds of the last answer; for people only.
    pub time: Option<i64>,
}

/// How full a node is.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Use of the worst interface's capacity; finite, never below zero.
    pub percent: f64,
    /// Which interface that is.
    pub interface: String,
    /// When the window ended.
    pub at: Moment,
}

/// One interface of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Whether it counts.
    pub counted: Counted,
    /// What it can carry, if anybody knows.
    pub capacity: Option<Capacity>,
    /// Use of that, if a window is full.
    pub percent: Option<f64>,
}

/// Why there is no figure, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// Why.
    pub reason: Reason,
    /// How old what is known is; none if nothing is.
    pub age: Option<Duration>,
}

/// Why there is no figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// No answer yet.
    NeverAnswered,
    /// The last answer is older than `maxSampleAge`.
    TooOld,
    /// No full window yet, or the counters began anew.
    WindowTooShort,
    /// None of the interfaces counts.
    NoInterface,
    /// Nobody says what the interfaces that count can carry.
    NoCapacity,
}
