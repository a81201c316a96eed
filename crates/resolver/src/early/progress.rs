//! How far one container is: which of its probes is to be asked next, and whether all that the kubelet would ask has
//! succeeded in its present run.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use weir_api::hold::defaults::EARLY_READINESS_INTERVAL;

use super::machine::Outcome;
use crate::pod::{Check, ContainerView, Probe};

/// Who cannot even be reached is asked so often.
const UNREACHABLE_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Progress {
    /// What follows is of this run alone.
    run: Option<Arc<str>>,
    /// When it was heard that it runs: not before it did, whatever the clocks say.
    since: Instant,
    stage: Stage,
    successes: u32,
    failures: u32,
    /// Not asked sooner.
    not_before: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Until the startup probe has succeeded nothing else is asked.
    Startup,
    Readiness,
    Passed,
}

impl Progress {
    pub(super) fn new(view: &ContainerView, now: Instant) -> Self {
        let mut new = Self {
            run: view.run.clone(),
            since: now,
            stage: Stage::Startup,
            successes: 0,
            failures: 0,
            not_before: now,
        };
        new.start(view);
        new
    }

    /// The kubelet has said something. Says whether what is under way was asked for nothing: of the last run, or of a probe
    /// that is no longer of interest.
    pub(super) fn hear(&mut self, view: &ContainerView, now: Instant) -> bool {
        if self.run != view.run {
            *self = Self::new(view, now);
            return true;
        }
        self.start(view)
    }

    /// Goes on where there is nothing to wait for, or where the kubelet has seen it start. Says whether it did.
    fn start(&mut self, view: &ContainerView) -> bool {
        let is_seen = view.is_started && view.readiness.is_some();
        let goes_on = self.stage == Stage::Startup && (view.startup.is_none() || is_seen);
        if goes_on {
            self.stage = Stage::Readiness;
        }
        goes_on
    }

    /// Whether it was asked here, and all has succeeded.
    pub(super) fn has_passed(&self) -> bool {
        self.stage == Stage::Passed
    }

    /// Whether the kubelet says so, or it would if it asked now.
    pub(super) fn is_ready(&self, view: &ContainerView) -> bool {
        self.run.is_some() && (view.is_ready || self.has_passed())
    }

    /// What is to be asked, and not before when; none: there is nothing that could be. Of whom the kubelet says that it is
    /// ready is asked too: that word is here some time before the slice that follows from it.
    pub(super) fn question(&self, view: &ContainerView) -> Option<(Arc<Probe>, Instant)> {
        self.run.as_ref()?;
        let probe = self.probe(view)?;
        let delayed = if view.is_ready {
            self.since
        } else {
            self.since + probe.initial_delay
        };
        Some((Arc::clone(probe), self.not_before.max(delayed)))
    }

    /// What was asked at this time has ended so.
    pub(super) fn answered(&mut self, view: &ContainerView, outcome: Outcome, asked: Instant) {
        let Some(probe) = self.probe(view).cloned() else {
            return;
        };
        if outcome == Outcome::Succeeded {
            self.failures = 0;
            self.successes = self.successes.saturating_add(1);
            if self.stage != Stage::Passed && self.successes >= probe.successes {
                self.pass(view);
            }
            // Several successes are to show that it stays so: they count as far apart as the kubelet's would be.
            let pause = match self.stage {
                Stage::Readiness if self.successes == 0 => Duration::ZERO,
                _ => probe.period,
            };
            self.not_before = asked + pause;
            return;
        }
        self.successes = 0;
        self.failures = self.failures.saturating_add(1);
        let mut pause = match outcome {
            Outcome::Unreachable => UNREACHABLE_PAUSE,
            Outcome::Succeeded | Outcome::Failed => EARLY_READINESS_INTERVAL,
        };
        if self.stage == Stage::Passed {
            if self.failures >= probe.failures {
                self.stage = Stage::Readiness;
            } else {
                pause = probe.period;
            }
        }
        self.not_before = asked + pause;
    }

    fn pass(&mut self, view: &ContainerView) {
        self.stage = match self.stage {
            Stage::Startup if view.readiness.is_some() => Stage::Readiness,
            _ => Stage::Passed,
        };
        self.successes = 0;
    }

    fn probe<'v>(&self, view: &'v ContainerView) -> Option<&'v Arc<Probe>> {
        let check = match self.stage {
            Stage::Startup => view.startup.as_ref(),
            // Where the startup probe is all there is, it also says whether it is still well.
            Stage::Readiness | Stage::Passed => view.readiness.as_ref().or(view.startup.as_ref()),
        };
        match check? {
            Check::Ask(probe) => Some(probe),
            Check::Kubelet => None,
        }
    }
}
