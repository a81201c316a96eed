//! The controller of `ElastiService`: puts a target to sleep and wakes it, without a lost request.

pub mod calendar;
pub mod clock;
pub mod context;
pub mod controller;
pub mod cut_over;
pub mod dereference;
pub mod fail_open;
pub mod fresh;
pub mod hands;
pub mod ports;
pub mod private_service;
pub mod queue;
pub mod reconcile;
pub mod refusal;
pub mod resolver_slice;
pub mod sight;
pub mod stand_in;
pub mod status;
pub mod triggers;
pub mod turns;
pub mod wake;
pub mod watches;
pub mod window;
pub mod world;
