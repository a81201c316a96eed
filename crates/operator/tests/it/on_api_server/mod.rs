//! What needs a real API server.

mod authority;
mod controller;
mod dual;
mod events;
mod leader;
mod place;
mod resolvers;
mod stand_in;
mod unreachable;

use std::time::Duration;

/// Usual is a tenth of a second; the machine may be busy.
const PATIENCE: Duration = Duration::from_mins(2);
