//! What to install: the objects of Weir's parts, as values. `weir manifests` prints them.
//!
//! Nothing here talks to a cluster: [`hold::objects`] is a function of [`Options`]. The names are those of
//! [`weir_api::hold::names::install`], so that the operator and the resolvers find each other without being told.
//!
//! - [`options`]: what can be chosen, and what cannot be;
//! - [`object`]: one object of any kind;
//! - [`hold`]: the operator and the resolvers.

pub mod hold;
pub mod object;
pub mod options;

pub use object::Object;
pub use options::{Options, OptionsError};
