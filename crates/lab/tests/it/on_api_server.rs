//! Tests that need the real programs; `cargo xtask test` skips this module by its name where they cannot be had.

mod eventually;
mod life_and_death;
mod sharing;
mod victim;
