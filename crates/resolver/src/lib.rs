//! Hold's data plane. [`view`] says what is known of each service; everything else makes it, shows it or acts on it.

pub mod admin;
mod change_order;
pub mod early;
pub mod index;
pub mod metrics;
pub mod pod;
pub mod reach;
pub mod request;
pub mod role;
pub mod settings;
pub mod sources;
pub mod table;
pub mod targets;
pub mod view;
pub mod wake;
pub mod watch;

// Decided without any I/O: in hold's core, and used here as if they were ours.
use weir_hold::{host, probe};
