//! What every `weir` process shares, whatever its role: how it logs, how it counts, how it ends, how it reaches a cluster,
//! how many files it may open, and which TLS implementation it uses. The roles themselves are crates of their own; `weir`
//! puts them together.

pub mod cluster;
pub mod exit;
pub mod files;
pub mod internal_port;
pub mod log;
pub mod metrics;
#[cfg(feature = "sentry")]
pub mod sentry;
pub mod tls;
pub mod units;
