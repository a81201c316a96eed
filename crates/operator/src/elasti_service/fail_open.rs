//! Without a resolver nobody holds requests: then sleeping targets are woken, the most recently used first, and not all at
//! once. A state machine without a clock.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap, HashSet},
};

use jiff::Timestamp;
use weir_role::cluster::ObjectId;

/// Who is to be woken because there is no resolver.
#[derive(Debug, Default)]
pub struct FailOpen {
    waiting: BTreeSet<(Reverse<Option<Timestamp>>, ObjectId)>,
    last_used: HashMap<ObjectId, Option<Timestamp>>,
    granted: HashSet<ObjectId>,
}

impl FailOpen {
    /// Whether it may be woken now; if not, it stands in line from now on.
    pub fn may_wake(&mut self, id: &ObjectId, last_used: Option<Timestamp>) -> bool {
        if self.granted.remove(id) {
            return true;
        }
        self.forget(id);
        self.waiting.insert((Reverse(last_used), id.clone()));
        self.last_used.insert(id.clone(), last_used);
        false
    }

    /// It does not want to be woken for this any more.
    pub fn forget(&mut self, id: &ObjectId) {
        if let Some(last_used) = self.last_used.remove(id) {
            self.waiting.remove(&(Reverse(last_used), id.clone()));
        }
        self.granted.remove(id);
    }

    /// Lets the next one wake. Called so often a second as targets may be woken.
    pub fn grant(&mut self) -> Option<ObjectId> {
        let (_, id) = self.waiting.pop_first()?;
        self.last_used.remove(&id);
        self.granted.insert(id.clone());
        Some(id)
    }

    /// Whether anybody stands in line.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_recently_used_goes_first_and_each_once() {
        let id = |name: &str| ObjectId::new("shop", name);
        let at = |seconds| Timestamp::from_second(seconds).ok();
        let mut line = FailOpen::default();
        for (name, last) in [
            ("old", at(1)),
            ("never", None),
            ("new", at(9)),
            ("gone", at(5)),
        ] {
            assert!(!line.may_wake(&id(name), last));
        }
        // Asked again it does not stand there twice, and keeps its place.
        assert!(!line.may_wake(&id("old"), at(1)));
        line.forget(&id("gone"));
        for name in ["new", "old", "never"] {
            assert_eq!(line.grant(), Some(id(name)));
            assert!(line.may_wake(&id(name), None));
        }
        assert!(line.is_idle() && line.grant().is_none());
    }
}
