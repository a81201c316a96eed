//! A server that can only do so much: few requests at once, and too many at its door bring it down.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub(super) struct Pressure {
    places: Option<Arc<Semaphore>>,
    fall_over_at: usize,
    present: Arc<AtomicUsize>,
}

/// A request that is here; it counts until this is dropped.
pub(super) struct Guest {
    present: Arc<AtomicUsize>,
    place: Option<OwnedSemaphorePermit>,
}

/// Too many are here at once.
pub(super) struct TooMany(pub(super) usize);

impl Pressure {
    pub(super) fn new(max_concurrent: Option<usize>, fall_over_at: Option<usize>) -> Self {
        Self {
            places: max_concurrent
                .map(|most| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)))),
            fall_over_at: fall_over_at.unwrap_or(usize::MAX),
            present: Arc::default(),
        }
    }

    pub(super) fn present(&self) -> usize {
        self.present.load(Ordering::Relaxed)
    }

    /// Comes in and waits for a place.
    pub(super) async fn enter(&self) -> Result<Guest, TooMany> {
        let present = self.present.fetch_add(1, Ordering::Relaxed) + 1;
        let mut guest = Guest {
            present: Arc::clone(&self.present),
            place: None,
        };
        if present >= self.fall_over_at {
            return Err(TooMany(present));
        }
        if let Some(places) = &self.places {
            // Never closed, so this never fails.
            guest.place = Arc::clone(places).acquire_owned().await.ok();
        }
        Ok(guest)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.present.fetch_sub(1, Ordering::Relaxed);
        drop(self.place.take());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn so_many_work_the_next_wait_and_too_many_bring_it_down() {
        let pressure = Pressure::new(Some(1), Some(3));
        let first = pressure.enter().await.ok().unwrap();
        let waiting = tokio::time::timeout(Duration::from_millis(20), pressure.enter());
        assert!(waiting.await.is_err());
        assert_eq!(
            pressure.present(),
            1,
            "who gave up waiting is not here any more"
        );

        let mut second = Box::pin(pressure.enter());
        let turn = tokio::time::timeout(Duration::from_millis(20), &mut second);
        assert!(turn.await.is_err());
        assert!(matches!(pressure.enter().await, Err(TooMany(3))));
        drop(first);
        assert!(second.await.is_ok());
    }
}
