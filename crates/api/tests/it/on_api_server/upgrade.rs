//! Objects that were stored while the older systems' definitions were installed, after ours are
//! applied over them: all readable, and writable where they are right.

use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use weir_api::crd::Kind;
use weir_api::hold::{ElastiService, Mode};
use weir_api::place::TrafficWatch;
use weir_api::steer::TrafficSchedule;

use super::objects::{PATIENCE, api, dynamic, install, resource};
use super::older::old_definition;
use crate::table;

#[tokio::test]
async fn objects_of_the_older_systems_live_on_under_our_definitions() {
    let k8s = weir_lab::fresh_api_server().await;
    let namespace = k8s.namespace("upgrade").await;
    let client = k8s.client();

    for kind in Kind::ALL {
        install(&client, &old_definition(kind)).await;
    }
    for (kind, name, spec, status) in stored_before() {
        store(&client, namespace.name(), kind, name, spec, status).await;
    }
    for kind in Kind::ALL {
        install(&client, &json!(kind.crd())).await;
        is_in_force(&client, namespace.name(), kind).await;
    }

    elasti_services(&namespace.api()).await;
    traffic_schedules(&namespace.api()).await;
    traffic_watches(&namespace.api()).await;
}

/// Waits until the API server goes by our schema, which it does a moment after it has taken it: until then it fills in no
/// default that the older one does not have.
async fn is_in_force(client: &Client, namespace: &str, kind: Kind) {
    let pointer = match kind {
        Kind::ElastiService => "/spec/earlyReadiness",
        Kind::TrafficSchedule => "/spec/scheduler/budgetWindow",
        Kind::TrafficWatch => "/spec/direction",
    };
    let resource = resource(&json!(kind.crd()), "v1alpha1");
    let objects = api(client, namespace, &resource);
    let base = dynamic(&table::base(kind), &resource);
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    weir_lab::eventually(PATIENCE, "our schema is in force", || async {
        let made = objects.create(&dry_run, &base).await;
        let made = json!(made.map_err(|error| error.to_string())?);
        match made.pointer(pointer) {
            Some(_) => Ok(()),
            None => Err(made.to_string()),
        }
    })
    .await;
}

async fn elasti_services(objects: &Api<ElastiService>) {
    let all = objects
        .list(&ListParams::default())
        .await
        .expect("every object can be read");
    assert_eq!(all.items.len(), 4);

    let sample = objects.get("sample").await.expect("the sample");
    assert_eq!(
        sample.spec.scale_target_ref.canonical(),
        ("apps/v1", "Deployment")
    );
    assert_eq!(
        sample.spec.min_target_replicas, 1,
        "a default that the old schema did not have"
    );
    assert_eq!(
        sample.status.as_ref().and_then(|status| status.mode),
        Some(Mode::Proxy)
    );
    assert_eq!(sample.validate(), []);
    let patch = json!({"spec": {"cooldownPeriod": 60, "earlyReadiness": false}});
    writes(objects, "sample", &patch).await;
    let status =
        json!({"status": {"phase": "Asleep", "ports": [{"name": "", "resolverPort": 10240}]}});
    objects
        .patch_status("sample", &PatchParams::default(), &Patch::Merge(&status))
        .await
        .expect("the status can be written");

    // Right once, wrong now: it stays, everything about it can be changed but into another wrong.
    let odd = objects
        .get("bad-period")
        .await
        .expect("an object that is no longer right");
    assert_eq!(odd.validate()[0].reason, "InvalidSchedule");
    writes(
        objects,
        "bad-period",
        &json!({"metadata": {"labels": {"seen": "yes"}}}),
    )
    .await;
    writes(
        objects,
        "bad-period",
        &json!({"spec": {"cooldownPeriod": 61}}),
    )
    .await;
    refuses(
        objects,
        "bad-period",
        &json!({"spec": {"enabledPeriod": {"schedule": "@weekly"}}}),
    )
    .await;
    writes(
        objects,
        "bad-period",
        &json!({"spec": {"enabledPeriod": {"schedule": "0 0 * * *"}}}),
    )
    .await;
    assert_eq!(
        objects.get("bad-period").await.expect("mended").validate(),
        []
    );

    // Metadata of any shape, and a status that no type of ours holds.
    let odd = objects.get("odd-metadata").await.expect("odd metadata");
    let findings = odd.validate();
    let reasons: Vec<_> = findings.iter().map(|finding| finding.reason).collect();
    assert_eq!(
        reasons,
        [
            "UnusedTriggerKey",
            "WrongType",
            "MissingQuery",
            "MissingThreshold"
        ]
    );
    assert_eq!(odd.status.expect("a status").mode, None);

    // A combination that never worked, which the old schema let in.
    writes(
        objects,
        "wrong-kind",
        &json!({"metadata": {"finalizers": []}}),
    )
    .await;
    let target = json!({"spec": {"scaleTargetRef": {"apiVersion": "argoproj.io/v1alpha1"}}});
    writes(objects, "wrong-kind", &target).await;
}

