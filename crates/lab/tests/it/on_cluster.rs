//! Tests that need nodes; `cargo xtask test --cluster` runs this module by its name, inside a cluster.

mod add_ons;
mod faults;
mod life_and_death;
mod nodes;
mod probes;
#[cfg(feature = "app")]
mod whole;
