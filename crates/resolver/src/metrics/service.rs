//! The counts of one service. What is called for each request takes a lock that only this service's requests share,
//! and formats nothing.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use http::{Method, StatusCode};
use weir_api::hold::defaults::REQUEST_HISTOGRAM_SECONDS;
use weir_role::metrics::{
    counts::{Counter, Gauge},
    histogram::Histogram,
    lock,
};

use weir_wire::{
    backend::{Carried, End},
    sniff::Raw,
};

use super::names::{FIRST_BYTE, OTHER, READY, SIGNALLED, WAKE_BUCKETS};
use crate::view::{ServiceId, ServiceView};

/// The verbs that have a label of their own; every other is [`OTHER`].
const METHODS: [Method; 9] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::DELETE,
    Method::CONNECT,
    Method::OPTIONS,
    Method::TRACE,
    Method::PATCH,
];

/// How far a wake has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakePhase {
    /// The operator has answered the signal.
    Signalled,
    /// An endpoint is ready.
    Ready,
    /// The first byte of an answer is here.
    FirstByte,
}

/// The counts of one service.
#[derive(Debug)]
pub struct ServiceMetrics {
    /// Requests of this service that are held.
    pub queued: Gauge,
    id: ServiceId,
    target: Mutex<Arc<str>>,
    /// By verb, then by reason phrase.
    requests: Mutex<[Vec<Answered>; METHODS.len() + 1]>,
    wakes: Mutex<[WakeHistogram; 3]>,
    /// Pods that were ready before the kubelet said so.
    pub early_ready: Counter,
    pub(super) enabled: Counter,
    pub(super) disabled: Counter,
    /// By what was spoken, then by how it ended.
    passed_through: [[Counter; End::ALL.len()]; Raw::ALL.len()],
    pub(super) sent: Counter,
    pub(super) received: Counter,
}

pub(super) type RequestHistogram = Histogram<{ REQUEST_HISTOGRAM_SECONDS.len() }>;
pub(super) type WakeHistogram = Histogram<{ WAKE_BUCKETS.len() }>;

#[derive(Clone, Debug)]
struct Answered {
    status: &'static str,
    took: RequestHistogram,
}

impl WakePhase {
    pub(super) const ALL: [Self; 3] = [Self::Signalled, Self::Ready, Self::FirstByte];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Signalled => SIGNALLED,
            Self::Ready => READY,
            Self::FirstByte => FIRST_BYTE,
        }
    }
}

impl ServiceMetrics {
    pub(super) fn new(view: &ServiceView) -> Self {
        Self {
            queued: Gauge::default(),
            id: view.id.clone(),
            target: Mutex::new(Arc::clone(&view.target)),
            requests: Mutex::default(),
            wakes: Mutex::new([Histogram::new(); 3]),
            early_ready: Counter::default(),
            enabled: Counter::default(),
            disabled: Counter::default(),
            passed_through: Default::default(),
            sent: Counter::default(),
            received: Counter::default(),
        }
    }

    /// A request was answered, by a pod or by us.
    pub fn finished(&self, method: &Method, status: StatusCode, took: Duration) {
        let verb = METHODS.iter().position(|known| known == method);
        let status = status.canonical_reason().unwrap_or(OTHER);
        let mut requests = lock(&self.requests);
        let Some(answered) = requests.get_mut(verb.unwrap_or(METHODS.len())) else {
            return;
        };
        // The phrases are constants: where the addresses are equal, so are the texts.
        let known = answered
            .iter()
            .position(|one| std::ptr::eq(one.status, status) || one.status == status);
        if let Some(one) = known.and_then(|index| answered.get_mut(index)) {
            one.took.observe(&REQUEST_HISTOGRAM_SECONDS, took);
        } else {
            let mut histogram = Histogram::new();
            histogram.observe(&REQUEST_HISTOGRAM_SECONDS, took);
            answered.push(Answered {
                status,
                took: histogram,
            });
        }
    }

    /// A connection that was passed through has ended, or could not be.
    pub fn carried(&self, carried: &Carried) {
        let by_end = self.passed_through.get(carried.protocol as usize);
        if let Some(counter) = by_end.and_then(|by_end| by_end.get(carried.end as usize)) {
            counter.add(1);
        }
        self.sent.add(carried.sent);
        self.received.add(carried.received);
    }

    /// What was spoken, how it ended, and how often that was.
    pub(super) fn passed_through(&self) -> impl Iterator<Item = (Raw, End, u64)> {
        let all = Raw::ALL.into_iter().zip(&self.passed_through);
        all.flat_map(|(protocol, by_end)| {
            let by_end = End::ALL.into_iter().zip(by_end);
            by_end.map(move |(end, count)| (protocol, end, count.get()))
        })
        .filter(|(_, _, count)| *count > 0)
    }

    /// A wake has come so far, this long after the first request that was held.
    pub fn wake(&self, phase: WakePhase, took: Duration) {
        let mut wakes = lock(&self.wakes);
        if let Some(histogram) = wakes.get_mut(phase as usize) {
            histogram.observe(&WAKE_BUCKETS, took);
        }
    }

    /// Requests now come to the resolver, or go to the pods by themselves.
    pub fn traffic_switched(&self, to_resolver: bool) {
        if to_resolver {
            self.enabled.add(1);
        } else {
            self.disabled.add(1);
        }
    }

    /// Which service this is.
    pub fn id(&self) -> &ServiceId {
        &self.id
    }

    pub(super) fn rename_target(&self, target: &Arc<str>) {
        let mut known = lock(&self.target);
        if *known != *target {
            *known = Arc::clone(target);
        }
    }

    pub(super) fn target(&self) -> Arc<str> {
        Arc::clone(&lock(&self.target))
    }

    /// Verb, reason phrase and times of what was answered.
    pub(super) fn requests(&self) -> Vec<(String, &'static str, RequestHistogram)> {
        let requests = lock(&self.requests);
        let mut all = Vec::new();
        for (index, answered) in requests.iter().enumerate() {
            let method = METHODS.get(index).map_or(OTHER, Method::as_str);
            for one in answered {
                all.push((method.to_owned(), one.status, one.took));
            }
        }
        all
    }

    pub(super) fn wakes(&self) -> [WakeHistogram; 3] {
        *lock(&self.wakes)
    }
}
