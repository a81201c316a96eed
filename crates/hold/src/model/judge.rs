//! What must never be.
//!
//! On every node the Service leads to a pod that takes connections or to a ready resolver that knows
//! it, from the first moment at which it did. Excused, until it is mended, is only what somebody else
//! broke, and only if no other way was there at that moment:
//! - the target was scaled to zero by hand, or a pod crashed, and a node led to no usable resolver;
//! - a resolver died that was the only one, and the pods were gone or about to go;
//! - our slice was deleted by hand, likewise;
//! - a deposed leader's removal of the slice arrived after the pods, which it had seen, crashed or
//!   were scaled away by hand; never in Asleep, nor in a drain that has written its slice;
//! - the ElastiService is being deleted, and no pod started for as long as a request is held;
//! - the ElastiService is gone, or goes with `on-delete: leave`.

use std::fmt;

use weir_api::hold::Phase;

use super::{
    super::{Step, facts::Deletion},
    act::Act,
    world::{Pod, Route, World},
};

/// What went wrong, and how it came to that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) what: String,
    pub(super) path: Vec<Act>,
}

impl Fault {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            path: Vec::new(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after {:?}", self.what, self.path)
    }
}

impl World {
    /// Judges the state after something has happened, and takes note of what has been mended.
    pub(super) fn judge(&mut self) -> Result<(), Fault> {
        if self.gone || self.deletion == Some(Deletion::Leave) {
            return Ok(());
        }
        if self.leads_for_good() {
            self.excused = false;
        }
        let usable = self.usable();
        for node in 0..2 {
            let route = self.nodes[node].route;
            let leads = self.leads(route);
            if !leads && self.nodes[node].has_led && !self.excused {
                return Err(Fault::new(format!("node {node} leads nowhere: {self:?}")));
            }
            self.nodes[node].has_led |= leads;
            let paused = self.keda.is_some_and(|keda| keda.paused);
            if paused && route.resolvers & usable == 0 && !self.excused {
                return Err(Fault::new(format!(
                    "paused, but node {node} is not cut over"
                )));
            }
        }
        Ok(())
    }

    /// After somebody else took something away.
    pub(super) fn excuse_if_broken(&mut self) {
        self.excused |= !self.leads_for_good();
    }

    /// What the living leader must not do, whatever comes of it.
    pub(super) fn check_order(&self, step: &Step) -> Result<(), Fault> {
        let paused = self.keda.is_some_and(|keda| keda.paused);
        match step {
            Step::RemoveSlice { .. }
                if self.replicas == 0 && self.deletion != Some(Deletion::Leave) =>
            {
                Err(Fault::new("the slice is removed at zero"))
            }
            Step::RemoveFinalizer if paused || self.slice.is_some() => {
                Err(Fault::new("let go, and something of ours is left"))
            }
            // A resolver forgets it at once, and a node that still leads to one leads nowhere.
            Step::RemoveFinalizer
                if self.deletion != Some(Deletion::Leave)
                    && self.nodes.iter().any(|node| node.route.resolvers != 0) =>
            {
                Err(Fault::new("let go, and a node leads to a resolver"))
            }
            Step::ScaleUp { .. } if paused => Err(Fault::new("scaled up while paused")),
            Step::ScaleToZero { .. } | Step::PauseAutoscaler { .. }
                if self.phase.map(|(phase, _)| phase) != Some(Phase::Draining) =>
            {
                Err(Fault::new("put to sleep outside Draining"))
            }
            _ => Ok(()),
        }
    }

    /// The pods will go whatever happens: the autoscaler was told, or the write is on its way.
    fn goes_to_zero(&self) -> bool {
        let keda = self.keda;
        let late = match self.late.as_ref().map(|late| &late.step) {
            Some(Step::ScaleToZero { version }) => version.0 == self.target_version.to_string(),
            Some(Step::PauseAutoscaler { version }) => {
                keda.is_some_and(|keda| keda.version.to_string() == version.0)
            }
            _ => false,
        };
        late || keda.is_some_and(|keda| keda.paused)
    }

    fn leads(&self, route: Route) -> bool {
        let takes = |slot: &usize| matches!(self.pods[*slot], Pod::Ready | Pod::Ending(_));
        let pods = (0..2).filter(|slot| route.pods & (1 << slot) != 0);
        route.resolvers & self.usable() != 0 || pods.into_iter().any(|slot| takes(&slot))
    }

    /// Every node leads somewhere that is still there when it has followed everything.
    fn leads_for_good(&self) -> bool {
        (0..2).all(|node| {
            let (has, due) = (self.nodes[node].route, self.route_for(node));
            let pods = has.pods & due.pods != 0 && !self.goes_to_zero();
            pods || has.resolvers & due.resolvers & self.usable() != 0
        })
    }
}
