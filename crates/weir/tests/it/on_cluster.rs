//! What `cargo xtask test --cluster` runs: tests that need nodes, and one that needs a browser, since that stage installs
//! what is missing.

mod browser;
mod hold;
mod install;
mod objects;
mod place;
