//! The older systems' definitions, written by hand from what the originals accept, require and prune.

use serde_json::{Value, json};
use weir_api::crd::Kind;

pub(super) fn old_definition(kind: Kind) -> Value {
    let mut crd = json!(kind.crd());
    let names = &crd["spec"]["names"];
    crd["spec"]["names"] = json!({
        "kind": names["kind"],
        "listKind": format!("{}List", kind.name()),
        "plural": names["plural"],
        "singular": names["singular"],
    });
    let (spec, status) = match kind {
        Kind::ElastiService => old_elasti_service(),
        Kind::TrafficSchedule => old_traffic_schedule(),
        Kind::TrafficWatch => old_traffic_watch(),
    };
    crd["spec"]["versions"] = json!([{
        "name": "v1alpha1",
        "served": true,
        "storage": true,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {
            "type": "object",
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": {"type": "object"},
                "spec": spec,
                "status": status,
            },
        }},
    }]);
    crd
}

fn object(properties: &Value) -> Value {
    json!({"type": "object", "properties": properties})
}

fn string() -> Value {
    json!({"type": "string"})
}

fn int32() -> Value {
    json!({"type": "integer", "format": "int32"})
}

fn old_elasti_service() -> (Value, Value) {
    let time = json!({"type": "string", "format": "date-time"});
    let spec = object(&json!({
        "service": string(),
        "scaleTargetRef": object(&json!({
            "apiVersion": {"type": "string", "enum": ["apps/v1", "argoproj.io/v1alpha1"]},
            "kind": {"type": "string", "enum": ["deployments", "rollouts", "Deployment", "StatefulSet", "Rollout"]},
            "name": string(),
        })),
        "minTargetReplicas": {"type": "integer", "format": "int32", "minimum": 1},
        "cooldownPeriod": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 604_800, "default": 900},
        "triggers": {"type": "array", "items": {
            "type": "object",
            "required": ["type"],
            "properties": {
                "type": {"type": "string", "enum": ["prometheus"]},
                "metadata": {"x-kubernetes-preserve-unknown-fields": true},
            },
        }},
        "autoscaler": {
            "type": "object",
            "required": ["name", "type"],
            "properties": {"name": string(), "type": {"type": "string", "enum": ["hpa", "keda"]}},
        },
        "enabledPeriod": object(&json!({
            "schedule": {"type": "string", "default": "0 0 * * *"},
            "duration": {"type": "string", "default": "24h"},
        })),
    }));
    let status =
        object(&json!({"lastReconciledTime": time, "lastScaledUpTime": time, "mode": string()}));
    (spec, status)
}

fn old_traffic_schedule() -> (Value, Value) {
    let autoscaling = object(&json!({
        "minReplicaCount": int32(), "maxReplicaCount": int32(), "cooldownPeriod": int32(), "cpuUtilization": int32(),
    }));
    let quantities =
        json!({"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": true}});
    let component = object(&json!({
        "autoscaling": autoscaling,
        "debug": {"type": "boolean"},
        "resources": object(&json!({"limits": quantities, "requests": quantities})),
    }));
    let spec = object(&json!({
        "target": object(&json!({"autoscaling": autoscaling})),
        "router": component,
        "consumer": component,
        "scheduler": object(&json!({
            "targetError": string(), "creditMin": string(), "creditMax": string(), "creditWindow": int32(),
            "policy": string(), "validFor": int32(), "discoveryInterval": int32(), "carbonTarget": string(),
            "carbonTimeout": int32(), "carbonCacheTTL": int32(), "throttleMin": string(),
            "throttleIntensityFloor": string(), "throttleIntensityCeiling": string(),
        })),
    }));
    let mut status = object(&json!({
        "flavours": {"type": "array", "items": {
            "type": "object",
            "required": ["precision", "weight"],
            "properties": {"precision": {"type": "integer"}, "weight": {"type": "integer"}, "emissions": string()},
        }},
        "activePolicy": string(),
        "validUntil": {"type": "string", "format": "date-time"},
        "creditBalance": string(),
        "diagnostics": {"type": "object", "additionalProperties": string()},
        "effectiveReplicaCeilings": {"type": "object", "additionalProperties": int32()},
    }));
    status["required"] = json!(["activePolicy", "flavours", "validUntil"]);
    (spec, status)
}

fn old_traffic_watch() -> (Value, Value) {
    // A whole Deployment in the original; it is the empty schema of `metadata` that matters.
    let mut deployment = object(&json!({
        "replicas": int32(),
        "selector": object(&json!({"matchLabels": {"type": "object", "additionalProperties": string()}})),
        "template": object(&json!({
            "metadata": {"type": "object"},
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        })),
    }));
    deployment["required"] = json!(["selector", "template"]);
    let mut spec = object(&json!({
        "maxBandwidthPercent": string(),
        "label": string(),
        "deployment": deployment,
    }));
    spec["required"] = json!(["deployment", "maxBandwidthPercent"]);
    let mut node = object(&json!({
        "currentBandwidthPercent": string(),
        "currentTransmitTotal": {"type": "integer", "format": "int64"},
        "time": {"type": "integer", "format": "int64"},
        "unfit": {"type": "boolean"},
    }));
    node["required"] = json!([
        "currentBandwidthPercent",
        "currentTransmitTotal",
        "time",
        "unfit"
    ]);
    let mut status = object(&json!({
        "ready": {"type": "boolean"},
        "nodes": {"type": "object", "additionalProperties": node},
    }));
    status["required"] = json!(["nodes", "ready"]);
    (spec, status)
}
