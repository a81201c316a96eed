//! Tests of the simulator as its callers meet it.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod reading;
mod runs;
