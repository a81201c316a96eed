//! The data plane for HTTP, and for TLS and TCP that are passed through: listen, hold, forward, retry, drain. It knows no Kubernetes; what a target is and how it
//! is woken is said by whoever stands on it.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub mod answer;
pub mod backend;
mod blocks;
mod body;
pub mod client;
mod connection;
pub mod endpoint;
mod exchange;
mod finish;
mod first_words;
pub mod headers;
pub mod hold;
pub mod life;
pub mod listen;
mod raw;
mod relay;
mod replay;
mod retry;
pub mod shard;
pub mod sniff;
mod tunnel;
mod unwelcome;
mod upstream;
pub mod usage;
pub mod waiting;
pub mod wake_times;

pub use upstream::pool::PoolLimits;

/// Locks, also after a panic elsewhere: what our locks guard is whole between any two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
