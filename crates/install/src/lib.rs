//! What to install: the objects of Weir's parts, as values. `weir manifests` prints them.
//!
//! Nothing here talks to a cluster: [`objects`] is a function of [`Options`]. The names are those of
//! [`weir_api::hold::names::install`], so that the operator and the resolvers find each other without being told.
//!
//! - [`options`]: what can be chosen, and what cannot be;
//! - [`object`]: one object of any kind;
//! - [`hold`]: the operator and the resolvers;
//! - [`place`]: what place needs beside the operator.

pub mod hold;
pub mod object;
pub mod options;
pub mod place;
mod security;

pub use object::Object;
pub use options::{ExporterService, Options, OptionsError, PlaceOptions};

/// All that was chosen, in an order in which it can be applied.
pub fn objects(options: &Options) -> Vec<Object> {
    let mut all = hold::objects(options);
    if let Some(place) = &options.place {
        all.extend(place::objects(options, place));
    }
    all
}
