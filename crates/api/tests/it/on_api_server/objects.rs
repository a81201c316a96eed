//! Objects of any kind on the API server: definitions installed, objects created, refusals read.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Client, Error, ResourceExt};
use serde_json::Value;

/// Hundreds of schemas are much work for a machine that has other things to do.
pub(crate) const PATIENCE: Duration = Duration::from_mins(5);

/// One complaint of the API server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    pub(crate) field: String,
    pub(crate) message: String,
}

/// Apply a definition and wait until objects of all its versions can be created.
pub(crate) async fn install(client: &Client, crd: &Value) {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = crd["metadata"]["name"].as_str().expect("a name");
    let applied = crds
        .patch(
            name,
            &PatchParams::apply("weir-test").force(),
            &Patch::Apply(crd),
        )
        .await
        .unwrap_or_else(|error| panic!("{name} is not accepted: {error}"));
    let generation = applied.metadata.generation;

    // Established is written before the API server serves a version: the object that is asked for here is the proof. A schema
    // that was changed may take a moment longer to be in force, see `upgrade`.
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let now = crds.get(name).await.expect("the definition");
        let established = now
            .status
            .iter()
            .flat_map(|status| status.conditions.iter().flatten())
            .any(|condition| condition.type_ == "Established" && condition.status == "True");
        if established && now.metadata.generation == generation && served(client, crd).await {
            return;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "{name} is not served after {PATIENCE:?}: {now:?}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn served(client: &Client, crd: &Value) -> bool {
    for version in crd["spec"]["versions"].as_array().expect("versions") {
        let resource = resource(crd, version["name"].as_str().expect("a name"));
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
        if api
            .list(&kube::api::ListParams::default().limit(1))
            .await
            .is_err()
        {
            return false;
        }
    }
    true
}

/// How to address one version of a definition.
pub(crate) fn resource(crd: &Value, version: &str) -> ApiResource {
    let group = crd["spec"]["group"].as_str().expect("a group");
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: format!("{group}/{version}"),
        kind: crd["spec"]["names"]["kind"]
            .as_str()
            .expect("a kind")
            .to_owned(),
        plural: crd["spec"]["names"]["plural"]
            .as_str()
            .expect("a plural")
            .to_owned(),
    }
}

/// The objects of one kind in one namespace.
pub(crate) fn api(client: &Client, namespace: &str, resource: &ApiResource) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, resource)
}

/// An object as `kube` carries it, under the version at hand.
pub(crate) fn dynamic(object: &Value, resource: &ApiResource) -> DynamicObject {
    let mut object = object.clone();
    object["apiVersion"] = resource.api_version.clone().into();
    serde_json::from_value(object).expect("an object")
}

/// Try to create an object, without storing it.
pub(crate) async fn try_create(
    objects: &Api<DynamicObject>,
    object: &DynamicObject,
) -> Result<(), Vec<Complaint>> {
    outcome(objects.create(&dry_run(), object).await)
}

/// Try to write the status of a stored object, without storing it.
pub(crate) async fn try_status(
    objects: &Api<DynamicObject>,
    stored: &DynamicObject,
    object: &DynamicObject,
) -> Result<(), Vec<Complaint>> {
    let mut wanted = stored.clone();
    wanted.types.clone_from(&object.types);
    wanted.data["status"] = object.data["status"].clone();
    outcome(
        objects
            .replace_status(&stored.name_any(), &dry_run(), &wanted)
            .await,
    )
}

fn dry_run() -> PostParams {
    PostParams {
        dry_run: true,
        ..PostParams::default()
    }
}

fn outcome(answer: Result<DynamicObject, Error>) -> Result<(), Vec<Complaint>> {
    match answer {
        Ok(_) => Ok(()),
        Err(Error::Api(status)) if status.code == 422 => {
            let causes = status.details.iter().flat_map(|details| &details.causes);
            Err(causes
                .map(|cause| Complaint {
                    field: cause.field.clone(),
                    message: cause.message.clone(),
                })
                // Said in addition wherever the schema itself refuses.
                .filter(|complaint| {
                    !complaint
                        .message
                        .contains("some validation rules were not checked")
                })
                .collect())
        }
        Err(other) => panic!("neither accepted nor refused: {other}"),
    }
}
