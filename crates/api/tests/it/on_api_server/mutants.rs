//! Every constraint is needed: with it taken out of the schema, the API server accepts the objects
//! that the table says it refuses. So no row is refused for another reason than the one it names.
//!
//! Each schema that lacks one constraint is a version of a definition of its own, several to a
//! definition, on an API server of their own: hundreds of schemas would slow the shared one down.

use std::sync::Arc;

use kube::{Client, api::PostParams};
use serde_json::{Value, json};
use tokio::{sync::Semaphore, task::JoinSet};
use weir_api::crd::Kind;

use super::objects::{api, dynamic, install, resource, try_create, try_status};
use crate::constraint::{Constraint, constraints};
use crate::schema::schema;
use crate::table::{self, Refused};

/// How many schemas go into one definition: as many as stay well below etcd's 1.5 MB.
const VERSIONS: usize = 24;

/// Definitions at a time: the API server works on one while we wait for another.
const AT_A_TIME: usize = 3;

#[tokio::test]
async fn without_its_constraint_each_refused_object_is_accepted() {
    let k8s = weir_lab::fresh_api_server().await;
    let namespace = k8s.namespace("mutants").await;
    let rows = Arc::new(table::refused());
    let turns = Arc::new(Semaphore::new(AT_A_TIME));
    let mut batches = JoinSet::new();
    for kind in Kind::ALL {
        let schema = schema(kind);
        for (number, constraints) in constraints(&schema).chunks(VERSIONS).enumerate() {
            let batch = Batch {
                crd: definition(kind, number, &schema, constraints),
                kind,
                constraints: constraints.to_vec(),
            };
            let (client, name) = (k8s.client(), namespace.name().to_owned());
            let (rows, turns) = (Arc::clone(&rows), Arc::clone(&turns));
            batches.spawn(async move {
                let _turn = turns.acquire_owned().await;
                batch.wrongly_refused(&client, &name, &rows).await
            });
        }
    }
    let wrong = batches.join_all().await.concat();
    assert!(
        wrong.is_empty(),
        "{} rows:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Schemas that each lack one constraint.
struct Batch {
    crd: Value,
    kind: Kind,
    constraints: Vec<Constraint>,
}

impl Batch {
    /// The rows that are refused although their constraint is not there.
    async fn wrongly_refused(
        &self,
        client: &Client,
        namespace: &str,
        rows: &[Refused],
    ) -> Vec<String> {
        let mut wrong = Vec::new();
        install(client, &self.crd).await;
        for (version, constraint) in self.constraints.iter().enumerate() {
            let resource = resource(&self.crd, &version_name(version));
            let objects = api(client, namespace, &resource);
            let base = dynamic(&table::base(self.kind), &resource);
            let stored = match objects.get_opt("base").await.expect("an answer") {
                Some(stored) => stored,
                None => objects
                    .create(&PostParams::default(), &base)
                    .await
                    .expect("the base is right"),
            };
            let ours = |row: &&Refused| {
                row.kind == self.kind && row.at == constraint.at && row.by == constraint.by
            };
            for row in rows.iter().filter(ours) {
                let mut object = row.object();
                if object["metadata"]["name"] == "base" {
                    object["metadata"]["name"] = json!("accepted");
                }
                let object = dynamic(&object, &resource);
                let answer = if row.is_status() {
                    try_status(&objects, &stored, &object).await
                } else {
                    try_create(&objects, &object).await
                };
                if let Err(complaints) = answer {
                    wrong.push(format!(
                        "{:?} without {constraint}:\n  {row:?}\n  {complaints:?}",
                        self.kind
                    ));
                }
            }
        }
        wrong
    }
}

/// A definition in a group of its own, with one version for each constraint that is left out.
fn definition(kind: Kind, number: usize, schema: &Value, batch: &[Constraint]) -> Value {
    let mut crd = json!(kind.crd());
    let group = format!(
        "without{number}.{}",
        crd["spec"]["group"].as_str().expect("a group")
    );
    let plural = crd["spec"]["names"]["plural"]
        .as_str()
        .expect("a plural")
        .to_owned();
    crd["metadata"]["name"] = json!(format!("{plural}.{group}"));
    crd["spec"]["group"] = json!(group);
    crd["spec"]["names"] = json!({"plural": plural, "kind": kind.name()});
    crd["spec"]["versions"] = batch
        .iter()
        .enumerate()
        .map(|(version, constraint)| {
            json!({
                "name": version_name(version),
                "served": true,
                "storage": version == 0,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": unexplained(constraint.removed_from(schema))},
            })
        })
        .collect();
    crd
}

fn version_name(version: usize) -> String {
    format!("v{}", version + 1)
}

/// Without descriptions, which make up most of a schema and constrain nothing.
fn unexplained(schema: Value) -> Value {
    match schema {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(name, value)| name != "description" || !value.is_string())
            .map(|(name, value)| (name, unexplained(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(unexplained).collect(),
        other => other,
    }
}
