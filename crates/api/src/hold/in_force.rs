//! What an ElastiService holds now. That is what its spec names, but for one time: after an edit of `service` while
//! requests may be held, the former Service and its target stay in force until it leads to ready pods again. Operator
//! and resolvers must agree on this, so both ask here.

use std::ops::Deref;

use super::{ElastiService, Phase, ScaleTargetRef};

impl ScaleTargetRef {
    /// As `status.target` has it: `Deployment/web`, or `apps/v1/ReplicaSet/web` for a kind that is not known beforehand.
    pub fn text(&self) -> String {
        let name = &self.name;
        match self.canonical() {
            ("apps/v1", kind @ ("Deployment" | "StatefulSet"))
            | ("argoproj.io/v1alpha1", kind @ "Rollout") => format!("{kind}/{name}"),
            (api_version, kind) => format!("{api_version}/{kind}/{name}"),
        }
    }

    /// The reference that this is the text of.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, name) = text.rsplit_once('/')?;
        let (api_version, kind) = match kind {
            "Deployment" | "StatefulSet" => ("apps/v1", kind),
            "Rollout" => ("argoproj.io/v1alpha1", kind),
            other => other.rsplit_once('/')?,
        };
        let parts = [api_version, kind, name];
        parts.iter().all(|part| !part.is_empty()).then(|| Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
        })
    }
}

/// An ElastiService with what is in force in its spec.
#[derive(Clone, Debug, PartialEq)]
pub struct InForce {
    object: ElastiService,
    is_left: bool,
}

impl InForce {
    /// Whether what is in force is on its way out: an edit names another Service.
    pub fn is_left(&self) -> bool {
        self.is_left
    }
}

impl Deref for InForce {
    type Target = ElastiService;

    fn deref(&self) -> &ElastiService {
        &self.object
    }
}

impl From<ElastiService> for InForce {
    fn from(mut object: ElastiService) -> Self {
        let left = object.left_behind();
        let is_left = left.is_some();
        if let Some((service, target)) = left {
            object.spec.service = service;
            object.spec.scale_target_ref = target;
        }
        Self { object, is_left }
    }
}

impl ElastiService {
    fn left_behind(&self) -> Option<(String, ScaleTargetRef)> {
        let status = self.status.as_ref()?;
        if matches!(status.phase, None | Some(Phase::Serving)) {
            return None;
        }
        let service = status.service.as_ref()?;
        if *service == self.spec.service {
            return None;
        }
        let target = status.target.as_deref().and_then(ScaleTargetRef::parse);
        let target = target.unwrap_or_else(|| self.spec.scale_target_ref.clone());
        Some((service.clone(), target))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn elasti(service: &str, target: &str, status: &Value) -> ElastiService {
        serde_json::from_value(json!({
            "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {
                "service": service,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "deployments", "name": target},
            },
            "status": status,
        }))
        .expect("an ElastiService")
    }

    #[test]
    fn an_edit_waits_while_requests_may_be_held() {
        for phase in ["Draining", "Asleep", "Waking"] {
            let status = json!({"phase": phase, "service": "old", "target": "Deployment/was"});
            let in_force = InForce::from(elasti("new", "is", &status));
            assert!(in_force.is_left());
            assert_eq!(in_force.spec.service, "old");
            assert_eq!(in_force.spec.scale_target_ref.text(), "Deployment/was");
        }
    }

    #[test]
    fn one_that_is_up_is_what_the_spec_says_at_once() {
        for status in [
            json!({"phase": "Serving", "service": "old", "target": "Deployment/was"}),
            json!({"service": "old", "target": "Deployment/was"}),
            json!({}),
        ] {
            let in_force = InForce::from(elasti("new", "is", &status));
            assert!(!in_force.is_left());
            assert_eq!(in_force.spec.service, "new");
        }
    }

    #[test]
    fn what_says_the_same_or_nothing_is_no_edit() {
        for status in [
            json!({"phase": "Asleep", "service": "web", "target": "Deployment/web"}),
            json!({"phase": "Asleep", "target": "Deployment/web"}),
            json!({"phase": "Asleep"}),
            json!({"phase": "Asleep", "target": "nonsense"}),
            // The Service goes on being held, for another target.
            json!({"phase": "Asleep", "service": "web", "target": "Deployment/other"}),
        ] {
            let in_force = InForce::from(elasti("web", "web", &status));
            assert!(!in_force.is_left(), "{status}");
            assert_eq!(in_force.spec.scale_target_ref.kind, "deployments");
        }
    }

    #[test]
    fn a_target_is_read_as_it_is_written() {
        let reference = |api_version: &str, kind: &str| ScaleTargetRef {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: "web".to_owned(),
        };
        for (target, text) in [
            (reference("apps/v1", "Deployment"), "Deployment/web"),
            (reference("apps/v1", "StatefulSet"), "StatefulSet/web"),
            (reference("argoproj.io/v1alpha1", "Rollout"), "Rollout/web"),
            (reference("apps/v1", "ReplicaSet"), "apps/v1/ReplicaSet/web"),
            (
                reference("v1", "ReplicationController"),
                "v1/ReplicationController/web",
            ),
        ] {
            assert_eq!(target.text(), text);
            assert_eq!(ScaleTargetRef::parse(text), Some(target));
        }
        for none in ["", "/", "web", "Deployment/", "Pod/web", "/Deployment/web"] {
            assert_eq!(ScaleTargetRef::parse(none), None, "{none}");
        }
    }
}
