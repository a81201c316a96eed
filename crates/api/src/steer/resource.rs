//! `TrafficSchedule`: how requests are shared between the flavours of a service.
//!
//! The doc comments below are what `kubectl explain` prints, so they speak to the person who writes
//! a manifest. What the original system accepts stays accepted here, however odd; `validate` says
//! what becomes of it.

#![allow(
    clippy::duplicated_attributes,
    reason = "columns share attributes such as their type"
)]
#![allow(
    unreachable_pub,
    reason = "KubeSchema repeats each struct inside a function"
)]

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::autoscaling::{RouterAutoscaling, WorkerAutoscaling};
use super::defaults;
use super::provider::Provider;
use crate::{lenient, rule};

/// How requests are shared between flavours, and within which error budget.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[kube(
    group = "scheduling.carbonrouter.io",
    version = "v1alpha1",
    kind = "TrafficSchedule",
    plural = "trafficschedules",
    namespaced,
    status = "TrafficScheduleStatus",
    derive = "PartialEq",
    derive = "Default",
    category = "weir",
    shortname = "tsched",
    doc = "Sends each request to the flavour of a service (precision, energy) that the grid's carbon intensity and an error budget allow.",
    printcolumn(name = "Policy", type_ = "string", json_path = ".status.activePolicy"),
    printcolumn(
        name = "Carbon",
        type_ = "string",
        json_path = ".status.carbonForecastNow",
        description = "gCO2/kWh, now"
    ),
    printcolumn(
        name = "Precision",
        type_ = "string",
        json_path = ".status.avgPrecision",
        description = "mean precision of the present weights"
    ),
    printcolumn(
        name = "Throttle",
        type_ = "string",
        json_path = ".status.processingThrottle"
    ),
    printcolumn(
        name = "Valid Until",
        type_ = "string",
        json_path = ".status.validUntil"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.serviceRef) || !has(self.selector)")
    .message("give serviceRef or selector, not both")
    .field_path(".selector"))]
pub struct TrafficScheduleSpec {
    /// The flavours' own Deployments.
    #[serde(default)]
    pub target: Target,

    /// The router, which takes the requests in.
    #[serde(default)]
    pub router: Router,

    /// The consumer, which carries them to the flavours.
    #[serde(default)]
    pub consumer: Consumer,

    /// How to decide.
    #[serde(default)]
    pub scheduler: Scheduler,

    /// The Service whose flavours this schedule shares out. Absent, with no selector either: every
    /// flavour in the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_ref: Option<ServiceRef>,

    /// The flavours' Deployments by their labels, instead of by Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,

    /// Where the forecast of carbon intensity comes from. Absent: the engine's own setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
}

/// Settings of the flavours' Deployments.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// How they scale.
    #[serde(default)]
    pub autoscaling: WorkerAutoscaling,
}

/// Settings of the router.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Router {
    /// How it scales. It is exempt from the carbon ceiling: intake always scales.
    #[serde(default)]
    pub autoscaling: RouterAutoscaling,

    /// Requests and limits of its container.
    #[serde(default)]
    pub resources: ResourceRequirements,

    /// Whether it logs each request.
    #[serde(default)]
    pub debug: bool,
}

/// Settings of the consumer.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Consumer {
    /// How it scales.
    #[serde(default)]
    pub autoscaling: WorkerAutoscaling,

    /// Requests and limits of its container.
    #[serde(default)]
    pub resources: ResourceRequirements,

    /// Whether it logs each request.
    #[serde(default)]
    pub debug: bool,
}

/// How to decide. What is absent falls to the engine's environment, then to the built-in default.
#[derive(KubeSchema, Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = rule::decimal_order("creditMin", "creditMax"),
    validation = rule::decimal_order("throttleIntensityFloor", "throttleIntensityCeiling")
)]
pub struct Scheduler {
    /// Mean error that requests may have, as a fraction: "0.15" allows a mean precision of 85 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = rule::LENIENT_DECIMAL_MAX_LENGTH))]
    #[x_kube(validation = rule::finite())]
    pub target_error: Option<String>,

    /// Lower bound of the credit balance that the original's policies use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = rule::LENIENT_DECIMAL_MAX_LENGTH))]
    #[x_kube(validation = rule::finite())]
    pub credit_min: Option<String>,

    /// Upper bound of that balance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = rule::LENIENT_DECIMAL_MAX_LENGTH))]
    #[x_kube(validation = rule::finite())]
    pub credit_max: Option<String>,

    /// Number of feedback windows, not seconds, over which the credit's velocity is averaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = i32::MAX))]
    pub credit_window: Option<i32>,

    /// How to choose the weights: `optimal`, `credit-greedy`, `forecast-aware`,
    /// `forecast-aware-global`, `p100`, `round-robin` or `random`. Anything else runs
    /// `credit-greedy`, with a condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,

    /// Seconds for which a decision holds at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = i32::MAX))]
    pub valid_for: Option<i32>,

    /// Seconds between two looks for flavours. Changes are seen at once all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = i32::MAX))]
    pub discovery_interval: Option<i32>,

    /// The grid to ask about: `national`, `region:<id>` or `postcode:<code>`. Anything else means
    /// `national`, with a condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carbon_target: Option<String>,

