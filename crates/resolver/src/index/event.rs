//! What the index is told: objects that are there now, objects that are gone, and whole lists.

use std::sync::Arc;

use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::ResourceExt;
use weir_api::hold::ElastiService;

use crate::view::ServiceId;

/// Something happened to objects of one kind.
#[derive(Clone, Debug)]
pub enum Event {
    /// To what is to be held.
    ElastiService(Update<ElastiService>),
    /// To a Service.
    Service(Update<Service>),
    /// To where the pods of a Service are.
    EndpointSlice(Update<EndpointSlice>),
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Update<K> {
    /// It is new or changed.
    Set(Box<K>),
    /// It was deleted.
    Gone(ObjectId),
    /// These are all there are: what was deleted while nobody watched is not among them.
    Restarted {
        /// All there are in this namespace; none: in the cluster.
        namespace: Option<String>,
        /// The objects.
        objects: Vec<K>,
        /// Objects that are there but cannot be read: what was known of them stays.
        unreadable: Vec<ObjectId>,
    },
}

/// An object of a kind that is known from where this stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl ObjectId {
    /// The object of this name in this namespace.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// Which object this is.
    pub fn of<K: ResourceExt>(object: &K) -> Self {
        let meta = object.meta();
        Self::new(
            meta.namespace.as_deref().unwrap_or_default(),
            meta.name.as_deref().unwrap_or_default(),
        )
    }
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
