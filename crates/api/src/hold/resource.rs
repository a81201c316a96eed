//! `ElastiService`: a Service that may sleep.
//!
//! The doc comments below are what `kubectl explain` prints, so they speak to the person who writes
//! a manifest. What the schema cannot say is in `validate`.

#![allow(
    clippy::duplicated_attributes,
    reason = "columns share attributes such as their type"
)]
#![allow(
    unreachable_pub,
    reason = "KubeSchema repeats each struct inside a function"
)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::defaults;
use super::probe::ProbeResponse;
use super::trigger::Trigger;
use crate::form::workload_kind;
use crate::{lenient, rule};

/// What may sleep, when it may, and what wakes it.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Deserialize, Serialize)]
#[kube(
    group = "elasti.truefoundry.com",
    version = "v1alpha1",
    kind = "ElastiService",
    plural = "elastiservices",
    namespaced,
    status = "ElastiServiceStatus",
    derive = "PartialEq",
    category = "weir",
    shortname = "elasti",
    doc = "A Service whose workload is scaled to zero while it is idle; requests that arrive meanwhile are held until it is back.",
    printcolumn(
        name = "Mode",
        type_ = "string",
        json_path = ".status.mode",
        description = "proxy: requests are held; serve: they go to the pods"
    ),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(
        name = "Service",
        type_ = "string",
        json_path = ".spec.service",
        priority = 1
    ),
    printcolumn(
        name = "Kind",
        type_ = "string",
        json_path = ".spec.scaleTargetRef.kind",
        priority = 1
    ),
    printcolumn(
        name = "Target",
        type_ = "string",
        json_path = ".spec.scaleTargetRef.name"
    ),
    printcolumn(
        name = "Last Wake",
        type_ = "date",
        json_path = ".status.lastScaledUpTime"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct ElastiServiceSpec {
    /// Name of the public Service, in the same namespace, whose requests are held.
    #[schemars(length(max = 63))]
    #[x_kube(validation = rule::service_name())]
    pub service: String,

    /// The workload behind the Service, which is scaled to zero and back.
    pub scale_target_ref: ScaleTargetRef,

    /// Replicas to wake to.
    #[serde(default = "min_target_replicas")]
    #[schemars(range(min = 1, max = i32::MAX))]
    pub min_target_replicas: i32,

    /// Seconds after the last wake, and after creation, in which the workload is not put to sleep.
    /// 0 means the default.
    #[serde(default = "cooldown_period")]
    #[schemars(range(min = 0, max = defaults::COOLDOWN_MAX_SECONDS))]
    pub cooldown_period: i32,

    /// When the workload counts as idle: all triggers must say so. Without any it is never put to
    /// sleep, but requests are still held while it has no ready pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub triggers: Vec<Trigger>,

    /// The autoscaler that scales the workload while it is awake. It is kept from interfering while
    /// the workload sleeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaler: Option<Autoscaler>,

    /// The times at which the workload may sleep. Outside them it is kept at `minTargetReplicas` or
    /// above. Without it the workload may always sleep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled_period: Option<EnabledPeriod>,

    /// Answers given while no pod is ready, without waking the workload: for health checks of load
    /// balancers and the like. The first rule that matches answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = defaults::PROBE_RESPONSE_MAX_RULES))]
    pub probe_response: Vec<ProbeResponse>,

    /// Whether the resolver asks a starting pod itself, by the pod's own readiness probes, instead
    /// of waiting for the kubelet's next round.
    #[serde(default = "early_readiness")]
    pub early_readiness: bool,
}

/// A workload that has a scale.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.apiVersion) || !has(self.kind) || (self.apiVersion.startsWith('apps/') ? self.apiVersion == 'apps/v1' && self.kind in ['Deployment', 'StatefulSet', 'ReplicaSet', 'deployments'] : self.kind != 'deployments')")
        .message("apps/v1 has Deployment, StatefulSet and ReplicaSet to scale ('deployments' is an old spelling of the first)")
        .field_path(".kind"),
    validation = Rule::new("!has(self.apiVersion) || !has(self.kind) || (self.apiVersion == 'argoproj.io/v1alpha1' ? self.kind in ['Rollout', 'rollouts'] : self.kind != 'rollouts')")
        .message("argoproj.io/v1alpha1 has Rollout to scale ('rollouts' is an old spelling of it)")
        .field_path(".kind"),
    validation = Rule::new("!has(self.apiVersion) || !has(self.kind) || (!self.apiVersion.startsWith('batch/') && !self.apiVersion.startsWith('extensions/') && (self.apiVersion != 'v1' || self.kind == 'ReplicationController'))")
        .message("this kind cannot be scaled: use a Deployment, StatefulSet, Rollout or another kind that has a scale")
        .field_path(".kind")
)]
pub struct ScaleTargetRef {
    /// API version of the workload: `apps/v1`, `argoproj.io/v1alpha1`, or that of another kind with
    /// a scale, for which the operator needs an extra Role.
    #[schemars(length(max = 317))]
    #[x_kube(validation = rule::matches(
        r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?v[0-9]+((alpha|beta)[0-9]+)?$",
        "must be an API version such as apps/v1",
    ))]
    pub api_version: String,

    /// Kind of the workload: Deployment, StatefulSet, Rollout, or another kind with a scale. The old
    /// spellings `deployments` and `rollouts` are understood.
    #[schemars(length(max = 63))]
    #[x_kube(validation = rule::matches(
        "^([A-Z][A-Za-z0-9]*|deployments|rollouts)$",
        "must be a kind such as Deployment: letters and digits, beginning with a capital",
    ))]
    pub kind: String,

    /// Name of the workload, in the same namespace.
    #[schemars(length(max = 253))]
    #[x_kube(validation = rule::object_name())]
    pub name: String,
}

