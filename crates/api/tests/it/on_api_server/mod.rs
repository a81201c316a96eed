//! The resources on a real API server. `cargo xtask test` skips this module, loudly, where there is
//! none to be had.

mod accepted;
mod mutants;
mod objects;
mod older;
mod refused;
mod upgrade;
