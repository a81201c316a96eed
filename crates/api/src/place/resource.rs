//! `TrafficWatch`: a Deployment whose pods keep off nodes with a full network.
//!
//! The doc comments below are what `kubectl explain` prints, so they speak to the person who writes
//! a manifest. What the schema cannot say is in `validate`; the embedded Deployment is judged by the
//! API server itself, in a dry run.

#![allow(
    clippy::duplicated_attributes,
    reason = "columns share attributes such as their type"
)]
#![allow(
    unreachable_pub,
    reason = "KubeSchema repeats each struct inside a function"
)]

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::DeploymentSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::Rule;
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{defaults, names};
use crate::dns::DNS_SUBDOMAIN_PATTERN;
use crate::form::decimal::{POSITIVE_DECIMAL_MAX_LENGTH, POSITIVE_DECIMAL_PATTERN};
use crate::form::glob::{GLOB_MAX_LENGTH, GLOB_PATTERN};
use crate::{lenient, rule};

/// What to run, and how much traffic a node may carry to be given more of it.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Deserialize, Serialize)]
#[kube(
    group = "traffic.example.com",
    version = "v1alpha1",
    kind = "TrafficWatch",
    plural = "trafficwatches",
    namespaced,
    status = "TrafficWatchStatus",
    derive = "PartialEq",
    category = "weir",
    shortname = "twatch",
    doc = "A Deployment whose pods are kept off nodes whose network is full.",
    printcolumn(name = "Ready", type_ = "boolean", json_path = ".status.ready"),
    printcolumn(name = "Max %", type_ = "string", json_path = ".spec.maxBandwidthPercent"),
    printcolumn(name = "Fit", type_ = "integer", json_path = ".status.summary.fit"),
    printcolumn(name = "Unfit", type_ = "integer", json_path = ".status.summary.unfit"),
    printcolumn(name = "Unknown", type_ = "integer", json_path = ".status.summary.unknown"),
    printcolumn(name = "Worst", type_ = "string", json_path = ".status.summary.worst", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("!has(self.spec) || (has(self.spec.label) && self.spec.label != '') || size(self.metadata.name) <= 233")
        .message("a name of more than 233 characters leaves no room for the node label: give spec.label")
        .field_path(".spec.label")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(clear_below_max())
        .message("clearPercent must not be above maxBandwidthPercent")
        .field_path(".clearPercent"),
    validation = rule::duration_order("interval", "window", "window must not be shorter than interval"),
    validation = rule::duration_order("interval", "maxSampleAge", "maxSampleAge must not be shorter than interval")
)]
pub struct TrafficWatchSpec {
    /// Use of its capacity, in percent, above which a node's interface makes the node unfit: a
    /// decimal such as "60" or "1.5e-03".
    #[schemars(length(max = POSITIVE_DECIMAL_MAX_LENGTH))]
    #[x_kube(validation = rule::strict_decimal(), validation = rule::positive_decimal())]
    pub max_bandwidth_percent: String,

    /// Prefix of the node label `<label>.traffic.example.com/unfit`. Absent: the name of this
    /// object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = names::LABEL_MAX_LENGTH))]
    #[x_kube(validation = Rule::new(label_or_nothing()).message(
        "must be usable in a label: lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit",
    ))]
    pub label: Option<String>,

    /// The Deployment to run: everything that a Deployment's `spec` may hold.
    #[schemars(schema_with = "deployment")]
    pub deployment: EmbeddedDeployment,

    /// Which traffic counts: what a node sends, what it receives, or the greater of the two.
    #[serde(default = "direction")]
    pub direction: Direction,

    /// Which of a node's interfaces count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interfaces: Option<Interfaces>,

    /// Time between two measurements of a node, from 5s to 5m.
    #[serde(default = "interval")]
    #[schemars(length(max = rule::DURATION_MAX_LENGTH))]
    #[x_kube(validation = rule::duration(), validation = rule::duration_between("5s", "5m"))]
    pub interval: String,

    /// Time over which traffic is averaged. Absent: `interval`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = rule::DURATION_MAX_LENGTH))]
    #[x_kube(validation = rule::duration())]
    pub window: Option<String>,

    /// Use in percent below which an unfit node becomes fit again. Absent: `maxBandwidthPercent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = POSITIVE_DECIMAL_MAX_LENGTH))]
    #[x_kube(validation = rule::strict_decimal(), validation = rule::positive_decimal())]
    pub clear_percent: Option<String>,

    /// How many equal readings in a row change a node's state.
    #[serde(default)]
    pub samples: Samples,

    /// Shortest time between two changes of a node's state.
    #[serde(default = "min_dwell")]
    #[schemars(length(max = rule::DURATION_MAX_LENGTH))]
    #[x_kube(validation = rule::duration())]
    pub min_dwell: String,

    /// How many nodes stay fit even if all are above the limit: the least loaded ones.
    #[serde(default = "min_fit_nodes")]
    #[schemars(range(min = 0, max = i32::MAX))]
    pub min_fit_nodes: i32,

    /// What a node becomes that cannot be measured.
    #[serde(default = "on_unknown")]
    pub on_unknown: OnUnknown,

    /// Age at which a measurement counts as none. Absent: 180s, or twice the interval where that is
    /// longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = rule::DURATION_MAX_LENGTH))]
    #[x_kube(validation = rule::duration())]
    pub max_sample_age: Option<String>,

    /// Capacities of interfaces whose own report is missing or wrong. The first that matches counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub capacities: Vec<Capacity>,

    /// Which nodes are judged, by their labels. Absent: those that the Deployment's own selector
    /// allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<BTreeMap<String, String>>,

    /// What keeps pods off an unfit node: `label`, with a node affinity in the Deployment, or `taint`:
    /// the same, and a taint with the effect PreferNoSchedule beside the label, which asks all other
    /// pods to prefer other nodes. The operator must allow taints.
    #[serde(default = "action")]
    pub action: Action,

    /// Whether pods of this Deployment that already run on an unfit node are moved.
    #[serde(default)]
    pub rebalance: Rebalance,
}

