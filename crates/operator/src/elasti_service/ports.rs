//! Which port of the resolvers belongs to which port of which Service.
//!
//! A book of all that is allotted, without I/O. What counts is in the objects' `status.ports`; the book is read from
//! there, so a successor has the same. A port that nobody has any more rests for a while: connections to it may be under
//! way.

use std::{
    collections::{BTreeSet, HashMap},
    ops::RangeInclusive,
    time::Duration,
};

use jiff::Timestamp;
use weir_api::{dns::short_hash, hold::PortAllotment};
use weir_role::cluster::ObjectId;

use weir_hold::settings::after;

/// Who has which port.
#[derive(Debug)]
pub struct PortBook {
    range: RangeInclusive<u16>,
    rest: Duration,
    taken: HashMap<u16, ObjectId>,
    of: HashMap<ObjectId, Vec<PortAllotment>>,
    resting: HashMap<u16, Timestamp>,
    /// The same in the order in which they have rested, so that nobody has to look at all of them.
    rested: BTreeSet<(Timestamp, u16)>,
}

/// What came of an allotment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allotted {
    /// What `status.ports` is to say.
    pub ports: Vec<PortAllotment>,
    /// Ports of the Service for which none was left.
    pub without: Vec<String>,
}

impl PortBook {
    /// A book in which nothing is written.
    pub fn new(range: RangeInclusive<u16>, rest: Duration) -> Self {
        Self {
            range,
            rest,
            taken: HashMap::new(),
            of: HashMap::new(),
            resting: HashMap::new(),
            rested: BTreeSet::new(),
        }
    }

    /// Enters what an object's status says. Told for all objects, the oldest first, before anything is allotted: on a
    /// clash who came first keeps the port.
    pub fn enter(&mut self, object: &ObjectId, stored: &[PortAllotment]) {
        let mine: Vec<PortAllotment> = stored
            .iter()
            .filter(|port| self.range.contains(&port.resolver_port))
            .filter(|port| {
                let taken = self.taken.get(&port.resolver_port);
                taken.is_none_or(|by| by == object)
            })
            .cloned()
            .collect();
        for port in &mine {
            self.taken.insert(port.resolver_port, object.clone());
            if let Some(until) = self.resting.remove(&port.resolver_port) {
                self.rested.remove(&(until, port.resolver_port));
            }
        }
        self.of.insert(object.clone(), mine);
    }

    /// A port for each of these names; those that the object has stay.
    pub fn allot(&mut self, object: &ObjectId, names: &[&str], now: Timestamp) -> Allotted {
        while let Some(&(until, port)) = self.rested.first().filter(|(until, _)| *until <= now) {
            self.rested.remove(&(until, port));
            self.resting.remove(&port);
        }
        let had = self.of.remove(object).unwrap_or_default();
        for port in &had {
            if !names.contains(&port.name.as_str()) {
                self.release(port.resolver_port, now);
            }
        }
        let mut ports = Vec::new();
        let mut without = Vec::new();
        for name in names {
            let kept = had.iter().find(|port| port.name == *name).cloned();
            let found = kept.or_else(|| {
                let resolver_port = self.free(object, name)?;
                let name = (*name).to_owned();
                Some(PortAllotment {
                    name,
                    resolver_port,
                })
            });
            match found {
                Some(port) => {
                    self.taken.insert(port.resolver_port, object.clone());
                    ports.push(port);
                }
                None => without.push((*name).to_owned()),
            }
        }
        self.of.insert(object.clone(), ports.clone());
        Allotted { ports, without }
    }

    /// The object is gone, and its ports rest.
    pub fn forget(&mut self, object: &ObjectId, now: Timestamp) {
        for port in self.of.remove(object).unwrap_or_default() {
            self.release(port.resolver_port, now);
        }
    }

    fn release(&mut self, port: u16, now: Timestamp) {
        let until = after(now, self.rest);
        self.taken.remove(&port);
        self.resting.insert(port, until);
        self.rested.insert((until, port));
    }

