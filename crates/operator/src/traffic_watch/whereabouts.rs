//! Where each node's exporter is: on a port of the node itself, or where the endpoints of somebody's Service are. Values
//! only: [`super::world`] hears of Nodes and EndpointSlices and asks here.

use std::{
    collections::{BTreeMap, HashSet},
    net::{IpAddr, SocketAddr},
};

use k8s_openapi::api::discovery::v1::EndpointSlice;
use weir_role::cluster::{ObjectId, Update};

use crate::settings::exporters::{ServicePort, Where};

/// Where exporters are.
#[derive(Debug)]
pub struct Whereabouts {
    place: Where,
    slices: BTreeMap<ObjectId, BTreeMap<String, Place>>,
    is_listed: bool,
}

/// One endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    address: SocketAddr,
    ready: bool,
}

impl Whereabouts {
    /// Nothing is known of them yet.
    pub fn new(place: Where) -> Self {
        Self {
            place,
            slices: BTreeMap::new(),
            is_listed: false,
        }
    }

    /// Whether all that there is to hear has been heard.
    pub fn is_known(&self) -> bool {
        self.is_listed || matches!(self.place, Where::Nodes(_))
    }

    /// Takes in what happened to slices of the Service; whether any exporter is elsewhere now.
    pub fn hear(&mut self, update: Update<EndpointSlice>) -> bool {
        match update {
            Update::Set(slice) => self.put(&slice),
            Update::Gone(id) => self.slices.remove(&id).is_some(),
            Update::Restarted {
                objects,
                unreadable,
                ..
            } => {
                let is_first = !std::mem::replace(&mut self.is_listed, true);
                let there: HashSet<ObjectId> =
                    objects.iter().map(ObjectId::of).chain(unreadable).collect();
                let before = self.slices.len();
                self.slices.retain(|id, _| there.contains(id));
                let mut changed = is_first || self.slices.len() != before;
                for slice in &objects {
                    changed |= self.put(slice);
                }
                changed
            }
        }
    }

    /// Where the exporter of this node is; `own` is the node's address.
    pub fn of(&self, node: &str, own: Option<IpAddr>) -> Option<SocketAddr> {
        if let Where::Nodes(port) = self.place {
            return own.map(|own| SocketAddr::new(own, port));
        }
        let on_it = self.slices.values().filter_map(|places| places.get(node));
        // One that is not ready may answer all the same, and nobody else could.
        let best = on_it.max_by_key(|place| (place.ready, std::cmp::Reverse(place.address)));
        best.map(|place| place.address)
    }

    fn put(&mut self, slice: &EndpointSlice) -> bool {
        let Where::Service(service) = &self.place else {
            return false;
        };
        let places = places(slice, &service.port);
        let id = ObjectId::of(slice);
        let is_new = self.slices.get(&id) != Some(&places);
        self.slices.insert(id, places);
        is_new
    }
}

