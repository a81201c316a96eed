//! What becomes of a `TrafficSchedule` that the original system accepts in spite of itself, and what
//! the schema cannot see.
//!
//! The rule of compatibility: what the original accepts, we accept, and say what was taken instead.
//! Refused is only what it could not have worked with, and bad values in fields that are ours.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::defaults;
use super::provider::{Provider, Trace};
use super::resource::{Scheduler, TrafficSchedule};
use crate::dns::{check_label_key, check_label_value};
use crate::finding::{Finding, Findings};
use crate::form::carbon_target::is_carbon_target;
use crate::form::decimal::{LenientDecimalError, lenient_decimal};
use crate::form::quantity::check_quantity;

impl TrafficSchedule {
    /// Everything that is wrong with it, and everything that is taken otherwise than written.
    pub fn validate(&self) -> Vec<Finding> {
        let mut findings = Findings::default();
        validate_autoscaling(self, &mut findings);
        validate_scheduler(&self.spec.scheduler, &mut findings);
        validate_resources(self, &mut findings);
        if let Some(selector) = &self.spec.selector {
            validate_selector(selector, &mut findings);
        }
        if let Some(provider) = &self.spec.provider {
            validate_provider(provider, &self.spec.scheduler, &mut findings);
        }
        findings.into_vec()
    }
}

fn validate_autoscaling(schedule: &TrafficSchedule, findings: &mut Findings) {
    let spec = &schedule.spec;
    if spec.router.autoscaling.min_replica_count < 1 {
        findings.adjust(
            "spec.router.autoscaling.minReplicaCount",
            "RouterNeedsAReplica",
            "1 is used: a router at zero could not take requests in",
        );
    }
    for (component, most) in [
        ("router", spec.router.autoscaling.max_replica_count),
        ("consumer", spec.consumer.autoscaling.max_replica_count),
        ("target", spec.target.autoscaling.max_replica_count),
    ] {
        if most < 1 {
            findings.adjust(
                format!("spec.{component}.autoscaling.maxReplicaCount"),
                "AtLeastOneReplica",
                "1 is used: an autoscaler with a maximum of 0 could never answer a request",
            );
        }
    }
}

fn validate_scheduler(scheduler: &Scheduler, findings: &mut Findings) {
    let number = |name: &str, text: Option<&String>, findings: &mut Findings| {
        validate_decimal(name, text.map(String::as_str), findings)
    };
    let target_error = number("targetError", scheduler.target_error.as_ref(), findings);
    let credit_min = number("creditMin", scheduler.credit_min.as_ref(), findings);
    let credit_max = number("creditMax", scheduler.credit_max.as_ref(), findings);
    let throttle_min = number("throttleMin", scheduler.throttle_min.as_ref(), findings);
    let floor = number(
        "throttleIntensityFloor",
        scheduler.throttle_intensity_floor.as_ref(),
        findings,
    );
    let ceiling = number(
        "throttleIntensityCeiling",
        scheduler.throttle_intensity_ceiling.as_ref(),
        findings,
    );

    for (name, value) in [("targetError", target_error), ("throttleMin", throttle_min)] {
        if let Some(value) = value
            && !(0.0..=1.0).contains(&value)
        {
            findings.adjust(
                format!("spec.scheduler.{name}"),
                "Clamped",
                format!(
                    "{} is used: it is a share from 0 to 1",
                    value.clamp(0.0, 1.0)
                ),
            );
        }
    }
    for (least, most, names) in [
        (credit_min, credit_max, ["creditMin", "creditMax"]),
        (
            floor,
            ceiling,
            ["throttleIntensityFloor", "throttleIntensityCeiling"],
        ),
    ] {
        if let (Some(least), Some(most)) = (least, most)
            && least > most
        {
            findings.refuse(
                format!("spec.scheduler.{}", names[0]),
                "MinAboveMax",
                format!("must not be above {}", names[1]),
            );
        }
    }
    validate_words(scheduler, findings);
    validate_seconds(scheduler, findings);
}

