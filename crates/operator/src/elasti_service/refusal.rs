//! What cannot be held, and what a user should know about the rest: never half done, always said.

#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, net::SocketAddr};

use weir_api::{
    finding::{Consequence, Finding},
    hold::{
        AutoscalerType, ElastiService,
        names::{AddressFamily, install, report::ConditionType},
    },
};

use super::sight::{Kind, Seen, ServiceSight, Sight};

/// Label of every namespace: its name.
const NAMESPACE_LABEL: &str = "kubernetes.io/metadata.name";

/// A condition that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Its type.
    pub kind: ConditionType,
    /// What to know, and to do.
    pub message: String,
}

/// Whether an ElastiService is acted upon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It is held.
    Held,
    /// It is let go: its target is woken and nothing of ours stays.
    Refused(String),
    /// Something that it names is not there: nothing is done until it is.
    Incomplete(String),
}

/// Who else has to do with the Service and the target.
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    /// The older ElastiService that holds the same Service, if there is one.
    pub holder: Option<String>,
    /// Services that are not held and lead to the target's pods.
    pub unheld: BTreeSet<String>,
    /// Nodes with ready pods of the target, but without a ready resolver.
    pub uncovered_nodes: BTreeSet<String>,
    /// Ports for which no port of the resolvers was left.
    pub ports_without: Vec<String>,
    /// A ready pod of the target to which resolvers cannot connect.
    pub unreachable: Option<SocketAddr>,
    /// The namespace of the resolvers.
    pub resolver_namespace: String,
    /// Families of the Service's addresses of which no resolver has one.
    pub families_without: Vec<AddressFamily>,
}

/// What becomes of it, and what to tell.
pub fn judge(sight: &Sight, findings: &[Finding], near: &Neighbours) -> (Judgement, Vec<Told>) {
    let mut told = Vec::new();
    let refused = refusal(sight, findings, near);
    if let Some(refused) = &refused {
        told.extend(refused.clone());
        let why = refused.as_ref().map_or_else(
            || "the spec is not accepted; see the condition Accepted".to_owned(),
            |told| told.message.clone(),
        );
        return (Judgement::Refused(why), told);
    }
    if let Some(service) = &sight.service {
        told.extend(about_service(service, near));
    }
    told.extend(about_target(sight, near));
    let judgement = match incomplete(sight) {
        Some(missing) => Judgement::Incomplete(missing),
        None => Judgement::Held,
    };
    (judgement, told)
}

/// `Some(None)` is a refusal that the condition Accepted tells of.
#[allow(
    clippy::option_option,
    reason = "a refusal, with or without a condition of its own"
)]
fn refusal(sight: &Sight, findings: &[Finding], near: &Neighbours) -> Option<Option<Told>> {
    if findings
        .iter()
        .any(|finding| finding.consequence == Consequence::Refused)
    {
        return Some(None);
    }
    if let Some(holder) = &near.holder {
        return Some(Some(Told {
            kind: ConditionType::ServiceHeldByAnother,
            message: format!(
                "the ElastiService {holder} is older and holds the Service {}; delete one of them",
                sight.object.spec.service
            ),
        }));
    }
    let cannot = |message: &str| {
        Some(Some(Told {
            kind: ConditionType::ServiceCannotBeHeld,
            message: message.to_owned(),
        }))
    };
    let service = sight.service.as_ref()?;
    if service.type_ == "ExternalName" {
        return cannot(
            "an ExternalName Service leads out of the cluster; hold the Service it leads to",
        );
    }
    if service.is_headless {
        return cannot(
            "the Service is headless, so clients go to pods by themselves; give it a cluster IP",
        );
    }
    if service.selector.is_empty() {
        return cannot(
            "the Service has no selector, so its endpoints are somebody else's; give it one",
        );
    }
    if service.tcp_ports().next().is_none() {
        return cannot("the Service has no TCP port; only TCP can be held");
    }
    if service.is_local && !near.uncovered_nodes.is_empty() {
        let nodes: Vec<&str> = near.uncovered_nodes.iter().map(String::as_str).collect();
        return Some(Some(Told {
            kind: ConditionType::ResolverMissingOnNode,
            message: format!(
                "the Service has a Local traffic policy, and no resolver is ready on {}; run one on each node of the target, or use the policy Cluster",
                nodes.join(", ")
            ),
        }));
    }
    None
}

