//! Whose key it is. Two watches that ask for one key cannot both write it: the oldest holds it, and the next takes over
//! when that goes. Who only has an older Deployment looking at a key comes behind those whose spec asks for it.

use std::{cmp::Ordering, collections::BTreeMap, fmt};

use super::Claim;

/// A watch's namespace and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Who holds which key.
#[derive(Clone, Debug)]
pub struct Keys<'a>(BTreeMap<&'a str, &'a Claim>);

impl fmt::Display for WatchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl<'a> Keys<'a> {
    /// Settles it.
    pub fn of(claims: &'a [Claim]) -> Self {
        let mut keys: BTreeMap<&str, &Claim> = BTreeMap::new();
        for claim in claims {
            let in_use = claim.in_use.iter().map(String::as_str);
            for key in in_use.chain([claim.key.as_str()]) {
                keys.entry(key)
                    .and_modify(|holder| {
                        if goes_before(claim, holder, key) == Ordering::Less {
                            *holder = claim;
                        }
                    })
                    .or_insert(claim);
            }
        }
        Self(keys)
    }

    /// Every key and who holds it.
    pub fn held(&self) -> impl Iterator<Item = (&'a str, &'a Claim)> {
        self.0.iter().map(|(key, claim)| (*key, *claim))
    }

    /// Who holds the key that this watch asks for, if it is another watch; said in a condition.
    pub fn lost_to(&self, claim: &Claim) -> Option<&'a WatchName> {
        let holder = self.0.get(claim.key.as_str())?;
        (holder.watch != claim.watch).then_some(&holder.watch)
    }
}

fn goes_before(one: &Claim, other: &Claim, key: &str) -> Ordering {
    let rank = |claim: &Claim| (claim.key != key, claim.created.unwrap_or(i64::MAX));
    let by_age = rank(one).cmp(&rank(other));
    by_age.then_with(|| one.watch.cmp(&other.watch))
}