/// The number, or none where the default is used.
fn validate_decimal(name: &str, text: Option<&str>, findings: &mut Findings) -> Option<f64> {
    let text = text.filter(|text| !text.trim().is_empty())?;
    let field = format!("spec.scheduler.{name}");
    match lenient_decimal(text) {
        Ok(value) => Some(value),
        Err(LenientDecimalError::NotFinite { .. }) => {
            findings.refuse(
                field,
                "NotFinite",
                format!("{text:?} is not a finite number"),
            );
            None
        }
        Err(_) => {
            findings.adjust(
                field,
                "UnparsableDecimal",
                format!("the engine's default is used: {text:?} is not a decimal such as \"0.15\""),
            );
            None
        }
    }
}

fn validate_words(scheduler: &Scheduler, findings: &mut Findings) {
    if let Some(policy) = given(scheduler.policy.as_ref())
        && !defaults::POLICIES.contains(&policy)
    {
        findings.adjust(
            "spec.scheduler.policy",
            "UnknownPolicy",
            format!(
                "{} is used: {policy:?} is not one of {}",
                defaults::UNKNOWN_POLICY_RUNS,
                defaults::POLICIES.join(", ")
            ),
        );
    }
    if let Some(target) = given(scheduler.carbon_target.as_ref())
        && !is_carbon_target(target)
    {
        findings.adjust(
            "spec.scheduler.carbonTarget",
            "UnknownCarbonTarget",
            format!("national is used: {target:?} is not national, region:<id> or postcode:<code>"),
        );
    }
    if let Some(evaluator) = given(scheduler.evaluator.as_ref())
        && ![defaults::EVALUATOR, defaults::CONSUMER_EVALUATOR].contains(&evaluator)
    {
        findings.adjust(
            "spec.scheduler.evaluator",
            "UnknownEvaluator",
            format!("router is used: {evaluator:?} is not router or consumer"),
        );
    }
}

