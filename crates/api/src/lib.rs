//! Weir's vocabulary: the three resources, what makes one valid, and every name that is derived
//! from them.
//!
//! | verb | resource | module |
//! |---|---|---|
//! | hold | `ElastiService` | [`hold`] |
//! | steer | `TrafficSchedule` | [`steer`] |
//! | place | `TrafficWatch` | [`place`] |
//!
//! Each of the three has the same four files: `resource` (the types, and through them the schema),
//! `validate` (what the schema cannot say, as [`finding`]s), `names` (labels, annotations, derived object names)
//! and `defaults` (ports, limits, default values). [`form`] parses the odd forms in which people
//! write values, [`dns`] knows what Kubernetes accepts as a name, and [`crd`] puts the schemas
//! together.
//!
//! Nothing here does I/O: values in, values out. Whoever talks to a cluster depends on this crate,
//! never the other way round.

pub mod crd;
pub mod dns;
pub mod finding;
pub mod form;
pub mod hold;
mod lenient;
pub mod place;
mod rule;
pub mod steer;
