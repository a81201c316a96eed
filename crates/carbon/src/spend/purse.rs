//! Credit by the slot in which it is earned. An offer may take what is earned in its own slot or before it, and takes the
//! latest first: what is earned earlier is open to more offers, and stays for them. Used with [`super::ranking`].

/// What is left of each slot's credit.
#[derive(Clone, Debug, Default)]
pub struct Purse {
    left: Vec<f64>,
    /// For each slot, one more than the latest slot up to it that may have credit; zero if there is none. Chains are
    /// shortened as they are walked, so that empty slots are skipped at once.
    latest: Vec<u32>,
}

impl Purse {
    /// Forgets all credit and keeps the memory.
    pub fn clear(&mut self) {
        self.left.clear();
        self.latest.clear();
    }

    /// The next slot earns this much.
    pub fn earn(&mut self, credit: f64) {
        self.left.push(credit.max(0.0));
        self.latest
            .push(u32::try_from(self.left.len()).unwrap_or(u32::MAX));
    }

    /// How many slots have earned so far.
    pub fn slots(&self) -> usize {
        self.left.len()
    }

    /// What is left of a slot's credit.
    pub fn left(&self, slot: usize) -> f64 {
        self.left.get(slot).copied().unwrap_or(0.0)
    }

    /// Takes so much, or what there is, for an offer of this slot. Returns what was taken.
    pub fn take(&mut self, slot: usize, wanted: f64) -> f64 {
        let mut missing = wanted;
        let mut at = self.find(slot);
        while let Some(slot) = at {
            let Some(left) = self.left.get_mut(slot) else {
                break;
            };
            if *left > missing {
                *left -= missing;
                return wanted;
            }
            missing -= *left;
            *left = 0.0;
            let before = slot
                .checked_sub(1)
                .and_then(|before| self.latest.get(before).copied());
            if let Some(latest) = self.latest.get_mut(slot) {
                *latest = before.unwrap_or(0);
            }
            if missing <= 0.0 {
                return wanted;
            }
            at = slot.checked_sub(1).and_then(|before| self.find(before));
        }
        wanted - missing
    }

    /// The latest slot up to this one that may have credit.
    fn find(&mut self, mut slot: usize) -> Option<usize> {
        loop {
            let next = usize::try_from(*self.latest.get(slot)?)
                .ok()?
                .checked_sub(1)?;
            if next == slot {
                return Some(slot);
            }
            let beyond = *self.latest.get(next)?;
            *self.latest.get_mut(slot)? = beyond;
            slot = next;
        }
    }
}
