//! What the index is told: objects that are there now, objects that are gone, and whole lists.

use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use weir_api::hold::ElastiService;
use weir_role::cluster::{ObjectId, Update};

use crate::{pod::object::Pod, view::ServiceId};

/// Something happened to objects of one kind.
#[derive(Clone, Debug)]
pub enum Event {
    /// To what is to be held.
    ElastiService(Update<ElastiService>),
    /// To a Service.
    Service(Update<Service>),
    /// To where the pods of a Service are.
    EndpointSlice(Update<EndpointSlice>),
    /// To a pod.
    Pod(Update<Pod>),
}

impl From<ObjectId> for ServiceId {
    fn from(ObjectId { namespace, name }: ObjectId) -> Self {
        Self { namespace, name }
    }
}

impl From<ServiceId> for ObjectId {
    fn from(ServiceId { namespace, name }: ServiceId) -> Self {
        Self { namespace, name }
    }
}
