//! The schemas by themselves: complete, explained, small, and covered by the tables.

use serde_json::{Value, json};
use weir_api::crd::Kind;
use weir_api::hold::ElastiService;
use weir_api::place::TrafficWatch;
use weir_api::steer::TrafficSchedule;

use crate::constraint::constraints;
use crate::table;

pub(crate) fn schema(kind: Kind) -> Value {
    let crd = serde_json::to_value(kind.crd()).expect("a definition is JSON");
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

#[test]
fn every_constraint_has_a_refused_object_and_every_refused_object_a_constraint() {
    let rows = table::refused();
    let mut wrong = Vec::new();
    for kind in Kind::ALL {
        let found = constraints(&schema(kind));
        assert!(found.len() > 40, "{kind:?}: the walk finds the constraints");
        for constraint in &found {
            let covered = rows
                .iter()
                .any(|row| row.kind == kind && row.at == constraint.at && row.by == constraint.by);
            if !covered {
                wrong.push(format!("{kind:?}: no refused object for {constraint}"));
            }
        }
        for row in rows.iter().filter(|row| row.kind == kind) {
            if !found.iter().any(|c| c.at == row.at && c.by == row.by) {
                wrong.push(format!(
                    "{kind:?}: no constraint for the row {} {:?}",
                    row.at, row.by
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_field_is_explained() {
    fn walk(schema: &Value, at: &str, silent: &mut Vec<String>) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let at = format!("{at}.{name}");
            // Kubernetes itself explains these three.
            let standard = matches!(at.as_str(), ".apiVersion" | ".kind" | ".metadata");
            if !standard
                && property["description"]
                    .as_str()
                    .unwrap_or_default()
                    .is_empty()
            {
                silent.push(at.clone());
            }
            walk(property, &at, silent);
        }
        for below in ["items", "additionalProperties"] {
            if schema[below].is_object() {
                walk(&schema[below], at, silent);
            }
        }
    }
    for kind in Kind::ALL {
        let mut silent = Vec::new();
        walk(&schema(kind), "", &mut silent);
        assert!(silent.is_empty(), "{kind:?}: no description for {silent:?}");
    }
}

/// `format: int32` is only a comment to the API server: without a maximum it stores numbers that
/// neither Go's nor Rust's type can hold, and no controller can read the object any more.
#[test]
fn every_small_integer_has_a_maximum() {
    fn walk(schema: &Value, at: &str, unbounded: &mut Vec<String>) {
        let bounded = ["maximum", "enum"]
            .iter()
            .any(|keyword| schema.get(keyword).is_some());
        // A rule keeps it below maxReplicaCount.
        if schema["format"] == "int32" && !bounded && !at.ends_with(".minReplicaCount") {
            unbounded.push(at.to_owned());
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            walk(property, &format!("{at}.{name}"), unbounded);
        }
        for below in ["items", "additionalProperties"] {
            if schema[below].is_object() {
                walk(&schema[below], at, unbounded);
            }
        }
    }
    for kind in Kind::ALL {
        let mut unbounded = Vec::new();
        walk(&schema(kind), "", &mut unbounded);
        assert!(
            unbounded.is_empty(),
            "{kind:?}: no maximum for {unbounded:?}"
        );
    }
}

/// Manifests, roles and watches name the resources by these; the derive has them as literals.
#[test]
fn the_definitions_have_the_names_that_the_rest_of_the_code_uses() {
    use weir_api::{hold::names as hold, place::names as place, steer::names as steer};
    for (kind, names) in [
        (
            Kind::ElastiService,
            [hold::GROUP, hold::VERSION, hold::KIND, hold::PLURAL],
        ),
        (
            Kind::TrafficSchedule,
            [steer::GROUP, steer::VERSION, steer::KIND, steer::PLURAL],
        ),
        (
            Kind::TrafficWatch,
            [place::GROUP, place::VERSION, place::KIND, place::PLURAL],
        ),
    ] {
        let spec = kind.crd().spec;
        let version = &spec.versions[0].name;
        assert_eq!(
            [
                &*spec.group,
                version,
                &*spec.names.kind,
                &*spec.names.plural
            ],
            names
        );
        assert_eq!(kind.name(), spec.names.kind);
    }
}

/// The bounds in rules are texts; the constants that the code uses are spans of time.
#[test]
fn the_bounds_in_rules_are_those_of_the_code() {
    use weir_api::{place::defaults as place, steer::defaults as steer};
    for (kind, at, least, most) in [
        (
            Kind::TrafficWatch,
            "interval",
            place::INTERVAL_MIN,
            place::INTERVAL_MAX,
        ),
        (
            Kind::TrafficSchedule,
            "scheduler/properties/budgetWindow",
            steer::BUDGET_WINDOW_MIN,
            steer::BUDGET_WINDOW_MAX,
        ),
    ] {
        let schema = schema(kind);
        let field = schema
            .pointer(&format!("/properties/spec/properties/{at}"))
            .expect("the field");
        let rules = field["x-kubernetes-validations"].to_string();
        let said = |span: std::time::Duration| {
            ["h", "m", "s"]
                .iter()
                .zip([3600, 60, 1])
                .any(|(unit, seconds)| {
                    let text = format!("duration('{}{unit}')", span.as_secs() / seconds);
                    span.as_secs().is_multiple_of(seconds) && rules.contains(&text)
                })
        };
        assert!(said(least) && said(most), "{at}: {rules}");
    }
}

#[test]
fn no_schema_is_above_60_kb() {
    for kind in Kind::ALL {
        let size = schema(kind).to_string().len();
        assert!(size < 60_000, "{kind:?}: {size} bytes");
    }
}

#[test]
fn every_message_is_a_sentence_without_its_subject() {
    for kind in Kind::ALL {
        for constraint in constraints(&schema(kind)) {
            if let crate::constraint::By::Rule(message) = &constraint.by {
                assert!(message.len() > 10, "{constraint}");
                assert!(
                    !message.ends_with('.') && !message.contains("self."),
                    "{constraint}"
                );
            }
        }
    }
}

#[test]
fn what_validate_says_of_each_accepted_object() {
    for case in table::accepted() {
        let found = findings(case.kind, &case.object);
        let found: Vec<_> = found
            .iter()
            .map(|(field, reason)| (field.as_str(), *reason))
            .collect();
        assert_eq!(found, case.findings, "{}", case.name);
    }
}

#[test]
fn the_types_carry_the_defaults_of_the_schema() {
    // What the API server fills in and what the types assume must be the same.
    for kind in Kind::ALL {
        let mut base = table::base(kind);
        if base["spec"].is_null() {
            base["spec"] = json!({});
        }
        let filled = defaulted(&schema(kind), base.clone());
        assert_eq!(
            reserialised(kind, base),
            reserialised(kind, filled),
            "{kind:?}"
        );
    }
}

/// An object through the Rust type and back.
fn reserialised(kind: Kind, object: Value) -> Value {
    match kind {
        Kind::ElastiService => json!(typed::<ElastiService>(object)),
        Kind::TrafficSchedule => json!(typed::<TrafficSchedule>(object)),
        Kind::TrafficWatch => json!(typed::<TrafficWatch>(object)),
    }
}

pub(crate) fn typed<T: serde::de::DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).expect("what the schema accepts, the type can hold")
}

/// Field and reason of what `validate()` finds.
pub(crate) fn findings(kind: Kind, object: &Value) -> Vec<(String, &'static str)> {
    let object = object.clone();
    let findings = match kind {
        Kind::ElastiService => typed::<ElastiService>(object).validate(),
        Kind::TrafficSchedule => {
            let mut object = object;
            if object["spec"].is_null() {
                object["spec"] = json!({});
            }
            typed::<TrafficSchedule>(object).validate()
        }
        Kind::TrafficWatch => typed::<TrafficWatch>(object).validate(),
    };
    for finding in &findings {
        assert!(finding.message.len() > 10, "{finding} says something");
    }
    findings
        .into_iter()
        .map(|finding| (finding.field, finding.reason))
        .collect()
}

/// Defaulting as the API server does it: absent fields with a default, and then below them.
fn defaulted(schema: &Value, mut value: Value) -> Value {
    if let (Some(properties), Some(fields)) =
        (schema["properties"].as_object(), value.as_object_mut())
    {
        for (name, property) in properties {
            if !fields.contains_key(name) && !property["default"].is_null() {
                fields.insert(name.clone(), property["default"].clone());
            }
            if let Some(field) = fields.get_mut(name) {
                *field = defaulted(property, field.take());
            }
        }
    }
    if let (true, Some(items)) = (schema["items"].is_object(), value.as_array_mut()) {
        for item in items {
            *item = defaulted(&schema["items"], item.take());
        }
    }
    value
}
