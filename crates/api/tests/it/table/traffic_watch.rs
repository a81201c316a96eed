//! `TrafficWatch`: what must be refused.

use serde_json::{Value, json};
use weir_api::crd::Kind;

use super::{Refused, Table};

pub(super) fn refused() -> Vec<Refused> {
    let mut table = Table::new(Kind::TrafficWatch);
    table.required("", &["spec"], &[]);
    table.rule_about(
        "",
        "spec.label",
        &[("/metadata/name", json!("a".repeat(234)))],
        "a name of more than 233 characters leaves no room for the node label: give spec.label",
    );
    table.required("spec", &["maxBandwidthPercent", "deployment"], &[]);
    thresholds(&mut table);
    table.max_length("spec.label", "a", 233, &[]);
    table.texts(
        "spec.label",
        &["Capital", "-dash", "dot.", "a/b", "under_score"],
        &[],
        "must be usable in a label: lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit",
    );
    deployment(&mut table);
    table.enumeration(
        "spec.direction",
        json!("both"),
        &[],
        r#""transmit", "receive", "max""#,
    );
    table.enumeration(
        "spec.onUnknown",
        json!("ignore"),
        &[],
        r#""keep", "unfit", "fit""#,
    );
    table.enumeration("spec.action", json!("cordon"), &[], r#""label", "taint""#);
    times(&mut table);
    for name in ["unfit", "fit"] {
        table.minimum(&format!("spec.samples.{name}"), 1, &[]);
        table.maximum(&format!("spec.samples.{name}"), 100, &[]);
    }
    table.int32("spec.minFitNodes", 0, &[]);
    interfaces(&mut table);
    rebalance(&mut table);
    status(&mut table);
    table.rows
}

fn thresholds(table: &mut Table) {
    for at in ["spec.maxBandwidthPercent", "spec.clearPercent"] {
        table.strict_decimal(at, &[]);
        // Zero in `clearPercent` is below any limit, so only this rule is broken.
        table.texts(
            at,
            &["0", "0.0", "0e5", "00.000e-12"],
            &[],
            "must be above 0",
        );
    }
    for (clear, max) in [("61", "60"), ("60.1", "60"), ("6.1e1", "60"), ("1", "1e-1")] {
        table.rule_about(
            "spec",
            "spec.clearPercent",
            &[
                ("/spec/clearPercent", json!(clear)),
                ("/spec/maxBandwidthPercent", json!(max)),
            ],
            "clearPercent must not be above maxBandwidthPercent",
        );
    }
}

fn deployment(table: &mut Table) {
    table.required("spec.deployment", &["selector", "template"], &[]);
    table.int32("spec.deployment.replicas", 0, &[]);
}

fn times(table: &mut Table) {
    table.duration("spec.interval", "1s", &[]);
    table.texts(
        "spec.interval",
        &["0s", "4s", "4999ms", "5m1s", "1h"],
        &[],
        "must be from 5s to 5m",
    );
    for at in ["spec.window", "spec.minDwell", "spec.maxSampleAge"] {
        table.duration(at, "1s", &[]);
    }
    for (field, message) in [
        ("window", "window must not be shorter than interval"),
        (
            "maxSampleAge",
            "maxSampleAge must not be shorter than interval",
        ),
    ] {
        let at = format!("spec.{field}");
        let pointer = format!("/spec/{field}");
        let edits = [("/spec/interval", json!("30s")), (&*pointer, json!("29s"))];
        table.rule_about("spec", &at, &edits, message);
    }
}

fn interfaces(table: &mut Table) {
    for list in ["include", "exclude"] {
        let at = format!("spec.interfaces.{list}");
        let pointer = format!("/spec/interfaces/{list}");
        table.max_items(&at, &json!("eth0"), 64, &[]);
        table.max_length(&format!("{at}[]"), "a", 64, &[]);
        for wrong in [json!([""]), json!(["eth0", "eth 1"]), json!(["[ab]"])] {
            table.rule(
                &at,
                &[(&pointer, wrong)],
                "each must be a pattern for interface names such as eth0 or ens*: letters, digits, _ . : @ -, with * and ? as wildcards",
            );
        }
    }
    let capacity = json!({"bitsPerSecond": 1_000_000_000});
    let whole: [(&str, Value); 1] = [("/spec/capacities", json!([capacity]))];
    table.max_items("spec.capacities", &capacity, 64, &[]);
    table.required("spec.capacities[]", &["bitsPerSecond"], &whole);
    table.minimum("spec.capacities[].bitsPerSecond", 1, &whole);
    table.max_length("spec.capacities[].interface", "a", 64, &whole);
    table.texts(
        "spec.capacities[].interface",
        &["", "eth 0", "(eth|ens)0"],
        &whole,
        "must be a pattern for interface names such as eth0 or ens*: letters, digits, _ . : @ -, with * and ? as wildcards",
    );
}

fn rebalance(table: &mut Table) {
    table.enumeration(
        "spec.rebalance.mode",
        json!("always"),
        &[],
        r#""never", "dryRun", "evict""#,
    );
    table.duration("spec.rebalance.after", "1s", &[]);
    table.duration("spec.rebalance.cooldown", "1s", &[]);
    table.int32("spec.rebalance.maxPerNode", 1, &[]);
    table.int32("spec.rebalance.maxTotal", 1, &[]);
}

fn status(table: &mut Table) {
    let node = json!({
        "currentBandwidthPercent": "6e+01",
        "currentTransmitTotal": 1,
        "time": 1,
        "unfit": false,
    });
    for name in [
        "currentBandwidthPercent",
        "currentTransmitTotal",
        "time",
        "unfit",
    ] {
        let mut lacking = node.clone();
        lacking.as_object_mut().expect("an object").remove(name);
        table.row(
            "status.nodes.*",
            crate::constraint::By::Required(name.to_owned()),
            &[("/status/nodes", json!({"n1": lacking}))],
            &format!("status.nodes.n1.{name}"),
            "Required value",
        );
    }
    let whole = [(
        "/status/summary",
        json!({"fit": 1, "unfit": 0, "unknown": 0}),
    )];
    table.required("status.summary", &["fit", "unfit", "unknown"], &whole);
    table.conditions();
}
