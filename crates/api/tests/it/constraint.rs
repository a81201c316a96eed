//! The constraints in a schema: every rule, bound, enumeration and requirement, found by walking it,
//! and the schema without one of them.

use std::fmt;

use serde_json::Value;

/// One constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Constraint {
    /// The field, such as `spec.triggers[].type`; `*` stands for any key of a map.
    pub(crate) at: String,
    pub(crate) by: By,
    /// Where the field's schema is within the whole, as a JSON pointer.
    pointer: String,
}

/// What constrains a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// A CEL rule, known by its message.
    Rule(String),
    /// A keyword with one value.
    Keyword(&'static str),
    /// A property that must be there.
    Required(String),
    /// A list whose items are told apart by keys.
    Unique,
}

const KEYWORDS: [&str; 10] = [
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "pattern",
];

/// Keywords from which the API server estimates what a rule may cost. Without one it would refuse
/// the whole schema, so it is loosened instead of taken out.
const COST_BOUNDS: [&str; 2] = ["maxLength", "maxItems"];

/// All constraints below a schema.
pub(crate) fn constraints(schema: &Value) -> Vec<Constraint> {
    let mut found = Vec::new();
    walk(schema, "", "", &mut found);
    found
}

fn walk(schema: &Value, at: &str, pointer: &str, found: &mut Vec<Constraint>) {
    let mut add = |by: By| {
        found.push(Constraint {
            at: at.to_owned(),
            by,
            pointer: pointer.to_owned(),
        });
    };
    for keyword in KEYWORDS {
        if schema.get(keyword).is_some() {
            add(By::Keyword(keyword));
        }
    }
    for name in items(&schema["required"]) {
        add(By::Required(name.as_str().expect("a name").to_owned()));
    }
    for rule in items(&schema["x-kubernetes-validations"]) {
        let message = rule["message"]
            .as_str()
            .expect("every rule has our message");
        add(By::Rule(message.to_owned()));
    }
    if matches!(
        schema["x-kubernetes-list-type"].as_str(),
        Some("map" | "set")
    ) {
        add(By::Unique);
    }
    for unexpected in ["anyOf", "allOf", "oneOf", "not"] {
        let harmless = schema["x-kubernetes-int-or-string"] == true;
        assert!(
            harmless || schema.get(unexpected).is_none(),
            "{at}: {unexpected} is not walked"
        );
    }

    if let Some(properties) = schema["properties"].as_object() {
        for (name, property) in properties {
            let at = if at.is_empty() {
                name.clone()
            } else {
                format!("{at}.{name}")
            };
            walk(
                property,
                &at,
                &format!("{pointer}/properties/{name}"),
                found,
            );
        }
    }
    if schema["items"].is_object() {
        walk(
            &schema["items"],
            &format!("{at}[]"),
            &format!("{pointer}/items"),
            found,
        );
    }
    if schema["additionalProperties"].is_object() {
        let pointer = format!("{pointer}/additionalProperties");
        walk(
            &schema["additionalProperties"],
            &format!("{at}.*"),
            &pointer,
            found,
        );
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

impl Constraint {
    /// The schema without this constraint.
    pub(crate) fn removed_from(&self, schema: &Value) -> Value {
        let mut without = schema.clone();
        let place = without
            .pointer_mut(&self.pointer)
            .expect("the field's schema");
        match &self.by {
            By::Keyword(keyword) if COST_BOUNDS.contains(keyword) => {
                let bound = place[*keyword].as_u64().expect("a bound");
                place[*keyword] = (bound * 2).into();
            }
            By::Keyword(keyword) => {
                place.as_object_mut().expect("a schema").remove(*keyword);
            }
            By::Required(name) => {
                let names = place["required"].as_array_mut().expect("names");
                names.retain(|other| other != name);
                if names.is_empty() {
                    place.as_object_mut().expect("a schema").remove("required");
                }
                // A key by which items are told apart may not be optional.
                if let Some(list) = self.pointer.strip_suffix("/items") {
                    let list = without.pointer_mut(list).expect("the list's schema");
                    tell_apart_no_longer(list);
                }
            }
            By::Rule(message) => place["x-kubernetes-validations"]
                .as_array_mut()
                .expect("rules")
                .retain(|rule| rule["message"] != **message),
            By::Unique => tell_apart_no_longer(place),
        }
        without
    }
}

fn tell_apart_no_longer(list: &mut Value) {
    let list = list.as_object_mut().expect("a schema");
    list.remove("x-kubernetes-list-type");
    list.remove("x-kubernetes-list-map-keys");
}

impl fmt::Display for Constraint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = if self.at.is_empty() {
            "(root)"
        } else {
            &self.at
        };
        match &self.by {
            By::Rule(message) => write!(out, "{at}: rule {message:?}"),
            By::Keyword(keyword) => write!(out, "{at}: {keyword}"),
            By::Required(name) => write!(out, "{at}: required {name}"),
            By::Unique => write!(out, "{at}: unique keys"),
        }
    }
}
