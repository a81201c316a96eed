//! Numbers for Prometheus: a small registry of our own.
//!
//! The peers' names do not end in `_total`, as the usual libraries want it, and what happens for each request must cost
//! next to nothing. What is counted is each role's own affair; here are the values ([`counts`], [`histogram`]) and the
//! text ([`exposition`]).

pub mod counts;
pub mod exposition;
pub mod histogram;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Counts stay useful after a panic elsewhere.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
