//! HTTP/1.1 connections that wait for their next request.
//!
//! Nobody drives them meanwhile. One that the other side has closed is found when it is taken out, or by the look that
//! a shard takes at all of them every second ([`Pool::tidy`]); after a pod has gone such are the common case.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use super::http1::Http1;
use crate::lock;

/// What is kept, at most.
#[derive(Clone, Copy, Debug)]
pub struct PoolLimits {
    /// Connections to all endpoints, over all shards.
    pub idle: usize,
    /// Connections to one endpoint, in one shard.
    pub idle_per_endpoint: usize,
    /// For how long. Shorter than servers usually keep theirs, so that they do not close one just when it is used.
    pub idle_for: Duration,
}

/// The connections of one shard.
#[derive(Debug)]
pub(crate) struct Pool {
    limits: PoolLimits,
    idle: Mutex<HashMap<SocketAddr, Vec<Idle>>>,
    /// Over all shards.
    count: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct Idle {
    connection: Box<Http1>,
    /// Set by the first look at it: the clock is not asked for each request.
    since: Option<Instant>,
}

impl Pool {
    pub(crate) fn new(limits: PoolLimits, count: Arc<AtomicUsize>) -> Arc<Self> {
        Arc::new(Self {
            limits,
            idle: Mutex::default(),
            count,
        })
    }

    /// The connection to this endpoint that was used last, if there is one that can be used.
    pub(crate) fn take(&self, address: SocketAddr) -> Option<Box<Http1>> {
        let mut idle = lock(&self.idle);
        let connections = idle.get_mut(&address)?;
        while let Some(mut last) = connections.pop() {
            self.count.fetch_sub(1, Ordering::Relaxed);
            if last.connection.is_usable() {
                return Some(last.connection);
            }
        }
        idle.remove(&address);
        None
    }

    /// Keeps a connection for the next request, if there is room.
    pub(crate) fn put(&self, address: SocketAddr, connection: Box<Http1>) {
        if self.count.fetch_add(1, Ordering::Relaxed) >= self.limits.idle {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let mut idle = lock(&self.idle);
        let connections = idle.entry(address).or_default();
        if connections.len() < self.limits.idle_per_endpoint {
            connections.push(Idle {
                connection,
                since: None,
            });
        } else {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Drops those that were closed by the other side or have waited too long.
    pub(crate) fn tidy(&self) {
        let mut idle = lock(&self.idle);
        let now = Instant::now();
        for connections in idle.values_mut() {
            let before = connections.len();
            connections.retain_mut(|it| {
                let since = *it.since.get_or_insert(now);
                now.duration_since(since) < self.limits.idle_for && it.connection.is_usable()
            });
            self.count
                .fetch_sub(before - connections.len(), Ordering::Relaxed);
        }
        idle.retain(|_, connections| !connections.is_empty());
    }
}
