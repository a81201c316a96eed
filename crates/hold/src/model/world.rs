//! What there is: objects, pods, resolvers and two nodes that follow with a delay. One tick is a
//! second.

use weir_api::hold::Phase;

use super::{
    super::{
        Memory, Step,
        facts::{Deletion, Triggers},
    },
    start::Start,
};

/// A node follows before this many ticks have passed; the planner's overlap is longer.
pub(super) const NODE_LAG: u8 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pod {
    Gone,
    Starting,
    Ready,
    /// Still takes connections for so many ticks.
    Ending(u8),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Resolver {
    pub(super) ready: bool,
    pub(super) knows: bool,
}

/// To what a Service leads, as bits: pods and resolvers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) pods: u8,
    pub(super) resolvers: u8,
}

/// What a node follows by itself: proxies that watch slice by slice may see a later change first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Pods,
    Slice,
}

pub(super) const PARTS: [Part; 2] = [Part::Pods, Part::Slice];

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Node {
    pub(super) route: Route,
    /// How long it has been behind: with pods, with our slice. It follows each by itself.
    pub(super) lags: [u8; 2],
    /// It has led somewhere once; before that nothing is promised.
    pub(super) has_led: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct StoredSlice {
    pub(super) resolvers: u8,
    pub(super) version: u32,
    pub(super) mark: Option<i64>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Keda {
    pub(super) version: u32,
    pub(super) paused: bool,
    pub(super) fenced_for: Option<i64>,
}

/// A write of a leader that is one no more, and the version of the ElastiService it was decided on.
#[derive(Clone, Debug)]
pub(super) struct Late {
    pub(super) step: Step,
    pub(super) decided_on: u32,
}

#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) start: Start,
    pub(super) now: i64,
    pub(super) disturbances: u8,
    /// Versions are never used twice.
    pub(super) versions: u32,
    pub(super) phase: Option<(Phase, i64)>,
    pub(super) object_version: u32,
    pub(super) last_scaled_up: Option<i64>,
    pub(super) cut_over_failed: Option<i64>,
    pub(super) deletion: Option<Deletion>,
    pub(super) gone: bool,
    pub(super) triggers: Triggers,
    pub(super) wake_wanted: bool,
    pub(super) replicas: i32,
    pub(super) target_version: u32,
    pub(super) target_generation: i64,
    pub(super) target_fenced_for: Option<i64>,
    pub(super) keda: Option<Keda>,
    pub(super) slice: Option<StoredSlice>,
    pub(super) pods: [Pod; 2],
    /// The pods' own slice: what it lists, and its version.
    pub(super) listed: (u8, u32),
    pub(super) resolvers: [Resolver; 2],
    pub(super) nodes: [Node; 2],
    pub(super) memory: Memory,
    pub(super) late: Option<Late>,
    /// Somebody took away what the Service led to, and it has not been mended yet.
    pub(super) excused: bool,
}

impl World {
    pub(super) fn new(start: Start) -> Self {
        let keda = Keda {
            version: 0,
            paused: false,
            fenced_for: None,
        };
        let resolver = Resolver {
            ready: true,
            knows: start.punctual,
        };
        let mut world = Self {
            start,
            now: 1_000,
            disturbances: start.disturbances,
            versions: 0,
            phase: None,
            object_version: 0,
            last_scaled_up: None,
            cut_over_failed: None,
            deletion: None,
            gone: false,
            triggers: Triggers::Idle,
            wake_wanted: false,
            replicas: start.replicas,
            target_version: 0,
            target_generation: 0,
            target_fenced_for: None,
            keda: start.keda.then_some(keda),
            slice: None,
            pods: [Pod::Gone; 2],
            listed: (0, 0),
            resolvers: [resolver; 2],
            nodes: [Node::default(); 2],
            memory: Memory::default(),
            late: None,
            excused: false,
        };
        if start.replicas > 0 {
            world.pods[0] = Pod::Ready;
        }
        for node in 0..2 {
            world.nodes[node].route = world.route_for(node);
        }
        world
    }

    pub(super) fn version(&mut self) -> u32 {
        self.versions += 1;
        self.versions
    }

    pub(super) fn scale(&mut self, replicas: i32) {
        if self.replicas != replicas {
            self.replicas = replicas;
            self.target_version = self.version();
            self.target_generation += 1;
        }
    }

    /// Whoever does it.
    pub(super) fn unpause(&mut self) {
        let version = self.version();
        if let Some(keda) = self.keda.as_mut().filter(|keda| keda.paused) {
            keda.paused = false;
            keda.version = version;
        }
    }

    /// Whether the status says that requests go to resolvers.
    pub(super) fn is_proxied(&self) -> bool {
        let phase = self.phase.map(|(phase, _)| phase);
        phase.is_some_and(|phase| phase != Phase::Serving)
    }

    /// Controllers write down how things are, which asks nothing of anybody.
    pub(super) fn write_statuses(&mut self) {
        self.target_version = self.version();
        let version = self.version();
        if let Some(keda) = &mut self.keda {
            keda.version = version;
        }
    }

    /// What the workload's controller does: it has as many pods as it should.
    pub(super) fn keep_pods(&mut self) {
        let active = |pod: &Pod| matches!(pod, Pod::Starting | Pod::Ready);
        let mut surplus = i32::try_from(self.pods.iter().filter(|pod| active(pod)).count())
            .unwrap_or_default()
            - self.replicas;
        let known = self.nodes[0].route.pods | self.nodes[1].route.pods;
        for (slot, pod) in self.pods.iter_mut().enumerate() {
            // An address that a node still has is not given out again.
            let free = *pod == Pod::Gone && known & (1 << slot) == 0;
            if surplus < 0 && free {
                *pod = Pod::Starting;
                surplus += 1;
            } else if surplus > 0 && active(pod) {
                *pod = match (*pod, self.start.pre_stop) {
                    (Pod::Ready, ticks @ 1..) => Pod::Ending(ticks),
                    _ => Pod::Gone,
                };
                surplus -= 1;
            }
        }
    }

    pub(super) fn list_pods(&mut self) {
        let ready = self.route_for(1).pods;
        if self.listed.0 != ready {
            self.listed = (ready, self.version());
        }
    }

    /// What the API server says the Service leads to, as this node will have it.
    pub(super) fn route_for(&self, node: usize) -> Route {
        let mut route = Route::default();
        for (slot, pod) in self.pods.iter().enumerate() {
            if *pod == Pod::Ready {
                route.pods |= 1 << slot;
            }
        }
        if let Some(slice) = self.slice
            && !(self.start.stuck_node && node == 0)
        {
            route.resolvers = slice.resolvers;
        }
        route
    }

    pub(super) fn is_behind(&self, node: usize, part: Part) -> bool {
        let (has, due) = (self.nodes[node].route, self.route_for(node));
        match part {
            Part::Pods => has.pods != due.pods,
            Part::Slice => has.resolvers != due.resolvers,
        }
    }

    pub(super) fn follow(&mut self, node: usize, part: Part) {
        let due = self.route_for(node);
        let node = &mut self.nodes[node];
        node.lags[part as usize] = 0;
        match part {
            Part::Pods => node.route.pods = due.pods,
            Part::Slice => node.route.resolvers = due.resolvers,
        }
    }

    /// A tick passes only when no node is late.
    pub(super) fn may_tick(&self) -> bool {
        let late = |node: usize, part: Part| {
            self.is_behind(node, part) && self.nodes[node].lags[part as usize] >= NODE_LAG
        };
        !(0..2).any(|node| PARTS.iter().any(|part| late(node, *part)))
    }

    pub(super) fn tick(&mut self) {
        self.now += 1;
        if self.start.busy_status {
            self.write_statuses();
        }
        for node in 0..2 {
            for part in PARTS {
                let behind = self.is_behind(node, part);
                let lag = &mut self.nodes[node].lags[part as usize];
                *lag = if behind { *lag + 1 } else { 0 };
            }
        }
        for pod in &mut self.pods {
            if let Pod::Ending(left) = *pod {
                *pod = if left > 1 {
                    Pod::Ending(left - 1)
                } else {
                    Pod::Gone
                };
            }
        }
        // Requests that were held have been served.
        if self.pods.contains(&Pod::Ready) {
            self.wake_wanted = false;
        }
    }

    pub(super) fn usable(&self) -> u8 {
        let bit = |(slot, resolver): (usize, &Resolver)| {
            u8::from(resolver.ready && resolver.knows) << slot
        };
        self.resolvers.iter().enumerate().map(bit).sum()
    }
}
