//! The controller of `ElastiService`: puts a target to sleep and wakes it, without a lost request.

pub mod plan;
