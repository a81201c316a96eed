//! The objects of one kind, as far as they matter.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use kube::ResourceExt;
use weir_role::cluster::{ObjectId, Update};

use crate::elasti_service::sight::Seen;

/// What is kept of each object, and whether that is all there is.
#[derive(Debug)]
pub(super) struct Kept<T> {
    objects: HashMap<ObjectId, Arc<T>>,
    /// How often it must be listed before all is known: once for each namespace that is watched.
    scopes: usize,
    listed: HashSet<Option<String>>,
    is_absent: bool,
}

/// An object that changed, as it was and as it is.
pub(super) type Changed<T> = (ObjectId, Option<Arc<T>>, Option<Arc<T>>);

impl<T: PartialEq> Kept<T> {
    pub(super) fn new(scopes: usize) -> Self {
        Self {
            objects: HashMap::new(),
            scopes,
            listed: HashSet::new(),
            is_absent: false,
        }
    }

    pub(super) fn get(&self, id: &ObjectId) -> Option<&Arc<T>> {
        self.objects.get(id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&ObjectId, &Arc<T>)> {
        self.objects.iter()
    }

    pub(super) fn is_listed(&self) -> bool {
        self.listed.len() >= self.scopes
    }

    /// Neither listed, nor known to be absent.
    pub(super) fn is_pending(&self) -> bool {
        !self.is_listed() && !self.is_absent
    }

    pub(super) fn seen(&self, id: &ObjectId) -> Seen<T> {
        match self.objects.get(id) {
            Some(object) => Seen::There(Arc::clone(object)),
            None if self.is_listed() => Seen::Missing,
            None if self.is_absent => Seen::NoSuchKind,
            None => Seen::NotYet,
        }
    }

    /// The objects that changed in what matters.
    pub(super) fn hear<K: ResourceExt>(
        &mut self,
        update: Update<K>,
        of: impl Fn(&K) -> Option<T>,
    ) -> Vec<ObjectId> {
        let changes = self.hear_changes(update, of);
        changes.into_iter().map(|(id, _, _)| id).collect()
    }

    /// The same for a kind that may not be installed, as it was and as it is; and whether the kind itself came or went.
    pub(super) fn hear_optional<K: ResourceExt>(
        &mut self,
        update: Option<Update<K>>,
        of: impl Fn(&K) -> Option<T>,
    ) -> (Vec<Changed<T>>, bool) {
        let was_known = self.is_listed();
        let Some(update) = update else {
            self.is_absent = true;
            self.listed.clear();
            let gone = self.objects.drain();
            return (gone.map(|(id, old)| (id, Some(old), None)).collect(), true);
        };
        self.is_absent = false;
        let changes = self.hear_changes(update, of);
        (changes, !was_known && self.is_listed())
    }

    /// What changed, as it was and as it is.
    pub(super) fn hear_changes<K: ResourceExt>(
        &mut self,
        update: Update<K>,
        of: impl Fn(&K) -> Option<T>,
    ) -> Vec<Changed<T>> {
        match update {
            Update::Set(object) => {
                let id = ObjectId::of(&*object);
                self.put(id, of(&object)).into_iter().collect()
            }
            Update::Gone(id) => self.put(id, None).into_iter().collect(),
            Update::Restarted {
                namespace,
                objects,
                unreadable,
            } => {
                let present: HashSet<ObjectId> =
                    objects.iter().map(ObjectId::of).chain(unreadable).collect();
                let within = |id: &ObjectId| {
                    namespace
                        .as_deref()
                        .is_none_or(|namespace| *id.namespace == *namespace)
                };
                let known = self.objects.keys();
                let gone: Vec<ObjectId> = known
                    .filter(|id| within(id) && !present.contains(id))
                    .cloned()
                    .collect();
                self.listed.insert(namespace);
                let gone = gone.into_iter().map(|id| (id, None));
                let here = objects
                    .iter()
                    .map(|object| (ObjectId::of(object), of(object)));
                let all: Vec<_> = gone.chain(here).collect();
                all.into_iter()
                    .filter_map(|(id, new)| self.put(id, new))
                    .collect()
            }
        }
    }

    fn put(&mut self, id: ObjectId, new: Option<T>) -> Option<Changed<T>> {
        let old = self.objects.get(&id);
        if old.map(|old| &**old) == new.as_ref() {
            return None;
        }
        let new = new.map(Arc::new);
        let old = match &new {
            Some(new) => self.objects.insert(id.clone(), Arc::clone(new)),
            None => self.objects.remove(&id),
        };
        Some((id, old, new))
    }
}
