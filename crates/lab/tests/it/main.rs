//! The lab tested on itself: its servers leave nothing behind, its images run, its load generator counts right.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed test may panic anywhere"
)]

#[cfg(feature = "app")]
mod app;
#[cfg(feature = "app")]
mod client;
mod image;
#[cfg(feature = "app")]
mod load;
mod on_api_server;
mod on_cluster;
mod refusals;
