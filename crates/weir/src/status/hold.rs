//! ElastiServices, from their statuses.

use jiff::Timestamp;
use kube::ResourceExt;
use serde::Serialize;
use serde_json::Value;
use weir_api::hold::ElastiService;

use super::table;

/// One of them, as it is told. The names of the fields are a contract.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Held {
    namespace: String,
    name: String,
    service: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase_age_seconds: Option<i64>,
    /// The first condition that is not true.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

impl Held {
    pub(super) fn of(object: &ElastiService, now: Timestamp) -> Self {
        let status = object.status.clone().unwrap_or_default();
        let begun = status.phase_start_time.as_ref();
        let wrong = status.conditions.iter().find(|it| it.status == "False");
        Self {
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
            service: object.spec.service.clone(),
            mode: word(status.mode.as_ref()),
            phase: word(status.phase.as_ref()),
            phase_age_seconds: begun.map(|time| now.as_second() - time.0.as_second()),
            problem: wrong
                .map(|it| format!("{} is false, {}: {}", it.type_, it.reason, it.message)),
        }
    }

    fn cells(&self) -> Vec<String> {
        let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        vec![
            format!("{}/{}", self.namespace, self.name),
            self.service.clone(),
            or_dash(&self.mode),
            or_dash(&self.phase),
            self.phase_age_seconds
                .map_or_else(|| "-".to_owned(), table::age),
            self.problem.clone().unwrap_or_default(),
        ]
    }
}

/// All of them, for people.
pub(super) fn render(services: &[Held]) -> String {
    if services.is_empty() {
        return "There are no ElastiServices.\n".to_owned();
    }
    let head = [
        "ELASTISERVICE",
        "SERVICE",
        "MODE",
        "PHASE",
        "SINCE",
        "PROBLEM",
    ];
    let rows: Vec<Vec<String>> = std::iter::once(head.map(str::to_owned).to_vec())
        .chain(services.iter().map(Held::cells))
        .collect();
    table::render(&rows)
}

/// A value as it stands in the object.
fn word<T: Serialize>(value: Option<&T>) -> Option<String> {
    match serde_json::to_value(value?).ok()? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_sleeps_is_told_with_what_is_wrong() {
        let object: ElastiService = serde_json::from_value(json!({
            "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService",
            "metadata": { "name": "web", "namespace": "shop" },
            "spec": { "service": "web-svc", "minTargetReplicas": 1, "cooldownPeriod": 60, "triggers": [],
                "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "deployments", "name": "web" } },
            "status": {
                "mode": "proxy",
                "phaseStartTime": "1970-01-01T00:00:10Z",
                "conditions": [{ "type": "Ready", "status": "False", "reason": "NoResolver", "message": "none is ready", "lastTransitionTime": "2026-01-01T00:00:00Z" }],
            },
        }))
        .unwrap();
        let service = Held::of(&object, Timestamp::from_second(40).unwrap());
        let text = render(&[service]);
        let line = text.lines().nth(1).unwrap();
        assert!(line.starts_with("shop/web       web-svc  proxy"), "{text}");
        assert!(
            line.contains("30s") && line.contains("NoResolver: none is ready"),
            "{text}"
        );
        assert_eq!(render(&[]), "There are no ElastiServices.\n");
    }
}
