//! The flavours of a service as a checked set: the best one first, and the *frontier*, the ladder of
//! flavours that are worth choosing. Policies read both; [`crate::budget`] charges their errors.

use thiserror::Error;

use crate::unit::{ErrorRate, Precision};

/// The same answer at some precision, at some cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Flavour {
    /// `precision-<percent>`.
    pub name: String,
    /// How good its answers are.
    pub precision: Precision,
    /// Energy per request, relative to the others (or in Wh: then grams are grams).
    pub cost: f64,
}

/// At least one flavour, best precision first, no two of one precision.
#[derive(Clone, Debug, PartialEq)]
pub struct Flavours {
    all: Vec<Flavour>,
    frontier: Vec<Step>,
    dominated: Vec<Dominated>,
}

/// One rung of the frontier: going from the flavour before to this one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The flavour at the end of the rung, by its place in the set.
    pub to: usize,
    /// Error that the rung adds to a request.
    pub error: f64,
    /// Cost saved per unit of error; falls from rung to rung.
    pub saving_per_error: f64,
}

/// A flavour that no plan should use, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dominated {
    /// Its place in the set.
    pub flavour: usize,
    /// What is better.
    pub by: DominatedBy,
}

/// What is better than a dominated flavour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DominatedBy {
    /// A flavour that is at least as precise costs no more.
    Flavour(usize),
    /// A mix of these two is as precise and costs less.
    Mix(usize, usize),
}

/// Why flavours are no set.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FlavourError {
    /// Nothing to choose from.
    #[error("there is no flavour; give at least one, such as 100:1.0")]
    None,
    /// NaN, infinite or negative.
    #[error("the cost {1} of flavour `{0}` is not a number from 0 up")]
    Cost(String, f64),
    /// Weights could not tell them apart.
    #[error("flavours `{0}` and `{1}` have the same precision; leave one of them out")]
    SamePrecision(String, String),
    /// More than a plan is made for.
    #[error("{0} flavours are too many; at most {MOST_FLAVOURS}")]
    TooMany(usize),
}

/// So that weights in whole percent can name each of them.
pub const MOST_FLAVOURS: usize = 64;

impl Flavour {
    /// A flavour with the name that its precision gives it.
    pub fn new(precision: Precision, cost: f64) -> Self {
        Self {
            name: format!("precision-{}", precision.percent()),
            precision,
            cost,
        }
    }

    /// What choosing it costs the budget.
    pub const fn error(&self) -> ErrorRate {
        self.precision.error()
    }
}

impl Flavours {
    /// Checks and orders them.
    pub fn new(mut all: Vec<Flavour>) -> Result<Self, FlavourError> {
        if all.is_empty() {
            return Err(FlavourError::None);
        }
        if all.len() > MOST_FLAVOURS {
            return Err(FlavourError::TooMany(all.len()));
        }
        if let Some(bad) = all.iter().find(|f| !f.cost.is_finite() || f.cost < 0.0) {
            return Err(FlavourError::Cost(bad.name.clone(), bad.cost));
        }
        all.sort_by_key(|flavour| std::cmp::Reverse(flavour.precision));
        for pair in all.windows(2) {
            if let [a, b] = pair
                && a.precision == b.precision
            {
                return Err(FlavourError::SamePrecision(a.name.clone(), b.name.clone()));
            }
        }
        let (frontier, dominated) = climb(&all);
        Ok(Self {
            all,
            frontier,
            dominated,
        })
    }

    /// All of them, best precision first.
    pub fn all(&self) -> &[Flavour] {
        &self.all
    }

    /// How many there are; never none.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The rungs that lead from the best flavour to the cheapest, steepest saving first. Empty when
    /// nothing is cheaper than the best.
    pub fn frontier(&self) -> &[Step] {
        &self.frontier
    }

    /// Flavours that no plan should use.
    pub fn dominated(&self) -> &[Dominated] {
        &self.dominated
    }

    /// Error of the best flavour: what cannot be avoided.
    pub fn least_error(&self) -> f64 {
        self.all.first().map_or(0.0, |f| f.error().fraction())
    }

    /// Cost of the best flavour.
    pub fn best_cost(&self) -> f64 {
        self.all.first().map_or(0.0, |f| f.cost)
    }
}

/// The upper hull of (error added, cost saved), from the best flavour on.
fn climb(all: &[Flavour]) -> (Vec<Step>, Vec<Dominated>) {
    let error = |i: usize| all.get(i).map_or(0.0, |f| f.error().fraction());
    let saved = |i: usize| {
        all.first()
            .zip(all.get(i))
            .map_or(0.0, |(b, f)| b.cost - f.cost)
    };
    let slope = |a: usize, b: usize| (saved(b) - saved(a)) / (error(b) - error(a));
    let mut dominated = Vec::new();
    let mut hull: Vec<usize> = vec![0];
    for next in 1..all.len() {
        let last = hull.last().copied().unwrap_or(0);
        if saved(next) <= saved(last) {
            dominated.push(Dominated {
                flavour: next,
                by: DominatedBy::Flavour(last),
            });
            continue;
        }
        while let [.., before, last] = hull[..]
            && slope(before, last) <= slope(last, next)
        {
            hull.pop();
            dominated.push(Dominated {
                flavour: last,
                by: DominatedBy::Mix(before, next),
            });
        }
        hull.push(next);
    }
    let steps = hull.windows(2).filter_map(|pair| match *pair {
        [from, to] => Some(Step {
            to,
            error: error(to) - error(from),
            saving_per_error: slope(from, to),
        }),
        _ => None,
    });
    (steps.collect(), dominated)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(of: &[(u32, f64)]) -> Result<Flavours, FlavourError> {
        let flavour =
            |&(percent, cost)| Flavour::new(Precision::from_millionths(percent * 10_000), cost);
        Flavours::new(of.iter().map(flavour).collect())
    }

    #[test]
    fn the_original_middle_flavour_is_dominated() {
        let flavours = set(&[(30, 0.3), (100, 1.0), (50, 0.6)]).unwrap();
        assert_eq!(flavours.frontier().len(), 1);
        assert_eq!(
            flavours.dominated(),
            [Dominated {
                flavour: 1,
                by: DominatedBy::Mix(0, 2)
            }]
        );
    }

    #[test]
    fn a_worse_flavour_that_costs_more_is_dominated_by_the_better() {
        let flavours = set(&[(100, 1.0), (90, 0.5), (50, 0.7), (10, 0.1)]).unwrap();
        let rungs: Vec<_> = flavours.frontier().iter().map(|step| step.to).collect();
        assert_eq!(rungs, [1, 3]);
        assert_eq!(flavours.dominated()[0].by, DominatedBy::Flavour(1));
    }

    #[test]
    fn what_is_no_set_is_refused() {
        assert_eq!(set(&[]), Err(FlavourError::None));
        assert!(matches!(
            set(&[(100, f64::NAN)]),
            Err(FlavourError::Cost(..))
        ));
        assert!(matches!(
            set(&[(50, 0.5), (50, 0.4)]),
            Err(FlavourError::SamePrecision(..))
        ));
        assert!(set(&[(80, 1.0)]).unwrap().frontier().is_empty());
    }
}
