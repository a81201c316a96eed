//! The lab tested on itself: whoever uses a server, however they end, nothing is left behind.

#![allow(clippy::unwrap_used, reason = "a failed test may panic anywhere")]

mod on_api_server;
mod refusals;
