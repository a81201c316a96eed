//! What the watches said, put together: objects in, ElastiServices to look at out.
//!
//! A synchronous state machine without I/O. It answers two questions: who is touched by a change, and what is the
//! [`Sight`] of one ElastiService. An event touches those who refer to its object and nobody else, so ten thousand
//! services cost no more than one. [`kept`] holds the objects of one kind.

mod kept;
#[cfg(test)]
mod tests;
mod told;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use jiff::Timestamp;
use kube::ResourceExt;
use weir_api::hold::{AutoscalerType, ElastiService, InForce};
use weir_role::cluster::{ObjectId, Update};

use self::kept::Kept;
pub use self::told::Told;
use super::sight::{
    Hpa, Kind, ScaledObject, Scaler, Seen, ServiceSight, Sight, SliceSight, Workload,
};

/// What `kubectl apply` last applied, as a text.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// All that is known.
#[derive(Debug)]
pub struct World {
    objects: Kept<InForce>,
    services: Kept<ServiceSight>,
    slices: Kept<SliceSight>,
    deployments: Kept<Workload>,
    stateful_sets: Kept<Workload>,
    rollouts: Kept<Workload>,
    /// Those that are not watched, as they were seen last.
    others: HashMap<Reference, Seen<Workload>>,
    scalers: Kept<Scaler>,
    hpas: Kept<Hpa>,
    /// Who refers to what.
    users: HashMap<Reference, BTreeSet<ObjectId>>,
    /// The slices of a Service.
    slices_of: HashMap<ObjectId, BTreeSet<ObjectId>>,
    /// The Services that are found by this label of their selector, to find those of a pod. Each is found by one alone, the
    /// one that fewest others had when it came: where all Services of a namespace share a label, that one tells nothing.
    selectors: HashMap<Label, BTreeSet<ObjectId>>,
    /// ElastiServices by UID.
    uids: HashMap<String, ObjectId>,
    /// What was made for an ElastiService.
    derived: HashMap<String, BTreeSet<Derived>>,
    /// ScaledObjects with the mark of an ElastiService.
    marked: HashMap<ObjectId, BTreeSet<ObjectId>>,
}

/// A label of pods in a namespace.
type Label = (Arc<str>, String, String);

/// Something that an ElastiService names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Reference {
    Service(ObjectId),
    Target(Kind, ObjectId),
    Scaler(ObjectId),
    Hpa(ObjectId),
}

/// Something that was made for an ElastiService.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Derived {
    /// A private Service.
    Service(ObjectId),
    /// A slice.
    Slice(ObjectId),
}

/// Who is to be looked at again; sorted, so that the same event always gives the same.
pub type Touched = BTreeSet<ObjectId>;

impl World {
    /// A world of which nothing is known. Each kind is listed once for each of so many scopes.
    pub fn new(scopes: usize) -> Self {
        Self {
            objects: Kept::new(scopes),
            services: Kept::new(scopes),
            slices: Kept::new(scopes),
            deployments: Kept::new(scopes),
            stateful_sets: Kept::new(scopes),
            rollouts: Kept::new(scopes),
            others: HashMap::new(),
            scalers: Kept::new(scopes),
            hpas: Kept::new(scopes),
            users: HashMap::new(),
            slices_of: HashMap::new(),
            selectors: HashMap::new(),
            uids: HashMap::new(),
            derived: HashMap::new(),
            marked: HashMap::new(),
        }
    }

    /// Takes in what a watch said; tells who is touched.
    pub fn hear(&mut self, told: Told) -> Touched {
        let mut touched = Touched::new();
        match told {
            Told::ElastiService(update) => self.hear_objects(update, &mut touched),
            Told::Service(update) => self.hear_services(update, &mut touched),
            Told::Slice(update) => self.hear_slices(update, &mut touched),
            Told::Deployment(update) => {
                let changed = self
                    .deployments
                    .hear(update, |object| Some(Workload::of_deployment(object)));
                self.touch(
                    changed,
                    |id| Reference::Target(Kind::Deployment, id),
                    &mut touched,
                );
            }
            Told::StatefulSet(update) => {
                let changed = self
                    .stateful_sets
                    .hear(update, |object| Some(Workload::of_stateful_set(object)));
                self.touch(
                    changed,
                    |id| Reference::Target(Kind::StatefulSet, id),
                    &mut touched,
                );
            }
            Told::Rollout(update) => {
                let of = |object: &_| Some(Workload::of_rollout(object));
                let (changes, is_kind) = self.rollouts.hear_optional(update, of);
                self.touch(
                    changes.into_iter().map(|(id, _, _)| id).collect(),
                    |id| Reference::Target(Kind::Rollout, id),
                    &mut touched,
                );
                self.touch_kind(
                    is_kind,
                    |reference| matches!(reference, Reference::Target(Kind::Rollout, _)),
                    &mut touched,
                );
            }
            Told::ScaledObject(update) => self.hear_scalers(update, &mut touched),
            Told::Hpa(update) => {
                let changed = self.hpas.hear(update, |object| Some(Hpa::of(object)));
                self.touch(changed, Reference::Hpa, &mut touched);
            }
        }
        touched
    }

