//! The resolver's view of the cluster: Kubernetes' objects in, [`Change`]s of [`ServiceView`]s out.
//!
//! A synchronous state machine without I/O: `watch` feeds it, tests feed it with values. What it believes depends
//! only on the objects there are, never on the order in which they came. An event touches its own service and those
//! that contend with it for a port, so ten thousand services cost no more than one. Pods are the exception: what was
//! said of one before its Service was held is forgotten.
//!
//! - [`event`]: what it is told;
//! - [`facts`]: what it keeps of each object;
//! - [`protocol`]: what is spoken on a port;
//! - [`ports`]: who has which port of the resolver;
//! - [`pods`]: the pods of Services that are held.

pub mod event;
mod facts;
mod pods;
mod ports;
mod protocol;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    hash::Hash,
    mem,
    net::SocketAddr,
    sync::Arc,
};

use event::Event;
use facts::{Claim, Rank, ServiceFacts, SliceFacts};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use pods::Pods;
use ports::Ports;
use weir_api::hold::{ElastiService, InForce};
use weir_role::cluster::{ObjectId, Update};

use crate::{
    change_order::place,
    pod::{Starting, object::Pod},
    probe::ProbeRules,
    view::{Change, PortView, ServiceId, ServiceView},
};

/// What differs between installations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSettings {
    /// Whether services get a port of their own, as the operator allotted it.
    pub per_service_ports: bool,
    /// Ports of the process itself, which no allotment may take from it.
    pub reserved_ports: Vec<u16>,
    /// Whether pods that start may be asked before the kubelet says that they are ready.
    pub early_readiness: bool,
}

/// Something in an object that cannot be used; the rest of it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The ElastiService.
    pub object: ObjectId,
    /// What is wrong, and what to do.
    pub message: String,
}

/// All that is known.
#[derive(Debug)]
pub struct Index {
    settings: IndexSettings,
    claims: HashMap<ObjectId, Claim>,
    claims_of: HashMap<ServiceId, BTreeSet<Rank>>,
    services: HashMap<ServiceId, ServiceFacts>,
    slices: HashMap<ObjectId, SliceFacts>,
    slices_of: HashMap<ServiceId, BTreeSet<ObjectId>>,
    ports: Ports,
    pods: Pods,
    views: HashMap<ServiceId, Arc<ServiceView>>,
    problems: Vec<Problem>,
}

/// Services whose view may have changed; sorted, so that the same event always gives the same changes.
type Touched = BTreeSet<ServiceId>;

impl Index {
    /// An index that knows of nothing.
    pub fn new(settings: IndexSettings) -> Self {
        Self {
            settings,
            claims: HashMap::new(),
            claims_of: HashMap::new(),
            services: HashMap::new(),
            slices: HashMap::new(),
            slices_of: HashMap::new(),
            ports: Ports::default(),
            pods: Pods::default(),
            views: HashMap::new(),
            problems: Vec::new(),
        }
    }

    /// Takes an event in. What comes out is to be applied in its order: who gives a port up stands before who takes
    /// it.
    pub fn apply(&mut self, event: Event) -> Vec<Change> {
        let mut touched = Touched::new();
        match event {
            Event::ElastiService(update) => self.elasti_services(update, &mut touched),
            Event::Service(update) => self.plain_services(update, &mut touched),
            Event::EndpointSlice(update) => self.endpoint_slices(update, &mut touched),
            Event::Pod(update) => self.some_pods(update, &mut touched),
        }
        self.refresh(touched)
    }

    /// The services that are held, in no order.
    pub fn views(&self) -> impl Iterator<Item = &Arc<ServiceView>> {
        self.views.values()
    }

    /// One of them.
    pub fn view(&self, id: &ServiceId) -> Option<&Arc<ServiceView>> {
        self.views.get(id)
    }

    /// What was found wrong since this was last asked.
    pub fn take_problems(&mut self) -> Vec<Problem> {
        mem::take(&mut self.problems)
    }

