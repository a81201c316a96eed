//! When the workload of an `ElastiService` counts as idle. The doc comments are what `kubectl explain`
//! prints.
//!
//! The older operator's schema took anything at all as a trigger's metadata, so stored objects may
//! hold anything: it is read without fail here, and `validate` says what is wrong with it.

#![allow(
    unreachable_pub,
    reason = "KubeSchema repeats each struct inside a function"
)]

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::rule;

/// One reason to believe that the workload is idle.
#[derive(KubeSchema, Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.type) || self.type != 'prometheus' || (has(self.metadata) && has(self.metadata.query) && size(self.metadata.query) > 0)")
        .message("a prometheus trigger needs metadata.query, the expression whose value is compared with metadata.threshold")
        .field_path(".metadata"),
    validation = Rule::new("!has(self.type) || self.type != 'schedule' || (has(self.metadata) && has(self.metadata.schedule) && has(self.metadata.duration))")
        .message("a schedule trigger needs metadata.schedule and metadata.duration, the windows in which the workload counts as idle")
        .field_path(".metadata"),
    validation = Rule::new("!has(self.type) || self.type != 'resolver' || (has(self.metadata) && has(self.metadata.behindResolver) && self.metadata.behindResolver)")
        .message("a resolver trigger needs metadata.behindResolver: true, which says that all clients come through the resolvers; what goes straight to the pods is not seen")
        .field_path(".metadata")
)]
pub struct Trigger {
    /// What is asked. `prometheus`: a query's value; `network`: the pods' traffic, from the kubelet;
    /// `schedule`: cron windows; `resolver`: the requests that the resolver saw.
    #[serde(rename = "type")]
    pub type_: TriggerType,

    /// What the type needs to know.
    #[serde(default, skip_serializing_if = "TriggerMetadata::is_empty")]
    pub metadata: TriggerMetadata,
}

/// What a trigger asks.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the variants are explained where the field is")]
pub enum TriggerType {
    Prometheus,
    Network,
    Schedule,
    Resolver,
}

/// The settings of a trigger. Which of them matter depends on its type; keys that are unknown here
/// are kept, as the older operator keeps them.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TriggerMetadata {
    /// prometheus: the query. Its value below `threshold` means idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,

    /// prometheus: address of the server. Absent: the operator's PROMETHEUS_TRIGGER_SERVER_ADDRESS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = rule::URL_MAX_LENGTH))]
    #[x_kube(validation = rule::http_url_or_nothing())]
    pub server_address: Option<String>,

    /// The value below which the workload counts as idle, as a number or a string. prometheus: of
    /// the query; network: bytes per second of each pod, in both directions together; absent: 4096,
    /// which is above the traffic of probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything")]
    pub threshold: Option<Value>,

    /// prometheus: label matchers of the `up` series that shows how long Prometheus itself has been
    /// running; an answer is believed only if it ran for the whole cooldown.
    /// Absent: `container="prometheus"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uptime_filter: Option<String>,

    /// prometheus: headers to send with each query.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,

    /// schedule: when the idle windows begin, as five cron fields, in UTC or in `timeZone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = rule::CRON_MAX_LENGTH))]
    #[x_kube(validation = rule::cron())]
    pub schedule: Option<String>,

    /// schedule: how long each window lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = rule::DURATION_MAX_LENGTH))]
    #[x_kube(validation = rule::duration())]
    pub duration: Option<String>,

    /// schedule: the time zone of `schedule`, such as Europe/Berlin. Absent: UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = rule::matches(
        "^[A-Za-z][A-Za-z0-9_+/-]*$",
        "must be the name of a time zone such as Europe/Berlin",
    ))]
    pub time_zone: Option<String>,

    /// resolver: must be true. It says that clients reach the workload through the resolvers alone, by
    /// their shared port 8012, also while it is awake: what goes straight to the pods is not seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind_resolver: Option<bool>,

    /// Keys that no type of trigger knows, and known ones that hold something of another type.
    #[serde(flatten)]
    pub unknown: BTreeMap<String, Value>,
}

impl<'de> Deserialize<'de> for TriggerMetadata {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut unknown = match Value::deserialize(from)? {
            Value::Object(fields) => fields.into_iter().collect(),
            _ => BTreeMap::new(),
        };
        Ok(Self {
            query: take(&mut unknown, "query"),
            server_address: take(&mut unknown, "serverAddress"),
            threshold: take(&mut unknown, "threshold"),
            uptime_filter: take(&mut unknown, "uptimeFilter"),
            headers: take(&mut unknown, "headers").unwrap_or_default(),
            schedule: take(&mut unknown, "schedule"),
            duration: take(&mut unknown, "duration"),
            time_zone: take(&mut unknown, "timeZone"),
            behind_resolver: take(&mut unknown, "behindResolver"),
            unknown,
        })
    }
}

/// The value of a key, unless it is of another type: then it stays where it is.
fn take<T: DeserializeOwned>(fields: &mut BTreeMap<String, Value>, key: &str) -> Option<T> {
    let value = serde_json::from_value(fields.get(key)?.clone()).ok()?;
    fields.remove(key);
    Some(value)
}

impl Trigger {
    /// Whether it says that clients reach the workload through the resolvers alone.
    pub fn stays_behind_resolvers(&self) -> bool {
        self.type_ == TriggerType::Resolver && self.metadata.behind_resolver == Some(true)
    }
}

impl TriggerMetadata {
    /// Whether nothing at all was set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A value of any type, which the API server stores as it is.
fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}
