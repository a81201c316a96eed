//! The three CustomResourceDefinitions, as they are installed.
//!
//! What `kube` derives from the types in `*/resource.rs` is nearly right. Three things are not, and
//! are put right here, on the finished schema:
//!
//! - An `Option` becomes `nullable`, and that of an enumeration has `null` among its values, which
//!   kubectl refuses. A `null` would then be stored and would have to be told apart
//!   from "absent" in every rule; without it the API server drops it, or refuses it.
//! - A `TrafficSchedule` needs no spec at all.
//! - Comments of embedded Kubernetes types speak of things that are not ours and make up a third of
//!   the size: long ones end after their first paragraph.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;
use serde_json::json;

use crate::hold::ElastiService;
use crate::place::TrafficWatch;
use crate::steer::TrafficSchedule;

/// One of Weir's resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Hold.
    ElastiService,
    /// Steer.
    TrafficSchedule,
    /// Place.
    TrafficWatch,
}

impl Kind {
    /// All of them, in the order in which they are printed.
    pub const ALL: [Self; 3] = [
        Self::ElastiService,
        Self::TrafficSchedule,
        Self::TrafficWatch,
    ];

    /// The kind as manifests spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ElastiService => "ElastiService",
            Self::TrafficSchedule => "TrafficSchedule",
            Self::TrafficWatch => "TrafficWatch",
        }
    }

    /// Its definition.
    pub fn crd(self) -> CustomResourceDefinition {
        let mut crd = match self {
            Self::ElastiService => ElastiService::crd(),
            Self::TrafficSchedule => TrafficSchedule::crd(),
            Self::TrafficWatch => TrafficWatch::crd(),
        };
        for version in &mut crd.spec.versions {
            let schema = version
                .schema
                .as_mut()
                .and_then(|schema| schema.open_api_v3_schema.as_mut());
            if let Some(root) = schema {
                finish(self, root);
            }
        }
        crd
    }
}

fn finish(kind: Kind, root: &mut JSONSchemaProps) {
    each(root, &mut |schema| {
        schema.nullable = None;
        if let Some(values) = schema.enum_.as_mut() {
            values.retain(|value| !value.0.is_null());
        }
        shorten_description(schema);
    });
    let spec = root.properties.as_mut().and_then(|all| all.get_mut("spec"));
    if let (Kind::TrafficSchedule, Some(spec)) = (kind, spec) {
        spec.default = Some(JSON(json!({})));
        root.required = None;
    }
}

/// The first paragraph, on one line: kubectl breaks lines itself.
fn shorten_description(schema: &mut JSONSchemaProps) {
    if let Some(description) = schema.description.as_mut() {
        let first = description.split("\n\n").next().unwrap_or_default();
        *description = first.replace('\n', " ");
    }
}

/// Visit a schema and all below it.
fn each(schema: &mut JSONSchemaProps, visit: &mut impl FnMut(&mut JSONSchemaProps)) {
    visit(schema);
    for property in schema.properties.iter_mut().flatten() {
        each(property.1, visit);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = schema.additional_properties.as_mut() {
        each(values, visit);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = schema.items.as_mut() {
        each(items, visit);
    }
}
