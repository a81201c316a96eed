//! Answers that an `ElastiService` gives while no pod is ready, without waking one: for health checks
//! of load balancers and the like. The doc comments are what `kubectl explain` prints.

#![allow(
    unreachable_pub,
    reason = "KubeSchema repeats each struct inside a function"
)]

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::defaults;
use crate::rule;

/// An answer for requests that must not wake the workload. Everything that is given must match.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeResponse {
    /// What the path must be. Absent: every path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathMatch>,

    /// What the headers must be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = defaults::PROBE_MAX_HEADERS))]
    pub headers: Vec<HeaderMatch>,

    /// What the query's parameters must be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = defaults::PROBE_MAX_QUERY_PARAMS))]
    pub query_params: Vec<QueryParamMatch>,

    /// What the method must be. Absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,

    /// The answer.
    pub response: FixedResponse,
}

/// A condition on a request's path.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.type == 'RegularExpression' || self.value.startsWith('/')")
    .message("a path begins with '/'")
    .field_path(".value"))]
pub struct PathMatch {
    /// How to compare. `PathPrefix` compares whole segments; `RegularExpression` is RE2 and may
    /// match anywhere in the path.
    #[serde(rename = "type", default = "path_prefix")]
    pub type_: PathMatchType,

    /// What to compare with.
    #[serde(default = "root_path")]
    #[schemars(length(max = defaults::PROBE_PATH_MAX_LENGTH))]
    pub value: String,
}

/// How a path is compared.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[allow(missing_docs, reason = "the variants are explained where the field is")]
pub enum PathMatchType {
    Exact,
    PathPrefix,
    RegularExpression,
}

/// How a header or a parameter is compared.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[allow(missing_docs, reason = "the variants are explained where the field is")]
pub enum ValueMatchType {
    Exact,
    RegularExpression,
}

/// A condition on one of a request's headers.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeaderMatch {
    /// Name of the header, in any case.
    #[schemars(length(max = defaults::PROBE_NAME_MAX_LENGTH))]
    #[x_kube(validation = rule::header_name())]
    pub name: String,

    /// How to compare. `RegularExpression` is RE2 and may match anywhere in the value.
    #[serde(rename = "type", default = "exact")]
    pub type_: ValueMatchType,

    /// What to compare with. If the header occurs several times, one match is enough.
    #[schemars(length(max = defaults::PROBE_HEADER_VALUE_MAX_LENGTH))]
    pub value: String,
}

/// A condition on one parameter of a request's query.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueryParamMatch {
    /// Name of the parameter.
    #[schemars(length(min = 1, max = defaults::PROBE_NAME_MAX_LENGTH))]
    pub name: String,

    /// How to compare. `RegularExpression` is RE2 and may match anywhere in the value.
    #[serde(rename = "type", default = "exact")]
    pub type_: ValueMatchType,

    /// What to compare with. If the parameter occurs several times, one match is enough.
    #[schemars(length(max = defaults::PROBE_QUERY_VALUE_MAX_LENGTH))]
    pub value: String,
}

/// A request's method.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs, reason = "the names are HTTP's own")]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Delete,
    Connect,
    Options,
    Trace,
    Patch,
}

/// An answer that is always the same.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FixedResponse {
    /// Status code.
    #[schemars(schema_with = "probe_status")]
    pub status: u16,

    /// Body. Not sent with HEAD, nor with status 204.
    pub body: String,
}

fn path_prefix() -> PathMatchType {
    PathMatchType::PathPrefix
}

fn exact() -> ValueMatchType {
    ValueMatchType::Exact
}

fn root_path() -> String {
    "/".to_owned()
}

fn probe_status(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "format": "int32", "enum": defaults::PROBE_RESPONSE_STATUSES })
}
