//! What is known of one ElastiService, read together: from the watches, the triggers, the resolvers and the others on its
//! target.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;
use kube::ResourceExt;
use weir_api::{
    finding::Finding,
    hold::{
        InForce, Trigger,
        names::{AddressFamily, private_service, report::ConditionType},
    },
};
use weir_hold::{
    Facts,
    facts::{Group, Knows, Triggers, Window},
};
use weir_role::cluster::ObjectId;

use crate::{
    elasti_service::{
        calendar::{calendar, together},
        context::{Context, lock},
        dereference::{self, Around, Claim, cooldown},
        ports::Allotted,
        refusal::{self, Judgement, Neighbours, Told},
        sight::{Seen, ServiceSight, Sight},
        triggers::{
            Verdict,
            network::wanted::{Wanted, wanted},
            usage::table as usage,
        },
        window::window,
        world::{Derived, World, service_of, sibling},
    },
    resolvers::Resolver,
};

/// What is known.
pub(super) struct Gathered {
    pub(super) id: ObjectId,
    pub(super) sight: Sight,
    /// The others on the target.
    pub(super) others: Vec<Sight>,
    /// The private Service, if it is there.
    pub(super) private: Option<Arc<ServiceSight>>,
    /// What was made for it.
    pub(super) derived: Vec<Derived>,
    /// ScaledObjects with its mark.
    pub(super) marked: Vec<ObjectId>,
    pub(super) findings: Vec<Finding>,
    pub(super) judgement: Judgement,
    pub(super) told: Vec<Told>,
    pub(super) allotted: Allotted,
    pub(super) resolvers: Vec<(Resolver, Knows)>,
    pub(super) verdict: Verdict,
    /// Whose traffic has a say in that.
    measured: Wanted,
    /// When a schedule says something else, this one's or that of another on the target.
    pub(super) schedule_changes: Option<Timestamp>,
    pub(super) window: Window,
    pub(super) namespace_ends: bool,
}

/// All of it; nothing if the object is gone.
pub(super) fn gather(context: &Context, id: &ObjectId) -> Option<Gathered> {
    let now = context.now();
    let world = lock(&context.world);
    let sight = world.sight(id)?;
    let object = Arc::clone(&sight.object);
    let others: Vec<Sight> = world
        .group(&object)
        .iter()
        // One that does not hold its Service has no say.
        .filter(|other| {
            let holder = world.holder(&service_of(other));
            holder.is_some_and(|holder| holder.uid() == other.uid())
        })
        .filter_map(|other| world.sight(&ObjectId::of(&***other)))
        .collect();
    let holder = world.holder(&service_of(&object));
    let holder = holder.filter(|holder| holder.uid() != object.uid());
    let mut near = Neighbours {
        holder: holder.map(|holder| holder.name_any()),
        unheld: unheld(&world, id, &sight),
        resolver_namespace: context.resolver_namespace.clone(),
        ..Neighbours::default()
    };
    let private = world
        .service(&sibling(id, &private_service(&object.spec.service)))
        .cloned();
    let uid = object.uid().unwrap_or_default();
    let derived = world.derived(&uid).cloned().collect();
    let marked = world.paused_by(id);
    drop(world);

    let allotted = allot(context, id, &sight, &near, now);
    near.ports_without.clone_from(&allotted.without);
    let resolvers = context
        .resolvers
        .for_service(&service_of(&object), &allotted.ports);
    near.unreachable = context.resolvers.unreachable(&service_of(&object));
    near.uncovered_nodes = uncovered(&sight, &resolvers);
    near.families_without = families_without(&sight, &resolvers);
    let findings = object.validate();
    let (judgement, mut told) = refusal::judge(&sight, &findings, &near);
    let (triggers, cooldown) = (&object.spec.triggers, cooldown(&object));
    context.board.set(id.clone(), triggers, cooldown);
    let measured = wanted(triggers, cooldown, &sight, context.meter.may_ask());
    context.meter.set(id.clone(), measured.clone());
    if let Wanted::Unusable(obstacle) = &measured {
        told.push(Told {
            kind: ConditionType::TriggerNotUsable,
            message: obstacle.to_string(),
        });
    }
    context
        .turnstile
        .set(id.clone(), counted(&object, cooldown));
    let (verdict, changes) =
        with_schedules(asked(context, id, context.board.read(id)), &object, now);
    let of_others = others
        .iter()
        .filter_map(|other| calendar(&other.object.spec.triggers, now).changes);
    let schedule_changes = of_others.chain(changes).min();
    Some(Gathered {
        id: id.clone(),
        others,
        private,
        derived,
        marked,
        findings,
        judgement,
        told,
        allotted,
        resolvers,
        verdict,
        measured,
        schedule_changes,
        window: window(object.spec.enabled_period.as_ref(), now),
        namespace_ends: false,
        sight,
    })
}

