//! What there is to know for the `network` triggers of an object: its spec and where its Service leads → whose traffic, and
//! how little is idle.
//!
//! Pure. Pods are known from the Service's EndpointSlices, which name pod and node: nothing else is watched for it.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc, time::Duration};

use thiserror::Error;
use weir_api::{
    form::threshold::{ThresholdError, parse_rate},
    hold::{Trigger, TriggerType, defaults::NETWORK_TRIGGER_THRESHOLD_BYTES_PER_SECOND},
};

use crate::elasti_service::sight::{PodSight, Sight};

/// What there is to know.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// Nothing: it has no such trigger.
    Nothing,
    /// It has one that cannot be used.
    Unusable(Obstacle),
    /// The traffic of its pods.
    Traffic(Traffic),
}

/// Whose traffic, and how little is idle.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// Bytes per second of each pod, below which it is idle.
    pub threshold: f64,
    /// For so long.
    pub cooldown: Duration,
    /// The pods to which the Service leads, by UID.
    pub pods: BTreeMap<Arc<str>, Place>,
    /// An address to which it leads as well, and of which nobody says what it is.
    pub stranger: Option<IpAddr>,
}

/// Where a pod is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its name, for people.
    pub name: String,
    /// Its node.
    pub node: Arc<str>,
    /// Its address.
    pub address: IpAddr,
}

/// Why a trigger cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Obstacle {
    /// A kubelet tells of all pods of its node, so who asks it must be allowed to see all.
    #[error(
        "a network trigger asks the kubelets, which an operator with --watch-namespace has no right to; use prometheus or schedule"
    )]
    SomeNamespaces,
    /// Counters of a node are not those of a pod.
    #[error(
        "a network trigger cannot tell the traffic of pods with hostNetwork from that of their node; use prometheus or schedule"
    )]
    HostNetwork,
    /// The condition Accepted says so as well.
    #[error(transparent)]
    Threshold(#[from] ThresholdError),
}

/// What there is to know for these triggers. `may_ask`: whether kubelets may be asked at all.
pub fn wanted(triggers: &[Trigger], cooldown: Duration, sight: &Sight, may_ask: bool) -> Wanted {
    let of_network = triggers
        .iter()
        .filter(|trigger| trigger.type_ == TriggerType::Network);
    // All of them must hold, so the lowest decides.
    let lowest = of_network
        .map(threshold)
        .reduce(|one, other| Ok(one?.min(other?)));
    let threshold = match lowest {
        None => return Wanted::Nothing,
        Some(Err(error)) => return Wanted::Unusable(error.into()),
        Some(Ok(threshold)) => threshold,
    };
    if !may_ask {
        return Wanted::Unusable(Obstacle::SomeNamespaces);
    }
    if sight.target.there().is_some_and(|it| it.host_network) {
        return Wanted::Unusable(Obstacle::HostNetwork);
    }
    let mut traffic = Traffic {
        threshold,
        cooldown,
        pods: BTreeMap::new(),
        stranger: None,
    };
    let theirs = sight.slices.iter().filter(|slice| !slice.is_ours);
    for (address, pod) in theirs.flat_map(|slice| &slice.pods) {
        match pod {
            Some(PodSight { uid, name, node }) => {
                let place = Place {
                    name: name.clone(),
                    node: Arc::clone(node),
                    address: *address,
                };
                // One with addresses of both families is in two slices, whose order says nothing.
                let known = traffic.pods.entry(Arc::clone(uid)).or_insert(place);
                known.address = known.address.min(*address);
            }
            None => traffic.stranger = traffic.stranger.into_iter().chain([*address]).min(),
        }
    }
    Wanted::Traffic(traffic)
}

