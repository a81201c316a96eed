//! What credit that is carried over the end of the forecast will save: a falling curve, as offers.
//!
//! Each future is solved by itself, and the curve is the mean over them. That can be much work, with many flavours and a long
//! window, and a decision must be quick: so futures are played as far as a decision has time, and the next one goes on.
//! Work is counted, not timed: the same input gives the same decisions on any machine.

use super::futures::{Future, Futures};
use super::hours::{DAY, WEEK};
use crate::flavour::Step;
use crate::spend::Offer;
use crate::spend::purse::Purse;
use crate::spend::ranking::Ranking;

/// The slot number of offers that lie beyond the forecast.
pub const BEYOND: usize = usize::MAX;

/// In how many pieces the curve is cut.
const PIECES: usize = 40;

/// In how many rounds futures are played, each with every so many-th: what is played first is spread over all of them.
const ROUNDS: usize = 4;

/// How the rest of the window is played.
#[derive(Clone, Copy, Debug)]
pub struct Rest<'a> {
    /// Hours from the end of the forecast to the end of the window.
    pub hours: usize,
    /// Expected requests by hour for a week, from the end of the forecast on; then again.
    pub demand: &'a [f64; WEEK],
    /// Credit that a request earns.
    pub earned: f64,
    /// The rungs on which it can be spent.
    pub frontier: &'a [Step],
    /// The most credit that can be carried over.
    pub carried: f64,
    /// How many days are looked at; more are sampled evenly.
    pub sampled_days: usize,
}

/// A curve in the making.
#[derive(Clone, Debug)]
pub struct Worth {
    futures: Futures,
    days: Vec<Day>,
    frontier: Vec<Step>,
    piece: f64,
    /// By piece, the sum over the futures that were played, each by its weight.
    prices: [f64; PIECES],
    weight: f64,
    played: usize,
    ranking: Ranking,
    purse: Purse,
}

/// A day that is looked at, the same for all futures.
#[derive(Clone, Debug)]
struct Day {
    number: usize,
    /// Which part of a gap in level is left.
    near: f64,
    /// By the hour, requests and what they earn.
    hours: Vec<(f64, f64)>,
}

impl Worth {
    /// Begins; none when the window ends with the forecast, or there is nothing to carry.
    pub fn new(futures: Futures, rest: &Rest<'_>) -> Option<Self> {
        if rest.hours == 0 || rest.carried <= 0.0 {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "a few pieces")]
        let piece = rest.carried / PIECES as f64;
        Some(Self {
            days: rest.days(&futures),
            futures,
            frontier: rest.frontier.to_vec(),
            piece,
            prices: [0.0; PIECES],
            weight: 0.0,
            played: 0,
            ranking: Ranking::default(),
            purse: Purse::default(),
        })
    }

    /// Plays futures, at least one, as long as another one like the last fits into so much work: offers looked at, and
    /// hours laid out, which count half.
    pub fn go_on(&mut self, work: usize) {
        let (mut done, mut last) = (0, 0);
        while !self.is_done() && (done == 0 || done + last <= work) {
            if let Some(number) = turn(self.played, self.futures.count()) {
                last = self.play(number);
                done += last;
            }
            self.played += 1;
        }
    }

    /// True when all futures were played.
    pub fn is_done(&self) -> bool {
        self.played >= ROUNDS * self.futures.count().div_ceil(ROUNDS)
    }

    /// The mean over the futures played so far of what each further piece of credit saves.
    pub fn offers(&self) -> Vec<Offer> {
        let offer = |price| Offer {
            price: if self.is_done() {
                price
            } else {
                price / self.weight
            },
            room: self.piece,
            slot: BEYOND,
        };
        if self.weight > 0.0 {
            self.prices.into_iter().map(offer).collect()
        } else {
            Vec::new()
        }
    }

    /// Solves one future: spends what it earns by itself, dearest hours first. What stays open is what carried credit could
    /// still buy, and is told piece by piece as what each saves. Returns how much work it was.
    fn play(&mut self, number: usize) -> usize {
        let future = self.futures.get(number);
        if future.weight <= 0.0 {
            return 0;
        }
        self.weight += future.weight;
        lay(&mut self.ranking, &mut self.purse, &self.days, &future);
        let mut done = self.purse.slots() / 2;
        let mut prices = self.prices.iter_mut();
        let Some(mut price) = prices.next() else {
            return done;
        };
        let (mut need, mut saved) = (self.piece, 0.0);
        'offers: while let Some(offer) = self.ranking.next(&self.frontier) {
            done += 1;
            let mut room = offer.room - self.purse.take(offer.slot, offer.room);
            while room > 0.0 {
                let taken = need.min(room);
                saved += taken * offer.price;
                need -= taken;
                room -= taken;
                if need <= 0.0 {
                    *price += future.weight * saved / self.piece;
                    (need, saved) = (self.piece, 0.0);
                    match prices.next() {
                        Some(next) => price = next,
                        None => break 'offers,
                    }
                }
            }
        }
        *price += future.weight * saved / self.piece;
        done
    }
}

