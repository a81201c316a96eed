//! `optimal`, the default: spend credit where it saves most, of all that is known and of what may come.
//!
//! Each slot anew: the slots of the forecast are offers at known prices, what lies beyond is the curve of
//! [`crate::outlook`], and [`crate::spend`] says how much of the credit belongs into the present slot.
//! A wrong plan costs carbon, never the budget: that is kept by [`crate::budget`], whatever is decided here.

use super::{Decision, Policy, View, Why};
use crate::demand::DemandProfile;
use crate::flavour::Flavours;
use crate::outlook::OutlookSettings;
use crate::outlook::futures::Futures;
use crate::outlook::hours::{HOUR, Slots, WEEK, signed};
use crate::outlook::skill::{self, Skill};
use crate::outlook::worth::{Rest, Worth};
use crate::spend::Offer;
use crate::spend::purse::Purse;
use crate::spend::ranking::Ranking;
use crate::unit::{MOST_INTENSE, WHOLE};
use crate::weights::Weights;

/// The policy and what it has learned.
#[derive(Debug)]
pub struct Optimal {
    settings: OutlookSettings,
    demand: DemandProfile,
    /// None if forecasts are believed in full.
    skill: Option<Skill>,
    ranking: Ranking,
    purse: Purse,
    known: Vec<f64>,
    beyond: Beyond,
    /// The curve that will follow it, if one is in the making.
    making: Option<(Beyond, Worth)>,
}

/// How much a decision does for the curve beyond the forecast, as [`Worth::go_on`] counts it: with eight flavours a curve for a
/// week is made by three decisions, a year's by more.
const WORK: usize = 3_700;

/// So many hours are collected in the time of one offer.
const HOURS_PER_WORK: usize = 4;

/// The curve beyond the forecast, kept for some hours.
#[derive(Debug, Default)]
struct Beyond {
    offers: Vec<Offer>,
    made: i64,
    from: i64,
    window_end: i64,
    /// How long it took from the first decision that worked on it to the last, in seconds.
    took: i64,
}

/// What a decision needs to know of the plan.
struct Plan {
    /// Error·request that belongs into the present slot, per request of it.
    spent_per_request: f64,
    /// What one more unit of credit would save.
    price: f64,
}

impl Optimal {
    /// With other settings than the default ones.
    pub fn new(settings: OutlookSettings) -> Self {
        Self {
            settings,
            demand: DemandProfile::default(),
            skill: settings.trust_days.map(Skill::new),
            ranking: Ranking::default(),
            purse: Purse::default(),
            known: Vec::new(),
            beyond: Beyond::default(),
            making: None,
        }
    }

    /// The forecast as a plan can use it: within the window, gaps bridged, nonsense left out. Without any
    /// forecast, as it was a day ago.
    fn read(&mut self, view: &View<'_>) {
        let left = (view.window_end - view.now).div_euclid(view.slot_seconds);
        let left = usize::try_from(left).unwrap_or(0).max(1);
        self.known.clear();
        let sane = |v: &f64| v.is_finite();
        let Some(last) = view.forecast.iter().rposition(sane) else {
            let day = usize::try_from(86_400 / view.slot_seconds)
                .unwrap_or(1)
                .max(1);
            let past = view.seen.get(view.seen.len().saturating_sub(day)..);
            let past = past.unwrap_or_default().iter().filter(|v| sane(v));
            self.known.extend(past.take(left));
            return;
        };
        let mut value = view
            .forecast
            .iter()
            .copied()
            .find(|v| sane(v))
            .unwrap_or(0.0);
        for next in view.forecast.iter().take((last + 1).min(left)) {
            if sane(next) {
                value = next.clamp(0.0, MOST_INTENSE);
            }
            self.known.push(value);
        }
    }

