//! Where a `TrafficSchedule`'s forecast comes from. The engine holds the code that asks; this is
//! what a user may write. Exactly one member is set, as in a Pod's volume.

#![allow(
    unreachable_pub,
    reason = "KubeSchema repeats each struct inside a function"
)]

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::form::carbon_target::CARBON_TARGET_PATTERN;
use crate::form::decimal::POSITIVE_DECIMAL_MAX_LENGTH;
use crate::rule;

/// Where the forecast comes from: exactly one of these.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(
    "[has(self.ukCarbonIntensity), has(self.electricityMaps), has(self.carbonAwareSdk), has(self.forecastUrl), has(self.trace), has(self.constant)].filter(set, set).size() == 1"
).message("give exactly one of ukCarbonIntensity, electricityMaps, carbonAwareSdk, forecastUrl, trace and constant"))]
pub struct Provider {
    /// The Carbon Intensity API of Great Britain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uk_carbon_intensity: Option<UkCarbonIntensity>,

    /// Electricity Maps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub electricity_maps: Option<ElectricityMaps>,

    /// A Carbon Aware SDK, and through it WattTime and others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carbon_aware_sdk: Option<CarbonAwareSdk>,

    /// A service that answers `GET <url>/forecast` with the present and the next intensity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast_url: Option<ForecastUrl>,

    /// Recorded or made-up intensities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,

    /// One intensity for all times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constant: Option<Constant>,
}

/// The Carbon Intensity API of Great Britain.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UkCarbonIntensity {
    /// Base address. Absent: the engine's CARBON_API_URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = rule::URL_MAX_LENGTH))]
    #[x_kube(validation = rule::http_url())]
    pub url: Option<String>,

    /// `national`, `region:<id>` or `postcode:<outward code>`. Absent: `scheduler.carbonTarget`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = rule::matches(
        CARBON_TARGET_PATTERN,
        "must be national, region:<1 to 18> or postcode:<outward code, such as RG10>",
    ))]
    pub target: Option<String>,
}

/// Electricity Maps.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ElectricityMaps {
    /// Base address. Absent: the public one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = rule::URL_MAX_LENGTH))]
    #[x_kube(validation = rule::http_url())]
    pub url: Option<String>,

    /// Zone, such as `DE` or `US-CAL-CISO`.
    #[schemars(length(max = 32))]
    #[x_kube(validation = rule::matches("^[A-Z0-9]+(-[A-Z0-9]+)*$", "must be a zone such as DE or US-CAL-CISO"))]
    pub zone: String,

    /// The Secret that holds the token.
    pub token_secret_ref: KeyRef,
}

/// A Carbon Aware SDK.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CarbonAwareSdk {
    /// Base address.
    #[schemars(length(max = rule::URL_MAX_LENGTH))]
    #[x_kube(validation = rule::http_url())]
    pub url: String,

    /// Location, as the SDK names it, such as `westeurope`.
    #[schemars(length(min = 1, max = 128))]
    pub location: String,
}

/// A service that knows the present and the next intensity.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForecastUrl {
    /// Base address; `/forecast` is added.
    #[schemars(length(max = rule::URL_MAX_LENGTH))]
    #[x_kube(validation = rule::http_url())]
    pub url: String,
}

/// Recorded or made-up intensities: exactly one of these.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("[has(self.file), has(self.configMapKeyRef), has(self.slots)].filter(set, set).size() == 1")
    .message("give exactly one of file, configMapKeyRef and slots"))]
pub struct Trace {
    /// Path of a CSV file where the engine runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub file: Option<String>,

    /// A ConfigMap that holds such a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_key_ref: Option<KeyRef>,

    /// The intensities themselves, in order of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub slots: Option<Vec<TraceSlot>>,
}

/// Carbon intensity in one interval.
#[derive(KubeSchema, Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceSlot {
    /// When it begins, such as 2026-01-31T12:30:00Z.
    #[schemars(length(max = rule::TIME_MAX_LENGTH))]
    #[x_kube(validation = rule::time())]
    pub from: String,

    /// When it ends.
    #[schemars(length(max = rule::TIME_MAX_LENGTH))]
    #[x_kube(validation = rule::time())]
    pub to: String,

    /// gCO2/kWh.
    #[schemars(length(max = POSITIVE_DECIMAL_MAX_LENGTH))]
    #[x_kube(validation = rule::strict_decimal())]
    pub intensity: String,
}

/// One intensity for all times.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Constant {
    /// gCO2/kWh.
    #[schemars(length(max = POSITIVE_DECIMAL_MAX_LENGTH))]
    #[x_kube(validation = rule::strict_decimal())]
    pub intensity: String,
}

/// One key of a Secret or a ConfigMap in the same namespace.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyRef {
    /// Name of the object.
    #[schemars(length(max = 253))]
    #[x_kube(validation = rule::object_name())]
    pub name: String,

    /// The key in it.
    #[schemars(length(max = 253))]
    #[x_kube(validation = rule::matches("^[-._A-Za-z0-9]+$", "must be a key: letters, digits, '-', '_' and '.'"))]
    pub key: String,
}
