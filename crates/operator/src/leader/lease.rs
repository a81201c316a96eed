//! The Lease as an object: how it is read, taken, renewed and given back.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};

use super::evaluate::Record;

/// What a Lease without a duration is taken to last.
const LASTS: Duration = Duration::from_secs(15);

/// What it says.
pub(super) fn record(lease: &Lease) -> Record {
    let empty = LeaseSpec::default();
    let spec = lease.spec.as_ref().unwrap_or(&empty);
    Record {
        holder: spec
            .holder_identity
            .clone()
            .filter(|holder| !holder.is_empty()),
        renewed: spec.renew_time.as_ref().map(|time| time.0),
        lasts: spec
            .lease_duration_seconds
            .and_then(|seconds| u64::try_from(seconds).ok())
            .map_or(LASTS, Duration::from_secs),
    }
}

/// A Lease that is not there yet, in our name.
pub(super) fn new(namespace: &str, name: &str, me: &str, lasts: Duration) -> Lease {
    let lease = Lease {
        metadata: ObjectMeta {
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        spec: None,
    };
    taken(lease, me, lasts)
}

/// The same Lease in our name: taken where it was another's, renewed where it was ours. Its version stays, so that the
/// write fails if somebody was faster.
pub(super) fn taken(mut lease: Lease, me: &str, lasts: Duration) -> Lease {
    let now = MicroTime(Timestamp::now());
    let before = lease.spec.take().unwrap_or_default();
    let ours = before.holder_identity.as_deref() == Some(me);
    let transitions = before.lease_transitions.unwrap_or_default();
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(me.to_owned()),
        lease_duration_seconds: Some(whole_seconds(lasts)),
        acquire_time: if ours {
            before.acquire_time
        } else {
            Some(now.clone())
        },
        renew_time: Some(now),
        lease_transitions: Some(if ours {
            transitions
        } else {
            transitions.saturating_add(1)
        }),
        ..LeaseSpec::default()
    });
    lease
}

/// The same Lease, in nobody's name.
pub(super) fn given_back(mut lease: Lease) -> Lease {
    let spec = lease.spec.get_or_insert_default();
    spec.holder_identity = Some(String::new());
    // An API server takes no zero here.
    spec.lease_duration_seconds = Some(1);
    spec.renew_time = Some(MicroTime(Timestamp::now()));
    lease
}

/// Rounded up: a Lease must not end before it is meant to.
fn whole_seconds(span: Duration) -> i32 {
    let seconds = span.as_secs() + u64::from(span.subsec_nanos() > 0);
    i32::try_from(seconds.max(1)).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taking_counts_and_renewing_does_not() {
        let spec = |lease: &Lease| lease.spec.clone().unwrap();
        let lease = new("weir", "lease", "a", Duration::from_millis(2500));
        assert_eq!(spec(&lease).lease_duration_seconds, Some(3));
        assert_eq!(spec(&lease).lease_transitions, Some(1));
        let renewed = taken(lease.clone(), "a", LASTS);
        assert_eq!(spec(&renewed).lease_transitions, Some(1));
        assert_eq!(spec(&renewed).acquire_time, spec(&lease).acquire_time);
        let other = taken(renewed, "b", LASTS);
        assert_eq!(spec(&other).lease_transitions, Some(2));
        assert_eq!(record(&other).holder.as_deref(), Some("b"));
        let free = given_back(other);
        assert_eq!(record(&free).holder, None);
        assert_eq!(record(&free).lasts, Duration::from_secs(1));
        assert_eq!(spec(&taken(free, "b", LASTS)).lease_transitions, Some(3));
    }
}
