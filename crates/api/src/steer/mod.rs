//! Steer: the `TrafficSchedule` resource and everything that is named after it.

mod autoscaling;
pub mod defaults;
pub mod names;
mod provider;
mod resource;
mod validate;

pub use autoscaling::{RouterAutoscaling, WorkerAutoscaling};
pub use provider::*;
pub use resource::*;
