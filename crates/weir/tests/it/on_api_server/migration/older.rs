//! What an operator of KubeElasti leaves in a cluster, by what is known of its objects: its definition as Helm writes it, its
//! release, its Lease, and for each Service the private one, a copy of the public one, and the slice to its resolver.

use serde_json::{Value, json};
use weir_api::{
    crd::Kind,
    hold::names::{AddressFamily, PEER_LEASE, private_service, resolver_slice},
};

#[path = "../../../../../api/tests/it/on_api_server/older.rs"]
mod definitions;

/// Where its resolver is; nobody answers there.
pub(super) const RESOLVER: &str = "192.0.2.9";

/// Its definition, with the label of its release.
pub(super) fn definition() -> Value {
    let mut definition = definitions::old_definition(Kind::ElastiService);
    definition["metadata"]["labels"] = labels();
    definition
}

fn labels() -> Value {
    json!({
        "app.kubernetes.io/name": "elasti",
        "app.kubernetes.io/instance": "elasti",
        "app.kubernetes.io/managed-by": "Helm",
    })
}

/// The rest of its release, and what Helm remembers of it.
pub(super) fn release() -> Vec<Value> {
    let meta = |name: &str| json!({"name": name, "namespace": "elasti", "labels": labels()});
    let deployment = |name: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta(name),
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"containers": [{"name": "one", "image": "none"}]},
                },
            },
        })
    };
    let service = |name: &str, app: &str| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": meta(name),
            "spec": {"selector": {"app": app}, "ports": [{"port": 8013}]},
        })
    };
    let over_all = json!({"name": "elasti-manager-role", "labels": labels()});
    vec![
        deployment("elasti-operator-controller-manager"),
        deployment("elasti-resolver"),
        service(
            "elasti-operator-controller-service",
            "elasti-operator-controller-manager",
        ),
        service("elasti-resolver-service", "elasti-resolver"),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta("elasti-resolver")}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": over_all, "rules": [],
        }),
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {
                "name": "sh.helm.release.v1.elasti.v1", "namespace": "elasti",
                "labels": {"owner": "helm", "name": "elasti", "status": "deployed"},
            },
            "type": "helm.sh/release.v1",
        }),
    ]
}

/// Held by an operator that renewed it just now; how long it lasts.
pub(super) fn lease(seconds: u32) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": PEER_LEASE, "namespace": "elasti"},
        "spec": {
            "holderIdentity": "elasti-operator-controller-manager-x_1",
            "leaseDurationSeconds": seconds,
            "renewTime": "2026-01-01T00:00:00.000000Z",
        },
    })
}

/// KEDA's definition, as far as it matters here.
pub(super) fn scaled_objects() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "scaledobjects.keda.sh"},
        "spec": {
            "group": "keda.sh", "scope": "Namespaced",
            "names": {
                "kind": "ScaledObject", "listKind": "ScaledObjectList",
                "plural": "scaledobjects", "singular": "scaledobject",
            },
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    })
}

/// One held service of the user's.
pub(super) struct Held {
    pub(super) name: &'static str,
    pub(super) replicas: i32,
    pub(super) is_keda: bool,
}

impl Held {
    /// What the user has made.
    pub(super) fn of_user(&self) -> Vec<Value> {
        let Self {
            name,
            replicas,
            is_keda,
        } = *self;
        let app = json!({"app": name});
        let mut all = vec![
            json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": {"name": name, "labels": {"team": "shop"}, "annotations": {"note": "ours"}},
                "spec": {"selector": app, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
            }),
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
                "spec": {
                    "replicas": replicas, "selector": {"matchLabels": app},
                    "template": {
                        "metadata": {"labels": app},
                        "spec": {"containers": [{"name": "app", "image": "none"}]},
                    },
                },
            }),
            self.object(),
        ];
        if is_keda {
            all.push(json!({
                "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
                "metadata": {
                    "name": name,
                    "annotations": {
                        "autoscaling.keda.sh/paused": "true",
                        "autoscaling.keda.sh/paused-replicas": "0",
                    },
                },
                "spec": {"scaleTargetRef": {"name": name}},
            }));
        }
        all
    }

    /// The ElastiService, with the finalizer that the old operator gave it.
    fn object(&self) -> Value {
        let name = self.name;
        let mut object = json!({
            "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService",
            "metadata": {"name": name, "finalizers": ["elasti.truefoundry.com/finalizer"]},
            "spec": {
                "service": name, "minTargetReplicas": 1, "cooldownPeriod": 900,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "deployments", "name": name},
            },
        });
        if self.is_keda {
            object["spec"]["autoscaler"] = json!({"type": "keda", "name": name});
        }
        object
    }

    /// What it says of it.
    pub(super) fn status(&self) -> Value {
        let mode = if self.replicas == 0 { "proxy" } else { "serve" };
        json!({"status": {"mode": mode, "lastReconciledTime": "2026-01-01T00:00:00Z"}})
    }

    /// The private Service: the public one as it was when this was made, with its labels and annotations, owned by the
    /// ElastiService. Nobody followed the public one since, which had another port then.
    pub(super) fn private(&self, uid: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {
                "name": private_service(self.name),
                "labels": {"team": "shop"}, "annotations": {"note": "ours"},
                "ownerReferences": [{
                    "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService",
                    "name": self.name, "uid": uid, "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "selector": {"app": self.name, "old": "yes"},
                "ports": [{"name": "http", "port": 81, "targetPort": 8080}],
            },
        })
    }

    /// The slice to its resolver: of nobody, managed by nobody, without conditions.
    pub(super) fn slice(&self) -> Value {
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "name": resolver_slice(self.name, AddressFamily::V4),
                "labels": {"kubernetes.io/service-name": self.name},
            },
            "addressType": "IPv4",
            "endpoints": [{"addresses": [RESOLVER]}],
            "ports": [{"name": "http", "port": 8012, "protocol": "TCP"}],
        })
    }
}
