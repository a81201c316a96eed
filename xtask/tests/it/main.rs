//! `cargo xtask` as a developer runs it, and as it ends when it is killed.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod on_api_server;