impl TrafficWatch {
    /// The prefix of this watch's node label.
    pub fn label_prefix(&self) -> &str {
        let name = self.metadata.name.as_deref().unwrap_or_default();
        let label = self.spec.label.as_deref();
        label.filter(|label| !label.is_empty()).unwrap_or(name)
    }
}

/// A Deployment's `spec` as the user wrote it, kept whole: fields that this build does not know
/// reach the Deployment all the same.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct EmbeddedDeployment(pub Map<String, Value>);

impl EmbeddedDeployment {
    /// The parts that this build knows.
    pub fn typed(&self) -> Result<DeploymentSpec, serde_json::Error> {
        serde_json::from_value(Value::Object(self.0.clone()))
    }
}

/// Which traffic counts.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the variants are explained where the field is")]
pub enum Direction {
    Transmit,
    Receive,
    Max,
}

/// Which interfaces count, by name.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Interfaces {
    /// Names that count, as globs (`*`, `?`). Absent: all that are not excluded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(max = GLOB_MAX_LENGTH)))]
    #[x_kube(validation = globs())]
    pub include: Option<Vec<String>>,

    /// Names that do not count, as globs. Absent: loopback, tunnels, bridges and the pods' own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(max = GLOB_MAX_LENGTH)))]
    #[x_kube(validation = globs())]
    pub exclude: Option<Vec<String>>,
}

/// How many equal readings in a row change a node's state.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Samples {
    /// Readings above the limit that make a node unfit.
    #[schemars(range(min = 1, max = 100))]
    pub unfit: i32,

    /// Readings below it that make a node fit again.
    #[schemars(range(min = 1, max = 100))]
    pub fit: i32,
}

impl Default for Samples {
    fn default() -> Self {
        Self {
            unfit: defaults::SAMPLES_UNFIT,
            fit: defaults::SAMPLES_FIT,
        }
    }
}

/// What a node becomes that cannot be measured.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names are the explanation")]
pub enum OnUnknown {
    Keep,
    Unfit,
    Fit,
}

/// The capacity of interfaces on some nodes.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Capacity {
    /// The nodes, by their labels. Empty: all.
    #[serde(default)]
    pub node_selector: BTreeMap<String, String>,

    /// The interfaces, as a glob. Absent: all that count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = GLOB_MAX_LENGTH))]
    #[x_kube(validation = rule::matches(GLOB_PATTERN, GLOB_MESSAGE))]
    pub interface: Option<String>,

    /// Bits per second in each direction: 10000000000 is 10 Gbit/s.
    #[schemars(range(min = 1))]
    pub bits_per_second: i64,
}

/// What keeps pods off an unfit node.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the variants are explained where the field is")]
pub enum Action {
    Label,
    Taint,
}

/// Whether and how pods are moved off a node that stays unfit.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rebalance {
    /// `never`, `dryRun` (says what it would do, in Events and metrics) or `evict`.
    pub mode: RebalanceMode,

    /// How long a node must have been unfit before the first pod is moved.
    #[schemars(
        length(max = rule::DURATION_MAX_LENGTH),
        extend("x-kubernetes-validations" = [rule::duration()])
    )]
    pub after: String,

    /// Most pods on the move from one node at a time.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub max_per_node: i32,

    /// Most pods on the move at a time.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub max_total: i32,

    /// Shortest time between two moves.
    #[schemars(
        length(max = rule::DURATION_MAX_LENGTH),
        extend("x-kubernetes-validations" = [rule::duration()])
    )]
    pub cooldown: String,
}

