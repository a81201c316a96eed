//! The controller of `ElastiService`: puts a target to sleep and wakes it, without a lost request.

pub mod cut_over;
pub mod plan;
pub mod sight;
pub mod triggers;
pub mod window;
pub mod world;
