//! The ElastiService itself, and what is derived from it: private Service and slice.

use std::{collections::BTreeSet, net::IpAddr};

use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Preconditions},
};
use serde_json::json;
use weir_api::hold::{ElastiService, ElastiServiceStatus, names::FINALIZER};
use weir_role::cluster::ObjectId;

use super::{HandError, Hands, merge, patching, posting};
use weir_hold::facts::Version;

/// What is told of them in errors and counts.
const STATUS: &str = "status";
const FINALIZERS: &str = "finalizer";
const SLICE: &str = "slice";
const PRIVATE_SERVICE: &str = "private_service";

impl Hands {
    /// Writes a status, on the version that was read.
    pub async fn store(
        &self,
        object: &ElastiService,
        status: ElastiServiceStatus,
    ) -> Result<(), HandError> {
        let mut new = object.clone();
        new.status = Some(status);
        let api: Api<ElastiService> = self.api(&ObjectId::of(object));
        let outcome = api
            .replace_status(&object.name_any(), &posting(), &new)
            .await;
        self.wrote(STATUS, outcome).map(drop)
    }

    /// Adds our finalizer, or takes it away, on the version that was read.
    pub async fn set_finalizer(
        &self,
        object: &ElastiService,
        is_on: bool,
    ) -> Result<(), HandError> {
        let mut finalizers = object.finalizers().to_vec();
        finalizers.retain(|finalizer| finalizer != FINALIZER);
        if is_on {
            finalizers.push(FINALIZER.to_owned());
        }
        let patch = json!({ "metadata": {
            "resourceVersion": object.resource_version(),
            "finalizers": finalizers,
        }});
        let id = ObjectId::of(object);
        let api: Api<ElastiService> = self.api(&id);
        let outcome = api.patch(&id.name, &patching(), &merge(patch)).await;
        self.wrote(FINALIZERS, outcome).map(drop)
    }

    /// Makes our slice, or changes it if it still has this version.
    pub async fn put_slice(
        &self,
        mut slice: EndpointSlice,
        version: Option<&Version>,
    ) -> Result<(), HandError> {
        let id = ObjectId::of(&slice);
        let api: Api<EndpointSlice> = self.api(&id);
        let outcome = match version {
            None => api.create(&posting(), &slice).await,
            Some(version) => {
                slice.metadata.resource_version = Some(version.0.clone());
                api.replace(&id.name, &posting(), &slice).await
            }
        };
        self.wrote(SLICE, outcome).map(drop)
    }

    /// Takes these addresses out of a slice, unless none would be left.
    pub async fn take_out(
        &self,
        slice: &ObjectId,
        addresses: &BTreeSet<IpAddr>,
    ) -> Result<(), HandError> {
        let api: Api<EndpointSlice> = self.api(slice);
        let found = api.get(&slice.name).await;
        let mut found = found.map_err(|error| HandError::of(SLICE, error))?;
        let before = found.endpoints.len();
        found.endpoints.retain(|endpoint| {
            let mut parsed = endpoint.addresses.iter().map(|address| address.parse());
            !parsed.any(|address| address.is_ok_and(|address| addresses.contains(&address)))
        });
        if found.endpoints.is_empty() || found.endpoints.len() == before {
            return Ok(());
        }
        let outcome = api.replace(&slice.name, &posting(), &found).await;
        self.wrote(SLICE, outcome).map(drop)
    }

    /// Removes a slice, if it still has this version.
    pub async fn remove_slice(&self, slice: &ObjectId, version: &Version) -> Result<(), HandError> {
        let api: Api<EndpointSlice> = self.api(slice);
        let only_this = DeleteParams {
            preconditions: Some(Preconditions {
                resource_version: Some(version.0.clone()),
                uid: None,
            }),
            ..DeleteParams::default()
        };
        let outcome = api.delete(&slice.name, &only_this).await;
        gone_is_well(self.wrote(SLICE, outcome))
    }

    /// Makes the private Service, or changes it to what it should be.
    ///
    /// Not by a server-side apply: ports are a list with keys, so those that another manager has put there would stay, as the
    /// older operator has; and of two with one name the API server takes none.
    pub async fn put_private_service(&self, service: &Service) -> Result<(), HandError> {
        let id = ObjectId::of(service);
        let api: Api<Service> = self.api(&id);
        let there = api.get_opt(&id.name).await;
        let there = there.map_err(|error| HandError::of(PRIVATE_SERVICE, error))?;
        let outcome = match there {
            None => api.create(&posting(), service).await,
            Some(there) => {
                let changed = taken_over(there, service);
                api.replace(&id.name, &posting(), &changed).await
            }
        };
        self.wrote(PRIVATE_SERVICE, outcome).map(drop)
    }

    /// Removes a private Service.
    pub async fn remove_private_service(&self, service: &ObjectId) -> Result<(), HandError> {
        let api: Api<Service> = self.api(service);
        let outcome = api.delete(&service.name, &DeleteParams::default()).await;
        gone_is_well(self.wrote(PRIVATE_SERVICE, outcome))
    }
}

/// The one that is there, with its address and whatever else it has, as it should be.
fn taken_over(mut there: Service, service: &Service) -> Service {
    let labels = service.metadata.labels.clone().unwrap_or_default();
    there.metadata.labels.get_or_insert_default().extend(labels);
    let owners = there.metadata.owner_references.get_or_insert_default();
    // It was copied from one that somebody else may control, and only one can.
    owners.retain(|owner| owner.controller != Some(true));
    owners.extend(service.metadata.owner_references.iter().flatten().cloned());
    if let (Some(there), Some(spec)) = (&mut there.spec, &service.spec) {
        there.type_.clone_from(&spec.type_);
        there.selector.clone_from(&spec.selector);
        there.ports.clone_from(&spec.ports);
    }
    there
}

fn gone_is_well<T>(outcome: Result<T, HandError>) -> Result<(), HandError> {
    match outcome {
        Ok(_) | Err(HandError::Gone(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