    /// What is said of slots to come is believed as far as such words came true before: a dirty hour that may not come
    /// keeps less credit from the present one, and a clean one that may not come gives less of it away.
    fn doubt(&mut self) {
        let Some((skill, level)) = self.skill.as_ref().zip(skill::level(&self.known)) else {
            return;
        };
        for (lead, value) in self.known.iter_mut().enumerate() {
            *value = level + skill.trust(lead) * (*value - level);
        }
    }

    /// Keeps the curve beyond the forecast fresh, by as much work as one decision has time for.
    fn look_beyond(&mut self, view: &View<'_>, earned: f64) {
        let is_of_use = |beyond: &Beyond| {
            beyond.window_end == view.window_end
                && beyond.made <= view.now
                && beyond.from > view.now
        };
        let has_curve = is_of_use(&self.beyond);
        // One that is long in the making is begun as much earlier: in the mean curves are as old as if each was made at once.
        let kept = self.settings.kept - 2 * self.beyond.took;
        let is_fresh = has_curve && view.now < self.beyond.made + kept;
        let mut work = WORK;
        let going_on = self.making.take().filter(|(to_be, _)| is_of_use(to_be));
        let (to_be, mut worth) = match going_on {
            Some(making) => making,
            None if is_fresh => return,
            None => {
                let slots = Slots {
                    seen: view.seen,
                    known: &self.known,
                    now: view.now,
                    slot_seconds: view.slot_seconds,
                };
                let to_be = Beyond {
                    offers: Vec::new(),
                    made: view.now,
                    from: slots.end(),
                    window_end: view.window_end,
                    took: 0,
                };
                let Some((worth, done)) = self.begin(view, &slots, earned) else {
                    self.beyond = to_be;
                    return;
                };
                work = work.saturating_sub(done).max(1);
                (to_be, worth)
            }
        };
        worth.go_on(work);
        // A part of the futures is better than nothing, but not than a whole curve that is some hours old.
        if worth.is_done() || !has_curve || self.beyond.made == to_be.made {
            self.beyond = Beyond {
                offers: worth.offers(),
                took: view.now - to_be.made,
                ..to_be
            };
        }
        if !worth.is_done() {
            self.making = Some((to_be, worth));
        }
    }

    /// Begins a new curve, if there is anything to look at; and how much work that was.
    fn begin(&self, view: &View<'_>, slots: &Slots<'_>, earned: f64) -> Option<(Worth, usize)> {
        let end = slots.end();
        let hours = usize::try_from((view.window_end - end) / HOUR).unwrap_or(0);
        if hours == 0 {
            return None;
        }
        let futures = Futures::new(slots, hours, &self.settings)?;
        let done = futures.hours() / HOURS_PER_WORK;
        let expect = |at: i64| self.demand.expect(at, view.slot_seconds);
        let known_demand: f64 = (0..self.known.len())
            .map(|t| expect(view.now + view.slot_seconds * signed(t)))
            .sum();
        #[expect(clippy::cast_precision_loss, reason = "a slot's length")]
        let slots_per_hour = HOUR as f64 / view.slot_seconds as f64;
        let mut demand = [0.0; WEEK];
        for (h, demand) in demand.iter_mut().enumerate() {
            *demand = expect(end + HOUR * signed(h)) * slots_per_hour;
        }
        let supply = credit(view.balance) + earned * known_demand;
        let rest = Rest {
            hours,
            demand: &demand,
            earned,
            frontier: view.flavours.frontier(),
            // The balance may grow a little while the curve is kept.
            carried: supply * 1.2,
            sampled_days: self.settings.sampled_days,
        };
        Some((Worth::new(futures, &rest)?, done))
    }

