//! From what was read to the facts of the plan.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    time::Duration,
};

use jiff::Timestamp;
use kube::ResourceExt;
use weir_api::hold::{
    ElastiService, InForce,
    defaults::COOLDOWN_SECONDS,
    names::{AddressFamily, ON_DELETE_ANNOTATION, ON_DELETE_LEAVE, fence, report::ConditionType},
};
use weir_hold::facts::{
    Autoscaler, Deletion, Facts, Group, Knows, Slice, StoredPhase, Target, Triggers, Version,
    Wanted, Window,
};

use super::{
    resolver_slice,
    sight::{Sight, SliceSight},
};
use crate::resolvers::Resolver;

/// What is known besides the objects.
#[derive(Clone, Debug)]
pub struct Around<'a> {
    /// The ready resolvers.
    pub resolvers: &'a [(Resolver, Knows)],
    /// What the triggers say.
    pub triggers: Triggers,
    /// Where now lies in `enabledPeriod`.
    pub window: Window,
    /// The others on the target.
    pub group: Group,
    /// The names of all on the target, this one included.
    pub group_names: &'a [&'a str],
    /// When a wake was asked for last, if that was not long ago.
    pub wake_asked: bool,
    /// It is let go, though it is not deleted.
    pub is_refused: bool,
    /// Which slices are its to keep and to remove.
    pub claim: Claim,
    /// Its namespace is going as well.
    pub namespace_ends: bool,
    /// The resolvers' shared port.
    pub shared_port: u16,
}

/// Which of the slices that lead its Service to resolvers are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// All: it holds the Service.
    All,
    /// Those that were made for it, and those that the older operator made for nobody: it is refused.
    OwnAndNobodys,
    /// Those that were made for it: another one holds the Service.
    Own,
}

/// The facts of one ElastiService.
pub fn facts(sight: &Sight, around: &Around<'_>) -> Facts {
    let endpoints = endpoints(sight);
    let key = fence(&sight.object.name_any());
    let fenced_for = |fences: &BTreeMap<String, String>| fences.get(&key)?.parse().ok();
    Facts {
        stored: stored(&sight.object),
        wanted: wanted(sight, around),
        deletion: deletion(&sight.object, around),
        service_exists: sight.service.is_some(),
        target: sight.target.there().and_then(|target| {
            Some(Target {
                replicas: target.replicas,
                version: target.version.clone()?,
                generation: target.generation,
                ready_pods: target.ready,
                fenced_for: fenced_for(&target.fences),
            })
        }),
        slice: slice(sight, around),
        resolvers: resolvers(sight, around),
        autoscaler: sight.scaler.there().and_then(|scaler| {
            Some(Autoscaler {
                version: scaler.version.clone()?,
                generation: scaler.generation,
                pause: scaler.pause(around.group_names),
                fenced_for: fenced_for(&scaler.fences),
            })
        }),
        group: around.group,
        wake_wanted: around.wake_asked && endpoints.is_empty(),
        endpoints,
    }
}

/// Our slices among those of the Service, of each of its families one at most.
pub fn our_slices(sight: &Sight, claim: Claim) -> Vec<&SliceSight> {
    let Some(service) = &sight.service else {
        return Vec::new();
    };
    let names = resolver_slice::names(&sight.object, service);
    let uid = sight.object.uid();
    let is_its = |slice: &SliceSight| match claim {
        Claim::All => true,
        Claim::OwnAndNobodys => slice.derived_from.is_none() || slice.derived_from == uid,
        Claim::Own => slice.derived_from == uid,
    };
    let find = |name: &String| {
        let mut slices = sight.slices.iter().map(|slice| &**slice);
        slices.find(|slice| slice.is_ours && slice.name == *name && is_its(slice))
    };
    names.iter().filter_map(find).collect()
}

/// `cooldownPeriod`, where 0 means the default.
pub fn cooldown(object: &ElastiService) -> Duration {
    let seconds = match object.spec.cooldown_period {
        0 => COOLDOWN_SECONDS,
        seconds => seconds,
    };
    Duration::from_secs(u64::from(seconds.unsigned_abs()))
}

fn stored(object: &ElastiService) -> Option<StoredPhase> {
    let status = object.status.as_ref()?;
    Some(StoredPhase {
        phase: status.phase?,
        since: status.phase_start_time.as_ref()?.0,
    })
}

