//! The controller of `TrafficWatch`: measures every node once for all watches, marks those whose network is full, and
//! keeps each watch's Deployment off them.
//!
//! Everything hangs together here: one node's label counts for all who look at it, and one apply carries the keys of all
//! watches. So there is no queue of objects: [`controller`] hears what happened and looks at all of it at once, in
//! [`look`], in the same steps each time: read what is known ([`world`]), decide ([`mind`], on `weir_place`), write
//! ([`hands`]), move what stays where it should not be ([`moves`]), tell ([`status`]). Beside all that [`asking`] asks the
//! nodes by way of [`exporters`], when [`schedule`] says.

pub mod asking;
pub mod context;
pub mod controller;
pub mod deployments;
pub mod exporters;
pub mod hands;
pub mod left_over;
pub mod look;
pub mod managed_fields;
pub mod mind;
pub mod moves;
pub mod reading;
pub mod schedule;
pub mod status;
pub mod thinking;
pub mod watches;
pub mod whereabouts;
pub mod world;
