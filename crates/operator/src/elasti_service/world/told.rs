//! What the watches say.

use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    autoscaling::v2::HorizontalPodAutoscaler,
    core::v1::Service,
    discovery::v1::EndpointSlice,
};
use weir_api::hold::ElastiService;
use weir_role::cluster::Update;

use crate::elasti_service::sight::{Rollout, ScaledObject};

/// Something happened to objects of one kind. Of kinds that a cluster may not have, `None` says that it has not.
#[derive(Clone, Debug)]
pub enum Told {
    /// To what is to be held.
    ElastiService(Update<ElastiService>),
    /// To a Service.
    Service(Update<Service>),
    /// To where a Service leads.
    Slice(Update<EndpointSlice>),
    /// To a workload.
    Deployment(Update<Deployment>),
    /// To a workload.
    StatefulSet(Update<StatefulSet>),
    /// To a workload of Argo.
    Rollout(Option<Update<Rollout>>),
    /// To an autoscaler of KEDA.
    ScaledObject(Option<Update<ScaledObject>>),
    /// To an autoscaler.
    Hpa(Update<HorizontalPodAutoscaler>),
}