/// The endpoints of a slice by their nodes. Without a port that is meant there are none: it is not guessed.
fn places(slice: &EndpointSlice, wanted: &ServicePort) -> BTreeMap<String, Place> {
    let ports = slice.ports.as_deref().unwrap_or_default();
    let port = match wanted {
        ServicePort::Number(number) => Some(*number),
        ServicePort::Named(name) => {
            let named = ports.iter().find(|port| port.name.as_ref() == Some(name));
            named.and_then(|port| u16::try_from(port.port?).ok())
        }
        ServicePort::Only => match ports {
            [only] => only.port.and_then(|port| u16::try_from(port).ok()),
            _ => None,
        },
    };
    let Some(port) = port else {
        return BTreeMap::new();
    };
    let mut places: BTreeMap<String, Place> = BTreeMap::new();
    for endpoint in &slice.endpoints {
        let address = endpoint.addresses.first();
        let address = address.and_then(|address| address.parse::<IpAddr>().ok());
        let (Some(node), Some(address)) = (&endpoint.node_name, address) else {
            continue;
        };
        // Absent means that nobody knows, and is to be taken for ready.
        let ready = endpoint.conditions.as_ref().and_then(|it| it.ready);
        let place = Place {
            address: SocketAddr::new(address, port),
            ready: ready.unwrap_or(true),
        };
        let known = places.entry(node.clone()).or_insert(place);
        if place.ready && !known.ready {
            *known = place;
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::settings::exporters::ServiceRef;

    fn slice(name: &str, ports: &Value, endpoints: &Value) -> EndpointSlice {
        serde_json::from_value(json!({
            "metadata": { "name": name, "namespace": "monitoring" },
            "addressType": "IPv4", "ports": ports, "endpoints": endpoints,
        }))
        .unwrap()
    }

    fn behind(port: ServicePort) -> Whereabouts {
        Whereabouts::new(Where::Service(ServiceRef {
            namespace: "monitoring".to_owned(),
            name: "node-exporter".to_owned(),
            port,
        }))
    }

    fn listed(whereabouts: &mut Whereabouts, objects: Vec<EndpointSlice>) {
        whereabouts.hear(Update::Restarted {
            namespace: None,
            objects,
            unreadable: Vec::new(),
        });
    }

    #[test]
    fn without_a_service_exporters_are_on_the_nodes() {
        let whereabouts = Whereabouts::new(Where::Nodes(9810));
        assert!(whereabouts.is_known());
        let own = "10.0.0.1".parse().ok();
        assert_eq!(whereabouts.of("a", own), "10.0.0.1:9810".parse().ok());
        assert_eq!(whereabouts.of("a", None), None);
    }

    #[test]
    fn endpoints_of_a_service_tell_of_the_nodes_that_they_are_on() {
        let mut whereabouts = behind(ServicePort::Only);
        assert!(!whereabouts.is_known());
        let ports = json!([{ "name": "https", "port": 9100 }]);
        let one = json!([
            { "addresses": ["10.0.0.1"], "nodeName": "a", "conditions": { "ready": false } },
            { "addresses": ["10.0.0.2"], "nodeName": "b" },
            { "addresses": ["10.0.0.9"] },
        ]);
        let two = json!([{ "addresses": ["10.0.1.1"], "nodeName": "a", "conditions": { "ready": true } }]);
        listed(
            &mut whereabouts,
            vec![slice("s1", &ports, &one), slice("s2", &ports, &two)],
        );
        assert!(whereabouts.is_known());
        let own = "10.9.9.9".parse().ok();
        let of =
            |whereabouts: &Whereabouts, node| whereabouts.of(node, own).map(|it| it.to_string());
        assert_eq!(
            of(&whereabouts, "a").as_deref(),
            Some("10.0.1.1:9100"),
            "the ready one"
        );
        assert_eq!(of(&whereabouts, "b").as_deref(), Some("10.0.0.2:9100"));
        assert_eq!(of(&whereabouts, "c"), None, "never the node's own address");
        assert!(whereabouts.hear(Update::Gone(ObjectId::new("monitoring", "s2"))));
        assert_eq!(
            of(&whereabouts, "a").as_deref(),
            Some("10.0.0.1:9100"),
            "rather than nobody"
        );
        let same = Update::Set(Box::new(slice("s1", &ports, &one)));
        assert!(!whereabouts.hear(same), "nothing new");
    }

    #[test]
    fn of_several_ports_one_must_be_named() {
        let ports = json!([{ "name": "http", "port": 9100 }, { "name": "https", "port": 9101 }]);
        let endpoints = json!([{ "addresses": ["10.0.0.1"], "nodeName": "a" }]);
        for (wanted, port) in [
            (ServicePort::Only, None),
            (ServicePort::Named("https".to_owned()), Some(9101)),
            (ServicePort::Named("other".to_owned()), None),
            (ServicePort::Number(9200), Some(9200)),
        ] {
            let mut whereabouts = behind(wanted.clone());
            listed(&mut whereabouts, vec![slice("s", &ports, &endpoints)]);
            let found = whereabouts.of("a", None).map(|it| it.port());
            assert_eq!(found, port, "{wanted:?}");
        }
    }
}
