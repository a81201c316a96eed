//! Tests of the whole crate: what needs a server, and what needs a cluster's API.
//! Tests of the whole crate: what needs a server, and what needs a cluster.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod admin;
mod exporters;
mod http;
mod kubelets;
mod on_api_server;
mod on_cluster;
mod triggers;
