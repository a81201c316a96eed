//! Hold: the `ElastiService` resource and everything that is named after it.

pub mod defaults;
pub mod names;
mod probe;
mod resource;
mod trigger;
mod validate;

pub use probe::*;
pub use resource::*;
pub use trigger::*;
