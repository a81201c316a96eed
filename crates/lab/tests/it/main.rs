//! The lab tested on itself: whoever uses a server, however they end, nothing is left behind.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed test may panic anywhere"
)]

mod on_api_server;
mod on_cluster;
mod refusals;
