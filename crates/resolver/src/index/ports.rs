//! Who has which port of the resolver. The operator allots each port once, but an object may have been restored or
//! copied with its status: then the older object keeps the port.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::facts::Rank;
use crate::view::ServiceId;

/// Who wants a port: an object, for a port of its Service by index.
type Wish = (Rank, usize);

#[derive(Debug, Default)]
pub(super) struct Ports {
    wishes: HashMap<u16, BTreeMap<Wish, ServiceId>>,
    of_service: HashMap<ServiceId, Vec<(u16, Wish)>>,
}

impl Ports {
    /// Replaces what a service wants, and adds those who may win or lose by it.
    pub(super) fn set(
        &mut self,
        id: &ServiceId,
        wanted: Vec<(u16, Rank, usize)>,
        touched: &mut BTreeSet<ServiceId>,
    ) {
        let wanted: Vec<(u16, Wish)> = wanted
            .into_iter()
            .map(|(port, rank, index)| (port, (rank, index)))
            .collect();
        if self.of_service.get(id).map_or(&[][..], Vec::as_slice) == wanted {
            return;
        }
        for (port, wish) in self.of_service.remove(id).unwrap_or_default() {
            if let Some(wishes) = self.wishes.get_mut(&port) {
                // Its object may name another service by now, and have told of its wish there first.
                if wishes.get(&wish) == Some(id) {
                    wishes.remove(&wish);
                }
                touched.extend(wishes.values().cloned());
                if wishes.is_empty() {
                    self.wishes.remove(&port);
                }
            }
        }
        for (port, wish) in &wanted {
            let wishes = self.wishes.entry(*port).or_default();
            touched.extend(wishes.values().cloned());
            wishes.insert(wish.clone(), id.clone());
        }
        if !wanted.is_empty() {
            self.of_service.insert(id.clone(), wanted);
        }
    }

    /// Whether a port of the resolver belongs to this port of this service.
    pub(super) fn has(&self, port: u16, id: &ServiceId, index: usize) -> bool {
        self.wishes
            .get(&port)
            .and_then(|wishes| wishes.first_key_value())
            .is_some_and(|((_, first), owner)| owner == id && *first == index)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.wishes.is_empty() && self.of_service.is_empty()
    }
}
