//! One way to zero and back, found in what was seen. A function of values.

use super::log::{Fact, Noted};

/// The moments of one way to zero and back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Passage {
    /// No replicas were wanted any more.
    pub(super) slept: f64,
    /// `/scale` was written: replicas were wanted again.
    pub(super) scaled: f64,
    /// A new pod was ready.
    pub(super) ready: f64,
    /// The operator said that requests go to the pods again.
    pub(super) serving: f64,
}

impl Passage {
    /// What the pod itself took, which nobody can make shorter for it.
    pub(super) fn pod_start(&self) -> f64 {
        self.ready - self.scaled
    }
}

/// When it went to zero, at this moment or later.
pub(super) fn slept(notes: &[Noted], from: f64) -> Result<f64, &'static str> {
    first(notes, from, |fact| *fact == Fact::Replicas(0)).ok_or("the target is scaled to zero")
}

/// The first passage that begins at this moment or later; or what of it was not seen yet.
pub(super) fn find(notes: &[Noted], from: f64) -> Result<Passage, &'static str> {
    let slept = slept(notes, from)?;
    let is_wanted = |fact: &Fact| matches!(fact, Fact::Replicas(1..));
    let scaled = first(notes, slept, is_wanted).ok_or("the target is woken")?;
    let is_new_and_ready = |fact: &Fact| match fact {
        Fact::Pod {
            name,
            is_ready: true,
        } => !was_ready(notes, name, slept),
        _ => false,
    };
    let ready = first(notes, scaled, is_new_and_ready).ok_or("a new pod is ready")?;
    let is_serving = |fact: &Fact| *fact == Fact::Status { is_serving: true };
    let serving = first(notes, ready, is_serving).ok_or("the operator says that it serves")?;
    Ok(Passage {
        slept,
        scaled,
        ready,
        serving,
    })
}

fn first(notes: &[Noted], from: f64, is_meant: impl Fn(&Fact) -> bool) -> Option<f64> {
    let mut after = notes.iter().filter(|(at, _)| *at >= from);
    after.find(|(_, fact)| is_meant(fact)).map(|(at, _)| *at)
}

/// Pods that are on their way out may be told of once more while the new one starts.
fn was_ready(notes: &[Noted], pod: &str, before: f64) -> bool {
    notes.iter().any(|(at, fact)| {
        *at < before && matches!(fact, Fact::Pod { name, is_ready: true } if name == pod)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, is_ready: bool) -> Fact {
        let name = name.to_owned();
        Fact::Pod { name, is_ready }
    }

    fn serving(is_serving: bool) -> Fact {
        Fact::Status { is_serving }
    }

    /// A cycle before, and the one that is meant.
    fn story() -> Vec<Noted> {
        vec![
            (1.0, Fact::Replicas(0)),
            (2.0, Fact::Replicas(1)),
            (3.0, pod("old", true)),
            (4.0, serving(true)),
            (10.0, Fact::Replicas(0)),
            (10.5, serving(false)),
            (11.0, Fact::Replicas(1)),
            (11.1, pod("old", true)),
            (11.2, pod("new", false)),
            (12.5, pod("new", true)),
            (15.0, serving(true)),
        ]
    }

    #[test]
    fn the_passage_that_is_meant_is_found() {
        let found = find(&story(), 5.0).unwrap();
        let expected = Passage {
            slept: 10.0,
            scaled: 11.0,
            ready: 12.5,
            serving: 15.0,
        };
        assert_eq!(found, expected);
        assert!((found.pod_start() - 1.5).abs() < 1e-9);
    }

    #[test]
    fn what_was_not_seen_yet_is_told() {
        let story = story();
        for (seen, missing) in [
            (4, "scaled to zero"),
            (6, "woken"),
            (9, "new pod"),
            (10, "serves"),
        ] {
            let told = find(&story[..seen], 5.0).unwrap_err();
            assert!(told.contains(missing), "{seen}: {told}");
        }
    }
}
