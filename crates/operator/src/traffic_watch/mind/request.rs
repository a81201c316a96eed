//! What a watch asks for, or what is wrong with it: read once for each of its generations.

use std::sync::Arc;

use weir_api::{
    finding::{Consequence, Finding},
    place::{Action, TrafficWatch},
};
use weir_place::{plan::Options, settings::Settings};

/// What a watch asks for, or what is wrong with it.
pub(super) fn read(
    object: &TrafficWatch,
    options: Options,
) -> (Vec<Finding>, Option<Arc<Settings>>) {
    let mut findings = object.validate();
    if object.spec.action == Action::Taint && !options.allow_taints {
        findings.push(Finding {
            field: "spec.action".to_owned(),
            reason: "TaintsNotAllowed",
            message: "taints are not allowed by this operator: start it with --allow-taints, or use label".to_owned(),
            consequence: Consequence::Refused,
        });
    }
    let is_refused = |finding: &Finding| finding.consequence == Consequence::Refused;
    if findings.iter().any(is_refused) {
        return (findings, None);
    }
    match Settings::of(object) {
        Ok(settings) => (findings, Some(Arc::new(settings))),
        Err(error) => {
            findings.push(Finding {
                field: "spec".to_owned(),
                reason: "Invalid",
                message: error.to_string(),
                consequence: Consequence::Refused,
            });
            (findings, None)
        }
    }
}
