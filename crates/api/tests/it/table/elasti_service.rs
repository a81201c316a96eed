//! `ElastiService`: what must be refused.

use serde_json::{Value, json};
use weir_api::crd::Kind;

use super::{Refused, Table};
use crate::constraint::By;

pub(super) fn refused() -> Vec<Refused> {
    let mut table = Table::new(Kind::ElastiService);
    table.required("", &["spec"], &[]);
    table.required("spec", &["service", "scaleTargetRef"], &[]);
    table.service_name("spec.service", &[]);
    table.int32("spec.minTargetReplicas", 1, &[]);
    table.minimum("spec.cooldownPeriod", 0, &[]);
    table.maximum("spec.cooldownPeriod", 604_800, &[]);
    target(&mut table);
    triggers(&mut table);
    let autoscaler = [(
        "/spec/autoscaler",
        json!({"type": "keda", "name": "httpbin"}),
    )];
    table.required("spec.autoscaler", &["type", "name"], &autoscaler);
    table.enumeration(
        "spec.autoscaler.type",
        json!("vpa"),
        &autoscaler,
        r#""hpa", "keda""#,
    );
    table.object_name("spec.autoscaler.name", &autoscaler);
    table.cron("spec.enabledPeriod.schedule", &[]);
    table.duration("spec.enabledPeriod.duration", "1s", &[]);
    probe_responses(&mut table);
    status(&mut table);
    table.rows
}

fn target(table: &mut Table) {
    table.required("spec.scaleTargetRef", &["apiVersion", "kind", "name"], &[]);
    table.object_name("spec.scaleTargetRef.name", &[]);
    table.max_length(
        "spec.scaleTargetRef.kind",
        "A",
        63,
        &[api_version("example.com/v1")],
    );
    table.texts(
        "spec.scaleTargetRef.kind",
        &["", "widget", "Wid-get", "statefulsets"],
        &[api_version("example.com/v1")],
        "must be a kind such as Deployment: letters and digits, beginning with a capital",
    );
    let long = format!("{}/v1", "a".repeat(315));
    table.keyword(
        "spec.scaleTargetRef.apiVersion",
        "maxLength",
        &[api_version(&long)],
        "may not be more than 317 ",
    );
    table.texts(
        "spec.scaleTargetRef.apiVersion",
        &[
            "",
            "apps",
            "x.io/",
            "x.io/one",
            "Apps/v1",
            "x.io/v1/v2",
            "a..b/v1",
        ],
        &[("/spec/scaleTargetRef/kind", json!("Widget"))],
        "must be an API version such as apps/v1",
    );

    let wrong_kind = |table: &mut Table, version: &str, kind: &str, message: &str| {
        let edits = [
            api_version(version),
            ("/spec/scaleTargetRef/kind", json!(kind)),
        ];
        table.rule_about(
            "spec.scaleTargetRef",
            "spec.scaleTargetRef.kind",
            &edits,
            message,
        );
    };
    let apps = "apps/v1 has Deployment, StatefulSet and ReplicaSet to scale ('deployments' is an old spelling of the first)";
    let argo = "argoproj.io/v1alpha1 has Rollout to scale ('rollouts' is an old spelling of it)";
    let none = "this kind cannot be scaled: use a Deployment, StatefulSet, Rollout or another kind that has a scale";
    wrong_kind(table, "apps/v1", "DaemonSet", apps);
    wrong_kind(table, "apps/v1", "Rollout", apps);
    wrong_kind(table, "apps/v1beta1", "Deployment", apps);
    wrong_kind(table, "example.com/v1", "deployments", apps);
    wrong_kind(table, "argoproj.io/v1alpha1", "Workflow", argo);
    wrong_kind(table, "argoproj.io/v1alpha1", "Deployment", argo);
    wrong_kind(table, "example.com/v1", "rollouts", argo);
    wrong_kind(table, "v1", "Pod", none);
    wrong_kind(table, "v1", "Service", none);
    wrong_kind(table, "batch/v1", "CronJob", none);
    wrong_kind(table, "batch/v1beta1", "CronJob", none);
    wrong_kind(table, "extensions/v1beta1", "Deployment", none);
}

fn api_version(version: &str) -> (&'static str, Value) {
    ("/spec/scaleTargetRef/apiVersion", json!(version))
}

