//! What an exporter said, as far as it matters here: bytes sent and received and the speed of each interface, from the
//! text format of Prometheus. Tolerant, since one odd line must not lose a node, and bounded, since what answers on a
//! node's port may be anything. What becomes of the numbers is up to [`crate::history`].

use std::collections::BTreeMap;

use thiserror::Error;

/// The most bytes that an answer may have; the caller stops reading there.
pub const BODY_LIMIT: usize = 8 << 20;
/// The most interfaces that are read; what comes behind them is left out and counted.
pub const INTERFACES_LIMIT: usize = 4096;
/// The longest name of an interface that is read; Linux has 15 characters.
pub const NAME_LIMIT: usize = 64;

/// What was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scrape {
    /// By name of the interface.
    pub interfaces: BTreeMap<String, Counters>,
    /// Lines about interfaces that could not be used.
    pub bad_lines: usize,
    /// Lines about interfaces above [`INTERFACES_LIMIT`].
    pub left_out: usize,
}

/// One interface.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counters {
    /// Bytes sent since some start.
    pub transmit: Option<u64>,
    /// Bytes received since some start.
    pub receive: Option<u64>,
    /// Bytes per second as the interface reports them; below zero where it has none.
    pub speed: Option<f64>,
}

/// Why an answer says nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ExpositionError {
    /// Longer than [`BODY_LIMIT`].
    #[error(
        "the answer is longer than {BODY_LIMIT} bytes; ask for the collectors netdev and netclass alone"
    )]
    TooLong,
    /// A page for people.
    #[error("the answer is a web page; check the path and the port of the exporter")]
    WebPage,
    /// No counter of any interface.
    #[error("the answer has no network counters; switch the exporter's netdev collector on")]
    NoCounters,
}