    /// What falls to the present slot when all credit goes where it saves most.
    fn plan(&mut self, view: &View<'_>, earned: f64) -> Plan {
        let usable = (self.beyond.from - view.now).div_euclid(view.slot_seconds);
        let usable = usize::try_from(usable).unwrap_or(0).max(1);
        self.ranking.clear();
        self.purse.clear();
        let mut demand_now = 1.0;
        for (t, intensity) in self.known.iter().enumerate().take(usable) {
            let at = view.now + view.slot_seconds * signed(t);
            // A slot in which nothing is expected still needs an answer for the request that comes anyway.
            let demand = self.demand.expect(at, view.slot_seconds).max(1e-6);
            self.ranking.open(*intensity, demand);
            let mut earnings = earned * demand;
            if t == 0 {
                earnings += credit(view.balance);
                demand_now = demand;
            }
            self.purse.earn(earnings);
        }
        self.ranking.rank();
        let last = self.purse.slots().saturating_sub(1);
        let frontier = view.flavours.frontier();
        let mut beyond = self.beyond.offers.iter().filter(|o| o.price > 0.0);
        let (mut next, mut later) = (self.ranking.next(frontier), beyond.next());
        let (mut spent_now, mut price) = (0.0, None);
        // The present slot has only its own credit and what was saved: when that is gone, it can get no more.
        while price.is_none() || self.purse.left(0) > 0.0 {
            // What is certain comes before what is not.
            let offer = match (next, later) {
                (Some(offer), later) if later.is_none_or(|l| l.price <= offer.price) => {
                    next = self.ranking.next(frontier);
                    offer
                }
                (_, Some(offer)) => {
                    later = beyond.next();
                    *offer
                }
                _ => break,
            };
            let taken = self.purse.take(offer.slot.min(last), offer.room);
            if offer.slot == 0 {
                spent_now += taken;
            }
            if taken < offer.room && price.is_none() {
                price = Some(offer.price);
            }
        }
        Plan {
            spent_per_request: spent_now / demand_now,
            price: price.unwrap_or(0.0),
        }
    }
}

impl Default for Optimal {
    fn default() -> Self {
        Self::new(OutlookSettings::default())
    }
}

impl Policy for Optimal {
    fn name(&self) -> &'static str {
        "optimal"
    }

    fn decide(&mut self, view: &View<'_>) -> Decision {
        let flavours = view.flavours;
        let earned = view.target.fraction() - flavours.least_error();
        self.demand.learn(view.served, view.now, view.slot_seconds);
        if earned <= 0.0 || flavours.frontier().is_empty() {
            return Decision {
                weights: Weights::best_only(flavours.count()),
                shadow_price: None,
                why: Why::NothingToSave,
            };
        }
        if let Some(skill) = &mut self.skill {
            let last = view.seen.last().copied();
            skill.learn(view.now, view.slot_seconds, last, view.forecast);
        }
        self.read(view);
        if self.known.is_empty() {
            return Decision {
                weights: Weights::publish(&shares(flavours, earned)),
                shadow_price: None,
                why: Why::NoForecast,
            };
        }
        self.doubt();
        self.look_beyond(view, earned);
        let plan = self.plan(view, earned);
        let most: f64 = flavours.frontier().iter().map(|step| step.error).sum();
        let per_request = plan.spent_per_request;
        let why = if per_request <= 0.0 {
            Why::CleanerThanLater
        } else if per_request < most * 0.99 {
            Why::AtTheMargin
        } else {
            Why::DirtierThanLater
        };
        Decision {
            weights: Weights::publish(&shares(flavours, per_request)),
            shadow_price: Some(plan.price),
            why,
        }
    }
}

/// The mix of neighbours on the frontier that has this much error more than the best flavour.
pub(crate) fn shares(flavours: &Flavours, mut error: f64) -> Vec<f64> {
    let mut shares = vec![0.0; flavours.count()];
    let mut set = |at: usize, share: f64| {
        if let Some(place) = shares.get_mut(at) {
            *place = share;
        }
    };
    set(0, 1.0);
    let mut at = 0;
    for step in flavours.frontier() {
        if error <= 0.0 {
            break;
        }
        let part = (error / step.error).min(1.0);
        set(at, 1.0 - part);
        set(step.to, part);
        at = step.to;
        error -= step.error;
    }
    shares
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52 millionths")]
fn credit(balance: i64) -> f64 {
    balance.max(0) as f64 / f64::from(WHOLE)
}
