//! Tests of the whole crate: what needs a cluster's API.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod on_api_server;
