//! The load generator against servers that fail on purpose: every request is counted as what it was.

mod faults;
mod pace;

use weir_lab::load::{Protocol, Report};

const ALL_PROTOCOLS: [Protocol; 3] = [
    Protocol::KeepAlive,
    Protocol::NewConnections,
    Protocol::H2c { streams: 4 },
];

/// Everything ended well, and nothing is missing.
fn is_perfect(report: &Report) -> bool {
    report.adds_up() && report.outcomes.ok == report.intended
}
