//! What this process has seen, and since when. Lost with it: a successor starts empty, and so waits
//! for each span once more instead of trusting one that it did not see.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use jiff::Timestamp;
use weir_api::hold::Phase;

use super::facts::{Facts, Pause, Version};

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
    /// Since when this process has watched it on the versions below.
    pub(super) watched_since: Timestamp,
    /// The target, before this process made or trusted the slice.
    pub(super) target: Option<Version>,
    /// The autoscaler, likewise, until we pause it ourselves.
    pub(super) autoscaler: Option<Version>,
    /// The resolver that saw the silent connection, and when.
    pub(super) seen: Option<(IpAddr, Timestamp)>,
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

    /// A resolver reported the silent connection that was opened for the present drain.
    pub fn cut_over_seen(&mut self, resolver: IpAddr, at: Timestamp) {
        if let Some(drain) = &mut self.drain {
            drain.seen = Some((resolver, at));
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

    /// A target or an autoscaler that somebody changed begins the watch anew: what we would write
    /// was decided on the old one.
    fn see_drain(&mut self, facts: &Facts, now: Timestamp) {
        let Some(stored) = facts
            .stored
            .filter(|stored| stored.phase == Phase::Draining)
        else {
            self.drain = None;
            return;
        };
        let target = facts.target.as_ref().map(|target| &target.version);
        let autoscaler = facts
            .autoscaler
            .as_ref()
            .filter(|autoscaler| autoscaler.pause != Pause::Ours)
            .map(|autoscaler| &autoscaler.version);
        // A fence is our own change, and ends the drain anyway.
        let marks = [
            facts.target.as_ref().map(|target| target.fenced_for),
            facts.autoscaler.as_ref().map(|scaler| scaler.fenced_for),
        ];
        let fenced = marks.contains(&Some(Some(stored.since)));
        let unchanged = self.drain.as_ref().is_some_and(|drain| {
            let same_target = drain.target.as_ref() == target;
            let same_autoscaler = autoscaler.is_none() || drain.autoscaler.as_ref() == autoscaler;
            drain.phase_since == stored.since && (fenced || same_target && same_autoscaler)
        });
        if !unchanged {
            self.drain = Some(Drain {
                phase_since: stored.since,
                watched_since: now,
                target: target.cloned(),
                autoscaler: autoscaler.cloned(),
                seen: None,
            });
        }
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