fn wanted(sight: &Sight, around: &Around<'_>) -> Wanted {
    let object = &sight.object;
    let status = object.status.as_ref();
    let created = object.creation_timestamp().map(|time| time.0);
    let last = status.and_then(|status| status.last_scaled_up_time.as_ref());
    let not_seen = status.and_then(|status| {
        let mut conditions = status.conditions.iter();
        conditions.find(|condition| {
            condition.type_ == ConditionType::CutOverNotSeen.as_str() && condition.status == "True"
        })
    });
    Wanted {
        min_replicas: object.spec.min_target_replicas,
        cooldown: cooldown(object),
        window: around.window,
        triggers: around.triggers,
        created: created.unwrap_or(Timestamp::UNIX_EPOCH),
        last_scaled_up: last.map(|time| time.0),
        cut_over_failed: not_seen.map(|condition| condition.last_transition_time.0),
        cannot_be_probed: sight
            .service
            .as_ref()
            // On the node where this runs there may be neither a pod nor a resolver, which such a Service does not mind.
            .is_some_and(|service| service.session_affinity || service.is_local_inside),
    }
}

fn deletion(object: &InForce, around: &Around<'_>) -> Option<Deletion> {
    let leave = object.annotations().get(ON_DELETE_ANNOTATION);
    let leave = leave.is_some_and(|value| value == ON_DELETE_LEAVE) || around.namespace_ends;
    match object.metadata.deletion_timestamp {
        Some(_) if leave => Some(Deletion::Leave),
        Some(_) => Some(Deletion::WakeFirst),
        None if object.is_left() => Some(Deletion::Edited),
        None => around.is_refused.then_some(Deletion::WakeFirst),
    }
}

/// The ready endpoints of the Service that are not ours, with the slice's version.
pub fn endpoints(sight: &Sight) -> BTreeMap<IpAddr, Version> {
    let theirs = sight.slices.iter().filter(|slice| !slice.is_ours);
    theirs
        .flat_map(|slice| {
            let ready = slice.ready.iter();
            ready.map(|address| (*address, slice.version.clone()))
        })
        .collect()
}

/// The resolvers' addresses of the families that the Service has. Where one of these has no resolver that knows the Service,
/// clients of that family would find nobody: then none of the others counts either.
fn resolvers(sight: &Sight, around: &Around<'_>) -> BTreeMap<IpAddr, Knows> {
    let both = &AddressFamily::ALL[..];
    let families = sight.service.as_ref().map_or(both, |it| &it.families);
    let has = |address: IpAddr| families.contains(&AddressFamily::of(address));
    let there = around.resolvers.iter();
    let mut all: BTreeMap<IpAddr, Knows> = there
        .map(|(resolver, knows)| (resolver.address, *knows))
        .filter(|(address, _)| has(*address))
        .collect();
    let is_known_to_one = |family: &AddressFamily| {
        let mut all = all.iter();
        all.any(|(address, knows)| AddressFamily::of(*address) == *family && *knows == Knows::Yes)
    };
    if sight.service.is_some() && !families.iter().all(is_known_to_one) {
        for knows in all.values_mut() {
            *knows = Knows::NotYet;
        }
    }
    all
}

/// Slices of all families as one. Where one of them is missing, or has wrong ports and so leads nowhere, it counts as one
/// without resolvers, and all are made anew.
fn slice(sight: &Sight, around: &Around<'_>) -> Option<Slice> {
    let slices = our_slices(sight, around.claim);
    let first = slices.first()?;
    let uid = sight.object.uid();
    let service = sight.service.as_ref()?;
    let allotted = sight.object.status.as_ref();
    let allotted = allotted.map_or(&[][..], |status| &status.ports);
    let wanted = resolver_slice::ports(service, allotted, around.shared_port);
    let is_right = |slice: &&SliceSight| {
        let mut ports = slice.ports.clone();
        ports.sort_by(|a, b| a.name.cmp(&b.name));
        ports == wanted && slice.derived_from == uid
    };
    let is_whole = slices.len() == service.families.len() && slices.iter().all(is_right);
    // Only compared: what is written to goes by its own.
    let versions: Vec<&str> = slices.iter().map(|slice| &*slice.version.0).collect();
    let is_marked_alike = |mark: &Timestamp| {
        let mut all = slices.iter();
        all.all(|slice| slice.needed_since == Some(*mark))
    };
    Some(Slice {
        resolvers: if is_whole {
            let addresses = slices.iter().flat_map(|slice| slice.ready.iter());
            addresses.copied().collect()
        } else {
            BTreeSet::new()
        },
        version: Version(versions.join(",")),
        mark: first.needed_since.filter(is_marked_alike),
    })
}

#[cfg(test)]
mod tests;