/// Which future is played next, if this round still has one.
fn turn(played: usize, count: usize) -> Option<usize> {
    let in_round = count.div_ceil(ROUNDS).max(1);
    let number = played % in_round * ROUNDS + played / in_round;
    (number < count).then_some(number)
}

fn lay(ranking: &mut Ranking, purse: &mut Purse, days: &[Day], future: &Future<'_>) {
    ranking.clear();
    purse.clear();
    for day in days {
        let intensities = future.day(day.number, day.near);
        for (intensity, (requests, earned)) in intensities.zip(&day.hours) {
            ranking.open(intensity, *requests);
            purse.earn(*earned);
        }
    }
    ranking.rank();
}

impl Rest<'_> {
    /// The days that are looked at, each standing for those up to the next.
    fn days(&self, futures: &Futures) -> Vec<Day> {
        let days = self.hours.div_ceil(DAY);
        let stride = days.div_ceil(self.sampled_days.max(1)).max(1);
        let day = |number: usize| {
            #[expect(clippy::cast_precision_loss, reason = "a few days")]
            let stands_for = stride.min(days - number) as f64;
            let hours = self.hours.saturating_sub(number * DAY).min(DAY);
            let demand = self.demand.get(number % 7 * DAY..).unwrap_or_default();
            let hour = |requests: &f64| {
                let requests = requests * stands_for;
                (requests, self.earned * requests)
            };
            Day {
                number,
                near: futures.near(number),
                hours: demand.iter().take(hours).map(hour).collect(),
            }
        };
        (0..days).step_by(stride).map(day).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outlook::OutlookSettings;
    use crate::outlook::hours::{HOUR, Slots};

    #[test]
    fn each_future_has_one_turn() {
        for count in 1..20_usize {
            let turns = 0..ROUNDS * count.div_ceil(ROUNDS);
            let mut turns: Vec<usize> = turns.filter_map(|played| turn(played, count)).collect();
            turns.sort_unstable();
            assert_eq!(turns, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_curve_made_in_parts_is_the_one_made_at_once() {
        let seen: Vec<f64> = (0..24 * 430_i32)
            .map(|t| 150.0 + 60.0 * (f64::from(t) / 3.8).sin() + 40.0 * (f64::from(t) / 48.0).cos())
            .collect();
        let slots = Slots {
            seen: &seen,
            known: &[],
            now: 0,
            slot_seconds: HOUR,
        };
        let frontier = [(0.1, 5.0), (0.2, 1.5), (0.3, 0.5)].map(|(error, saving)| Step {
            to: 1,
            error,
            saving_per_error: saving,
        });
        let rest = Rest {
            hours: 24 * 100 + 7,
            demand: &[10.0; WEEK],
            earned: 0.1,
            frontier: &frontier,
            carried: 300.0,
            sampled_days: 30,
        };
        let futures = Futures::new(&slots, rest.hours, &OutlookSettings::default()).unwrap();
        assert_eq!(futures.count(), 15);
        let mut at_once = Worth::new(futures, &rest).unwrap();
        let mut in_parts = at_once.clone();
        assert!(in_parts.offers().is_empty());
        at_once.go_on(usize::MAX);
        assert!(at_once.is_done());
        let whole = at_once.offers();
        assert!(whole.is_sorted_by(|a, b| a.price >= b.price * (1.0 - 1e-12)));
        assert!(whole.first().unwrap().price > whole.last().unwrap().price);
        let mut parts = 0;
        while !in_parts.is_done() {
            in_parts.go_on(3_000);
            parts += 1;
            // A part of the futures says about the same already.
            let first = in_parts.offers().first().unwrap().price / whole.first().unwrap().price;
            assert!((0.8..1.25).contains(&first), "{first}");
        }
        assert!((3..15).contains(&parts), "{parts}");
        assert_eq!(in_parts.offers(), whole);
    }
}