fn triggers(table: &mut Table) {
    let trigger = json!({"type": "prometheus", "metadata": {"query": "up", "threshold": 1}});
    let whole = [("/spec/triggers", json!([trigger]))];
    table.max_items("spec.triggers", &trigger, 64, &[]);
    table.required("spec.triggers[]", &["type"], &whole);
    table.enumeration(
        "spec.triggers[].type",
        json!("cpu"),
        &whole,
        r#""prometheus", "network", "schedule", "resolver""#,
    );
    let needs_query = "a prometheus trigger needs metadata.query, the expression whose value is compared with metadata.threshold";
    for wrong in [
        json!({"type": "prometheus"}),
        json!({"type": "prometheus", "metadata": {"threshold": "1"}}),
        json!({"type": "prometheus", "metadata": {"query": ""}}),
    ] {
        table.rule_about(
            "spec.triggers[]",
            "spec.triggers[0].metadata",
            &[("/spec/triggers", json!([wrong]))],
            needs_query,
        );
    }
    let needs_window = "a schedule trigger needs metadata.schedule and metadata.duration, the windows in which the workload counts as idle";
    for wrong in [
        json!({"type": "schedule"}),
        json!({"type": "schedule", "metadata": {"schedule": "0 20 * * *"}}),
        json!({"type": "schedule", "metadata": {"duration": "8h"}}),
    ] {
        table.rule_about(
            "spec.triggers[]",
            "spec.triggers[0].metadata",
            &[("/spec/triggers", json!([wrong]))],
            needs_window,
        );
    }
    let needs_word = "a resolver trigger needs metadata.behindResolver: true, which says that all clients come through the resolvers; what goes straight to the pods is not seen";
    for wrong in [
        json!({"type": "resolver"}),
        json!({"type": "resolver", "metadata": {"threshold": 1}}),
        json!({"type": "resolver", "metadata": {"behindResolver": false}}),
    ] {
        table.rule_about(
            "spec.triggers[]",
            "spec.triggers[0].metadata",
            &[("/spec/triggers", json!([wrong]))],
            needs_word,
        );
    }
    table.http_url("spec.triggers[].metadata.serverAddress", &whole);
    let window = json!({"schedule": "0 20 * * *", "duration": "8h", "timeZone": "Europe/Berlin"});
    let whole = [(
        "/spec/triggers",
        json!([{"type": "schedule", "metadata": window}]),
    )];
    table.cron("spec.triggers[].metadata.schedule", &whole);
    table.duration("spec.triggers[].metadata.duration", "1s", &whole);
    table.max_length("spec.triggers[].metadata.timeZone", "a", 64, &whole);
    table.texts(
        "spec.triggers[].metadata.timeZone",
        &["", "+01:00", "Europe Berlin"],
        &whole,
        "must be the name of a time zone such as Europe/Berlin",
    );
}

fn probe_responses(table: &mut Table) {
    let answer = json!({"response": {"status": 200, "body": "ok"}});
    let whole = [("/spec/probeResponse", json!([answer]))];
    table.max_items("spec.probeResponse", &answer, 32, &[]);
    table.required("spec.probeResponse[]", &["response"], &whole);
    table.required("spec.probeResponse[].response", &["status", "body"], &whole);
    table.enumeration(
        "spec.probeResponse[].response.status",
        json!(201),
        &whole,
        r#""200", "204", "400", "401", "403", "404", "500", "502", "503", "504""#,
    );
    table.enumeration(
        "spec.probeResponse[].method",
        json!("get"),
        &whole,
        r#""GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH""#,
    );

    table.enumeration(
        "spec.probeResponse[].path.type",
        json!("Glob"),
        &whole,
        r#""Exact", "PathPrefix", "RegularExpression""#,
    );
    table.max_length("spec.probeResponse[].path.value", "/", 1024, &whole);
    for path in [
        json!({"value": "healthz"}),
        json!({"type": "Exact", "value": ""}),
    ] {
        let edits = [whole[0].clone(), ("/spec/probeResponse/0/path", path)];
        table.rule_about(
            "spec.probeResponse[].path",
            "spec.probeResponse[0].path.value",
            &edits,
            "a path begins with '/'",
        );
    }

    for list in ["headers", "queryParams"] {
        let at = format!("spec.probeResponse[].{list}");
        let pointer = format!("/spec/probeResponse/0/{list}");
        let item = json!({"name": "x-probe", "value": "1"});
        table.max_items(&at, &item, 16, &whole);
        let whole = [whole[0].clone(), (&pointer, json!([item]))];
        let item_at = format!("{at}[]");
        table.required(&item_at, &["name", "value"], &whole);
        table.max_length(&format!("{item_at}.name"), "a", 256, &whole);
        let longest = if list == "headers" { 4096 } else { 1024 };
        table.max_length(&format!("{item_at}.value"), "a", longest, &whole);
        table.enumeration(
            &format!("{item_at}.type"),
            json!("PathPrefix"),
            &whole,
            r#""Exact", "RegularExpression""#,
        );
    }
    let header = json!([{"name": "x-probe", "value": "1"}]);
    table.texts(
        "spec.probeResponse[].headers[].name",
        &["", "with space", "colon:", "ümlaut"],
        &[
            whole[0].clone(),
            ("/spec/probeResponse/0/headers", header.clone()),
        ],
        "must be the name of a header such as User-Agent: letters, digits and !#$%&'*+-.^_`|~",
    );
    table.keyword(
        "spec.probeResponse[].queryParams[].name",
        "minLength",
        &[
            whole[0].clone(),
            ("/spec/probeResponse/0/queryParams", header),
            ("/spec/probeResponse/0/queryParams/0/name", json!("")),
        ],
        "should be at least 1 chars long",
    );
}

fn status(table: &mut Table) {
    table.enumeration("status.mode", json!("sleep"), &[], r#""proxy", "serve""#);
    table.enumeration(
        "status.phase",
        json!("Dozing"),
        &[],
        r#""Serving", "Draining", "Asleep", "Waking""#,
    );
    let whole = [(
        "/status/ports",
        json!([{"name": "http", "resolverPort": 10240}]),
    )];
    table.required("status.ports[]", &["resolverPort"], &whole);
    table.minimum("status.ports[].resolverPort", 1, &whole);
    table.maximum("status.ports[].resolverPort", 65535, &whole);
    table.row(
        "status.ports",
        By::Unique,
        &[(
            "/status/ports",
            json!([{"resolverPort": 10240}, {"resolverPort": 10241}]),
        )],
        "status.ports[1]",
        "Duplicate value",
    );
    table.conditions();
}
