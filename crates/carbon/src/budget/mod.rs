//! The error budget, a guarantee: over each window the mean error of answered requests is at most the
//! target, at every request.
//!
//! [`window`] says which window a moment is in; [`account`] is kept where flavours are chosen, one per
//! decider; [`lender`] is the engine's part, which moves unspent credit between deciders; [`code`]
//! writes and reads it as a short string for a status. All in integers of 10⁻⁶ error·request.

pub mod account;
pub mod code;
pub mod lender;
pub mod window;

pub use account::{Account, Ticket};
pub use lender::{Lease, Lender};
pub use window::Windows;
