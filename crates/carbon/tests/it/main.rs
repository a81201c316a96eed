//! Tests of the core as its callers meet it.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod bad_input;
mod budget;
mod golden;
mod golden_runs;
mod prove;
mod random_runs;