fn threshold(trigger: &Trigger) -> Result<f64, ThresholdError> {
    #[expect(clippy::cast_precision_loss, reason = "a number of four digits")]
    let default = NETWORK_TRIGGER_THRESHOLD_BYTES_PER_SECOND as f64;
    let given = trigger.metadata.threshold.as_ref();
    given.map_or(Ok(default), parse_rate)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{apps::v1::Deployment, discovery::v1::EndpointSlice};
    use serde_json::{Value, json};
    use weir_api::hold::{ElastiService, InForce};

    use super::*;
    use crate::elasti_service::sight::{Seen, SliceSight, Workload};

    const COOLDOWN: Duration = Duration::from_mins(15);

    fn sight(pod: &Value, slices: &[Value]) -> Sight {
        let object: ElastiService = serde_json::from_value(json!({
            "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {
                "service": "web",
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            },
        }))
        .unwrap();
        let deployment: Deployment = serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"selector": {}, "template": {"spec": pod}},
        }))
        .unwrap();
        Sight {
            object: Arc::new(InForce::from(object)),
            service: None,
            target: Seen::There(Arc::new(Workload::of_deployment(&deployment))),
            slices: slices.iter().map(|value| Arc::new(slice(value))).collect(),
            scaler: Seen::Missing,
            hpa: None,
        }
    }

    fn slice(value: &Value) -> SliceSight {
        let mut object = json!({
            "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4",
        });
        let fields = object.as_object_mut().unwrap();
        fields.extend(value.as_object().unwrap().clone());
        let object: EndpointSlice = serde_json::from_value(object).unwrap();
        SliceSight::of(&object).unwrap()
    }

    fn endpoint(address: &str, pod: &str, node: &str) -> Value {
        json!({
            "addresses": [address], "nodeName": node,
            "conditions": {"ready": true, "serving": true, "terminating": false},
            "targetRef": {"kind": "Pod", "namespace": "shop", "name": pod, "uid": format!("uid-{pod}")},
        })
    }

    fn network(metadata: &Value) -> Trigger {
        serde_json::from_value(json!({"type": "network", "metadata": metadata})).unwrap()
    }

    fn traffic(triggers: &[Trigger], sight: &Sight) -> Traffic {
        match wanted(triggers, COOLDOWN, sight, true) {
            Wanted::Traffic(traffic) => traffic,
            other => panic!("{other:?}"),
        }
    }

    fn ordinary() -> Value {
        json!({"containers": []})
    }

    #[test]
    fn pods_that_serve_are_known_by_the_slices_of_the_service() {
        let mut going = endpoint("10.0.0.3", "c", "n1");
        going["conditions"]["terminating"] = true.into();
        let mut starting = endpoint("10.0.0.4", "d", "n1");
        starting["conditions"] = json!({"ready": false, "serving": false});
        let ours = json!({
            "metadata": {"name": "ours", "labels": {
                "kubernetes.io/service-name": "web",
                "endpointslice.kubernetes.io/managed-by": "weir",
            }},
            "endpoints": [endpoint("10.0.0.9", "resolver", "n9")],
        });
        let v6 = json!({"addressType": "IPv6", "endpoints": [endpoint("fd00::1", "a", "n1")]});
        let sight = sight(
            &ordinary(),
            &[
                json!({"endpoints": [endpoint("10.0.0.1", "a", "n1"), going, starting]}),
                json!({"endpoints": [endpoint("10.0.0.2", "b", "n2")]}),
                ours,
                v6,
            ],
        );
        let traffic = traffic(&[network(&json!({}))], &sight);
        let places: Vec<(&str, &str, &str)> = traffic
            .pods
            .iter()
            .map(|(uid, place)| (&**uid, &*place.name, &*place.node))
            .collect();
        assert_eq!(places, [("uid-a", "a", "n1"), ("uid-b", "b", "n2")]);
        assert_eq!(traffic.stranger, None);
    }

    #[test]
    fn an_address_that_is_no_pods_is_named() {
        let mut no_pod = endpoint("10.0.0.7", "a", "n1");
        no_pod["targetRef"] = Value::Null;
        let mut no_node = endpoint("10.0.0.8", "b", "n1");
        no_node["nodeName"] = Value::Null;
        let sight = sight(&ordinary(), &[json!({"endpoints": [no_node, no_pod]})]);
        let traffic = traffic(&[network(&json!({}))], &sight);
        assert_eq!(traffic.stranger, "10.0.0.7".parse().ok());
        assert!(traffic.pods.is_empty());
    }

    #[test]
    fn the_lowest_threshold_decides_and_the_default_is_one() {
        let sight = sight(&ordinary(), &[]);
        let given = |threshold: Value| network(&json!({"threshold": threshold}));
        let default = || network(&json!({}));
        for (triggers, lowest) in [
            (vec![default()], 4096.0),
            (vec![given(json!("1e6"))], 1_000_000.0),
            (
                vec![given(json!(9000)), given(json!(0.5)), given(json!("7"))],
                0.5,
            ),
            (vec![given(json!(9000)), default()], 4096.0),
        ] {
            let found = traffic(&triggers, &sight).threshold;
            assert!((found - lowest).abs() < f64::EPSILON, "{found}");
        }
    }

    #[test]
    fn what_cannot_be_used_says_what_to_do() {
        let on_host = sight(&json!({"containers": [], "hostNetwork": true}), &[]);
        let usual = sight(&ordinary(), &[]);
        let trigger = [network(&json!({}))];
        let other: Trigger = serde_json::from_value(json!({"type": "resolver"})).unwrap();
        assert_eq!(wanted(&[other], COOLDOWN, &on_host, false), Wanted::Nothing);
        let unusable =
            |sight, may_ask, triggers: &[Trigger]| match wanted(triggers, COOLDOWN, sight, may_ask)
            {
                Wanted::Unusable(obstacle) => obstacle.to_string(),
                other => panic!("{other:?}"),
            };
        assert!(unusable(&on_host, true, &trigger).contains("hostNetwork"));
        assert!(unusable(&usual, false, &trigger).contains("--watch-namespace"));
        for bad in [json!(0), json!(-1), json!("few")] {
            let triggers = [network(&json!({})), network(&json!({"threshold": bad}))];
            assert!(unusable(&usual, true, &triggers).starts_with("the threshold"));
        }
    }
}
