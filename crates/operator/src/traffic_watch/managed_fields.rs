//! Who wrote what in a Deployment that the original made by plain updates. An apply takes away what it no longer has only
//! from its own fields; so those of the original become ours, once, all but `replicas`: an apply without it would set it
//! to 1.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use serde_json::{Map, Value};
use weir_api::place::names::{FIELD_MANAGER, REPLICAS_FIELD_MANAGER};

const APPLY: &str = "Apply";
const UPDATE: &str = "Update";
const SPEC: &str = "f:spec";

/// The entries as they should be; none if they are right: we have applied before, or nobody wrote the template.
pub fn migrated(entries: &[ManagedFieldsEntry]) -> Option<Vec<ManagedFieldsEntry>> {
    let is_ours = |entry: &ManagedFieldsEntry| {
        entry.manager.as_deref() == Some(FIELD_MANAGER) && entry.operation.as_deref() == Some(APPLY)
    };
    if entries.iter().any(is_ours) {
        return None;
    }
    let (theirs, mut others): (Vec<_>, Vec<_>) = entries.iter().cloned().partition(wrote_template);
    let first = theirs.first()?;
    let mut fields = Value::Object(Map::new());
    for entry in &theirs {
        if let Some(FieldsV1(more)) = &entry.fields_v1 {
            add(&mut fields, more);
        }
    }
    if let Some(spec) = fields.get_mut(SPEC).and_then(Value::as_object_mut) {
        spec.remove("f:replicas");
    }
    let ours = ManagedFieldsEntry {
        manager: Some(FIELD_MANAGER.to_owned()),
        operation: Some(APPLY.to_owned()),
        fields_v1: Some(FieldsV1(fields)),
        ..first.clone()
    };
    others.insert(0, ours);
    Some(others)
}

/// Whoever wrote the template by updates of the whole. A change of `replicas` alone is somebody else's.
fn wrote_template(entry: &ManagedFieldsEntry) -> bool {
    let fields = entry.fields_v1.as_ref();
    entry.operation.as_deref() == Some(UPDATE)
        && entry.manager.as_deref() != Some(REPLICAS_FIELD_MANAGER)
        && entry.subresource.as_deref().is_none_or(str::is_empty)
        && fields.is_some_and(|FieldsV1(fields)| {
            let spec = fields.get(SPEC);
            spec.is_some_and(|spec| spec.get("f:template").is_some())
        })
}

fn add(to: &mut Value, more: &Value) {
    match (to, more) {
        (Value::Object(to), Value::Object(more)) => {
            for (key, value) in more {
                add(to.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (to, more) => {
            if to.is_null() {
                *to = more.clone();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(manager: &str, operation: &str, fields: Value) -> ManagedFieldsEntry {
        ManagedFieldsEntry {
            api_version: Some("apps/v1".to_owned()),
            manager: Some(manager.to_owned()),
            operation: Some(operation.to_owned()),
            fields_type: Some("FieldsV1".to_owned()),
            fields_v1: Some(FieldsV1(fields)),
            ..ManagedFieldsEntry::default()
        }
    }

    #[test]
    fn the_originals_fields_become_ours_but_for_replicas() {
        let spec = json!({ "f:spec": { "f:replicas": {}, "f:template": { "f:spec": { "f:volumes": {} } } } });
        let more = json!({ "f:spec": { "f:template": { "f:spec": { "f:affinity": {} } } } });
        let status = ManagedFieldsEntry {
            subresource: Some("status".to_owned()),
            ..entry("kube-controller-manager", UPDATE, json!({ "f:status": {} }))
        };
        let scaled = entry(
            "autoscaler",
            UPDATE,
            json!({ "f:spec": { "f:replicas": {} } }),
        );
        let found = migrated(&[
            entry("manager", UPDATE, spec),
            status.clone(),
            entry("kubectl-edit", UPDATE, more),
            scaled.clone(),
        ])
        .unwrap();
        let ours = json!({ "f:spec": { "f:template": { "f:spec": { "f:volumes": {}, "f:affinity": {} } } } });
        assert_eq!(found, [entry(FIELD_MANAGER, APPLY, ours), status, scaled]);
        assert_eq!(migrated(&found), None, "once");
    }

    #[test]
    fn a_deployment_that_nobody_wrote_that_way_is_left_alone() {
        assert_eq!(migrated(&[]), None);
        let scaled = entry(
            "autoscaler",
            UPDATE,
            json!({ "f:spec": { "f:replicas": {} } }),
        );
        assert_eq!(migrated(&[scaled]), None);
    }
}
