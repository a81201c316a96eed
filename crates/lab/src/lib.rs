//! Test support: a real Kubernetes API server on this machine, a real cluster, and what they are built from.
//!
//! Tests ask [`api_server()`] for the shared server and take a [`Namespace`] of their own on it; a test
//! that changes cluster-wide things (CRDs, say) asks [`fresh_api_server`] for one to itself. Nobody
//! stops a server by hand: it ends when its last user has gone, however that user ended.
//!
//! Tests that need nodes are run inside a [`mod@cluster`] and ask [`cluster()`] for it; [`fault`] breaks it.
//!
//! The modules, from the ground up:
//!
//! - [`cache`]: where things are on disk;
//! - [`tools`]: which programs there are and how they are built from Go modules;
//! - [`pki`], [`ports`], [`control_plane`]: what a server is started with;
//! - [`marks`], [`users`], [`keeper`]: who runs, who uses it, and who stops it;
//! - [`server`]: takes the running server or starts one;
//! - [`mod@cluster`], [`fault`]: a cluster with nodes and add-ons, and ways to break it;
//! - [`api_server()`], [`cluster()`], [`Namespace`] and [`eventually()`] (feature `client`): what tests call;
//! - [`image`]: programs as OCI images, without Docker;
//! - `deaf`: a server to which no connection goes through;
//! - [`load`] (feature `load`): a load generator that counts every request;
//! - [`app`] (feature `app`): a server for it to talk to, which does all that a server can do.

pub mod cache;
pub mod cluster;
pub mod control_plane;
pub mod fault;
pub mod image;
pub mod keeper;
pub mod marks;
pub mod pki;
pub mod ports;
pub mod server;
pub mod state;
pub mod tools;
pub mod users;

mod random;

#[cfg(feature = "app")]
pub mod app;
#[cfg(any(feature = "client", feature = "load"))]
pub mod deaf;
#[cfg(feature = "load")]
pub mod load;

#[cfg(feature = "client")]
mod api_server;
#[cfg(feature = "client")]
mod eventually;
#[cfg(feature = "client")]
mod namespace;
#[cfg(feature = "client")]
mod story;
#[cfg(feature = "client")]
mod test_cluster;

#[cfg(feature = "client")]
pub use api_server::{ApiServer, api_server, fresh_api_server};
#[cfg(feature = "client")]
pub use eventually::eventually;
#[cfg(feature = "client")]
pub use namespace::Namespace;
#[cfg(feature = "client")]
pub use test_cluster::{TestCluster, cluster};
