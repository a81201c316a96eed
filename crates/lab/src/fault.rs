//! Ways to break a [`Cluster`], each of which really happens and really ends.
//!
//! A fault that lasts is a value: it ends when [`dropped`](Drop), however the test ends, or when told to, which also
//! reports whether it could be ended. What a killed test leaves broken goes with the cluster.
//!
//! - [`process`]: a part is killed, paused, or restarted;
//! - [`node`]: a node is cordoned or drained;
//! - [`link`]: a node is cut off, loses packets, or is not reached on a port;
//! - [`shape`]: a node's cable carries less;
//! - [`disk`]: a part's disk is full;
//! - [`api`]: an API server that answers 429 or 500, or closes watches.
//!
//! All of it blocks for as long as it takes, mostly milliseconds: an async test may call it as it is.

pub mod api;
pub mod disk;
pub mod link;
pub mod node;
pub mod process;
pub mod shape;

pub use self::{
    api::FaultyApi,
    disk::SmallDisk,
    link::{Cut, Direction},
    node::Cordoned,
    process::Paused,
    shape::Shaped,
};

#[allow(unused_imports, reason = "for the documentation")]
use crate::cluster::Cluster;