    /// Whether all kinds that are always there have been listed.
    pub fn is_synced(&self) -> bool {
        self.objects.is_listed()
            && self.services.is_listed()
            && self.slices.is_listed()
            && self.deployments.is_listed()
            && self.stateful_sets.is_listed()
            && self.hpas.is_listed()
            && !self.rollouts.is_pending()
            && !self.scalers.is_pending()
    }

    /// All ElastiServices, in no order.
    pub fn objects(&self) -> impl Iterator<Item = (&ObjectId, &Arc<InForce>)> {
        self.objects.iter()
    }

    /// One of them.
    pub fn object(&self, id: &ObjectId) -> Option<&Arc<InForce>> {
        self.objects.get(id)
    }

    /// The ElastiService that holds a Service: the oldest that names it.
    pub fn holder(&self, service: &ObjectId) -> Option<&Arc<InForce>> {
        let claims = self.users.get(&Reference::Service(service.clone()))?;
        let claims = claims.iter().filter_map(|id| self.objects.get(id));
        claims.min_by_key(|object| rank(object))
    }

    /// The other ElastiServices on the same target.
    pub fn group(&self, object: &ElastiService) -> Vec<Arc<InForce>> {
        let target = target_of(object);
        let me = ObjectId::of(object);
        let members = self.users.get(&target).into_iter().flatten();
        members
            .filter(|id| **id != me)
            .filter_map(|id| self.objects.get(id).cloned())
            .collect()
    }

    /// One ElastiService with all that matters to it.
    pub fn sight(&self, id: &ObjectId) -> Option<Sight> {
        let object = Arc::clone(self.objects.get(id)?);
        let service = service_of(&object);
        let autoscaler = object.spec.autoscaler.as_ref();
        let named = |wanted| {
            autoscaler
                .filter(|autoscaler| autoscaler.type_ == wanted)
                .map(|autoscaler| sibling(id, &autoscaler.name))
        };
        let reference = &object.spec.scale_target_ref;
        let target = self.target(Kind::of(reference), sibling(id, &reference.name));
        Some(Sight {
            service: self.services.get(&service).cloned(),
            target,
            slices: self.slices_of(&service),
            scaler: named(AutoscalerType::Keda)
                .map_or(Seen::Missing, |scaler| self.scalers.seen(&scaler)),
            hpa: named(AutoscalerType::Hpa).and_then(|hpa| self.hpas.get(&hpa).cloned()),
            object,
        })
    }

    /// A Service by its name.
    pub fn service(&self, id: &ObjectId) -> Option<&Arc<ServiceSight>> {
        self.services.get(id)
    }

    /// What was made for the ElastiService with this UID.
    pub fn derived(&self, uid: &str) -> impl Iterator<Item = &Derived> {
        self.derived.get(uid).into_iter().flatten()
    }

    /// A slice by its name.
    pub fn slice(&self, id: &ObjectId) -> Option<&Arc<SliceSight>> {
        self.slices.get(id)
    }

    /// ScaledObjects of a namespace that carry the mark of this ElastiService.
    pub fn paused_by(&self, object: &ObjectId) -> Vec<ObjectId> {
        let marked = self.marked.get(object).into_iter().flatten();
        marked.cloned().collect()
    }

    /// The Services that lead to pods with these labels.
    pub fn selecting(
        &self,
        namespace: &Arc<str>,
        labels: &BTreeMap<String, String>,
    ) -> BTreeSet<ObjectId> {
        let candidates = labels.iter().filter_map(|(key, value)| {
            let key = (Arc::clone(namespace), key.clone(), value.clone());
            self.selectors.get(&key)
        });
        candidates
            .flatten()
            .filter(|id| {
                let service = self.services.get(id);
                service.is_some_and(|service| service.selects(labels))
            })
            .cloned()
            .collect()
    }