impl Default for Rebalance {
    fn default() -> Self {
        Self {
            mode: RebalanceMode::Never,
            after: defaults::REBALANCE_AFTER.to_owned(),
            max_per_node: defaults::REBALANCE_MAX_PER_NODE,
            max_total: defaults::REBALANCE_MAX_TOTAL,
            cooldown: defaults::REBALANCE_COOLDOWN.to_owned(),
        }
    }
}

/// Whether pods are moved.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the variants are explained where the field is")]
pub enum RebalanceMode {
    Never,
    DryRun,
    Evict,
}

/// What was measured.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TrafficWatchStatus {
    /// Whether every node has been measured once, or has timed out. Never false again.
    #[serde(default)]
    pub ready: bool,

    /// The nodes, in large clusters only the most loaded ones.
    #[serde(default)]
    pub nodes: BTreeMap<String, NodeStatus>,

    /// How many nodes are in which state.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::option"
    )]
    pub summary: Option<Summary>,

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

/// What was measured on one node.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// Use of the most loaded interface, in percent, such as "1.06976e-04" or "6e+01".
    pub current_bandwidth_percent: String,

    /// Bytes sent since the node started, over all interfaces that count.
    pub current_transmit_total: i64,

    /// When this was measured, in seconds since 1970.
    pub time: i64,

    /// Whether pods are kept off the node.
    pub unfit: bool,

    /// The most loaded interface, which decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,

    /// Why the node is fit or unfit: Measured, Found, New, Unknown, Dwelling or KeptFit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,

    /// Which interfaces count and what they can carry, and which do not and why, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interfaces: Option<String>,
}

/// How many nodes are in which state.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Nodes that take pods.
    pub fit: i64,

    /// Nodes that pods are kept off.
    pub unfit: i64,

    /// Nodes that could not be measured.
    pub unknown: i64,

    /// The most loaded node and its figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<String>,
}

/// Said of an interface glob that is none.
const EACH_GLOB_MESSAGE: &str = "each must be a pattern for interface names such as eth0 or ens*: letters, digits, _ . : @ -, with * and ? as wildcards";
const GLOB_MESSAGE: &str = "must be a pattern for interface names such as eth0 or ens*: letters, digits, _ . : @ -, with * and ? as wildcards";

fn globs() -> Rule {
    Rule::new(format!(
        "self.all(glob, glob.matches({}))",
        rule::quote(GLOB_PATTERN)
    ))
    .message(EACH_GLOB_MESSAGE)
}

/// An empty label means the same as none.
fn label_or_nothing() -> String {
    format!(
        "self == '' || self.matches({})",
        rule::quote(DNS_SUBDOMAIN_PATTERN)
    )
}

fn clear_below_max() -> String {
    // Doubles are compared only where both are written as decimals that a double can hold.
    let comparable = rule::quote(&POSITIVE_DECIMAL_PATTERN.replace("{1,3}", "{1,2}"));
    format!(
        "!has(self.clearPercent) || !self.clearPercent.matches({comparable}) || !self.maxBandwidthPercent.matches({comparable}) || double(self.clearPercent) <= double(self.maxBandwidthPercent)"
    )
}

/// A whole DeploymentSpec would be 549 kB of schema. The API server judges the Deployment itself;
/// here stands what this operator reads, and everything else is kept as it is, a template's
/// metadata included.
fn deployment(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "required": ["selector", "template"],
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {
            "replicas": {
                "description": "How many pods to run at first. Whoever scales the Deployment later is left alone.",
                "type": "integer",
                "format": "int32",
                "minimum": 0,
                "maximum": i32::MAX,
            },
            "selector": {
                "description": "The labels by which the Deployment finds its pods.",
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
            },
            "template": {
                "description": "The pods: metadata and spec, as in any Deployment.",
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
            },
        },
    })
}

fn direction() -> Direction {
    Direction::Transmit
}

fn interval() -> String {
    defaults::INTERVAL.to_owned()
}

fn min_dwell() -> String {
    defaults::MIN_DWELL.to_owned()
}

fn min_fit_nodes() -> i32 {
    defaults::MIN_FIT_NODES
}

fn on_unknown() -> OnUnknown {
    OnUnknown::Keep
}

fn action() -> Action {
    Action::Label
}
