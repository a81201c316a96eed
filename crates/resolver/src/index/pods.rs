//! The pods of Services that are held, and nothing of any other.
//!
//! Which pods those are is said by the Services' selectors, so most of a cluster's pods are looked at once and forgotten. A
//! pod counts from the first word of it after its Service is held: one that has said nothing since waits for the kubelet.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use weir_role::cluster::ObjectId;

use super::{facts::Unready, remove_from};
use crate::{
    pod::{PodView, object::Pod},
    view::ServiceId,
};

type Selector = BTreeMap<String, String>;

#[derive(Debug, Default)]
pub(super) struct Pods {
    selectors: HashMap<ServiceId, Selector>,
    /// By namespace and by the first of a selector's labels: a pod is compared with few selectors, not with all.
    by_label: HashMap<(Arc<str>, String, String), BTreeSet<ServiceId>>,
    known: HashMap<ObjectId, Known>,
    of_service: HashMap<ServiceId, BTreeSet<ObjectId>>,
}

#[derive(Debug)]
struct Known {
    view: Arc<PodView>,
    services: BTreeSet<ServiceId>,
}

impl Pods {
    /// Says by which selector a Service has its pods; none: its pods are of no interest.
    pub(super) fn select(&mut self, id: &ServiceId, selector: Option<&Selector>) {
        // An empty selector selects nothing: such endpoints are written by somebody else.
        let selector = selector.filter(|it| !it.is_empty());
        if self.selectors.get(id) == selector {
            return;
        }
        if let Some(old) = self.selectors.remove(id)
            && let Some(key) = key(id, &old)
            && let Some(services) = self.by_label.get_mut(&key)
        {
            services.remove(id);
            if services.is_empty() {
                self.by_label.remove(&key);
            }
        }
        for pod in self.of_service.remove(id).unwrap_or_default() {
            if let Some(known) = self.known.get_mut(&pod) {
                known.services.remove(id);
                if known.services.is_empty() {
                    self.known.remove(&pod);
                }
            }
        }
        if let Some(selector) = selector
            && let Some(key) = key(id, selector)
        {
            self.by_label.entry(key).or_default().insert(id.clone());
            self.selectors.insert(id.clone(), selector.clone());
        }
    }

    /// A pod is new or changed; adds the services that are concerned.
    pub(super) fn set(&mut self, id: ObjectId, pod: &Pod, touched: &mut BTreeSet<ServiceId>) {
        let services = self.selecting(&id, pod);
        let view = pod.view.as_ref().filter(|_| !services.is_empty());
        let Some(view) = view else {
            self.remove(&id, touched);
            return;
        };
        let same = |known: &Known| known.view == *view && known.services == services;
        if self.known.get(&id).is_some_and(same) {
            return;
        }
        self.remove(&id, touched);
        for service in &services {
            let pods = self.of_service.entry(service.clone()).or_default();
            pods.insert(id.clone());
        }
        touched.extend(services.iter().cloned());
        let view = Arc::clone(view);
        self.known.insert(id, Known { view, services });
    }

    /// A pod is gone, or no longer of interest.
    pub(super) fn remove(&mut self, id: &ObjectId, touched: &mut BTreeSet<ServiceId>) {
        if let Some(known) = self.known.remove(id) {
            for service in &known.services {
                remove_from(&mut self.of_service, service, id);
            }
            touched.extend(known.services);
        }
    }

    /// The pod of an endpoint of this service, if it is known, is selected by it and has this address.
    pub(super) fn of(&self, id: &ServiceId, endpoint: &Unready) -> Option<&Arc<PodView>> {
        let Known { view, services } = self.known.get(&endpoint.pod)?;
        let is_meant = *view.uid == *endpoint.uid && view.addresses.contains(&endpoint.address);
        (is_meant && services.contains(id)).then_some(view)
    }

    /// Those that are known.
    pub(super) fn ids(&self) -> impl Iterator<Item = &ObjectId> {
        self.known.keys()
    }

    fn selecting(&self, id: &ObjectId, pod: &Pod) -> BTreeSet<ServiceId> {
        let Some(labels) = pod.labels() else {
            return BTreeSet::new();
        };
        let key = |(name, value): (&String, &String)| {
            (Arc::clone(&id.namespace), name.clone(), value.clone())
        };
        let candidates = labels.iter().filter_map(|it| self.by_label.get(&key(it)));
        let selects = |service: &&ServiceId| {
            let selector = self.selectors.get(*service);
            selector.is_some_and(|it| {
                it.iter()
                    .all(|(name, value)| labels.get(name) == Some(value))
            })
        };
        candidates.flatten().filter(selects).cloned().collect()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
            && self.of_service.is_empty()
            && self.selectors.is_empty()
            && self.by_label.is_empty()
    }
}

fn key(id: &ServiceId, selector: &Selector) -> Option<(Arc<str>, String, String)> {
    let (name, value) = selector.first_key_value()?;
    Some((Arc::clone(&id.namespace), name.clone(), value.clone()))
}