impl Gathered {
    /// Whether enough is known to decide anything.
    pub(super) fn is_complete(&self) -> bool {
        !matches!(self.sight.target, Seen::NotYet) && !matches!(self.sight.scaler, Seen::NotYet)
    }

    pub(super) fn is_deleted(&self) -> bool {
        self.object().metadata.deletion_timestamp.is_some()
    }

    pub(super) fn object(&self) -> &InForce {
        &self.sight.object
    }

    /// The facts by what the watches said.
    pub(super) fn facts(&self, context: &Context, now: Timestamp) -> Facts {
        self.facts_of(&self.sight, context, now)
    }

    /// The facts by another sight of the same object.
    pub(super) fn facts_of(&self, sight: &Sight, context: &Context, now: Timestamp) -> Facts {
        let names: Vec<String> = self.group_names();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let around = Around {
            resolvers: &self.resolvers,
            triggers: self.triggers(sight, context),
            window: self.window,
            group: self.group(context, &names, now),
            group_names: &names,
            wake_asked: context.is_wake_asked(&self.id),
            is_refused: matches!(self.judgement, Judgement::Refused(_)),
            claim: self.claim(),
            namespace_ends: self.namespace_ends,
            shared_port: context.shared_port,
        };
        dereference::facts(sight, &around)
    }

    /// It and the others on its target.
    pub(super) fn all_on_target(&self) -> Vec<ObjectId> {
        let others = self.others.iter();
        let others = others.map(|other| ObjectId::of(&**other.object));
        others.chain([self.id.clone()]).collect()
    }

    /// Which slices are its own.
    pub(super) fn claim(&self) -> Claim {
        let mut told = self.told.iter();
        if told.any(|told| told.kind == ConditionType::ServiceHeldByAnother) {
            Claim::Own
        } else if matches!(self.judgement, Judgement::Refused(_)) {
            Claim::OwnAndNobodys
        } else {
            Claim::All
        }
    }

    /// What the triggers say. Of pods that this sight has and the last one had not, nobody knows yet whether they are idle.
    fn triggers(&self, sight: &Sight, context: &Context) -> Triggers {
        let object = self.object();
        let (triggers, cooldown) = (&object.spec.triggers, cooldown(object));
        let measured = wanted(triggers, cooldown, sight, context.meter.may_ask());
        match self.verdict.triggers {
            Triggers::Idle if measured != self.measured => Triggers::Unknown,
            // They may have been asked again since.
            Triggers::Idle => match context.turnstile.verdict(&self.id).triggers {
                Triggers::Absent => Triggers::Idle,
                triggers => triggers,
            },
            triggers => triggers,
        }
    }

    fn group_names(&self) -> Vec<String> {
        let others = self.others.iter().map(|other| other.object.name_any());
        others.chain([self.object().name_any()]).collect()
    }

    fn group(&self, context: &Context, names: &[&str], now: Timestamp) -> Group {
        let mut group = Group::ALONE;
        for other in &self.others {
            let id = ObjectId::of(&**other.object);
            let (facts, memory) = other_facts(context, other, &id, names, now);
            let settings = &context.settings;
            group.others_agree &= weir_hold::wants_sleep(&facts, &memory, settings, now);
            group.others_cut_over &= weir_hold::is_cut_over(&facts, &memory, settings, now);
            group.others_wake |= weir_hold::wants_wake(&facts, &memory, settings, now);
        }
        group
    }
}

/// What those triggers say for which somebody is asked: Prometheus, which says this, kubelets and resolvers.
fn asked(context: &Context, id: &ObjectId, prometheus: Verdict) -> Verdict {
    let measured = together(prometheus, context.meter.verdict(id));
    together(measured, context.turnstile.verdict(id))
}

