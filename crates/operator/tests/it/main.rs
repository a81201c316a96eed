//! Tests of the whole crate: what needs a server, and what needs a cluster.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod on_cluster;
mod triggers;