impl ScaleTargetRef {
    /// API version and kind as Kubernetes spells them, old spellings resolved.
    pub fn canonical(&self) -> (&str, &str) {
        workload_kind::canonical(&self.api_version, &self.kind)
    }
}

/// An autoscaler of the workload.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Autoscaler {
    /// `hpa` for a HorizontalPodAutoscaler, `keda` for a ScaledObject.
    #[serde(rename = "type")]
    pub type_: AutoscalerType,

    /// Its name, in the same namespace.
    #[schemars(length(max = 253))]
    #[x_kube(validation = rule::object_name())]
    pub name: String,
}

/// Kind of an autoscaler.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the variants are explained where the field is")]
pub enum AutoscalerType {
    Hpa,
    Keda,
}

/// Recurring windows of time.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnabledPeriod {
    /// When each window begins: five cron fields (minute hour day month weekday), in UTC unless
    /// they begin with `CRON_TZ=Zone`.
    #[serde(default = "enabled_schedule")]
    #[schemars(length(max = rule::CRON_MAX_LENGTH))]
    #[x_kube(validation = rule::cron())]
    pub schedule: String,

    /// How long each window lasts, such as 8h or 1h30m.
    #[serde(default = "enabled_duration")]
    #[schemars(length(max = rule::DURATION_MAX_LENGTH))]
    #[x_kube(validation = rule::duration())]
    pub duration: String,
}

/// What Weir does with the Service at the moment.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ElastiServiceStatus {
    /// `proxy` while requests go to the resolver, `serve` while they go to the pods.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::option"
    )]
    pub mode: Option<Mode>,

    /// Where the Service is between awake and asleep.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::option"
    )]
    pub phase: Option<Phase>,

    /// When the present phase began.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::option"
    )]
    pub phase_start_time: Option<Time>,

    /// The Service that this status speaks of. After an edit of `service` the former one is held until
    /// its pods are back.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::option"
    )]
    pub service: Option<String>,

    /// The workload that this status speaks of, such as Deployment/web. After an edit of
    /// `scaleTargetRef` the former one is woken by it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::option"
    )]
    pub target: Option<String>,

    /// When this status last changed in another field.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::option"
    )]
    pub last_reconciled_time: Option<Time>,

    /// When the workload was last woken, or last seen busy. Not updated with every request.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::option"
    )]
    pub last_scaled_up_time: Option<Time>,

    /// The resolver's port for each port of the Service.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "lenient::list"
    )]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub ports: Vec<PortAllotment>,

    /// What is right and what is not, with the reason.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "lenient::list"
    )]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,

    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// Where requests go.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the variants are explained where the field is")]
pub enum Mode {
    Proxy,
    Serve,
}

/// Where a Service is between awake and asleep.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[allow(missing_docs, reason = "the names are the explanation")]
pub enum Phase {
    Serving,
    Draining,
    Asleep,
    Waking,
}

/// The port on which the resolver takes the requests for one port of the Service.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PortAllotment {
    /// Name of the Service's port; empty for the only port of a Service.
    #[serde(default)]
    pub name: String,

    /// The resolver's port.
    #[schemars(schema_with = "port")]
    pub resolver_port: u16,
}

fn min_target_replicas() -> i32 {
    defaults::MIN_TARGET_REPLICAS
}

fn cooldown_period() -> i32 {
    defaults::COOLDOWN_SECONDS
}

fn early_readiness() -> bool {
    true
}

fn enabled_schedule() -> String {
    defaults::ENABLED_PERIOD_SCHEDULE.to_owned()
}

fn enabled_duration() -> String {
    defaults::ENABLED_PERIOD_DURATION.to_owned()
}

fn port(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "format": "int32", "minimum": 1, "maximum": 65535 })
}