/// Something that is named, but is not there.
fn incomplete(sight: &Sight) -> Option<String> {
    let object = &sight.object;
    if sight.service.is_none() {
        return Some(format!(
            "the Service {} does not exist",
            object.spec.service
        ));
    }
    let target = &object.spec.scale_target_ref;
    match &sight.target {
        Seen::There(_) | Seen::NotYet => None,
        Seen::Missing => Some(format!(
            "the {} {} does not exist",
            target.kind, target.name
        )),
        Seen::NoSuchKind if matches!(Kind::of(target), Kind::Other(_)) => Some(format!(
            "a {} of {} cannot be scaled here: it is not installed, has no /scale, or the operator may not read it; docs/hold.md has the Role that it needs",
            target.kind, target.api_version
        )),
        Seen::NoSuchKind => Some(format!(
            "{}s are not installed in this cluster",
            target.kind
        )),
    }
    .or_else(|| missing_scaler(sight, object))
}

/// A ScaledObject that is not there yet may appear and scale by itself, so nothing sleeps without it.
fn missing_scaler(sight: &Sight, object: &ElastiService) -> Option<String> {
    let autoscaler = object.spec.autoscaler.as_ref()?;
    if autoscaler.type_ != AutoscalerType::Keda {
        return None;
    }
    match &sight.scaler {
        Seen::There(_) | Seen::NotYet => None,
        Seen::Missing => Some(format!(
            "the ScaledObject {} does not exist",
            autoscaler.name
        )),
        Seen::NoSuchKind => Some("KEDA is not installed in this cluster".to_owned()),
    }
}

fn about_service(service: &ServiceSight, near: &Neighbours) -> Vec<Told> {
    let mut told = Vec::new();
    let unheld: Vec<String> = service
        .ports
        .iter()
        .filter(|port| !port.is_tcp())
        .map(|port| format!("{}/{}", port.number, port.protocol))
        .collect();
    if !unheld.is_empty() {
        told.push(Told {
            kind: ConditionType::PortsNotHeld,
            message: format!(
                "{} cannot be held, only TCP can; what is sent there while the target sleeps is lost",
                unheld.join(", ")
            ),
        });
    }
    // No reason to wake what sleeps: addresses of two families come and go one after the other. What it lasts for is told by
    // the plan, which knows no resolver then.
    if !near.families_without.is_empty() {
        let families = near.families_without.iter().map(|family| family.as_str());
        let families: Vec<&str> = families.collect();
        told.push(Told {
            kind: ConditionType::ServiceCannotBeHeld,
            message: format!(
                "no ready resolver has an {} address, which the Service has; give the resolvers' Service ipFamilyPolicy: PreferDualStack and their pods both families, or the Service one family",
                families.join(" or ")
            ),
        });
    }
    if !near.ports_without.is_empty() {
        told.push(Told {
            kind: ConditionType::ResolverPortsExhausted,
            message: "no port is left for this Service, so requests are told apart by their Host header; widen --port-range"
                .to_owned(),
        });
    }
    told
}

fn about_target(sight: &Sight, near: &Neighbours) -> Vec<Told> {
    let mut told = Vec::new();
    if !near.unheld.is_empty() {
        let names: Vec<&str> = near.unheld.iter().map(String::as_str).collect();
        told.push(Told {
            kind: ConditionType::TargetServedByOthers,
            message: format!(
                "Services that are not held lead to the same pods: {}; requests through them fail while the target sleeps, so hold them as well",
                names.join(", ")
            ),
        });
    }
    if let Some(pod) = near.unreachable {
        told.push(Told {
            kind: ConditionType::TargetUnreachable,
            message: unreachable(pod, &near.resolver_namespace),
        });
    }
    if sight.hpa.as_ref().is_some_and(|hpa| hpa.reaches_zero) {
        told.push(Told {
            kind: ConditionType::AutoscalerReachesZero,
            message: "the HorizontalPodAutoscaler has minReplicas: 0 and may scale the target to zero by itself; set it to 1 or more"
                .to_owned(),
        });
    }
    if sight.target.there().is_some_and(|target| !target.pre_stop) {
        told.push(Told {
            kind: ConditionType::PreStopMissing,
            message: "no container of the target waits before it ends, so connections may be cut when it sleeps; add lifecycle: {preStop: {sleep: {seconds: 5}}}"
                .to_owned(),
        });
    }
    told
}

/// On one line, as conditions are read; YAML all the same.
fn unreachable(pod: SocketAddr, resolver_namespace: &str) -> String {
    let labels = format!(
        "{}: {}, {}: {}",
        install::NAME_LABEL,
        install::PRODUCT,
        install::COMPONENT_LABEL,
        install::RESOLVER_COMPONENT
    );
    format!(
        "connections from the resolvers to the ready pod at {pod} time out, so requests are held until their time is up; add to the NetworkPolicy that keeps them out: ingress: [{{from: [{{namespaceSelector: {{matchLabels: {{{NAMESPACE_LABEL}: {resolver_namespace}}}}}, podSelector: {{matchLabels: {{{labels}}}}}}}]}}]; if there is none, look at the pod's node and its network"
    )
}
