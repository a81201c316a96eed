//! Where resolvers are, by the EndpointSlices of their Service.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    net::IpAddr,
};

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use weir_role::cluster::{ObjectId, Update};

use super::Resolver;

/// What each slice says. Which slice a resolver stands in changes, and so only all together say who is there.
#[derive(Debug, Default)]
pub(super) struct Places {
    slices: BTreeMap<ObjectId, Slice>,
}

#[derive(Debug)]
struct Slice {
    ready: Vec<Resolver>,
    /// Of those as well that are not ready, or about to end.
    addresses: Vec<IpAddr>,
}

impl Places {
    pub(super) fn apply(&mut self, update: Update<EndpointSlice>) {
        match update {
            Update::Set(slice) => self.set(&slice),
            Update::Gone(id) => {
                self.slices.remove(&id);
            }
            // One namespace is watched, so what is not listed is gone.
            Update::Restarted {
                namespace: _,
                objects,
                unreadable,
            } => {
                let unreadable: HashSet<ObjectId> = unreadable.into_iter().collect();
                self.slices.retain(|id, _| unreadable.contains(id));
                for slice in &objects {
                    self.set(slice);
                }
            }
        }
    }

    /// The resolvers that are ready, one for each address.
    pub(super) fn ready(&self) -> BTreeMap<IpAddr, Resolver> {
        let mut ready = BTreeMap::new();
        for resolver in self.slices.values().flat_map(|slice| &slice.ready) {
            ready
                .entry(resolver.address)
                .or_insert_with(|| resolver.clone());
        }
        ready
    }

    /// All that may still serve somebody: those too that are not ready or are about to end, on connections that they have.
    pub(super) fn all(&self) -> BTreeSet<IpAddr> {
        let addresses = self.slices.values().flat_map(|slice| &slice.addresses);
        addresses.copied().collect()
    }

    fn set(&mut self, slice: &EndpointSlice) {
        let ready = slice.endpoints.iter().filter(|one| is_ready(one));
        let ready = ready.filter_map(|endpoint| {
            Some(Resolver {
                address: address(endpoint)?,
                node: endpoint.node_name.clone(),
                zone: endpoint.zone.clone(),
            })
        });
        let slice_of = Slice {
            ready: ready.collect(),
            addresses: slice.endpoints.iter().filter_map(address).collect(),
        };
        self.slices.insert(ObjectId::of(slice), slice_of);
    }
}

/// Kubernetes gives no meaning to further ones, and names are no addresses.
fn address(endpoint: &Endpoint) -> Option<IpAddr> {
    endpoint.addresses.first()?.parse().ok()
}

/// Only who is said to be ready: one that is led to and cannot take requests loses them.
fn is_ready(endpoint: &Endpoint) -> bool {
    endpoint.conditions.as_ref().is_some_and(|conditions| {
        // `ready` lies where a Service publishes pods that are not; `serving` does not.
        conditions.serving.or(conditions.ready) == Some(true)
            && conditions.terminating != Some(true)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn slice(name: &str, endpoints: &[Value]) -> EndpointSlice {
        let slice = json!({
            "metadata": {"namespace": "weir", "name": name},
            "addressType": "IPv4",
            "endpoints": endpoints,
        });
        serde_json::from_value(slice).unwrap()
    }

    fn endpoint(address: &str, conditions: &Value) -> Value {
        json!({"addresses": [address], "conditions": conditions, "nodeName": "n", "zone": "z"})
    }

    fn addresses(places: &Places) -> Vec<String> {
        places.ready().keys().map(ToString::to_string).collect()
    }

    #[test]
    fn only_who_is_said_to_be_ready_is_there() {
        for (conditions, expected) in [
            (json!({"ready": true}), true),
            (
                json!({"ready": true, "serving": true, "terminating": false}),
                true,
            ),
            // The Service publishes addresses that are not ready.
            (json!({"ready": true, "serving": false}), false),
            (
                json!({"ready": false, "serving": true, "terminating": true}),
                false,
            ),
            (json!({"ready": false}), false),
            (json!({"serving": true}), true),
            (json!({}), false),
            (json!(null), false),
        ] {
            let mut places = Places::default();
            let one = endpoint("192.0.2.1", &conditions);
            places.apply(Update::Set(Box::new(slice("a", &[one]))));
            assert_eq!(places.ready().len(), usize::from(expected), "{conditions}");
            assert_eq!(places.all().len(), 1, "it may still serve: {conditions}");
        }
    }

    #[test]
    fn slices_count_together_and_until_they_go() {
        let ready = json!({"ready": true});
        let [one, two, name] =
            ["192.0.2.1", "192.0.2.2", "web.example"].map(|it| endpoint(it, &ready));
        let mut places = Places::default();
        places.apply(Update::Set(Box::new(slice("a", &[two.clone(), name]))));
        places.apply(Update::Set(Box::new(slice("b", &[two.clone(), one]))));
        assert_eq!(addresses(&places), ["192.0.2.1", "192.0.2.2"]);
        let first = places.ready().into_values().next().unwrap();
        assert_eq!(
            (first.node.as_deref(), first.zone.as_deref()),
            (Some("n"), Some("z"))
        );
        places.apply(Update::Gone(ObjectId::new("weir", "b")));
        assert_eq!(addresses(&places), ["192.0.2.2"]);

        let three = endpoint("192.0.2.3", &ready);
        places.apply(Update::Restarted {
            namespace: Some("weir".to_owned()),
            objects: vec![slice("c", &[three])],
            unreadable: vec![ObjectId::new("weir", "a")],
        });
        assert_eq!(
            addresses(&places),
            ["192.0.2.2", "192.0.2.3"],
            "a is as it was"
        );
        places.apply(Update::Restarted {
            namespace: Some("weir".to_owned()),
            objects: Vec::new(),
            unreadable: Vec::new(),
        });
        assert_eq!(places.ready().len(), 0);
    }
}
