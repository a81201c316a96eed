//! Hold on a real cluster, as it is installed: each behaviour that a release must have, by its name.
//!
//! [`bed`] installs Weir and gives each test a namespace, [`objects`] reads and writes what is in it, [`echo`] is what is put to sleep,
//! [`client`] sends requests straight to the Service's address: tests run where that exists. [`second`] is another installation, for
//! tests that need other settings.

mod bed;
mod client;
mod echo;
mod second;

mod alone;
mod by_hand;
mod deletion;
mod early;
mod fail_open;
mod following;
mod grpc;
mod hpa;
mod keda;
mod limits;
mod local;
mod network;
mod postgres;
mod raw;
mod requests;
mod resolvers;
mod restarts;
mod scoped;
mod services;
mod several;
mod starts;
mod tls;
mod triggers;
mod unreachable;
mod usage;
mod websocket;

use super::{install, objects};