/// A word that was really written: to the original an empty one is none.
fn given(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

fn validate_seconds(scheduler: &Scheduler, findings: &mut Findings) {
    for (name, value) in [
        ("validFor", scheduler.valid_for),
        ("discoveryInterval", scheduler.discovery_interval),
        ("carbonTimeout", scheduler.carbon_timeout),
    ] {
        if value == Some(0) {
            findings.adjust(
                format!("spec.scheduler.{name}"),
                "ZeroSeconds",
                "the engine's default is used: 0 seconds would leave no time for anything",
            );
        }
    }
    let most = defaults::CARBON_TIMEOUT_MAX_SECONDS;
    if let Some(timeout) = scheduler.carbon_timeout
        && timeout > most
    {
        findings.adjust(
            "spec.scheduler.carbonTimeout",
            "Clamped",
            format!("{most} is used: {timeout} seconds are more than a decision may wait"),
        );
    }
}

fn validate_provider(provider: &Provider, scheduler: &Scheduler, findings: &mut Findings) {
    if given(scheduler.carbon_target.as_ref()).is_some() {
        let target_is_used = provider
            .uk_carbon_intensity
            .as_ref()
            .is_some_and(|uk| uk.target.is_none());
        if !target_is_used {
            findings.adjust(
                "spec.scheduler.carbonTarget",
                "CarbonTargetUnused",
                "is not used: spec.provider says where the forecast comes from",
            );
        }
    }
    if let Some(trace) = &provider.trace {
        validate_trace(trace, findings);
    }
    for (field, intensity) in intensities(provider) {
        if !intensity.parse::<f64>().is_ok_and(f64::is_finite) {
            findings.refuse(
                field,
                "InvalidIntensity",
                format!(
                    "{intensity:?} is more than a number can hold; write gCO2/kWh such as \"200\""
                ),
            );
        }
    }
}

fn intensities(provider: &Provider) -> impl Iterator<Item = (String, &String)> {
    let constant = provider.constant.iter().map(|constant| {
        (
            "spec.provider.constant.intensity".to_owned(),
            &constant.intensity,
        )
    });
    let slots = provider
        .trace
        .iter()
        .flat_map(|trace| trace.slots.iter().flatten());
    constant.chain(slots.enumerate().map(|(index, slot)| {
        (
            format!("spec.provider.trace.slots[{index}].intensity"),
            &slot.intensity,
        )
    }))
}

fn validate_trace(trace: &Trace, findings: &mut Findings) {
    let mut end_of_last: Option<Timestamp> = None;
    for (index, slot) in trace.slots.iter().flatten().enumerate() {
        let at = format!("spec.provider.trace.slots[{index}]");
        let mut time = |name: &str, text: &str| {
            let parsed = text.parse::<Timestamp>();
            if let Err(error) = &parsed {
                let message =
                    format!("{text:?} is not a time such as 2026-01-31T12:30:00Z: {error}");
                findings.refuse(format!("{at}.{name}"), "InvalidTrace", message);
            }
            parsed.ok()
        };
        let (from, to) = (time("from", &slot.from), time("to", &slot.to));
        if let (Some(from), Some(to)) = (from, to)
            && to <= from
        {
            findings.refuse(
                format!("{at}.to"),
                "InvalidTrace",
                "must be later than from",
            );
        }
        if let (Some(from), Some(end)) = (from, end_of_last)
            && from < end
        {
            findings.refuse(
                format!("{at}.from"),
                "InvalidTrace",
                "must not be before the end of the slot before it",
            );
        }
        end_of_last = to.or(end_of_last);
    }
}

fn validate_resources(schedule: &TrafficSchedule, findings: &mut Findings) {
    let components = [
        ("router", &schedule.spec.router.resources),
        ("consumer", &schedule.spec.consumer.resources),
    ];
    for (component, resources) in components {
        for (list, quantities) in [
            ("limits", &resources.limits),
            ("requests", &resources.requests),
        ] {
            for (name, quantity) in quantities.iter().flatten() {
                let field = format!("spec.{component}.resources.{list}.{name}");
                if let Err(error) = check_label_key(name) {
                    findings.refuse(field, "InvalidResources", error.to_string());
                } else if let Err(error) = check_quantity(&quantity.0) {
                    findings.refuse(field, "InvalidResources", error.to_string());
                }
            }
        }
    }
}

fn validate_selector(selector: &LabelSelector, findings: &mut Findings) {
    let mut refuse = |field: String, message: String| {
        findings.refuse(field, "InvalidSelector", message);
    };
    for (key, value) in selector.match_labels.iter().flatten() {
        if let Err(error) = check_label_key(key).and_then(|()| check_label_value(value)) {
            refuse("spec.selector.matchLabels".to_owned(), error.to_string());
        }
    }
    for (index, expression) in selector.match_expressions.iter().flatten().enumerate() {
        let at = format!("spec.selector.matchExpressions[{index}]");
        let values = expression.values.as_deref().unwrap_or_default();
        if let Err(error) = check_label_key(&expression.key) {
            refuse(format!("{at}.key"), error.to_string());
        }
        match (expression.operator.as_str(), values.is_empty()) {
            ("In" | "NotIn", false) | ("Exists" | "DoesNotExist", true) => {}
            ("In" | "NotIn", true) => refuse(
                format!("{at}.values"),
                "must not be empty for this operator".to_owned(),
            ),
            ("Exists" | "DoesNotExist", false) => refuse(
                format!("{at}.values"),
                "must be empty for this operator".to_owned(),
            ),
            (other, _) => refuse(
                format!("{at}.operator"),
                format!("{other:?} is not one of In, NotIn, Exists and DoesNotExist"),
            ),
        }
        for value in values {
            if let Err(error) = check_label_value(value) {
                refuse(format!("{at}.values"), error.to_string());
            }
        }
    }
}
