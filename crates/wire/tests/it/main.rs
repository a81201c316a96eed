//! The data plane as its clients and endpoints see it: real sockets, real clients, and some that are up to no good.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed test may panic anywhere"
)]

mod attack;
mod bed;
mod client;
mod endpoint;
mod headers;
mod held;
mod leaving;
mod matrix;

mod ports;
mod protocol;
mod retried;
mod silence;
mod switched;
mod tunnel;
mod tunnel_end;
mod tunnel_held;
mod tunnel_postgres;
mod tunnel_tls;
mod unreachable;
mod unwelcome;
mod upstream_http2;
mod usage;
