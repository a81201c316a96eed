//! Single numbers, and numbers by reason.

use std::sync::{
    Mutex,
    atomic::{AtomicI64, AtomicU64, Ordering},
};

use super::lock;

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

/// A number that goes up and down.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

/// Counts by reason. Reasons are part of the program, so there are few.
#[derive(Debug, Default)]
pub struct Reasons(Mutex<Vec<(&'static str, u64)>>);

impl Counter {
    /// So many more.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// How many there were.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Gauge {
    /// So many more, or fewer.
    pub fn add(&self, count: i64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// One more.
    pub fn inc(&self) {
        self.add(1);
    }

    /// One fewer.
    pub fn dec(&self) {
        self.add(-1);
    }

    /// So many now.
    pub fn set(&self, count: i64) {
        self.0.store(count, Ordering::Relaxed);
    }

    /// How many there are.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Reasons {
    /// One more for this reason.
    pub fn add(&self, reason: &'static str) {
        let mut counts = lock(&self.0);
        match counts.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => counts.push((reason, 1)),
        }
    }

    /// How many there were for this reason.
    pub fn get(&self, reason: &str) -> u64 {
        let counts = lock(&self.0);
        let found = counts.iter().find(|(known, _)| *known == reason);
        found.map_or(0, |(_, count)| *count)
    }

    /// All, in the order of their reasons.
    pub fn sorted(&self) -> Vec<(&'static str, u64)> {
        let mut counts = lock(&self.0).clone();
        counts.sort_unstable();
        counts
    }
}
