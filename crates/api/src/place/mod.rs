//! Place: the `TrafficWatch` resource and everything that is named after it.

pub mod defaults;
pub mod names;
mod resource;
mod validate;

pub use resource::*;
