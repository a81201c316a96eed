//! Place on nodes whose network interfaces carry a known rate: what `e2e place` and `bench place` share.
//!
//! - [`bed`]: the cluster, place installed in it, interfaces that are shaped;
//! - [`objects`]: the service that is placed, its TrafficWatch, and who fills a node's interface;
//! - [`seen`]: what happens to nodes, pods and the watch's status, and when;
//! - [`nic`]: the interface's own counters, read beside Weir;
//! - [`clients`]: who asks the service, and counts.

pub(crate) mod bed;
pub(crate) mod clients;
pub(crate) mod nic;
pub(crate) mod objects;
pub(crate) mod seen;