    /// A target of a kind that is not watched was asked for. What nobody names any more is forgotten.
    pub fn set_other(&mut self, kind: Kind, target: ObjectId, seen: Seen<Workload>) {
        let reference = Reference::Target(kind, target);
        if self.users.contains_key(&reference) {
            self.others.insert(reference, seen);
        }
    }

    fn target(&self, kind: Kind, target: ObjectId) -> Seen<Workload> {
        match kind {
            Kind::Deployment => self.deployments.seen(&target),
            Kind::StatefulSet => self.stateful_sets.seen(&target),
            Kind::Rollout => self.rollouts.seen(&target),
            other @ Kind::Other(_) => {
                let seen = self.others.get(&Reference::Target(other, target));
                seen.cloned().unwrap_or(Seen::NotYet)
            }
        }
    }

    fn slices_of(&self, service: &ObjectId) -> Vec<Arc<SliceSight>> {
        let names = self.slices_of.get(service).into_iter().flatten();
        names
            .filter_map(|name| self.slices.get(name).cloned())
            .collect()
    }

    /// Those who refer to what has changed.
    fn touch(
        &self,
        changed: Vec<ObjectId>,
        reference: impl Fn(ObjectId) -> Reference,
        touched: &mut Touched,
    ) {
        for id in changed {
            let users = self.users.get(&reference(id)).into_iter().flatten();
            touched.extend(users.cloned());
        }
    }

    /// Those who refer to anything of a kind that came or went.
    fn touch_kind(&self, all: bool, is_it: impl Fn(&Reference) -> bool, touched: &mut Touched) {
        if all {
            let users = self.users.iter().filter(|(reference, _)| is_it(reference));
            touched.extend(users.flat_map(|(_, users)| users.iter().cloned()));
        }
    }

    fn hear_objects(&mut self, update: Update<ElastiService>, touched: &mut Touched) {
        for (id, old, new) in self
            .objects
            .hear_changes(update, |object| Some(lightened(object)))
        {
            touched.insert(id.clone());
            let mut left = Vec::new();
            if let Some(old) = old {
                self.uids.remove(&old.uid().unwrap_or_default());
                for reference in references(&old) {
                    touched.extend(self.users.get(&reference).into_iter().flatten().cloned());
                    remove(&mut self.users, &reference, &id);
                    left.push(reference);
                }
            }
            if let Some(new) = new {
                self.uids.insert(new.uid().unwrap_or_default(), id.clone());
                for reference in references(&new) {
                    let users = self.users.entry(reference).or_default();
                    users.insert(id.clone());
                    touched.extend(users.iter().cloned());
                }
            }
            for reference in left {
                if !self.users.contains_key(&reference) {
                    self.others.remove(&reference);
                }
            }
        }
    }

    fn hear_scalers(&mut self, update: Option<Update<ScaledObject>>, touched: &mut Touched) {
        let of = |object: &_| Some(Scaler::of(object));
        let (changes, is_kind) = self.scalers.hear_optional(update, of);
        for (id, old, new) in changes {
            if let Some(by) = old.and_then(|old| paused_by(&id, &old)) {
                remove(&mut self.marked, &by, &id);
            }
            if let Some(by) = new.and_then(|new| paused_by(&id, &new)) {
                self.marked.entry(by).or_default().insert(id.clone());
            }
            self.touch(vec![id], Reference::Scaler, touched);
        }
        self.touch_kind(
            is_kind,
            |reference| matches!(reference, Reference::Scaler(_)),
            touched,
        );
    }

    fn hear_services(
        &mut self,
        update: Update<k8s_openapi::api::core::v1::Service>,
        touched: &mut Touched,
    ) {
        let changes = self
            .services
            .hear_changes(update, |object| Some(ServiceSight::of(object)));
        for (id, old, new) in changes {
            for service in [&old, &new].into_iter().flatten() {
                if let Some(owner) = self.owner(service.derived_from.as_ref()) {
                    touched.insert(owner);
                }
            }
            if let Some(old) = old {
                // It stands under one of them.
                for label in labels(&id, &old) {
                    remove(&mut self.selectors, &label, &id);
                }
                if let Some(uid) = &old.derived_from {
                    remove(&mut self.derived, uid, &Derived::Service(id.clone()));
                }
            }
            if let Some(new) = new {
                let shared_by = |label: &Label| self.selectors.get(label).map_or(0, BTreeSet::len);
                if let Some(label) = labels(&id, &new).min_by_key(shared_by) {
                    self.selectors.entry(label).or_default().insert(id.clone());
                }
                if let Some(uid) = &new.derived_from {
                    let derived = self.derived.entry(uid.clone()).or_default();
                    derived.insert(Derived::Service(id.clone()));
                }
            }
            self.touch(vec![id], Reference::Service, touched);
        }
    }

