//! `TrafficSchedule`: what must be refused. It is little: what the original accepts stays accepted.

use serde_json::{Value, json};
use weir_api::crd::Kind;

use super::{Refused, Table};

pub(super) fn refused() -> Vec<Refused> {
    let mut table = Table::new(Kind::TrafficSchedule);
    components(&mut table);
    scheduler(&mut table);
    table.rule_about(
        "spec",
        "spec.selector",
        &[
            ("/spec/serviceRef", json!({"name": "web"})),
            ("/spec/selector", json!({"matchLabels": {"app": "web"}})),
        ],
        "give serviceRef or selector, not both",
    );
    let service = [("/spec/serviceRef", json!({"name": "web"}))];
    table.required("spec.serviceRef", &["name"], &service);
    table.service_name("spec.serviceRef.name", &[]);
    let expression = json!({"key": "app", "operator": "Exists"});
    let selector = [("/spec/selector", json!({"matchExpressions": [expression]}))];
    table.required(
        "spec.selector.matchExpressions[]",
        &["key", "operator"],
        &selector,
    );
    provider(&mut table);
    status(&mut table);
    table.rows
}

fn components(table: &mut Table) {
    for component in ["target", "router", "consumer"] {
        let at = format!("spec.{component}.autoscaling");
        let pointer = format!("/spec/{component}/autoscaling");
        for (name, least) in [("cooldownPeriod", 0), ("cpuUtilization", 1)] {
            table.int32(&format!("{at}.{name}"), least, &[]);
        }
        // By the rule between them, the lower needs no maximum and the upper no minimum.
        table.minimum(&format!("{at}.minReplicaCount"), 0, &[]);
        table.maximum(&format!("{at}.maxReplicaCount"), i32::MAX.into(), &[]);
        // The last is above the default of the other bound.
        for wrong in [
            json!({"minReplicaCount": 5, "maxReplicaCount": 4}),
            json!({"maxReplicaCount": 0}),
            json!({"minReplicaCount": 16}),
        ] {
            table.rule_about(
                &at,
                &format!("{at}.minReplicaCount"),
                &[(&pointer, wrong)],
                "minReplicaCount must not be above maxReplicaCount",
            );
        }
    }
    for component in ["router", "consumer"] {
        let claims = format!("/spec/{component}/resources/claims");
        let at = format!("spec.{component}.resources.claims[]");
        table.required(
            &at,
            &["name"],
            &[(&claims, json!([{"name": "gpu", "request": "one"}]))],
        );
    }
}

fn scheduler(table: &mut Table) {
    for name in [
        "targetError",
        "creditMin",
        "creditMax",
        "throttleMin",
        "throttleIntensityFloor",
        "throttleIntensityCeiling",
    ] {
        let at = format!("spec.scheduler.{name}");
        table.max_length(&at, "1", 128, &[]);
        let wrong = ["NaN", "nan", "inf", "-Inf", "+Infinity", " -infinity "];
        table.texts(&at, &wrong, &[], "must be a finite number such as \"0.15\"");
    }
    for (least, most, values) in [
        (
            "creditMin",
            "creditMax",
            [("1", "-1"), ("0.5", "0.25"), (" 1e1", "9 "), (".1", "-.1")],
        ),
        (
            "throttleIntensityFloor",
            "throttleIntensityCeiling",
            [
                ("350", "150"),
                ("150.1", "150"),
                ("2e2", "1e2"),
                ("1", "0."),
            ],
        ),
    ] {
        for (floor, ceiling) in values {
            table.rule_about(
                "spec.scheduler",
                &format!("spec.scheduler.{least}"),
                &[
                    (&format!("/spec/scheduler/{least}"), json!(floor)),
                    (&format!("/spec/scheduler/{most}"), json!(ceiling)),
                ],
                &format!("{least} must not be above {most}"),
            );
        }
    }
    for name in [
        "creditWindow",
        "validFor",
        "discoveryInterval",
        "carbonTimeout",
        "carbonCacheTTL",
    ] {
        table.int32(&format!("spec.scheduler.{name}"), 0, &[]);
    }
    table.duration("spec.scheduler.budgetWindow", "1h", &[]);
    let wrong = ["0s", "59m59s", "8784h1s", "999999h999999h"];
    table.texts(
        "spec.scheduler.budgetWindow",
        &wrong,
        &[],
        "must be from 1h to 8784h",
    );
}

