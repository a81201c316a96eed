//! Every object of the refused table is refused by the API server, with one complaint, about the
//! field and in the words of the table.

use serde_json::json;
use weir_api::crd::Kind;

use super::objects::{api, dynamic, install, resource, try_create, try_status};
use crate::table;

#[tokio::test]
async fn elasti_services_that_are_wrong_are_refused() {
    refuses(Kind::ElastiService).await;
}

#[tokio::test]
async fn traffic_schedules_that_are_wrong_are_refused() {
    refuses(Kind::TrafficSchedule).await;
}

#[tokio::test]
async fn traffic_watches_that_are_wrong_are_refused() {
    refuses(Kind::TrafficWatch).await;
}

async fn refuses(kind: Kind) {
    let k8s = weir_lab::api_server().await;
    let namespace = k8s.namespace("refused").await;
    let crd = json!(kind.crd());
    install(&k8s.client(), &crd).await;
    let resource = resource(&crd, "v1alpha1");
    let objects = api(&k8s.client(), namespace.name(), &resource);
    let base = dynamic(&table::base(kind), &resource);
    let stored = objects
        .create(&kube::api::PostParams::default(), &base)
        .await
        .expect("the base is right");

    let mut wrong = Vec::new();
    for row in table::refused().into_iter().filter(|row| row.kind == kind) {
        let mut object = row.object();
        if object["metadata"]["name"] == "base" {
            object["metadata"]["name"] = json!("refused");
        }
        let object = dynamic(&object, &resource);
        let answer = if row.is_status() {
            try_status(&objects, &stored, &object).await
        } else {
            try_create(&objects, &object).await
        };
        let as_told = matches!(&answer, Err(complaints) if matches!(&complaints[..], [complaint]
            if complaint.field == row.field && complaint.message.contains(&row.message)));
        if !as_told {
            wrong.push(format!("{row:?}\n    but: {answer:?}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} rows:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[tokio::test]
async fn wrong_types_are_refused() {
    let k8s = weir_lab::api_server().await;
    let namespace = k8s.namespace("types").await;
    for (kind, pointer, value, message) in [
        (
            Kind::ElastiService,
            "/spec",
            json!("asleep"),
            "must be of type object",
        ),
        (
            Kind::ElastiService,
            "/spec/cooldownPeriod",
            json!("15m"),
            "must be of type integer",
        ),
        (
            Kind::ElastiService,
            "/spec/triggers",
            json!({}),
            "must be of type array",
        ),
        (
            Kind::TrafficSchedule,
            "/spec/scheduler/targetError",
            json!(0.15),
            "must be of type string",
        ),
        (
            Kind::TrafficSchedule,
            "/spec/scheduler",
            json!([]),
            "must be of type object",
        ),
        (
            Kind::TrafficWatch,
            "/spec/maxBandwidthPercent",
            json!(60),
            "must be of type string",
        ),
        (
            Kind::TrafficWatch,
            "/spec/deployment",
            json!("web"),
            "must be of type object",
        ),
    ] {
        let crd = json!(kind.crd());
        install(&k8s.client(), &crd).await;
        let resource = resource(&crd, "v1alpha1");
        let objects = api(&k8s.client(), namespace.name(), &resource);
        let mut object = table::base(kind);
        crate::edit::set(&mut object, pointer, value);
        let complaints = try_create(&objects, &dynamic(&object, &resource))
            .await
            .expect_err(pointer);
        assert_eq!(complaints[0].field, pointer[1..].replace('/', "."));
        assert!(complaints[0].message.contains(message), "{complaints:?}");
    }
}
