//! What credit that is carried over the end of the forecast will save: a falling curve, as offers.

use super::futures::Futures;
use super::hours::{DAY, WEEK};
use crate::flavour::Step;
use crate::spend::{Market, Offer};

/// The slot number of offers that lie beyond the forecast.
pub const BEYOND: usize = usize::MAX;

/// In how many pieces the curve is cut.
const PIECES: usize = 40;

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

/// The mean over all futures of what each further piece of credit saves. Nothing when the window ends with
/// the forecast.
pub fn curve(futures: &Futures, rest: &Rest<'_>) -> Vec<Offer> {
    if rest.hours == 0 || rest.carried <= 0.0 {
        return Vec::new();
    }
    #[expect(clippy::cast_precision_loss, reason = "a few pieces")]
    let piece = rest.carried / PIECES as f64;
    let mut prices = [0.0; PIECES];
    let mut market = Market::default();
    for future in futures.iter() {
        play(&mut market, rest, |day| future.day(day));
        let mut left = std::mem::take(&mut market).into_offers().into_iter();
        let mut offer = left.next();
        for price in &mut prices {
            let (mut need, mut saved) = (piece, 0.0);
            while let Some(open) = &mut offer {
                let taken = need.min(open.room);
                saved += taken * open.price;
                need -= taken;
                open.room -= taken;
                if open.room <= 0.0 {
                    offer = left.next();
                }
                if need <= 0.0 {
                    break;
                }
            }
            *price += future.weight * saved / piece;
        }
    }
    let offer = |price| Offer {
        price,
        room: piece,
        slot: BEYOND,
    };
    prices.into_iter().map(offer).collect()
}

/// Spends what a future earns by itself, from its last day to its first; what stays open in the market is
/// what carried credit could still buy.
fn play<D: DoubleEndedIterator<Item = f64>>(
    market: &mut Market,
    rest: &Rest<'_>,
    day_of: impl Fn(usize) -> D,
) {
    let days = rest.hours.div_ceil(DAY);
    let stride = days.div_ceil(rest.sampled_days.max(1)).max(1);
    for day in (0..days).step_by(stride).rev() {
        #[expect(clippy::cast_precision_loss, reason = "a few days")]
        let stands_for = stride.min(days - day) as f64;
        let hours = rest.hours.saturating_sub(day * DAY).min(DAY);
        let demand = rest.demand.get(day % 7 * DAY..).unwrap_or_default();
        let day: Vec<f64> = day_of(day).take(hours).collect();
        for (intensity, requests) in day.iter().zip(demand).rev() {
            let requests = requests * stands_for;
            market.open(BEYOND, *intensity, requests, rest.frontier);
            market.pour(rest.earned * requests, |_, _| {});
        }
    }
}