    fn elasti_services(&mut self, update: Update<ElastiService>, touched: &mut Touched) {
        match update {
            Update::Set(object) => self.set_claim(&object, touched),
            Update::Gone(id) => self.drop_claim(&id, touched),
            Update::Restarted {
                namespace,
                objects,
                unreadable,
            } => {
                for id in missing(
                    self.claims.keys(),
                    namespace.as_deref(),
                    &objects,
                    unreadable,
                ) {
                    self.drop_claim(&id, touched);
                }
                for object in &objects {
                    self.set_claim(object, touched);
                }
            }
        }
    }

    fn plain_services(&mut self, update: Update<Service>, touched: &mut Touched) {
        match update {
            Update::Set(object) => self.set_service(&object, touched),
            Update::Gone(id) => self.drop_service(id.into(), touched),
            Update::Restarted {
                namespace,
                objects,
                unreadable,
            } => {
                let known = self.services.keys().cloned().map(ObjectId::from);
                let known: Vec<ObjectId> = known.collect();
                for id in missing(known.iter(), namespace.as_deref(), &objects, unreadable) {
                    self.drop_service(id.into(), touched);
                }
                for object in &objects {
                    self.set_service(object, touched);
                }
            }
        }
    }

    fn endpoint_slices(&mut self, update: Update<EndpointSlice>, touched: &mut Touched) {
        match update {
            Update::Set(object) => self.set_slice(&object, touched),
            Update::Gone(id) => self.drop_slice(&id, touched),
            Update::Restarted {
                namespace,
                objects,
                unreadable,
            } => {
                for id in missing(
                    self.slices.keys(),
                    namespace.as_deref(),
                    &objects,
                    unreadable,
                ) {
                    self.drop_slice(&id, touched);
                }
                for object in &objects {
                    self.set_slice(object, touched);
                }
            }
        }
    }

    fn some_pods(&mut self, update: Update<Pod>, touched: &mut Touched) {
        match update {
            Update::Set(object) => self.pods.set(ObjectId::of(&*object), &object, touched),
            Update::Gone(id) => self.pods.remove(&id, touched),
            Update::Restarted {
                namespace,
                objects,
                unreadable,
            } => {
                for id in missing(self.pods.ids(), namespace.as_deref(), &objects, unreadable) {
                    self.pods.remove(&id, touched);
                }
                for object in &objects {
                    self.pods.set(ObjectId::of(object), object, touched);
                }
            }
        }
    }

    fn set_claim(&mut self, object: &ElastiService, touched: &mut Touched) {
        let id = ObjectId::of(object);
        let known = self.claims.get(&id).map(|claim| &claim.probes);
        let (claim, problems) = Claim::of(&InForce::from(object.clone()), known);
        self.problems
            .extend(problems.into_iter().map(|message| Problem {
                object: id.clone(),
                message,
            }));
        if self.claims.get(&id) == Some(&claim) {
            return;
        }
        self.drop_claim(&id, touched);
        touched.insert(claim.service.clone());
        self.claims_of
            .entry(claim.service.clone())
            .or_default()
            .insert(claim.rank.clone());
        self.claims.insert(id, claim);
    }

    fn drop_claim(&mut self, id: &ObjectId, touched: &mut Touched) {
        if let Some(claim) = self.claims.remove(id) {
            remove_from(&mut self.claims_of, &claim.service, &claim.rank);
            touched.insert(claim.service);
        }
    }

    fn set_service(&mut self, object: &Service, touched: &mut Touched) {
        let id = ServiceId::from(ObjectId::of(object));
        let facts = ServiceFacts::of(object);
        if self.services.get(&id) != Some(&facts) {
            self.services.insert(id.clone(), facts);
            touched.insert(id);
        }
    }

    fn drop_service(&mut self, id: ServiceId, touched: &mut Touched) {
        if self.services.remove(&id).is_some() {
            touched.insert(id);
        }
    }

