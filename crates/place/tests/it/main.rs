//! Tests of the core as its callers meet it: from what an exporter says to what nodes carry.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod any_counters;
mod cluster;
mod contract;
mod seeds;
mod story;
