//! Objects that must be accepted: every form that the field tables allow, and what users of the
//! three older systems have, each with what `validate()` says of it.

#![allow(clippy::too_many_lines, reason = "a table is as long as it is")]

use serde_json::{Value, json};
use weir_api::crd::Kind;

use super::base;

/// An object that the API server must take.
pub(crate) struct Accepted {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) object: Value,
    /// Field and reason of each finding, in order.
    pub(crate) findings: Vec<(&'static str, &'static str)>,
}

/// All accepted objects.
pub(crate) fn accepted() -> Vec<Accepted> {
    [elasti_services(), traffic_schedules(), traffic_watches()]
        .into_iter()
        .flatten()
        .collect()
}

fn with_spec(kind: Kind, name: &'static str, spec: Value) -> Accepted {
    let mut object = base(kind);
    object["metadata"]["name"] = json!(name);
    if let Value::Object(fields) = spec {
        for (key, value) in fields {
            object["spec"][key] = value;
        }
    }
    Accepted {
        name,
        kind,
        object,
        findings: Vec::new(),
    }
}

impl Accepted {
    fn found(mut self, findings: &[(&'static str, &'static str)]) -> Self {
        self.findings = findings.to_vec();
        self
    }
}

fn elasti_services() -> Vec<Accepted> {
    let target = |api_version: &str, kind: &str| json!({"scaleTargetRef": {"apiVersion": api_version, "kind": kind, "name": "a.b-c"}});
    let object = |name, spec| with_spec(Kind::ElastiService, name, spec);
    let trigger = |name, trigger: Value| object(name, json!({"triggers": [trigger]}));
    let period = |name, period: Value| object(name, json!({"enabledPeriod": period}));
    vec![
        object("least", json!({})),
        object("deployment-old-spelling", target("apps/v1", "deployments")),
        object("stateful-set", target("apps/v1", "StatefulSet")),
        object("rollout", target("argoproj.io/v1alpha1", "Rollout")),
        object("rollout-old-spelling", target("argoproj.io/v1alpha1", "rollouts")),
        object("any-kind-with-a-scale", target("example.com/v1beta2", "Widget")),
        object("replication-controller", target("v1", "ReplicationController")),
        object("longest-names", json!({
            "service": "a".repeat(63),
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a".repeat(253)},
        })),
        object("numbers-at-their-bounds", json!({"minTargetReplicas": i32::MAX, "cooldownPeriod": 604_800})),
        object("zero-cooldown", json!({"cooldownPeriod": 0})),
        object("no-triggers", json!({"triggers": []})),
        // As in the older system's sample: the threshold is a string.
        object("older-sample", json!({
            "minTargetReplicas": 1,
            "cooldownPeriod": 5,
            "triggers": [{
                "type": "prometheus",
                "metadata": {
                    "query": "sum(rate(nginx_ingress_controller_nginx_process_requests_total[1m])) or vector(0)",
                    "serverAddress": "http://kube-prometheus-stack-prometheus.monitoring.svc.cluster.local:9090",
                    "threshold": "0.5",
                    "uptimeFilter": "container=\"prometheus\"",
                },
            }],
            "autoscaler": {"name": "target-deployment", "type": "hpa"},
        })),
        trigger("threshold-as-number", json!({"type": "prometheus", "metadata": {"query": "up", "threshold": 0.5}})),
        trigger("threshold-as-integer", json!({"type": "prometheus", "metadata": {"query": "up", "threshold": 1}})),
        trigger("trigger-with-headers", json!({"type": "prometheus", "metadata": {
            "query": "up", "threshold": "1", "serverAddress": "",
            "headers": {"Authorization": "Bearer x", "X-Scope-OrgID": "1"},
        }})),
        trigger("threshold-missing", json!({"type": "prometheus", "metadata": {"query": "up"}}))
            .found(&[("spec.triggers[0].metadata.threshold", "MissingThreshold")]),
        trigger("threshold-not-a-number", json!({"type": "prometheus", "metadata": {"query": "up", "threshold": "low"}}))
            .found(&[("spec.triggers[0].metadata.threshold", "InvalidThreshold")]),
        trigger("threshold-not-finite", json!({"type": "prometheus", "metadata": {"query": "up", "threshold": "NaN"}}))
            .found(&[("spec.triggers[0].metadata.threshold", "InvalidThreshold")]),
        trigger("threshold-a-list", json!({"type": "prometheus", "metadata": {"query": "up", "threshold": [1]}}))
            .found(&[("spec.triggers[0].metadata.threshold", "InvalidThreshold")]),
        trigger("header-with-a-space", json!({"type": "prometheus", "metadata": {
            "query": "up", "threshold": 1, "headers": {"Bad Name": "x"},
        }}))
            .found(&[("spec.triggers[0].metadata.headers", "InvalidHeader")]),
        trigger("unknown-key-is-kept", json!({"type": "prometheus", "metadata": {"query": "up", "threshold": 1, "treshold": 2}}))
            .found(&[("spec.triggers[0].metadata.treshold", "UnusedTriggerKey")]),
        trigger("address-in-capitals", json!({"type": "prometheus", "metadata": {
            "query": "up", "threshold": 1, "serverAddress": "HTTPS://user:secret@[::1]:9090/prefix",
        }})),
        trigger("network", json!({"type": "network"})),
        trigger("network-with-threshold", json!({"type": "network", "metadata": {"threshold": 1000}})),
        trigger("network-with-threshold-as-text", json!({"type": "network", "metadata": {"threshold": "0.5"}})),
        trigger("network-with-no-number", json!({"type": "network", "metadata": {"threshold": "few"}}))
            .found(&[("spec.triggers[0].metadata.threshold", "InvalidThreshold")]),
        trigger("network-below-nothing", json!({"type": "network", "metadata": {"threshold": 0}}))
            .found(&[("spec.triggers[0].metadata.threshold", "InvalidThreshold")]),
        trigger("network-below-zero", json!({"type": "network", "metadata": {"threshold": "-4096"}}))
            .found(&[("spec.triggers[0].metadata.threshold", "InvalidThreshold")]),
        trigger("network-with-query", json!({"type": "network", "metadata": {"query": "up"}}))
            .found(&[("spec.triggers[0].metadata.query", "UnusedTriggerKey")]),
        trigger("schedule", json!({"type": "schedule", "metadata": {
            "schedule": "0 20 * * MON-FRI", "duration": "10h", "timeZone": "Europe/Berlin",
        }})),
        trigger("schedule-in-no-zone", json!({"type": "schedule", "metadata": {
            "schedule": "0 20 * * *", "duration": "10h", "timeZone": "Europe/Atlantis",
        }}))
            .found(&[("spec.triggers[0].metadata.timeZone", "UnknownTimeZone")]),
        trigger("schedule-in-two-zones", json!({"type": "schedule", "metadata": {
            "schedule": "CRON_TZ=Asia/Tokyo 0 20 * * *", "duration": "10h", "timeZone": "Europe/Berlin",
        }}))
            .found(&[("spec.triggers[0].metadata.timeZone", "TwoTimeZones")]),
        trigger("resolver", json!({"type": "resolver", "metadata": {"behindResolver": true}})),
        trigger("resolver-with-threshold", json!({"type": "resolver", "metadata": {"behindResolver": true, "threshold": 1}}))
            .found(&[("spec.triggers[0].metadata.threshold", "UnusedTriggerKey")]),
        trigger("network-behind-resolver", json!({"type": "network", "metadata": {"behindResolver": false}}))
            .found(&[("spec.triggers[0].metadata.behindResolver", "UnusedTriggerKey")]),
        object("keda", json!({"autoscaler": {"type": "keda", "name": "a.b"}})),
        period("period-by-default", json!({})),
        period("period", json!({"schedule": "0 9 * * 1-5", "duration": "8h"})),
        period("period-of-names", json!({"schedule": "*/15 0-23/2 1,15 jan-MAR,12 sun,MON-wed", "duration": "1h30m"})),
        period("period-of-question-marks", json!({"schedule": "5/10 ? ? * ?", "duration": ".5h"})),
        period("period-with-empty-items", json!({"schedule": "1,,2 9, * * *", "duration": "+24h"})),
        period("period-in-micro-seconds", json!({"duration": "86400s5μs"})),
        period("period-at-length", json!({
            "schedule": format!("CRON_TZ=America/Argentina/Buenos_Aires {} 6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22 * * MON,TUE,WED,THU,FRI", "0,5,10,15,20,25,30,35,40,45,50,55"),
        })),
        period("period-that-never-comes", json!({"schedule": "0 0 31 2 *", "duration": "8h"}))
            .found(&[("spec.enabledPeriod.schedule", "InvalidSchedule")]),
        period("period-with-odd-spaces", json!({"schedule": "  0   9 * *\t1-5 ", "duration": "8h"})),
        period("period-in-a-zone", json!({"schedule": "CRON_TZ=America/New_York 0 22 * * *", "duration": "28800s"})),
        period("period-in-no-zone", json!({"schedule": "CRON_TZ=Mars/Olympus 0 22 * * *", "duration": "8h"}))
            .found(&[("spec.enabledPeriod.schedule", "InvalidSchedule")]),
        period("period-reversed", json!({"schedule": "0 22-6 * * *", "duration": "8h"}))
            .found(&[("spec.enabledPeriod.schedule", "InvalidSchedule")]),
        period("period-of-nothing", json!({"schedule": "0 22 * * *", "duration": "0s"}))
            .found(&[("spec.enabledPeriod.duration", "InvalidDuration")]),
        object("probes", json!({"probeResponse": [
            {"response": {"status": 204, "body": ""}},
            {"method": "GET", "path": {}, "response": {"status": 200, "body": "ok"}},
            {"path": {"type": "Exact", "value": "/healthz"}, "response": {"status": 503, "body": "{}"}},
            {
                "path": {"type": "RegularExpression", "value": "health|live"},
                "headers": [{"name": "User-Agent", "type": "RegularExpression", "value": "^GoogleHC/"}],
                "queryParams": [{"name": "full", "value": "1"}],
                "method": "HEAD",
                "response": {"status": 200, "body": "ok"},
            },
        ]})),
        object("probe-with-a-bad-expression", json!({"probeResponse": [{
            "path": {"type": "RegularExpression", "value": "(unclosed"},
            "headers": [{"name": "a", "type": "RegularExpression", "value": "(?!lookahead)"}],
            "queryParams": [{"name": "a", "type": "RegularExpression", "value": "**"}],
            "response": {"status": 200, "body": ""},
        }]}))
            .found(&[
                ("spec.probeResponse[0].path.value", "InvalidRegularExpression"),
                ("spec.probeResponse[0].headers[0].value", "InvalidRegularExpression"),
                ("spec.probeResponse[0].queryParams[0].value", "InvalidRegularExpression"),
            ]),
        object("probe-with-an-odd-header", json!({"probeResponse": [{
            "headers": [{"name": "x'y`z", "value": ""}],
            "response": {"status": 200, "body": ""},
        }]})),
        object("late-readiness", json!({"earlyReadiness": false})),
    ]
}