    fn set_slice(&mut self, object: &EndpointSlice, touched: &mut Touched) {
        let id = ObjectId::of(object);
        let Some(facts) = SliceFacts::of(object) else {
            // It may have been some Service's before its label was removed.
            self.drop_slice(&id, touched);
            return;
        };
        if self.slices.get(&id) == Some(&facts) {
            return;
        }
        self.drop_slice(&id, touched);
        touched.insert(facts.service.clone());
        self.slices_of
            .entry(facts.service.clone())
            .or_default()
            .insert(id.clone());
        self.slices.insert(id, facts);
    }

    fn drop_slice(&mut self, id: &ObjectId, touched: &mut Touched) {
        if let Some(facts) = self.slices.remove(id) {
            remove_from(&mut self.slices_of, &facts.service, id);
            touched.insert(facts.service);
        }
    }

    fn refresh(&mut self, mut touched: Touched) -> Vec<Change> {
        for id in touched.clone() {
            let wanted = self.wanted_ports(&id);
            self.ports.set(&id, wanted, &mut touched);
            let holder = self.holder(&id).filter(|(claim, _)| self.asks_early(claim));
            let selector = holder.map(|(_, facts)| facts.selector.clone());
            self.pods.select(&id, selector.as_ref());
        }
        let mut changes: Vec<(u8, Change)> = Vec::new();
        for id in touched {
            match self.build(&id) {
                None => {
                    if let Some(old) = self.views.remove(&id) {
                        let change = Change::Gone(id);
                        changes.push((place(Some(&old), &change), change));
                    }
                }
                Some(view) => {
                    let old = self.views.get(&id);
                    if old.is_some_and(|old| **old == view) {
                        continue;
                    }
                    let view = Arc::new(view);
                    let change = Change::Set(Arc::clone(&view));
                    let old = self.views.insert(id, view);
                    changes.push((place(old.as_deref(), &change), change));
                }
            }
        }
        changes.sort_by_key(|(order, _)| *order);
        changes.into_iter().map(|(_, change)| change).collect()
    }

    /// The object that holds a Service: the oldest that names it, if the Service is there and can be held.
    fn holder(&self, id: &ServiceId) -> Option<(&Claim, &ServiceFacts)> {
        let facts = self.services.get(id)?;
        let first = self.claims_of.get(id)?.first()?;
        let claim = self.claims.get(&first.object)?;
        (!facts.ports.is_empty()).then_some((claim, facts))
    }

    fn asks_early(&self, claim: &Claim) -> bool {
        self.settings.early_readiness && claim.early
    }

    fn wanted_ports(&self, id: &ServiceId) -> Vec<(u16, Rank, usize)> {
        if !self.settings.per_service_ports {
            return Vec::new();
        }
        let Some((claim, facts)) = self.holder(id) else {
            return Vec::new();
        };
        let mut wanted = Vec::new();
        for (index, port) in facts.ports.iter().enumerate() {
            if let Some(number) = claim.allotted(&port.name)
                && !self.settings.reserved_ports.contains(&number)
            {
                wanted.push((number, claim.rank.clone(), index));
            }
        }
        wanted
    }

