//! Every object of the accepted table is stored by the API server, loses nothing on the way, and is
//! read back as the Rust type, with the findings of the table.

use kube::ResourceExt;
use kube::api::PostParams;
use serde_json::{Value, json};
use weir_api::crd::Kind;

use super::objects::{api, dynamic, install, resource};
use crate::schema::findings;
use crate::table;

#[tokio::test]
async fn what_users_have_is_stored_whole_and_read_back() {
    let k8s = weir_lab::api_server().await;
    let namespace = k8s.namespace("accepted").await;
    for kind in Kind::ALL {
        install(&k8s.client(), &json!(kind.crd())).await;
    }
    for case in table::accepted() {
        let resource = resource(&json!(case.kind.crd()), "v1alpha1");
        let objects = api(&k8s.client(), namespace.name(), &resource);
        let stored = objects
            .create(&PostParams::default(), &dynamic(&case.object, &resource))
            .await
            .unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let stored = json!(
            objects
                .get(&stored.name_any())
                .await
                .expect("what was stored")
        );
        assert_holds(&stored["spec"], &case.object["spec"], case.name);
        let found = findings(case.kind, &stored);
        let found: Vec<_> = found
            .iter()
            .map(|(field, reason)| (field.as_str(), *reason))
            .collect();
        assert_eq!(found, case.findings, "{}", case.name);
    }
}

/// Everything in `given` is in `stored`; defaults may have been added.
fn assert_holds(stored: &Value, given: &Value, what: &str) {
    match given {
        Value::Object(fields) => {
            for (name, value) in fields {
                assert_holds(&stored[name], value, &format!("{what}.{name}"));
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                assert_holds(&stored[index], value, &format!("{what}[{index}]"));
            }
        }
        Value::Null => {}
        value => assert_eq!(stored, value, "{what}"),
    }
}

#[tokio::test]
async fn defaults_below_optional_fields_are_filled_in_where_those_are_given() {
    let k8s = weir_lab::api_server().await;
    let namespace = k8s.namespace("defaults").await;
    let crd = json!(Kind::ElastiService.crd());
    install(&k8s.client(), &crd).await;
    let resource = resource(&crd, "v1alpha1");
    let objects = api(&k8s.client(), namespace.name(), &resource);
    let mut object = table::base(Kind::ElastiService);
    object["spec"]["enabledPeriod"] = json!({});
    object["spec"]["probeResponse"] = json!([{
        "path": {},
        "headers": [{"name": "a", "value": "b"}],
        "queryParams": [{"name": "a", "value": "b"}],
        "response": {"status": 200, "body": ""},
    }]);
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let stored = objects
        .create(&dry_run, &dynamic(&object, &resource))
        .await
        .expect("an object");
    let spec = &stored.data["spec"];
    assert_eq!(
        spec["enabledPeriod"],
        json!({"schedule": "0 0 * * *", "duration": "24h"})
    );
    let probe = &spec["probeResponse"][0];
    assert_eq!(probe["path"], json!({"type": "PathPrefix", "value": "/"}));
    assert_eq!(probe["headers"][0]["type"], "Exact");
    assert_eq!(probe["queryParams"][0]["type"], "Exact");
}

#[tokio::test]
async fn defaults_are_filled_in_by_the_api_server() {
    let k8s = weir_lab::api_server().await;
    let namespace = k8s.namespace("defaults").await;
    let autoscaling = |min: i32, max: i32, cooldown: i32, cpu: i32| json!({"minReplicaCount": min, "maxReplicaCount": max, "cooldownPeriod": cooldown, "cpuUtilization": cpu});
    for (kind, pointer, expected) in [
        (Kind::ElastiService, "/spec/minTargetReplicas", json!(1)),
        (Kind::ElastiService, "/spec/cooldownPeriod", json!(900)),
        (Kind::ElastiService, "/spec/earlyReadiness", json!(true)),
        (
            Kind::TrafficSchedule,
            "/spec/scheduler/budgetWindow",
            json!("168h"),
        ),
        (
            Kind::TrafficSchedule,
            "/spec/router/autoscaling",
            autoscaling(1, 15, 60, 80),
        ),
        (
            Kind::TrafficSchedule,
            "/spec/consumer/autoscaling",
            autoscaling(1, 12, 120, 80),
        ),
        (
            Kind::TrafficSchedule,
            "/spec/target/autoscaling",
            autoscaling(1, 12, 120, 80),
        ),
        (Kind::TrafficWatch, "/spec/direction", json!("transmit")),
        (Kind::TrafficWatch, "/spec/interval", json!("10s")),
        (
            Kind::TrafficWatch,
            "/spec/samples",
            json!({"unfit": 2, "fit": 2}),
        ),
        (Kind::TrafficWatch, "/spec/minDwell", json!("0s")),
        (Kind::TrafficWatch, "/spec/minFitNodes", json!(1)),
        (Kind::TrafficWatch, "/spec/onUnknown", json!("keep")),
        (Kind::TrafficWatch, "/spec/action", json!("label")),
        (
            Kind::TrafficWatch,
            "/spec/rebalance",
            json!({"mode": "never", "after": "5m", "maxPerNode": 1, "maxTotal": 1, "cooldown": "5m"}),
        ),
    ] {
        let crd = json!(kind.crd());
        install(&k8s.client(), &crd).await;
        let resource = resource(&crd, "v1alpha1");
        let objects = api(&k8s.client(), namespace.name(), &resource);
        let dry_run = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let stored = objects
            .create(&dry_run, &dynamic(&table::base(kind), &resource))
            .await
            .expect("the base");
        assert_eq!(
            json!(stored).pointer(pointer),
            Some(&expected),
            "{kind:?} {pointer}"
        );
    }
}