fn traffic_schedules() -> Vec<Accepted> {
    let object = |name, spec| with_spec(Kind::TrafficSchedule, name, spec);
    let scheduler = |name, scheduler: Value| object(name, json!({"scheduler": scheduler}));
    let provider = |name, provider: Value| object(name, json!({"provider": provider}));
    let resources = json!({
        "requests": {"cpu": "200m", "memory": "256Mi"},
        "limits": {"cpu": 1, "memory": "512Mi"},
    });
    vec![
        object("no-spec", Value::Null),
        object("empty-spec", json!({"scheduler": {}})),
        // As in the original's demo: the target and the time-out are none, and were accepted.
        object("original-demo", json!({
            "target": {"autoscaling": {"minReplicaCount": 0, "maxReplicaCount": 12, "cooldownPeriod": 120, "cpuUtilization": 90}},
            "router": {
                "debug": true,
                "autoscaling": {"minReplicaCount": 1, "maxReplicaCount": 15, "cooldownPeriod": 60, "cpuUtilization": 80},
                "resources": resources,
            },
            "consumer": {
                "debug": true,
                "autoscaling": {"minReplicaCount": 0, "maxReplicaCount": 12, "cooldownPeriod": 120, "cpuUtilization": 90},
                "resources": resources,
            },
            "scheduler": {
                "targetError": "0.15", "creditMin": "-2.0", "creditMax": "2.0", "creditWindow": 10,
                "policy": "forecast-aware", "validFor": 5, "discoveryInterval": 30,
                "carbonTarget": "150", "carbonTimeout": 5000, "carbonCacheTTL": 5,
                "throttleMin": "0.01", "throttleIntensityFloor": "250.0", "throttleIntensityCeiling": "300.0",
            },
        }))
            .found(&[
                ("spec.scheduler.carbonTarget", "UnknownCarbonTarget"),
                ("spec.scheduler.carbonTimeout", "Clamped"),
            ]),
        scheduler("unknown-policy", json!({"policy": "precision-tier"}))
            .found(&[("spec.scheduler.policy", "UnknownPolicy")]),
        scheduler("unknown-evaluator", json!({"evaluator": "Consumer"}))
            .found(&[("spec.scheduler.evaluator", "UnknownEvaluator")]),
        scheduler("evaluator-consumer", json!({"evaluator": "consumer", "policy": "optimal"})),
        scheduler("unparsable-decimals", json!({
            "targetError": "15%", "creditMin": "x", "creditMax": "one",
            "throttleMin": "0,5", "throttleIntensityFloor": "low", "throttleIntensityCeiling": "0x1p3",
        }))
            .found(&[
                ("spec.scheduler.targetError", "UnparsableDecimal"),
                ("spec.scheduler.creditMin", "UnparsableDecimal"),
                ("spec.scheduler.creditMax", "UnparsableDecimal"),
                ("spec.scheduler.throttleMin", "UnparsableDecimal"),
                ("spec.scheduler.throttleIntensityFloor", "UnparsableDecimal"),
                ("spec.scheduler.throttleIntensityCeiling", "UnparsableDecimal"),
            ]),
        scheduler("odd-but-right-decimals", json!({
            "targetError": "1.5e-01", "creditMin": "-.5", "creditMax": "+5.", "throttleMin": "1E-2",
        })),
        scheduler("decimals-with-spaces", json!({"targetError": " 0.1 ", "creditMin": " -1", "creditMax": "1 "})),
        scheduler("decimals-with-all-their-digits", json!({
            "targetError": "0.1000000000000000055511151231257827021181583404541015625000000000000000",
        })),
        scheduler("blank-means-absent", json!({"targetError": " ", "policy": "", "carbonTarget": "", "evaluator": ""})),
        scheduler("equal-bounds", json!({
            "creditMin": "1", "creditMax": "1.0",
            "throttleIntensityFloor": "200", "throttleIntensityCeiling": "2e2",
        })),
        scheduler("one-bound-unparsable", json!({"creditMin": "5", "creditMax": "four"}))
            .found(&[("spec.scheduler.creditMax", "UnparsableDecimal")]),
        scheduler("beyond-a-double", json!({"creditMin": "1e999", "creditMax": "1"}))
            .found(&[("spec.scheduler.creditMin", "NotFinite")]),
        scheduler("bounds-that-only-validate-compares", json!({"creditMin": "1e100", "creditMax": "1"}))
            .found(&[("spec.scheduler.creditMin", "MinAboveMax")]),
        scheduler("shares-beyond-one", json!({"targetError": "1.5", "throttleMin": "-1"}))
            .found(&[
                ("spec.scheduler.targetError", "Clamped"),
                ("spec.scheduler.throttleMin", "Clamped"),
            ]),
        scheduler("zeros", json!({"validFor": 0, "discoveryInterval": 0, "carbonTimeout": 0, "carbonCacheTTL": 0, "creditWindow": 0}))
            .found(&[
                ("spec.scheduler.validFor", "ZeroSeconds"),
                ("spec.scheduler.discoveryInterval", "ZeroSeconds"),
                ("spec.scheduler.carbonTimeout", "ZeroSeconds"),
            ]),
        scheduler("regions", json!({"carbonTarget": "region:13"})),
        scheduler("postcodes", json!({"carbonTarget": "postcode:RG10", "carbonTimeout": 30})),
        scheduler("a-region-that-is-none", json!({"carbonTarget": "region:99"}))
            .found(&[("spec.scheduler.carbonTarget", "UnknownCarbonTarget")]),
        scheduler("shortest-budget-window", json!({"budgetWindow": "1h"})),
        scheduler("longest-budget-window", json!({"budgetWindow": "8784h0m0s"})),
        object("no-replicas", json!({
            "router": {"autoscaling": {"minReplicaCount": 0, "maxReplicaCount": 0}},
            "consumer": {"autoscaling": {"minReplicaCount": 0, "maxReplicaCount": 0}},
            "target": {"autoscaling": {"minReplicaCount": 0}},
        }))
            .found(&[
                ("spec.router.autoscaling.minReplicaCount", "RouterNeedsAReplica"),
                ("spec.router.autoscaling.maxReplicaCount", "AtLeastOneReplica"),
                ("spec.consumer.autoscaling.maxReplicaCount", "AtLeastOneReplica"),
            ]),
        object("for-a-service", json!({"serviceRef": {"name": "web"}})),
        object("by-selector", json!({"selector": {
            "matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}],
        }})),
        object("by-a-selector-that-selects-nothing", json!({"selector": {
            "matchLabels": {"": "x y"},
            "matchExpressions": [
                {"key": "!!", "operator": "Foo"},
                {"key": "a", "operator": "In", "values": []},
                {"key": "a", "operator": "Exists", "values": ["x y"]},
            ],
        }}))
            .found(&[
                ("spec.selector.matchLabels", "InvalidSelector"),
                ("spec.selector.matchExpressions[0].key", "InvalidSelector"),
                ("spec.selector.matchExpressions[0].operator", "InvalidSelector"),
                ("spec.selector.matchExpressions[1].values", "InvalidSelector"),
                ("spec.selector.matchExpressions[2].values", "InvalidSelector"),
                ("spec.selector.matchExpressions[2].values", "InvalidSelector"),
            ]),
        object("resources-that-are-none", json!({
            "router": {"resources": {"limits": {"cpu": "abc", "odd key": "1"}}},
            "consumer": {"resources": {"requests": {"cpu": -1}}},
        }))
            .found(&[
                ("spec.router.resources.limits.cpu", "InvalidResources"),
                ("spec.router.resources.limits.odd key", "InvalidResources"),
                ("spec.consumer.resources.requests.cpu", "InvalidResources"),
            ]),
        provider("uk", json!({"ukCarbonIntensity": {}})),
        provider("uk-region", json!({"ukCarbonIntensity": {"url": "http://127.0.0.1:9000/v2", "target": "region:18"}})),
        provider("uk-postcode", json!({"ukCarbonIntensity": {"target": "postcode:SW1A"}})),
        provider("electricity-maps", json!({"electricityMaps": {
            "zone": "US-CAL-CISO", "tokenSecretRef": {"name": "electricity-maps", "key": "auth-token"},
        }})),
        provider("carbon-aware-sdk", json!({"carbonAwareSdk": {"url": "https://sdk:8080", "location": "westeurope"}})),
        provider("forecast-url", json!({"forecastUrl": {"url": "http://mock-carbon"}})),
        provider("constant", json!({"constant": {"intensity": "0"}})),
        provider("constant-beyond-a-double", json!({"constant": {"intensity": "1e999"}}))
            .found(&[("spec.provider.constant.intensity", "InvalidIntensity")]),
        provider("trace-file", json!({"trace": {"file": "/traces/gb.csv"}})),
        provider("trace-config-map", json!({"trace": {"configMapKeyRef": {"name": "traces", "key": "gb_2023.csv"}}})),
        provider("trace-slots", json!({"trace": {"slots": [
            {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:00:15Z", "intensity": "200.5"},
            {"from": "2026-01-01T00:00:15Z", "to": "2026-01-01T00:00:30Z", "intensity": "1.5e2"},
        ]}})),
        provider("trace-at-times-that-are-none", json!({"trace": {"slots": [
            {"from": "2024-01-01T00:00:00+99:99", "to": "2024-13-01T00:00:00Z", "intensity": "1"},
            {"from": "2024-03-01T00:00:00.1234567890123Z", "to": "9999-12-31T23:59:59-12:00", "intensity": "1"},
        ]}}))
            .found(&[
                ("spec.provider.trace.slots[0].from", "InvalidTrace"),
                ("spec.provider.trace.slots[0].to", "InvalidTrace"),
                ("spec.provider.trace.slots[1].from", "InvalidTrace"),
                ("spec.provider.trace.slots[1].to", "InvalidTrace"),
            ]),
        provider("trace-backwards", json!({"trace": {"slots": [
            {"from": "2026-01-01T01:00:00Z", "to": "2026-01-01T02:00:00Z", "intensity": "200"},
            {"from": "2026-01-01T01:30:00Z", "to": "2026-01-01T01:00:00Z", "intensity": "100"},
        ]}}))
            .found(&[
                ("spec.provider.trace.slots[1].to", "InvalidTrace"),
                ("spec.provider.trace.slots[1].from", "InvalidTrace"),
            ]),
        object("target-and-provider", json!({
            "scheduler": {"carbonTarget": "national"},
            "provider": {"constant": {"intensity": "200"}},
        }))
            .found(&[("spec.scheduler.carbonTarget", "CarbonTargetUnused")]),
        object("target-for-the-provider", json!({
            "scheduler": {"carbonTarget": "region:3"},
            "provider": {"ukCarbonIntensity": {}},
        })),
    ]
}

fn traffic_watches() -> Vec<Accepted> {
    let object = |name, spec| with_spec(Kind::TrafficWatch, name, spec);
    let mut longest_name = object("longest-name", json!({"label": "short"}));
    longest_name.object["metadata"]["name"] = json!("a".repeat(253));
    let mut longest_without_label = object("longest-name-without-label", json!({}));
    longest_without_label.object["metadata"]["name"] = json!("a".repeat(233));
    vec![
        // The original's sample, whole.
        object(
            "original-sample",
            json!({
                "maxBandwidthPercent": "60",
                "deployment": {
                    "selector": {"matchLabels": {
                        "app.kubernetes.io/component": "trafficwatch-sample",
                        "app.kubernetes.io/name": "trafficwatch-sample",
                    }},
                    "replicas": 2,
                    "template": {
                        "metadata": {"labels": {
                            "app.kubernetes.io/component": "trafficwatch-sample",
                            "app.kubernetes.io/name": "trafficwatch-sample",
                        }},
                        "spec": {"containers": [{
                            "name": "bash",
                            "image": "bash",
                            "resources": {
                                "limits": {"cpu": "500m", "memory": "128Mi"},
                                "requests": {"cpu": "10m", "memory": "64Mi"},
                            },
                            "command": ["app"],
                        }]},
                    },
                },
            }),
        ),
        longest_name,
        longest_without_label,
        object("tiny-percent", json!({"maxBandwidthPercent": "1.5e-03"})),
        object(
            "percent-at-its-length",
            json!({"maxBandwidthPercent": "60.00000000000000000000000000001"}),
        ),
        object(
            "percent-beyond-a-double",
            json!({"maxBandwidthPercent": "1e999"}),
        )
        .found(&[("spec.maxBandwidthPercent", "InvalidPercent")]),
        object(
            "clear-that-only-validate-compares",
            json!({"clearPercent": "1e100"}),
        )
        .found(&[("spec.clearPercent", "ClearAboveMax")]),
        object(
            "everything",
            json!({
                "label": "team-a.web",
                "direction": "max",
                "interfaces": {"include": ["eth*", "ens?"], "exclude": ["eth0.100", "bond0:1"]},
                "interval": "5s",
                "window": "1m",
                "clearPercent": "60",
                "samples": {"unfit": 1, "fit": 100},
                "minDwell": "0s",
                "minFitNodes": 0,
                "onUnknown": "unfit",
                "maxSampleAge": "180s",
                "capacities": [
                    {"bitsPerSecond": 1},
                    {"nodeSelector": {"node.kubernetes.io/instance-type": "m5.large"}, "interface": "ens*", "bitsPerSecond": 10_000_000_000_i64},
                ],
                "nodeSelector": {"pool": "web", "empty": ""},
                "action": "taint",
                "rebalance": {"mode": "evict", "after": "10m", "maxPerNode": 2, "maxTotal": 3, "cooldown": "1h"},
            }),
        ),
        object(
            "longest-interval",
            json!({"interval": "5m0s", "maxSampleAge": "5m"}),
        ),
        object("longest-interval-alone", json!({"interval": "5m"})),
        object("no-label", json!({"label": ""})),
        object("dry-run", json!({"rebalance": {"mode": "dryRun"}})),
        object(
            "labels-no-node-has",
            json!({
                "nodeSelector": {"a b": "c"},
                "capacities": [{"nodeSelector": {"a": "b c"}, "bitsPerSecond": 5}],
            }),
        )
        .found(&[
            ("spec.nodeSelector", "InvalidNodeSelector"),
            ("spec.capacities[0].nodeSelector", "InvalidNodeSelector"),
        ]),
        // What the original's schema left of a template's metadata.
        object(
            "pruned-template",
            json!({"deployment": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}},
            }}),
        ),
        object(
            "fields-of-a-later-kubernetes",
            json!({"deployment": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "web:1", "fieldOfTheFuture": {"a": 1}}]},
                },
                "strategyOfTheFuture": {"type": "Sideways"},
            }}),
        ),
        object(
            "a-deployment-that-is-none",
            json!({"deployment": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"spec": {"containers": "web"}},
            }}),
        )
        .found(&[("spec.deployment", "InvalidDeployment")]),
    ]
}