    /// Seconds to wait for the forecast provider; at most 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = i32::MAX))]
    pub carbon_timeout: Option<i32>,

    /// Seconds for which a forecast is kept.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "carbonCacheTTL"
    )]
    #[schemars(range(min = 0, max = i32::MAX))]
    pub carbon_cache_ttl: Option<i32>,

    /// Least share of its capacity that the consumer keeps when the grid is dirty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = rule::LENIENT_DECIMAL_MAX_LENGTH))]
    #[x_kube(validation = rule::finite())]
    pub throttle_min: Option<String>,

    /// Carbon intensity, in gCO2/kWh, at and below which nothing is throttled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = rule::LENIENT_DECIMAL_MAX_LENGTH))]
    #[x_kube(validation = rule::finite())]
    pub throttle_intensity_floor: Option<String>,

    /// Carbon intensity, in gCO2/kWh, at and above which throttling is strongest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = rule::LENIENT_DECIMAL_MAX_LENGTH))]
    #[x_kube(validation = rule::finite())]
    pub throttle_intensity_ceiling: Option<String>,

    /// Who chooses the flavour: `router`, when a request arrives, or `consumer`, when it is sent.
    /// Anything else means `router`, with a condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluator: Option<String>,

    /// The time over which `targetError` is kept, at every request of it: from 1h to 8784h (366
    /// days). Windows follow each other from the beginning of 1970, UTC.
    #[serde(default = "budget_window")]
    #[schemars(length(max = rule::DURATION_MAX_LENGTH))]
    #[x_kube(validation = rule::duration(), validation = rule::duration_between("1h", "8784h"))]
    pub budget_window: String,
}

impl Default for Scheduler {
    fn default() -> Self {
        Self {
            target_error: None,
            credit_min: None,
            credit_max: None,
            credit_window: None,
            policy: None,
            valid_for: None,
            discovery_interval: None,
            carbon_target: None,
            carbon_timeout: None,
            carbon_cache_ttl: None,
            throttle_min: None,
            throttle_intensity_floor: None,
            throttle_intensity_ceiling: None,
            evaluator: None,
            budget_window: budget_window(),
        }
    }
}

/// A Service in the same namespace.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceRef {
    /// Its name.
    #[schemars(length(max = 63))]
    #[x_kube(validation = rule::service_name())]
    pub name: String,
}

/// The present decision, and what it rests on.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TrafficScheduleStatus {
    /// The flavours by ascending precision, with their weights.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "lenient::list"
    )]
    pub flavours: Vec<FlavourStatus>,

    /// Name of the policy that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_policy: Option<String>,

    /// When the decision ends.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::option"
    )]
    pub valid_until: Option<Time>,

    /// Mean precision of the present weights, as a fraction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub avg_precision: Option<String>,

    /// Balance of the credit account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credit_balance: Option<String>,

    /// Mean change of that balance per feedback window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credit_velocity: Option<String>,

    /// The error that the credit account aims at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credit_target: Option<String>,

    /// Lower bound of the balance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credit_min: Option<String>,

    /// Upper bound of the balance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credit_max: Option<String>,

    /// Share of its capacity at which the consumer works, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processing_throttle: Option<String>,

    /// Most replicas at the present throttle, by component.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub effective_replica_ceilings: BTreeMap<String, i64>,

    /// The provider's word for the present intensity, such as `low` or `very high`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carbon_index: Option<String>,

    /// Carbon intensity of the present slot, in gCO2/kWh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carbon_forecast_now: Option<String>,

    /// Carbon intensity of the next slot, in gCO2/kWh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carbon_forecast_next: Option<String>,

    /// The forecast, slot by slot.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "lenient::list"
    )]
    #[schemars(length(max = defaults::STATUS_FORECAST_SLOTS))]
    pub forecast_schedule: Vec<ForecastSlot>,

    /// Numbers that explain the decision; which ones depends on the policy.
    #[serde(default)]
    pub diagnostics: BTreeMap<String, String>,

    /// Who chooses the flavour: `router` or `consumer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing_evaluator: Option<String>,

    /// The error budget.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::option"
    )]
    pub budget: Option<BudgetStatus>,

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

/// The share of one flavour.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlavourStatus {
    /// Precision, in whole percent.
    pub precision: i64,

    /// Share of the requests, in whole percent.
    pub weight: i64,

    /// Emissions of one request: gCO2eq, or a relative cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emissions: Option<String>,
}

/// Carbon intensity in one interval.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForecastSlot {
    /// When it begins.
    pub from: String,

    /// When it ends.
    pub to: String,

    /// gCO2/kWh.
    pub forecast: String,

    /// The provider's word for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
}

/// The error budget of the present window, in units of error times requests.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetStatus {
    /// What may still be spent.
    pub balance: String,

    /// The part of it that routers and consumers hold at the moment.
    pub leased: String,

    /// The window.
    pub window: BudgetWindow,
}

/// A window of the error budget.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetWindow {
    /// When it began.
    pub from: Time,

    /// When it ends.
    pub to: Time,
}

fn budget_window() -> String {
    defaults::BUDGET_WINDOW.to_owned()
}