/// What is to be known of an object's use, if a trigger goes by that.
fn counted(object: &InForce, cooldown: Duration) -> Option<usage::Wanted> {
    let mut triggers = object.spec.triggers.iter();
    triggers
        .any(Trigger::stays_behind_resolvers)
        .then(|| usage::Wanted {
            service: service_of(object),
            cooldown,
        })
}

/// What the triggers say: those for which somebody was asked, and those that go by the clock. And when the clock changes that.
fn with_schedules(
    asked: Verdict,
    object: &InForce,
    now: Timestamp,
) -> (Verdict, Option<Timestamp>) {
    let schedules = calendar(&object.spec.triggers, now);
    (together(asked, schedules.verdict), schedules.changes)
}

/// Another one on the same target, as if it were alone there.
fn other_facts(
    context: &Context,
    other: &Sight,
    id: &ObjectId,
    names: &[&str],
    now: Timestamp,
) -> (Facts, weir_hold::Memory) {
    let status = other.object.status.as_ref();
    let ports = status.map_or(&[][..], |status| &status.ports);
    let resolvers = context
        .resolvers
        .for_service(&service_of(&other.object), ports);
    let asked = asked(context, id, context.board.verdict(id));
    let around = Around {
        resolvers: &resolvers,
        triggers: with_schedules(asked, &other.object, now).0.triggers,
        window: window(other.object.spec.enabled_period.as_ref(), now),
        group: Group::ALONE,
        group_names: names,
        wake_asked: context.is_wake_asked(id),
        is_refused: false,
        claim: Claim::All,
        namespace_ends: false,
        shared_port: context.shared_port,
    };
    let memory = lock(&context.memories).get(id).cloned().unwrap_or_default();
    (dereference::facts(other, &around), memory)
}

fn allot(
    context: &Context,
    id: &ObjectId,
    sight: &Sight,
    near: &Neighbours,
    now: Timestamp,
) -> Allotted {
    let stored = sight
        .object
        .status
        .as_ref()
        .map(|status| status.ports.clone());
    let unchanged = Allotted {
        ports: stored.unwrap_or_default(),
        without: Vec::new(),
    };
    let is_deleted = sight.object.metadata.deletion_timestamp.is_some();
    match &sight.service {
        Some(service) if near.holder.is_none() && !is_deleted && context.per_service_ports => {
            let names: Vec<&str> = service.tcp_ports().map(|port| port.name.as_str()).collect();
            lock(&context.book).allot(id, &names, now)
        }
        _ if near.holder.is_some() || !context.per_service_ports => Allotted {
            ports: Vec::new(),
            without: Vec::new(),
        },
        _ => unchanged,
    }
}

/// Services that lead to the target's pods and that nobody holds.
fn unheld(world: &World, id: &ObjectId, sight: &Sight) -> BTreeSet<String> {
    let Some(target) = sight.target.there() else {
        return BTreeSet::new();
    };
    let selecting = world.selecting(&id.namespace, &target.pod_labels);
    // The older operator's has no label of ours yet.
    let private = private_service(&sight.object.spec.service);
    selecting
        .into_iter()
        .filter(|service| {
            let is_ours = *service.name == *private
                || world
                    .service(service)
                    .is_some_and(|service| service.derived_from.is_some());
            !is_ours && world.holder(service).is_none()
        })
        .map(|service| service.name.to_string())
        .collect()
}

/// Families of the Service of which no resolver has an address, while there are resolvers.
fn families_without(sight: &Sight, resolvers: &[(Resolver, Knows)]) -> Vec<AddressFamily> {
    let has = |family: &AddressFamily| {
        let mut addresses = resolvers.iter().map(|(resolver, _)| resolver.address);
        addresses.any(|address| AddressFamily::of(address) == *family)
    };
    let families = sight.service.iter().flat_map(|service| &service.families);
    let without = families.filter(|family| !resolvers.is_empty() && !has(family));
    without.copied().collect()
}

fn uncovered(sight: &Sight, resolvers: &[(Resolver, Knows)]) -> BTreeSet<String> {
    let theirs = sight.slices.iter().filter(|slice| !slice.is_ours);
    let nodes = theirs.flat_map(|slice| slice.nodes.iter().cloned());
    let covered: BTreeSet<&str> = resolvers
        .iter()
        .filter_map(|(resolver, _)| resolver.node.as_deref())
        .collect();
    nodes
        .filter(|node| !covered.contains(node.as_str()))
        .collect()
}
