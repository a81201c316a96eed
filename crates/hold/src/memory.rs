//! What this process has seen, and since when. Lost with it: a successor starts empty, and so waits
//! for each span once more instead of trusting one that it did not see.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use jiff::Timestamp;
use weir_api::hold::Phase;

use super::facts::{Autoscaler, Facts, Pause, Target, Version};

/// Sightings of one ElastiService.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Since when each ready endpoint has been one, in a slice that did not change.
    pub(super) endpoints: BTreeMap<IpAddr, (Version, Timestamp)>,
    /// Since when there has been none although pods are ready.
    pub(super) no_endpoint: Option<Timestamp>,
    /// Since when the target has been scaled up without any ready endpoint.
    pub(super) starting: Option<Timestamp>,
    /// Our slice as it was last seen.
    pub(super) slice: Option<Version>,
    /// Since when there has been none.
    pub(super) no_slice: Option<Timestamp>,
    /// Since when each usable resolver has stood in it, unchanged.
    pub(super) in_slice: BTreeMap<IpAddr, Timestamp>,
    /// Since when no resolver has been usable.
    pub(super) no_resolver: Option<Timestamp>,
    /// The drain that is under way.
    pub(super) drain: Option<Drain>,
}

/// A drain as this process sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Drain {
    /// The mark of the drain: when its phase was stored.
    pub(super) phase_since: Timestamp,
    /// Since when this process has watched it, and nobody asked anything else of the two below.
    pub(super) watched_since: Timestamp,
    /// The target.
    pub(super) target: Option<Watched>,
    /// The autoscaler, until we pause it ourselves.
    pub(super) autoscaler: Option<Watched>,
    /// The resolvers that saw the silent connections, by each of the Service's addresses one, and when.
    pub(super) seen: Option<(BTreeSet<IpAddr>, Timestamp)>,
}

/// An object that is to be written at the end of a drain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Watched {
    /// What was asked of it when this process made or trusted the slice.
    pub(super) asked: Asked,
    /// Its version now. Statuses are written all the time, and must not begin a drain anew; who undoes
    /// it leaves a fence, so no version from before that is good for a write after it.
    pub(super) version: Version,
}

/// What somebody else changes in an object when they mean it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) generation: i64,
    pub(super) pause: Pause,
    pub(super) fenced_for: Option<Timestamp>,
}

impl Watched {
    fn target(target: &Target) -> Self {
        Self {
            asked: Asked {
                generation: target.generation,
                pause: Pause::No,
                fenced_for: target.fenced_for,
            },
            version: target.version.clone(),
        }
    }

    fn autoscaler(autoscaler: &Autoscaler) -> Self {
        Self {
            asked: Asked {
                generation: autoscaler.generation,
                pause: autoscaler.pause,
                fenced_for: autoscaler.fenced_for,
            },
            version: autoscaler.version.clone(),
        }
    }
}

fn asked(watched: Option<&Watched>) -> Option<Asked> {
    watched.map(|watched| watched.asked)
}

impl Memory {
    /// Takes note of what was just read.
    pub fn see(&mut self, facts: &Facts, now: Timestamp) {
        self.see_endpoints(facts, now);
        let ready_pods = facts.target.as_ref().map_or(0, |target| target.ready_pods);
        since(
            &mut self.no_endpoint,
            ready_pods > 0 && facts.endpoints.is_empty(),
            now,
        );
        let starting = facts.is_scaled_up() && facts.endpoints.is_empty();
        since(&mut self.starting, starting, now);
        let usable = facts.usable_resolvers();
        since(&mut self.no_resolver, usable.is_empty(), now);
        since(&mut self.no_slice, facts.slice.is_none(), now);
        let standing: BTreeSet<IpAddr> = match &facts.slice {
            Some(slice) => slice.resolvers.intersection(&usable).copied().collect(),
            None => BTreeSet::new(),
        };
        // It may have been gone between two looks, and nodes may have followed: so any change counts.
        let slice = facts.slice.as_ref().map(|slice| &slice.version);
        if self.slice.as_ref() != slice {
            self.slice = slice.cloned();
            self.in_slice.clear();
        }
        keep_since(&mut self.in_slice, &standing, now);
        self.see_drain(facts, now);
    }

    /// Our slice is about to be written: nodes may follow it, even if it is gone again before it is seen.
    pub fn slice_is_written(&mut self) {
        self.no_slice = None;
    }

    /// These resolvers reported the silent connections that were opened for the present drain, one by each of the Service's
    /// addresses.
    pub fn cut_over_seen(&mut self, by: impl IntoIterator<Item = IpAddr>, at: Timestamp) {
        if let Some(drain) = &mut self.drain {
            drain.seen = Some((by.into_iter().collect(), at));
        }
    }

    /// Since when the endpoint that has been ready longest has been ready.
    pub(super) fn served_since(&self) -> Option<Timestamp> {
        self.endpoints.values().map(|(_, since)| *since).min()
    }

    /// As with our slice: an endpoint may have been gone between two looks.
    fn see_endpoints(&mut self, facts: &Facts, now: Timestamp) {
        self.endpoints
            .retain(|address, (version, _)| facts.endpoints.get(address) == Some(version));
        for (address, version) in &facts.endpoints {
            self.endpoints
                .entry(*address)
                .or_insert_with(|| (version.clone(), now));
        }
    }

    /// A target or an autoscaler of which somebody asks something else begins the watch anew: what we
    /// would write was decided on the old one.
    fn see_drain(&mut self, facts: &Facts, now: Timestamp) {
        let Some(stored) = facts
            .stored
            .filter(|stored| stored.phase == Phase::Draining)
        else {
            self.drain = None;
            return;
        };
        let target = facts.target.as_ref().map(Watched::target);
        let autoscaler = facts
            .autoscaler
            .as_ref()
            .filter(|autoscaler| autoscaler.pause != Pause::Ours)
            .map(Watched::autoscaler);
        // A fence is our own change, and ends the drain anyway.
        let marks = [
            facts.target.as_ref().map(|target| target.fenced_for),
            facts.autoscaler.as_ref().map(|scaler| scaler.fenced_for),
        ];
        let fenced = marks.contains(&Some(Some(stored.since)));
        let present = self
            .drain
            .as_mut()
            .filter(|drain| drain.phase_since == stored.since);
        if let Some(drain) = present {
            let same_target = asked(drain.target.as_ref()) == asked(target.as_ref());
            let same_autoscaler = autoscaler.is_none()
                || asked(drain.autoscaler.as_ref()) == asked(autoscaler.as_ref());
            if same_target && same_autoscaler {
                drain.target = target;
                drain.autoscaler = autoscaler.or_else(|| drain.autoscaler.take());
                return;
            }
            if fenced {
                return;
            }
        }
        self.drain = Some(Drain {
            phase_since: stored.since,
            watched_since: now,
            target,
            autoscaler,
            seen: None,
        });
    }
}

fn since(memory: &mut Option<Timestamp>, holds: bool, now: Timestamp) {
    if holds {
        memory.get_or_insert(now);
    } else {
        *memory = None;
    }
}

fn keep_since(
    memory: &mut BTreeMap<IpAddr, Timestamp>,
    present: &BTreeSet<IpAddr>,
    now: Timestamp,
) {
    memory.retain(|address, _| present.contains(address));
    for address in present {
        memory.entry(*address).or_insert(now);
    }
}