async fn traffic_schedules(objects: &Api<TrafficSchedule>) {
    let all = objects
        .list(&ListParams::default())
        .await
        .expect("every object can be read");
    assert_eq!(all.items.len(), 4);

    let demo = objects.get("demo").await.expect("the demo");
    let reasons: Vec<_> = demo
        .validate()
        .iter()
        .map(|finding| finding.reason)
        .collect();
    assert_eq!(reasons, ["UnknownCarbonTarget", "Clamped"]);
    let status = demo.status.expect("a status");
    assert_eq!(status.flavours.len(), 2);
    assert_eq!(status.active_policy.as_deref(), Some("forecast-aware"));
    writes(
        objects,
        "demo",
        &json!({"spec": {"scheduler": {"policy": "optimal", "budgetWindow": "24h"}}}),
    )
    .await;
    let status =
        json!({"status": {"conditions": [], "observedGeneration": 2, "creditBalance": "0.1"}});
    objects
        .patch_status("demo", &PatchParams::default(), &Patch::Merge(&status))
        .await
        .expect("the status can be written");

    assert_eq!(
        objects
            .get("empty")
            .await
            .expect("an object without a spec")
            .validate(),
        []
    );
    writes(
        objects,
        "empty",
        &json!({"spec": {"scheduler": {"targetError": "0.1"}}}),
    )
    .await;

    // Refused today, stored before: readable, and mendable.
    let negative = objects
        .get("negative")
        .await
        .expect("an object that is no longer right");
    assert_eq!(negative.spec.scheduler.valid_for, Some(-5));
    writes(
        objects,
        "negative",
        &json!({"metadata": {"labels": {"seen": "yes"}}}),
    )
    .await;
    writes(
        objects,
        "negative",
        &json!({"spec": {"scheduler": {"validFor": 60}}}),
    )
    .await;
    refuses(
        objects,
        "negative",
        &json!({"spec": {"scheduler": {"validFor": -1}}}),
    )
    .await;
    let reversed = objects
        .get("reversed")
        .await
        .expect("bounds the wrong way round");
    assert_eq!(reversed.validate()[0].reason, "MinAboveMax");
    writes(
        objects,
        "reversed",
        &json!({"spec": {"scheduler": {"creditMax": "2"}}}),
    )
    .await;
}

async fn traffic_watches(objects: &Api<TrafficWatch>) {
    let all = objects
        .list(&ListParams::default())
        .await
        .expect("every object can be read");
    assert_eq!(all.items.len(), 2);

    let sample = objects.get("sample").await.expect("the sample");
    assert_eq!(
        sample.spec.deployment.0["template"]["metadata"],
        json!({}),
        "pruned by the old schema"
    );
    assert_eq!(sample.validate(), []);
    let status = sample.status.as_ref().expect("a status");
    assert!(status.ready);
    assert_eq!(status.nodes["n1"].current_bandwidth_percent, "1.06976e-04");

    writes(objects, "sample", &json!({"spec": {"clearPercent": "50"}})).await;
    let labels =
        json!({"spec": {"deployment": {"template": {"metadata": {"labels": {"app": "web"}}}}}});
    writes(objects, "sample", &labels).await;
    let now = objects.get("sample").await.expect("the sample");
    assert_eq!(
        now.spec.deployment.0["template"]["metadata"]["labels"]["app"], "web",
        "kept from now on"
    );

    let odd = objects
        .get("in-words")
        .await
        .expect("an object that is no longer right");
    assert_eq!(odd.validate()[0].reason, "InvalidPercent");
    writes(
        objects,
        "in-words",
        &json!({"metadata": {"labels": {"seen": "yes"}}}),
    )
    .await;
    refuses(
        objects,
        "in-words",
        &json!({"spec": {"maxBandwidthPercent": "seventy"}}),
    )
    .await;
    writes(
        objects,
        "in-words",
        &json!({"spec": {"maxBandwidthPercent": "70"}}),
    )
    .await;
}

async fn writes<K>(objects: &Api<K>, name: &str, patch: &Value)
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    objects
        .patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap_or_else(|error| panic!("{name} with {patch}: {error}"));
}