    /// Where pods will be ready that are known.
    fn starting<'a>(
        &self,
        id: &ServiceId,
        claim: &Claim,
        port: &str,
        slices: impl Iterator<Item = &'a SliceFacts>,
    ) -> Arc<[Starting]> {
        if !self.asks_early(claim) {
            return Arc::default();
        }
        let listed = slices.flat_map(|slice| slice.starting(port));
        let listed: Vec<_> = listed
            .map(|(it, at)| ((at, Some(&it.uid)), (it, at)))
            .collect();
        let once = once_for_each_pod(listed.iter().map(|(key, _)| *key).collect());
        let listed = listed.into_iter().map(|(_, it)| it);
        let mut starting: Vec<Starting> = listed
            .filter(|(_, address)| once.contains(address))
            .filter_map(|(endpoint, address)| {
                let pod = Arc::clone(self.pods.of(id, endpoint)?);
                Some(Starting { address, pod })
            })
            .collect();
        starting.sort_unstable_by_key(|it| it.address);
        starting.dedup_by_key(|it| it.address);
        starting.into()
    }

    fn build(&self, id: &ServiceId) -> Option<ServiceView> {
        let (claim, facts) = self.holder(id)?;
        let slices = || {
            let names = self.slices_of.get(id).into_iter().flatten();
            names.filter_map(|name| self.slices.get(name))
        };
        let mut ports = Vec::with_capacity(facts.ports.len());
        for (index, port) in facts.ports.iter().enumerate() {
            let allotted = claim.allotted(&port.name);
            let theirs = slices().filter(|slice| !slice.ours);
            let listed = theirs.flat_map(|slice| slice.endpoints(&port.name));
            let mut endpoints = once_for_each_pod(listed.collect());
            endpoints.sort_unstable();
            endpoints.dedup();
            ports.push(PortView {
                starting: self.starting(id, claim, &port.name, slices()),
                name: Arc::clone(&port.name),
                number: port.number,
                resolver_port: allotted.filter(|number| self.ports.has(*number, id, index)),
                protocol: port.protocol,
                endpoints: endpoints.into(),
            });
        }
        let ready = ports.iter().any(|port| !port.endpoints.is_empty());
        Some(ServiceView {
            id: id.clone(),
            held_by: Some(Arc::clone(&claim.rank.object.name)),
            target: Arc::clone(&claim.target),
            ports,
            probes: Arc::clone(&claim.probes),
            behind: claim.behind,
            switched: ready && !slices().any(|slice| slice.ours),
        })
    }
}

/// Of a pod with addresses of two families one, or it would be sent twice as much as others: that of IPv4, which is there
/// also where this machine has no IPv6.
fn once_for_each_pod<P: Copy + Eq + Hash>(listed: Vec<(SocketAddr, Option<P>)>) -> Vec<SocketAddr> {
    let of_ipv4 = listed.iter().filter(|(address, _)| address.is_ipv4());
    let of_ipv4 = of_ipv4.filter_map(|(address, pod)| Some(((*pod)?, address.port())));
    let of_ipv4: HashSet<(P, u16)> = of_ipv4.collect();
    let counts = |(address, pod): &(SocketAddr, Option<P>)| {
        let has_other = |pod| of_ipv4.contains(&(pod, address.port()));
        address.is_ipv4() || !pod.is_some_and(has_other)
    };
    let once = listed.into_iter().filter(counts);
    once.map(|(address, _)| address).collect()
}

/// What is known within the scope of a list, but is not in it.
fn missing<'a, K: kube::ResourceExt>(
    known: impl Iterator<Item = &'a ObjectId>,
    namespace: Option<&str>,
    objects: &[K],
    unreadable: Vec<ObjectId>,
) -> Vec<ObjectId> {
    let listed: HashSet<ObjectId> = objects.iter().map(ObjectId::of).chain(unreadable).collect();
    known
        .filter(|id| namespace.is_none_or(|namespace| *id.namespace == *namespace))
        .filter(|id| !listed.contains(id))
        .cloned()
        .collect()
}

fn remove_from<V: Ord>(map: &mut HashMap<ServiceId, BTreeSet<V>>, key: &ServiceId, value: &V) {
    if let Some(set) = map.get_mut(key) {
        set.remove(value);
        if set.is_empty() {
            map.remove(key);
        }
    }
}

/// Rules are compiled again only where they changed: a status is written often, rules are not.
fn compile(
    source: &[weir_api::hold::ProbeResponse],
    known: Option<&Arc<ProbeRules>>,
) -> (Arc<ProbeRules>, Vec<String>) {
    match known {
        Some(known) if known.is_from(source) => (Arc::clone(known), Vec::new()),
        _ => {
            let (rules, problems) = ProbeRules::compile(source);
            (Arc::new(rules), problems)
        }
    }
}
