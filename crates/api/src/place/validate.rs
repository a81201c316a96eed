//! What the schema of a `TrafficWatch` cannot see: labels, numbers beyond a double, and the parts of
//! the embedded Deployment that we read. Whether the Deployment as a whole is right is for the API
//! server to say, in a dry run.

use std::collections::BTreeMap;

use super::names;
use super::resource::TrafficWatch;
use crate::dns::{check_label_key, check_label_value};
use crate::finding::{Finding, Findings};
use crate::form::decimal::PositiveDecimal;
use crate::form::glob::Glob;
use crate::form::go_duration::GoDuration;

impl TrafficWatch {
    /// Everything that is wrong with it. Nothing found means that a controller may act upon it.
    pub fn validate(&self) -> Vec<Finding> {
        let mut findings = Findings::default();
        validate_percents(self, &mut findings);
        validate_times(self, &mut findings);
        let key = names::unfit_label_key(self.label_prefix());
        if let Err(error) = check_label_key(&key) {
            findings.refuse(
                "spec.label",
                "InvalidLabel",
                format!("{key} cannot be a node's label: {error}"),
            );
        }
        validate_selectors(self, &mut findings);
        validate_globs(self, &mut findings);
        if let Err(error) = self.spec.deployment.typed() {
            findings.refuse(
                "spec.deployment",
                "InvalidDeployment",
                format!("is not the spec of a Deployment: {error}"),
            );
        }
        findings.into_vec()
    }
}

fn validate_percents(watch: &TrafficWatch, findings: &mut Findings) {
    let spec = &watch.spec;
    let mut percent = |name: &str, text: &str| {
        PositiveDecimal::parse(text)
            .inspect_err(|error| {
                findings.refuse(format!("spec.{name}"), "InvalidPercent", error.to_string());
            })
            .ok()
    };
    let most = percent("maxBandwidthPercent", &spec.max_bandwidth_percent);
    let clear = spec
        .clear_percent
        .as_deref()
        .and_then(|text| percent("clearPercent", text));
    if let (Some(clear), Some(most)) = (clear, most)
        && clear > most
    {
        findings.refuse(
            "spec.clearPercent",
            "ClearAboveMax",
            "must not be above maxBandwidthPercent",
        );
    }
}

fn validate_times(watch: &TrafficWatch, findings: &mut Findings) {
    let spec = &watch.spec;
    for (name, text) in [
        ("interval", Some(&spec.interval)),
        ("window", spec.window.as_ref()),
        ("minDwell", Some(&spec.min_dwell)),
        ("maxSampleAge", spec.max_sample_age.as_ref()),
        ("rebalance.after", Some(&spec.rebalance.after)),
        ("rebalance.cooldown", Some(&spec.rebalance.cooldown)),
    ] {
        let Some(text) = text else { continue };
        match GoDuration::parse(text) {
            Ok(duration) if duration.as_nanos() >= 0 => {}
            Ok(_) => findings.refuse(
                format!("spec.{name}"),
                "InvalidDuration",
                "must not be negative",
            ),
            Err(error) => {
                findings.refuse(format!("spec.{name}"), "InvalidDuration", error.to_string());
            }
        }
    }
}

fn validate_selectors(watch: &TrafficWatch, findings: &mut Findings) {
    let mut check = |field: String, labels: &BTreeMap<String, String>| {
        for (key, value) in labels {
            let checked = check_label_key(key).and_then(|()| check_label_value(value));
            if let Err(error) = checked {
                let message = format!("no node can have the label {key}={value}: {error}");
                findings.refuse(field.clone(), "InvalidNodeSelector", message);
            }
        }
    };
    if let Some(labels) = &watch.spec.node_selector {
        check("spec.nodeSelector".to_owned(), labels);
    }
    for (index, capacity) in watch.spec.capacities.iter().enumerate() {
        check(
            format!("spec.capacities[{index}].nodeSelector"),
            &capacity.node_selector,
        );
    }
}

fn validate_globs(watch: &TrafficWatch, findings: &mut Findings) {
    let mut check = |field: String, glob: &str| {
        if let Err(error) = Glob::parse(glob) {
            findings.refuse(field, "InvalidInterface", error.to_string());
        }
    };
    let interfaces = watch.spec.interfaces.clone().unwrap_or_default();
    for (list, globs) in [
        ("include", interfaces.include),
        ("exclude", interfaces.exclude),
    ] {
        for (index, glob) in globs.iter().flatten().enumerate() {
            check(format!("spec.interfaces.{list}[{index}]"), glob);
        }
    }
    for (index, capacity) in watch.spec.capacities.iter().enumerate() {
        if let Some(glob) = &capacity.interface {
            check(format!("spec.capacities[{index}].interface"), glob);
        }
    }
}
