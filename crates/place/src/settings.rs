//! What a `TrafficWatch` asks for, as values: texts parsed, absent fields filled. `weir_api` checks the same texts when it
//! validates, so an error here means that an object was taken that should have been refused.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::apps::v1::DeploymentSpec;
use thiserror::Error;
use weir_api::{
    form::{
        decimal::{PositiveDecimal, PositiveDecimalError},
        glob::GlobError,
        go_duration::{GoDuration, GoDurationError},
    },
    place::{
        Action, Direction, OnUnknown, RebalanceMode, TrafficWatch, defaults, names::unfit_label_key,
    },
};

use crate::{capacity::Capacities, interfaces::Interfaces, scheduling::Constraints};

/// Everything that decides about one watch's nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Above it a reading is against the node, in percent.
    pub max_percent: f64,
    /// Below it a reading is for the node; never above `max_percent`.
    pub clear_percent: f64,
    /// Key of the label and of the taint.
    pub key: String,
    /// Which traffic counts.
    pub direction: Direction,
    /// Which interfaces count.
    pub interfaces: Interfaces,
    /// Time between two readings.
    pub interval: Duration,
    /// Time that a reading covers.
    pub window: Duration,
    /// Readings in a row that make a node unfit.
    pub samples_unfit: u32,
    /// Readings in a row that make it fit.
    pub samples_fit: u32,
    /// Shortest time between two changes of a node.
    pub min_dwell: Duration,
    /// So many eligible nodes stay fit.
    pub min_fit_nodes: usize,
    /// What becomes of a node without figures.
    pub on_unknown: OnUnknown,
    /// Older figures are none.
    pub max_sample_age: Duration,
    /// What the user says of capacities.
    pub capacities: Capacities,
    /// Labels of the nodes that are judged; empty: all.
    pub judged: BTreeMap<String, String>,
    /// Where the template's pods may run.
    pub constraints: Constraints,
    /// Label, or label and taint.
    pub action: Action,
    /// When to move running pods.
    pub rebalance: Rebalance,
}

/// When to move running pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebalance {
    /// Whether at all.
    pub mode: RebalanceMode,
    /// How long a node must have been unfit.
    pub after: Duration,
    /// Most pods on the move from one node.
    pub max_per_node: usize,
    /// Most pods on the move.
    pub max_total: usize,
    /// Shortest time between two rounds of moves.
    pub cooldown: Duration,
}

/// Why a watch cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// A percentage.
    #[error("spec.{field}: {source}")]
    Percent {
        /// Which.
        field: &'static str,
        /// Why.
        source: PositiveDecimalError,
    },
    /// A duration.
    #[error("spec.{field}: {source}")]
    Duration {
        /// Which.
        field: &'static str,
        /// Why.
        source: GoDurationError,
    },
    /// A pattern for interface names.
    #[error("spec.{field}: {source}")]
    Glob {
        /// Which.
        field: &'static str,
        /// Why.
        source: GlobError,
    },
    /// The embedded Deployment.
    #[error("spec.deployment is not the spec of a Deployment: {0}")]
    Deployment(String),
}

impl Settings {
    /// What this watch asks for.
    pub fn of(watch: &TrafficWatch) -> Result<Self, SettingsError> {
        let spec = &watch.spec;
        let max_percent = percent("maxBandwidthPercent", &spec.max_bandwidth_percent)?;
        let clear_percent = match &spec.clear_percent {
            Some(text) => percent("clearPercent", text)?.min(max_percent),
            None => max_percent,
        };
        let interval = duration("interval", &spec.interval)?
            .clamp(defaults::INTERVAL_MIN, defaults::INTERVAL_MAX);
        let window = match &spec.window {
            Some(text) => duration("window", text)?.max(interval),
            None => interval,
        };
        let max_sample_age = match &spec.max_sample_age {
            Some(text) => duration("maxSampleAge", text)?.max(interval),
            None => duration("maxSampleAge", defaults::MAX_SAMPLE_AGE)?
                .max(interval * defaults::MAX_SAMPLE_AGE_INTERVALS),
        };
        let deployment = spec.deployment.typed();
        let deployment =
            deployment.map_err(|error| SettingsError::Deployment(error.to_string()))?;
        let constraints = constraints(&deployment);
        Ok(Self {
            max_percent,
            clear_percent,
            key: unfit_label_key(watch.label_prefix()),
            direction: spec.direction,
            interfaces: Interfaces::of(spec.interfaces.as_ref())?,
            interval,
            window,
            samples_unfit: count(spec.samples.unfit),
            samples_fit: count(spec.samples.fit),
            min_dwell: duration("minDwell", &spec.min_dwell)?,
            min_fit_nodes: usize::try_from(spec.min_fit_nodes).unwrap_or_default(),
            on_unknown: spec.on_unknown,
            max_sample_age,
            capacities: Capacities::of(&spec.capacities)?,
            judged: spec
                .node_selector
                .clone()
                .unwrap_or_else(|| constraints.node_selector.clone()),
            constraints,
            action: spec.action,
            rebalance: Rebalance {
                mode: spec.rebalance.mode,
                after: duration("rebalance.after", &spec.rebalance.after)?,
                max_per_node: at_least_one(spec.rebalance.max_per_node),
                max_total: at_least_one(spec.rebalance.max_total),
                cooldown: duration("rebalance.cooldown", &spec.rebalance.cooldown)?,
            },
        })
    }
}

fn constraints(deployment: &DeploymentSpec) -> Constraints {
    let spec = deployment.template.spec.as_ref();
    spec.map(Constraints::of).unwrap_or_default()
}

fn percent(field: &'static str, text: &str) -> Result<f64, SettingsError> {
    PositiveDecimal::parse(text)
        .map(PositiveDecimal::get)
        .map_err(|source| SettingsError::Percent { field, source })
}

fn duration(field: &'static str, text: &str) -> Result<Duration, SettingsError> {
    GoDuration::parse(text)
        .and_then(GoDuration::to_std)
        .map_err(|source| SettingsError::Duration { field, source })
}

fn count(samples: i32) -> u32 {
    u32::try_from(samples).unwrap_or_default().max(1)
}

fn at_least_one(limit: i32) -> usize {
    usize::try_from(limit).unwrap_or_default().max(1)
}
