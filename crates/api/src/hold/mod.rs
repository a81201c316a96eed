//! Hold: the `ElastiService` resource and everything that is named after it.

pub mod defaults;
mod in_force;
pub mod names;
mod probe;
mod resource;
mod trigger;
mod validate;

pub use in_force::InForce;
pub use probe::*;
pub use resource::*;
pub use trigger::*;
