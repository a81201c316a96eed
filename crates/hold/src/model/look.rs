//! The world as the operator reads it, in the planner's own terms.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use jiff::Timestamp;

use super::{
    super::{
        Settings,
        facts::{
            Autoscaler, Facts, Group, Knows, Pause, Slice, StoredPhase, Target, Version, Wanted,
            Window,
        },
    },
    world::{Resolver, World},
};

const COOLDOWN: u64 = 2;

impl World {
    pub(super) fn facts(&self, any_resolver_will_do: bool) -> Facts {
        let version = |version: u32| Version(version.to_string());
        let knows = |resolver: &Resolver| {
            if resolver.knows || any_resolver_will_do {
                Knows::Yes
            } else {
                Knows::NotYet
            }
        };
        let ready = self.route_for(1).pods;
        Facts {
            stored: self.phase.map(|(phase, since)| StoredPhase {
                phase,
                since: time(since),
            }),
            wanted: Wanted {
                min_replicas: 1,
                cooldown: Duration::from_secs(COOLDOWN),
                window: Window::Open(None),
                triggers: self.triggers,
                created: time(0),
                last_scaled_up: self.last_scaled_up.map(time),
                cut_over_failed: self.cut_over_failed.map(time),
                cannot_be_probed: self.start.cannot_be_probed,
            },
            deletion: self.deletion,
            service_exists: true,
            target: Some(Target {
                replicas: self.replicas,
                version: version(self.target_version),
                generation: self.target_generation,
                ready_pods: i32::from(ready != 0),
                fenced_for: self.target_fenced_for.map(time),
            }),
            endpoints: addresses(ready, pod_address)
                .into_iter()
                .map(|address| (address, version(self.listed.1)))
                .collect(),
            slice: self.slice.map(|slice| Slice {
                resolvers: addresses(slice.resolvers, resolver_address),
                version: version(slice.version),
                mark: slice.mark.map(time),
            }),
            resolvers: self
                .resolvers
                .iter()
                .enumerate()
                .filter(|(_, resolver)| resolver.ready)
                .map(|(slot, resolver)| (resolver_address(slot), knows(resolver)))
                .collect::<BTreeMap<_, _>>(),
            autoscaler: self.keda.map(|keda| Autoscaler {
                version: version(keda.version),
                generation: 1,
                pause: if keda.paused { Pause::Ours } else { Pause::No },
                fenced_for: keda.fenced_for.map(time),
            }),
            group: Group::ALONE,
            wake_wanted: self.wake_wanted,
        }
    }
}

/// Short spans, so that few states tell them apart; the overlap is longer than a node's lag.
pub(super) fn settings() -> Settings {
    Settings {
        sync_period: Duration::from_secs(2),
        cut_over_timeout: Duration::from_secs(2),
        fail_open_after: Duration::from_secs(2),
        hold_timeout: Duration::from_secs(2),
        no_ready_pod_grace: Duration::from_secs(2),
    }
}

pub(super) fn time(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

pub(super) fn pod_address(slot: usize) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, u8::try_from(slot).unwrap()).into()
}

pub(super) fn resolver_address(slot: usize) -> IpAddr {
    Ipv4Addr::new(10, 0, 1, u8::try_from(slot).unwrap()).into()
}

pub(super) fn addresses(bits: u8, address: fn(usize) -> IpAddr) -> BTreeSet<IpAddr> {
    (0..2)
        .filter(|slot| bits & (1 << slot) != 0)
        .map(address)
        .collect()
}
