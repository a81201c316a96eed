//! A policy against a trace: the same game as in production, request by request, as a pure function.

mod audit;
mod serve;

use crate::budget::{Account, Windows};
use crate::flavour::Flavours;
use crate::forecast::Forecaster;
use crate::optimum::{self, Known};
use crate::policy::{Decision, Policy, View};
use crate::trace::Trace;
use crate::unit::ErrorRate;
use audit::Audit;
use serve::{Desk, Served};

/// The game.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// How the grid turns out.
    pub trace: &'a Trace,
    /// What was observed before the first slot, ending where the trace begins; NaN where it was not.
    pub history: &'a [f64],
    /// What is known in advance.
    pub forecaster: Forecaster<'a>,
    /// Requests of each slot; unknown to the policy until the slot is over.
    pub demand: &'a [u64],
    /// What there is to choose from.
    pub flavours: &'a Flavours,
    /// The mean error that is allowed.
    pub target: ErrorRate,
    /// Over which windows.
    pub windows: Windows,
}

/// How a policy fared. Emissions in intensity × cost × requests: grams when cost is in kWh.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// As it was named.
    pub policy: &'static str,
    /// Emitted.
    pub emitted: f64,
    /// Mean error over all requests.
    pub mean_error: f64,
    /// The highest running mean error within a window, after any request.
    pub max_running_error: f64,
    /// Requests after which the running mean error of the window was above the target.
    pub budget_violations: u64,
    /// Requests in all.
    pub requests: u64,
    /// The last decision, and when it was taken.
    pub last: Option<Taken>,
    /// For each slot, when asked for.
    pub series: Vec<Point>,
    /// Each decision that differs from the one before it, when asked for.
    pub changes: Vec<Taken>,
}

/// A decision that was taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// At the start of this slot.
    pub at: i64,
    /// What, and why.
    pub decision: Decision,
}

/// What is kept of a run besides its sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// [`Outcome::series`].
    pub series: bool,
    /// [`Outcome::changes`].
    pub changes: bool,
}

/// One slot of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Mean error of its requests, if it had any.
    pub error: f64,
    /// Emitted in it.
    pub emitted: f64,
    /// What the account had at its end, in error·requests.
    pub balance: f64,
}

/// What policies are measured against, in the same unit as [`Outcome::emitted`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Yardsticks {
    /// Emitted if the best flavour answered everything.
    pub baseline: f64,
    /// Saved by the best plan that is never in debt.
    pub fair: f64,
    /// Saved by the best plan that may borrow within the window.
    pub free: f64,
    /// Saved by a constant mix of the same error.
    pub constant_mix: f64,
}

/// Plays the policy against the trace: behind the account, unless the policy is one that runs without.
pub fn run(setup: &Setup<'_>, policy: &mut dyn Policy, keep: Keep) -> Outcome {
    let trace = setup.trace;
    let mut seen = setup.history.to_vec();
    let before = seen.len();
    seen.extend_from_slice(trace.values());
    let mut account = Account::new(setup.windows, trace.start());
    let mut audit = Audit::new(setup.target);
    let mut desk = Desk::new(setup.flavours, setup.target);
    let mut outcome = Outcome {
        policy: policy.name(),
        ..Outcome::default()
    };
    let mut forecast = Vec::new();
    let mut last_error = None;
    let mut now = trace.start();
    for (t, intensity) in trace.values().iter().enumerate() {
        let requests = setup.demand.get(t).copied().unwrap_or(0);
        account.advance(now);
        audit.window(account.since());
        let past = seen.get(..before + t).unwrap_or_default();
        setup.forecaster.look(trace, t, past, &mut forecast);
        let decision = policy.decide(&View {
            now,
            slot_seconds: trace.slot_seconds(),
            window_end: setup.windows.end(now).min(trace.end()),
            balance: account.available(),
            target: setup.target,
            flavours: setup.flavours,
            forecast: &forecast,
            seen: past,
            served: setup
                .demand
                .get(..t.min(setup.demand.len()))
                .unwrap_or_default(),
            last_error,
        });
        let Served { cost, error } = if policy.is_guarded() {
            desk.slot(&mut account, &mut audit, &decision.weights, requests)
        } else {
            desk.unguarded(&mut audit, &decision.weights, requests)
        };
        outcome.emitted += intensity * cost;
        outcome.requests += requests;
        last_error = (requests > 0).then(|| error / to_float(requests));
        if keep.series {
            outcome.series.push(Point {
                error: if requests > 0 {
                    error / to_float(requests)
                } else {
                    f64::NAN
                },
                emitted: intensity * cost,
                balance: micro(account.available()),
            });
        }
        outcome.took(now, decision, keep.changes);
        now += trace.slot_seconds();
    }
    let verdict = audit.verdict();
    outcome.mean_error = verdict.mean_error;
    outcome.max_running_error = verdict.max_running_error;
    outcome.budget_violations = verdict.violations;
    outcome
}

impl Outcome {
    fn took(&mut self, at: i64, decision: Decision, keep: bool) {
        let is_new = self.last.as_ref().is_none_or(|last| {
            last.decision.weights != decision.weights || last.decision.why != decision.why
        });
        let taken = Taken { at, decision };
        if keep && is_new {
            self.changes.push(taken.clone());
        }
        self.last = Some(taken);
    }
}

/// The yardsticks of a game; the same for all policies.
pub fn measure(setup: &Setup<'_>) -> Yardsticks {
    let trace = setup.trace;
    let target = setup.target.fraction();
    let mix = optimum::constant_mix(setup.flavours, target);
    let mut sticks = Yardsticks::default();
    let mut window: Vec<Known> = Vec::new();
    let mut now = trace.start();
    let mut since = setup.windows.start(now);
    let mut close = |window: &mut Vec<Known>| {
        sticks.fair += optimum::fair(window, setup.flavours, target);
        sticks.free += optimum::free(window, setup.flavours, target);
        for slot in window.iter() {
            let weight = slot.intensity * slot.demand;
            sticks.baseline += weight * setup.flavours.best_cost();
            sticks.constant_mix += weight * mix;
        }
        window.clear();
    };
    for (t, intensity) in trace.values().iter().enumerate() {
        if setup.windows.start(now) != since {
            since = setup.windows.start(now);
            close(&mut window);
        }
        window.push(Known {
            intensity: *intensity,
            demand: to_float(setup.demand.get(t).copied().unwrap_or(0)),
        });
        now += trace.slot_seconds();
    }
    close(&mut window);
    sticks
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn to_float(count: u64) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_precision_loss,
    reason = "credit far below 2^52 millionths"
)]
fn micro(amount: i64) -> f64 {
    amount as f64 / f64::from(crate::unit::WHOLE)
}
