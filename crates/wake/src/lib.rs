//! Waking a target: its pause is taken away, then its scale is raised. Operators do it on a resolver's word, and resolvers
//! by themselves where they may and no operator answers; so nothing here minds who does it, how often, or who else does.
//!
//! - [`kind`]: what a target may be, [`kinds`]: how the API server is asked for one that is not known beforehand;
//! - [`scaler`]: a ScaledObject, and whose pause it has;
//! - [`hands`]: the writes.
//!
//! Whether a target is to be woken is decided elsewhere: by `weir_hold` in the operator, by held requests in the resolver.

pub mod hands;
pub mod kind;
pub mod kinds;
pub mod scaler;

pub use self::{
    hands::{HandError, Hands, Sleeper},
    kind::{Kind, OtherKind},
    kinds::Kinds,
    scaler::{ScaledObject, Scaler, fences},
};
