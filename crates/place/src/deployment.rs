//! The Deployment to apply for a watch: the user's spec whole, with pod labels that its selector finds, and a required
//! node affinity that keeps off unfit nodes. Never `replicas`: an apply that had it would take it from whoever scales
//! the Deployment, and one that then dropped it would set it to 1. Only what is understood is changed; the rest is for
//! the API server to judge.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use weir_api::place::{
    TrafficWatch,
    names::{GROUP, KIND, UNFIT, VERSION, label_of_unfit_key, unfit_label_key},
};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const TERMS: &str = "nodeSelectorTerms";
const EXPRESSIONS: &str = "matchExpressions";
const FIELDS: &str = "matchFields";

/// What to set `replicas` to, through `/scale` and under another field manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Nothing.
    Leave,
    /// This many.
    To(i32),
}

/// Whose a Deployment of the watch's name is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// The watch is its controller: it may be written.
    Ours,
    /// It is not taken over. Who its controller is, as kind and name; none if nobody is.
    Theirs(Option<String>),
}

/// Whose this Deployment is. A watch of the same name that was made anew is another one.
pub fn ownership(deployment: &Value, watch: &TrafficWatch) -> Ownership {
    let owners = deployment.pointer("/metadata/ownerReferences");
    let owners = owners.and_then(Value::as_array).into_iter().flatten();
    let text = |owner: &Value, field: &str| {
        let text = owner.get(field).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let mut controllers =
        owners.filter(|owner| owner.get("controller") == Some(&Value::Bool(true)));
    match controllers.next() {
        Some(owner) if watch.metadata.uid.as_ref() == Some(&text(owner, "uid")) => Ownership::Ours,
        Some(owner) => Ownership::Theirs(Some(format!(
            "{} {}",
            text(owner, "kind"),
            text(owner, "name")
        ))),
        None => Ownership::Theirs(None),
    }
}

/// The Deployment to apply, without `replicas` and status.
pub fn build(watch: &TrafficWatch) -> Value {
    let metadata = &watch.metadata;
    let mut spec = watch.spec.deployment.0.clone();
    spec.remove("replicas");
    let labels = match_labels(&spec);
    label_pods(&mut spec, &labels);
    keep_off(&mut spec, &unfit_label_key(watch.label_prefix()));
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "labels": labels,
            "ownerReferences": [{
                "apiVersion": format!("{GROUP}/{VERSION}"),
                "kind": KIND,
                "name": metadata.name,
                "uid": metadata.uid,
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": spec,
    })
}

/// What the user says about `replicas`; none is for Kubernetes to fill.
pub fn replicas(watch: &TrafficWatch) -> Option<i32> {
    let replicas = watch.spec.deployment.0.get("replicas")?.as_i64()?;
    i32::try_from(replicas)
        .ok()
        .filter(|replicas| *replicas >= 0)
}

/// Whether `replicas` is to be set: when the Deployment was just created, and when the user changed it since. `told` is
/// what the user said when it was last set; none: not known, and then whoever scaled it since is left alone.
pub fn scale(wanted: Option<i32>, told: Option<i32>, is_new: bool) -> Scale {
    match (wanted, told) {
        (Some(wanted), _) if is_new => Scale::To(wanted),
        (Some(wanted), Some(told)) if wanted != told => Scale::To(wanted),
        _ => Scale::Leave,
    }
}

/// The keys of ours that a Deployment as it stands keeps off, for [`crate::plan::Claim::in_use`]. Those that the user's
/// own template names are not meant: another watch may well be looked at, but its key is its own.
pub fn keys_in_use(deployment: &Value, watch: &TrafficWatch) -> BTreeSet<String> {
    let users = watch.spec.deployment.0.get("template");
    let users = users.map(keys_of_template).unwrap_or_default();
    let live = deployment.pointer("/spec/template").map(keys_of_template);
    let mut keys = live.unwrap_or_default();
    keys.retain(|key| !users.contains(key));
    keys
}

fn keys_of_template(template: &Value) -> BTreeSet<String> {
    let terms = template
        .pointer("/spec/affinity/nodeAffinity")
        .and_then(|affinity| affinity.get(REQUIRED)?.get(TERMS)?.as_array());
    let terms = terms.into_iter().flatten();
    let expressions = terms.filter_map(|term| term.get(EXPRESSIONS)?.as_array());
    let key = |expression: &Value| Some(expression.get("key")?.as_str()?.to_owned());
    expressions
        .flatten()
        .filter_map(key)
        .filter(|key| label_of_unfit_key(key).is_some())
        .collect()
}

fn match_labels(spec: &Map<String, Value>) -> Map<String, Value> {
    let labels = spec
        .get("selector")
        .and_then(|selector| selector.get("matchLabels"));
    labels
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default()
}

/// Pods get the template's labels, and of the selector's those that it lacks: the original's schema dropped the
/// template's metadata, so there are objects that hold `{}` and must work.
fn label_pods(spec: &mut Map<String, Value>, labels: &Map<String, Value>) {
    if labels.is_empty() {
        return;
    }
    let Some(pod_labels) = descend(spec, &["template", "metadata", "labels"]) else {
        return;
    };
    for (key, value) in labels {
        pod_labels
            .entry(key.clone())
            .or_insert_with(|| value.clone());
    }
}

/// Adds to every term of the required node affinity that the node must not be unfit; terms are or-ed, so a term of its
/// own would loosen the user's. A term without requirements matches nothing and stays as it is: with one requirement it
/// would match.
fn keep_off(spec: &mut Map<String, Value>, key: &str) {
    let Some(affinity) = descend(spec, &["template", "spec", "affinity", "nodeAffinity"]) else {
        return;
    };
    let expression = json!({ "key": key, "operator": "NotIn", "values": [UNFIT] });
    match affinity.get_mut(REQUIRED) {
        None | Some(Value::Null) => {
            let required = json!({ TERMS: [{ EXPRESSIONS: [expression] }] });
            affinity.insert(REQUIRED.to_owned(), required);
        }
        Some(required) => {
            let terms = required.get_mut(TERMS).and_then(Value::as_array_mut);
            for term in terms.into_iter().flatten() {
                add_expression(term, &expression);
            }
        }
    }
}

fn add_expression(term: &mut Value, expression: &Value) {
    let Some(term) = term.as_object_mut() else {
        return;
    };
    let has = |list: &str| {
        term.get(list)
            .and_then(Value::as_array)
            .is_some_and(|list| !list.is_empty())
    };
    if !has(EXPRESSIONS) && !has(FIELDS) {
        return;
    }
    let expressions = term.entry(EXPRESSIONS).or_insert(Value::Null);
    if expressions.is_null() {
        *expressions = json!([]);
    }
    if let Some(expressions) = expressions.as_array_mut()
        && !expressions.contains(expression)
    {
        expressions.push(expression.clone());
    }
}

/// The object at this path, made where it is missing; none where something else is in its way.
fn descend<'a>(
    spec: &'a mut Map<String, Value>,
    path: &[&str],
) -> Option<&'a mut Map<String, Value>> {
    let mut at = spec;
    for name in path {
        let next = at.entry(*name).or_insert(Value::Null);
        if next.is_null() {
            *next = json!({});
        }
        at = next.as_object_mut()?;
    }
    Some(at)
}
