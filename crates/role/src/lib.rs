//! What every `weir` process shares, whatever its role: how it logs, how it ends, and which TLS
//! implementation it uses. The roles themselves are crates of their own; `weir` puts them together.

pub mod exit;
pub mod log;
pub mod tls;