fn provider(table: &mut Table) {
    let one_of = "give exactly one of ukCarbonIntensity, electricityMaps, carbonAwareSdk, forecastUrl, trace and constant";
    for wrong in [
        json!({}),
        json!({"constant": {"intensity": "200"}, "ukCarbonIntensity": {}}),
    ] {
        table.rule("spec.provider", &[("/spec/provider", wrong)], one_of);
    }

    let at = "spec.provider.ukCarbonIntensity";
    table.http_url(&format!("{at}.url"), &[]);
    table.texts(
        &format!("{at}.target"),
        &[
            "",
            "National",
            "region:0",
            "region:19",
            "region:",
            "postcode:",
            "postcode:RG10 1AA",
        ],
        &[],
        "must be national, region:<1 to 18> or postcode:<outward code, such as RG10>",
    );

    let whole = electricity_maps();
    let at = "spec.provider.electricityMaps";
    table.required(at, &["zone", "tokenSecretRef"], &whole);
    table.http_url(&format!("{at}.url"), &whole);
    table.max_length(&format!("{at}.zone"), "A", 32, &whole);
    table.texts(
        &format!("{at}.zone"),
        &["", "de", "DE-", "D E"],
        &whole,
        "must be a zone such as DE or US-CAL-CISO",
    );
    key_ref(table, &format!("{at}.tokenSecretRef"), &whole);

    let whole = [(
        "/spec/provider/carbonAwareSdk",
        json!({"url": "http://sdk", "location": "westeurope"}),
    )];
    let at = "spec.provider.carbonAwareSdk";
    table.required(at, &["url", "location"], &whole);
    table.http_url(&format!("{at}.url"), &whole);
    table.max_length(&format!("{at}.location"), "a", 128, &whole);
    too_short(
        table,
        &format!("{at}.location"),
        "/spec/provider/carbonAwareSdk/location",
        &whole,
    );

    let whole = [("/spec/provider/forecastUrl", json!({"url": "http://mock"}))];
    table.required("spec.provider.forecastUrl", &["url"], &whole);
    table.http_url("spec.provider.forecastUrl.url", &whole);

    trace(table);

    let whole = [("/spec/provider/constant", json!({"intensity": "200"}))];
    table.required("spec.provider.constant", &["intensity"], &whole);
    table.strict_decimal("spec.provider.constant.intensity", &whole);
}

fn electricity_maps() -> [(&'static str, Value); 1] {
    let token = json!({"name": "electricity-maps", "key": "token"});
    [(
        "/spec/provider/electricityMaps",
        json!({"zone": "DE", "tokenSecretRef": token}),
    )]
}

fn trace(table: &mut Table) {
    let at = "spec.provider.trace";
    for wrong in [
        json!({}),
        json!({"file": "/traces/gb.csv", "configMapKeyRef": {"name": "traces", "key": "gb.csv"}}),
    ] {
        table.rule(
            at,
            &[("/spec/provider/trace", wrong)],
            "give exactly one of file, configMapKeyRef and slots",
        );
    }
    table.max_length(&format!("{at}.file"), "a", 4096, &[]);
    too_short(
        table,
        &format!("{at}.file"),
        "/spec/provider/trace/file",
        &[],
    );
    let map = json!({"configMapKeyRef": {"name": "traces", "key": "gb.csv"}});
    key_ref(
        table,
        &format!("{at}.configMapKeyRef"),
        &[("/spec/provider/trace", map)],
    );

    let slot =
        json!({"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:30:00Z", "intensity": "200"});
    table.max_items(&format!("{at}.slots"), &slot, 1024, &[]);
    table.keyword(
        &format!("{at}.slots"),
        "minItems",
        &[("/spec/provider/trace/slots", json!([]))],
        "should have at least 1 items",
    );
    let whole = [("/spec/provider/trace/slots", json!([slot]))];
    table.required(
        &format!("{at}.slots[]"),
        &["from", "to", "intensity"],
        &whole,
    );
    table.strict_decimal(&format!("{at}.slots[].intensity"), &whole);
    table.time(&format!("{at}.slots[].from"), &whole);
    table.time(&format!("{at}.slots[].to"), &whole);
}

fn key_ref(table: &mut Table, at: &str, whole: &[(&str, Value)]) {
    table.required(at, &["name", "key"], whole);
    table.object_name(&format!("{at}.name"), whole);
    table.max_length(&format!("{at}.key"), "a", 253, whole);
    table.texts(
        &format!("{at}.key"),
        &["", "a/b", "a b"],
        whole,
        "must be a key: letters, digits, '-', '_' and '.'",
    );
}

fn too_short(table: &mut Table, at: &str, pointer: &str, whole: &[(&str, Value)]) {
    let mut edits = whole.to_vec();
    edits.push((pointer, json!("")));
    table.keyword(at, "minLength", &edits, "should be at least 1 chars long");
}

fn status(table: &mut Table) {
    let whole = [(
        "/status/flavours",
        json!([{"precision": 100, "weight": 100}]),
    )];
    table.required("status.flavours[]", &["precision", "weight"], &whole);
    let slot = json!({"from": "a", "to": "b", "forecast": "200"});
    table.max_items("status.forecastSchedule", &slot, 96, &[]);
    let whole = [("/status/forecastSchedule", json!([slot]))];
    table.required(
        "status.forecastSchedule[]",
        &["from", "to", "forecast"],
        &whole,
    );
    let window = json!({"from": "2026-01-01T00:00:00Z", "to": "2026-01-08T00:00:00Z"});
    let whole = [(
        "/status/budget",
        json!({"balance": "1", "leased": "0", "window": window}),
    )];
    table.required("status.budget", &["balance", "leased", "window"], &whole);
    table.required("status.budget.window", &["from", "to"], &whole);
    table.conditions();
}
