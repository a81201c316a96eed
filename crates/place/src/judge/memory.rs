//! What a watch remembers of one node, and how readings change it: two thresholds, equal readings in a row, and what
//! becomes of a node that says nothing.

use std::time::Duration;

use weir_api::place::OnUnknown;

use super::{State, Why};
use crate::{
    measure::{Figure, Reason, Unknown},
    moment::Moment,
    node::NodeFacts,
    settings::Settings,
};

/// Readings do not come to the millisecond: so much of an interval makes another reading.
const ENOUGH: f64 = 0.9;
/// A full window after a start needs so many intervals more at most: one to begin it, one that is late.
const LATE_INTERVALS: u32 = 2;

/// What is remembered of one node.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Memory {
    uid: String,
    /// What its own readings say.
    pub(super) own: State,
    /// Why they do.
    pub(super) why: Why,
    /// What its label says, or is about to.
    pub(super) shown: State,
    /// When that last changed, or was found.
    pub(super) since: Moment,
    /// Whether it had no label and has had no figure yet: the first one decides by itself.
    is_unmeasured: bool,
    /// Whether its label is still the one that new nodes get: the dwell time does not hold back its first verdict.
    is_untouched: bool,
    /// The last figure, unless it is too old.
    pub(super) load: Option<f64>,
    /// The last figure, however old.
    pub(super) last_load: Option<f64>,
    /// Readings since the label last changed.
    pub(super) readings: u32,
    /// What the last readings said, and how many of them.
    streak: Option<(State, u32)>,
    /// When the last reading that counted ended.
    counted: Option<Moment>,
    /// When it last had a figure; before the first one, when it was found.
    heard: Moment,
}

impl Memory {
    /// A node that was not known: its label is its state, and without one it is new and unfit. The dwell time begins
    /// now, as nobody knows when the label was written.
    pub(super) fn found(node: &NodeFacts, key: &str, now: Moment) -> Self {
        let label = node.labels.get(key);
        let state = label.and_then(|value| State::of_label(value));
        Self {
            uid: node.uid.clone(),
            own: state.unwrap_or(State::Unfit),
            why: if state.is_some() {
                Why::Found
            } else {
                Why::New
            },
            shown: state.unwrap_or(State::Unfit),
            since: now,
            is_unmeasured: state.is_none(),
            is_untouched: state.is_none(),
            load: None,
            last_load: None,
            readings: 0,
            streak: None,
            counted: None,
            heard: now,
        }
    }

    pub(super) fn is_of(&self, node: &NodeFacts) -> bool {
        self.uid == node.uid
    }

    /// Takes a figure in, or that there is none.
    pub(super) fn hear(
        &mut self,
        figure: &Result<Figure, Unknown>,
        settings: &Settings,
        now: Moment,
    ) {
        if let Ok(figure) = figure {
            self.heard = self.heard.max(figure.at);
            self.load = Some(figure.percent);
            self.last_load = self.load;
            let interval = settings.interval.mul_f64(ENOUGH);
            let is_another = |last: Moment| figure.at.since(last) >= interval || figure.at < last;
            if self.counted.is_none_or(is_another) {
                self.counted = Some(figure.at);
                self.readings = self.readings.saturating_add(1);
                self.read(figure.percent, settings);
            }
        }
        if now.since(self.heard) > self.patience(figure, settings) {
            self.miss(settings.on_unknown);
        }
    }

    /// One reading more.
    fn read(&mut self, percent: f64, settings: &Settings) {
        let says = if percent > settings.max_percent {
            Some(State::Unfit)
        } else if percent < settings.clear_percent {
            Some(State::Fit)
        } else {
            None
        };
        let before = self.streak.filter(|(state, _)| Some(*state) == says);
        self.streak = says.map(|state| {
            (
                state,
                before.map_or(1, |(_, count)| count.saturating_add(1)),
            )
        });
        if self.is_unmeasured {
            self.is_unmeasured = false;
            // Whoever is not above the limit when first seen has done nothing to be kept off.
            self.own = says.unwrap_or(State::Fit);
            self.why = Why::Measured;
            return;
        }
        let needed = |state| match state {
            State::Fit => settings.samples_fit,
            State::Unfit => settings.samples_unfit,
        };
        if let Some((state, count)) = self.streak
            && count >= needed(state)
        {
            self.own = state;
            self.why = Why::Measured;
        }
    }

    /// There have been no figures for too long.
    fn miss(&mut self, on_unknown: OnUnknown) {
        self.load = None;
        self.streak = None;
        match on_unknown {
            OnUnknown::Keep if self.is_unmeasured => {}
            OnUnknown::Keep => self.why = Why::Unknown,
            OnUnknown::Unfit => {
                self.own = State::Unfit;
                self.why = Why::Unknown;
            }
            OnUnknown::Fit => {
                self.own = State::Fit;
                self.why = Why::Unknown;
            }
        }
    }

    /// How long a node may be without a figure. One without any yet, or whose counters began anew, gets the time of a
    /// full window at least: else a new process would change labels before it has looked.
    fn patience(&self, figure: &Result<Figure, Unknown>, settings: &Settings) -> Duration {
        let begins_anew =
            matches!(figure, Err(unknown) if unknown.reason == Reason::WindowTooShort);
        if self.counted.is_some() && !begins_anew {
            return settings.max_sample_age;
        }
        let window = settings.window + settings.interval * LATE_INTERVALS;
        settings.max_sample_age.max(window)
    }

    /// Whether its label may change.
    pub(super) fn may_change(&self, min_dwell: Duration, now: Moment) -> bool {
        self.is_untouched || now.since(self.since) >= min_dwell
    }

    /// What its label should say, as far as it alone is concerned.
    pub(super) fn next(&self, min_dwell: Duration, now: Moment) -> State {
        if self.may_change(min_dwell, now) {
            self.own
        } else {
            self.shown
        }
    }

    /// This is what its label says from now on.
    pub(super) fn show(&mut self, state: State, now: Moment) {
        if self.why != Why::New {
            self.is_untouched = false;
        }
        if self.shown != state {
            self.shown = state;
            self.since = now;
            self.readings = 0;
            self.is_untouched = false;
        }
    }
}
