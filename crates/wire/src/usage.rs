//! Whether a backend is in use: what is under way to it, and when the last of it ended. Who asks decides what it means; who
//! knows what requests are for decides which of them count ([`crate::shard::Led`]).

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crate::backend::Backend;

/// How much a backend is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Requests and connections that are held or being served.
    pub open: usize,
    /// How long ago the last of them ended; none if there has not been one.
    pub ended: Option<Duration>,
}

/// Counts for one backend.
#[derive(Debug)]
pub(crate) struct Meter {
    open: AtomicUsize,
    /// In milliseconds since [`Self::born`], plus one; 0: none has.
    ended: AtomicU64,
    born: Instant,
}

/// A request or connection that counts, until this is dropped.
#[derive(Debug)]
pub(crate) struct InUse {
    backend: Arc<Backend>,
    /// It was none after all.
    is_void: bool,
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            open: AtomicUsize::new(0),
            ended: AtomicU64::new(0),
            born: Instant::now(),
        }
    }
}

impl Meter {
    pub(crate) fn read(&self) -> Usage {
        // In this order: one that ends in between is seen as open.
        let open = self.open.load(Ordering::Acquire);
        let ended = match self.ended.load(Ordering::Relaxed) {
            0 => None,
            at => Some((self.born + Duration::from_millis(at - 1)).elapsed()),
        };
        Usage { open, ended }
    }

    fn begins(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    fn ends(&self) {
        let now = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1;
        self.ended.fetch_max(now, Ordering::Relaxed);
        // After the time: who sees that it is over sees when.
        self.is_left();
    }

    fn is_left(&self) {
        self.open.fetch_sub(1, Ordering::Release);
    }
}

impl InUse {
    pub(crate) fn new(backend: &Arc<Backend>) -> Self {
        backend.meter.begins();
        Self {
            backend: Arc::clone(backend),
            is_void: false,
        }
    }

    /// Nothing came of it: when it ends is no last use.
    pub(crate) fn was_none(&mut self) {
        self.is_void = true;
    }

    /// The same for what comes of it and lasts longer.
    pub(crate) fn also(&self) -> Self {
        Self::new(&self.backend)
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        if self.is_void {
            self.backend.meter.is_left();
        } else {
            self.backend.meter.ends();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_end_counts() {
        let meter = Meter::default();
        let unused = Usage {
            open: 0,
            ended: None,
        };
        assert_eq!(meter.read(), unused);
        meter.begins();
        meter.begins();
        assert_eq!(meter.read(), Usage { open: 2, ..unused });
        meter.ends();
        let first = meter.read();
        assert!(first.open == 1 && first.ended.is_some(), "{first:?}");
        meter.ends();
        let last = meter.read();
        assert!(
            last.open == 0 && last.ended <= Some(meter.born.elapsed()),
            "{last:?}"
        );
    }
}