    /// From a place that differs between names, so that two that were allotted by different leaders hardly clash.
    fn free(&self, object: &ObjectId, name: &str) -> Option<u16> {
        let (first, last) = (*self.range.start(), *self.range.end());
        let count = u64::from(last.checked_sub(first)?) + 1;
        // Whoever has none asks at each look: not port by port.
        let used = self.taken.len() + self.resting.len();
        if u64::try_from(used).is_ok_and(|used| used >= count) {
            return None;
        }
        let text = format!("{}/{}/{name}", object.namespace, object.name);
        let hash = u64::from_str_radix(&short_hash(&text), 16).unwrap_or(0);
        (0..count)
            .filter_map(|step| u16::try_from(u64::from(first) + (hash + step) % count).ok())
            .find(|port| !self.taken.contains_key(port) && !self.resting.contains_key(port))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    const REST: Duration = Duration::from_mins(10);

    fn id(number: usize) -> ObjectId {
        ObjectId::new("shop", &format!("web-{number}"))
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn who_has_a_port_keeps_it_and_a_released_one_rests() {
        let mut book = PortBook::new(100..=101, REST);
        let both = book.allot(&id(0), &["http", "admin"], at(0));
        assert_eq!(both.ports.len(), 2);
        assert_eq!(book.allot(&id(0), &["http", "admin"], at(1)), both);
        let one = book.allot(&id(0), &["admin"], at(2));
        assert_eq!(one.ports, both.ports[1..]);
        assert_eq!(book.allot(&id(1), &[""], at(3)).without, [""]);
        let rested = 2 + 600;
        assert_eq!(book.allot(&id(1), &[""], at(rested - 1)).without, [""]);
        assert_eq!(
            book.allot(&id(1), &[""], at(rested)).ports[0].resolver_port,
            both.ports[0].resolver_port
        );
    }

    #[test]
    fn on_a_clash_who_came_first_keeps_it() {
        let stored = [PortAllotment {
            name: String::new(),
            resolver_port: 20_000,
        }];
        let mut book = PortBook::new(10_240..=32_767, REST);
        book.enter(&id(0), &stored);
        book.enter(&id(1), &stored);
        assert_eq!(book.allot(&id(0), &[""], at(0)).ports, stored);
        assert_ne!(book.allot(&id(1), &[""], at(0)).ports, stored);
    }

    proptest! {
        #[test]
        fn no_port_is_anybodys_twice(steps in prop::collection::vec((0_usize..6, 0_usize..4, any::<bool>(), 0_i64..900), 1..60)) {
            let mut book = PortBook::new(200..=211, REST);
            let mut now = 0;
            let mut has: BTreeMap<usize, Vec<u16>> = BTreeMap::new();
            let mut gone: BTreeMap<u16, i64> = BTreeMap::new();
            for (who, count, leaves, later) in steps {
                now += later;
                let names: Vec<String> = (0..count).map(|name| name.to_string()).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let before = has.remove(&who).unwrap_or_default();
                let after = if leaves {
                    book.forget(&id(who), at(now));
                    Vec::new()
                } else {
                    let allotted = book.allot(&id(who), &names, at(now));
                    prop_assert_eq!(allotted.ports.len() + allotted.without.len(), count);
                    allotted.ports.iter().map(|port| port.resolver_port).collect()
                };
                for port in &after {
                    prop_assert!((200..=211).contains(port));
                    if !before.contains(port) {
                        prop_assert!(gone.get(port).is_none_or(|since| now - since >= 600));
                    }
                }
                for port in before.iter().filter(|port| !after.contains(port)) {
                    gone.insert(*port, now);
                }
                has.insert(who, after);
                let all: Vec<u16> = has.values().flatten().copied().collect();
                let distinct: BTreeSet<u16> = all.iter().copied().collect();
                prop_assert_eq!(all.len(), distinct.len());
            }
        }
    }
}
