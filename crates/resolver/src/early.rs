//! Pods that are ready before the kubelet says so: while requests are held, pods that start are asked by their own probes.
//!
//! - [`machine`] decides who is asked when and who is ready, without I/O;
//! - [`progress`] is how far one container is, [`budget`] how much may be asked;
//! - [`ask`] sends one probe.

pub mod ask;
mod budget;
pub mod machine;
mod progress;