async fn refuses<K>(objects: &Api<K>, name: &str, patch: &Value)
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    match objects
        .patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await
    {
        Err(kube::Error::Api(status)) if status.code == 422 => {}
        other => panic!("{name} with {patch} is not refused: {other:?}"),
    }
}

async fn store(
    client: &Client,
    namespace: &str,
    kind: Kind,
    name: &str,
    spec: Value,
    status: Value,
) {
    let resource = resource(&old_definition(kind), "v1alpha1");
    let objects = api(client, namespace, &resource);
    let mut object = table::base(kind);
    object["metadata"]["name"] = json!(name);
    object["spec"] = spec;
    if object["spec"].is_null() {
        object.as_object_mut().expect("an object").remove("spec");
    }
    let mut stored = objects
        .create(&PostParams::default(), &dynamic(&object, &resource))
        .await
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    if !status.is_null() {
        stored.data["status"] = status;
        objects
            .replace_status(&stored.name_any(), &PostParams::default(), &stored)
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// What users have, and what only the old schemas let in.
#[allow(clippy::too_many_lines, reason = "a table is as long as it is")]
fn stored_before() -> Vec<(Kind, &'static str, Value, Value)> {
    let template = json!({
        "metadata": {"labels": {"app": "web"}, "annotations": {"lost": "yes"}},
        "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    });
    let selector = json!({"matchLabels": {"app": "web"}});
    vec![
        (
            Kind::ElastiService,
            "sample",
            json!({
                "service": "httpbin",
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "deployments", "name": "httpbin"},
                "cooldownPeriod": 5,
                "triggers": [{"type": "prometheus", "metadata": {
                    "query": "sum(rate(requests_total[1m])) or vector(0)",
                    "serverAddress": "http://prometheus:9090",
                    "threshold": 0.5,
                }}],
                "autoscaler": {"type": "keda", "name": "httpbin"},
            }),
            json!({"mode": "proxy", "lastReconciledTime": "2026-01-01T00:00:00Z"}),
        ),
        (
            Kind::ElastiService,
            "bad-period",
            json!({
                "service": "httpbin",
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "httpbin"},
                "enabledPeriod": {"schedule": "@daily", "duration": "8h"},
            }),
            Value::Null,
        ),
        (
            Kind::ElastiService,
            "wrong-kind",
            json!({
                "service": "httpbin",
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Rollout", "name": "httpbin"},
            }),
            Value::Null,
        ),
        (
            Kind::ElastiService,
            "odd-metadata",
            json!({
                "service": "httpbin",
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "httpbin"},
                "triggers": [
                    {"type": "prometheus", "metadata": {
                        "query": "up", "threshold": 1, "duration": 30, "headers": {"X-Scope-OrgID": 5},
                    }},
                    {"type": "prometheus", "metadata": "none"},
                ],
            }),
            json!({"mode": "", "lastReconciledTime": "2026-01-01T00:00:00+30:00"}),
        ),
        (
            Kind::TrafficSchedule,
            "demo",
            json!({
                "consumer": {"autoscaling": {"minReplicaCount": 0}, "resources": {"limits": {"cpu": 1}}},
                "scheduler": {"policy": "forecast-aware", "carbonTarget": "150", "carbonTimeout": 5000, "validFor": 5},
            }),
            json!({
                "flavours": [{"precision": 30, "weight": 20, "emissions": "0.3"}, {"precision": 100, "weight": 80}],
                "activePolicy": "forecast-aware",
                "validUntil": "2026-01-01T00:00:00Z",
                "creditBalance": "0.2",
                "diagnostics": {"a": "1"},
                "effectiveReplicaCeilings": {"consumer": 3},
            }),
        ),
        (Kind::TrafficSchedule, "empty", Value::Null, Value::Null),
        (
            Kind::TrafficSchedule,
            "negative",
            json!({"scheduler": {"validFor": -5}}),
            Value::Null,
        ),
        (
            Kind::TrafficSchedule,
            "reversed",
            json!({"scheduler": {"creditMin": "1", "creditMax": "-1"}}),
            Value::Null,
        ),
        (
            Kind::TrafficWatch,
            "sample",
            json!({
                "maxBandwidthPercent": "60",
                "deployment": {"replicas": 2, "selector": selector, "template": template},
            }),
            json!({
                "ready": true,
                "nodes": {"n1": {
                    "currentBandwidthPercent": "1.06976e-04",
                    "currentTransmitTotal": 183_993,
                    "time": 1_700_000_000,
                    "unfit": false,
                }},
            }),
        ),
        (
            Kind::TrafficWatch,
            "in-words",
            json!({
                "maxBandwidthPercent": "sixty",
                "deployment": {"selector": selector, "template": template},
            }),
            Value::Null,
        ),
    ]
}