    fn hear_slices(
        &mut self,
        update: Update<k8s_openapi::api::discovery::v1::EndpointSlice>,
        touched: &mut Touched,
    ) {
        for (id, old, new) in self.slices.hear_changes(update, SliceSight::of) {
            for slice in [&old, &new].into_iter().flatten() {
                let service = sibling(&id, &slice.service);
                self.touch(vec![service], Reference::Service, touched);
                touched.extend(self.owner(slice.derived_from.as_ref()));
            }
            if let Some(old) = old {
                remove(&mut self.slices_of, &sibling(&id, &old.service), &id);
                if let Some(uid) = &old.derived_from {
                    remove(&mut self.derived, uid, &Derived::Slice(id.clone()));
                }
            }
            if let Some(new) = new {
                let service = sibling(&id, &new.service);
                self.slices_of
                    .entry(service)
                    .or_default()
                    .insert(id.clone());
                if let Some(uid) = &new.derived_from {
                    let derived = self.derived.entry(uid.clone()).or_default();
                    derived.insert(Derived::Slice(id));
                }
            }
        }
    }

    fn owner(&self, uid: Option<&String>) -> Option<ObjectId> {
        self.uids.get(uid?).cloned()
    }
}

/// What is kept of an ElastiService: all but its labels, and a second copy of its spec, as kubectl leaves it in an annotation.
/// A status that is written with what is kept changes nothing of them.
fn lightened(object: &ElastiService) -> InForce {
    let mut object = object.clone();
    object.metadata.labels = None;
    if let Some(annotations) = &mut object.metadata.annotations {
        annotations.remove(LAST_APPLIED);
    }
    InForce::from(object)
}

/// The Service that an ElastiService names.
pub fn service_of(object: &ElastiService) -> ObjectId {
    sibling(&ObjectId::of(object), &object.spec.service)
}

/// Older first, then by name. An object without a time is one that the API server has not seen: it comes last.
pub fn rank(object: &ElastiService) -> (bool, Timestamp, String) {
    let created = object.creation_timestamp().map(|time| time.0);
    let time = created.unwrap_or(Timestamp::UNIX_EPOCH);
    (created.is_none(), time, object.name_any())
}

/// Another object in the same namespace.
pub fn sibling(id: &ObjectId, name: &str) -> ObjectId {
    ObjectId {
        namespace: Arc::clone(&id.namespace),
        name: name.into(),
    }
}

fn target_of(object: &ElastiService) -> Reference {
    let reference = &object.spec.scale_target_ref;
    let target = sibling(&ObjectId::of(object), &reference.name);
    Reference::Target(Kind::of(reference), target)
}

fn references(object: &ElastiService) -> Vec<Reference> {
    let autoscaler = object.spec.autoscaler.as_ref().map(|autoscaler| {
        let id = sibling(&ObjectId::of(object), &autoscaler.name);
        match autoscaler.type_ {
            AutoscalerType::Keda => Reference::Scaler(id),
            AutoscalerType::Hpa => Reference::Hpa(id),
        }
    });
    let service = Reference::Service(service_of(object));
    [Some(service), Some(target_of(object)), autoscaler]
        .into_iter()
        .flatten()
        .collect()
}

/// What the pods of a Service have, in the order of the labels' names.
fn labels(id: &ObjectId, service: &ServiceSight) -> impl Iterator<Item = Label> {
    let selector = service.selector.iter();
    selector.map(|(key, value)| (Arc::clone(&id.namespace), key.clone(), value.clone()))
}

/// The ElastiService that paused a ScaledObject, as its mark says.
fn paused_by(id: &ObjectId, scaler: &Scaler) -> Option<ObjectId> {
    scaler.paused_by.as_deref().map(|name| sibling(id, name))
}

fn remove<K: std::hash::Hash + Eq, V: Ord>(map: &mut HashMap<K, BTreeSet<V>>, key: &K, value: &V) {
    if let Some(set) = map.get_mut(key) {
        set.remove(value);
        if set.is_empty() {
            map.remove(key);
        }
    }
}
