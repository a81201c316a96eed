//! What credit will be worth after the forecast ends.
//!
//! A forecast reaches two days, a budget window a week or a year. For the time between, [`hours`] collects
//! what is known by the hour, [`futures`] makes possible futures of it (the last weeks, begun on different
//! days and started from where the forecast ends; and the same season of last year, brought to the present
//! level), and [`worth`] solves each of them with full knowledge and takes the mean of what one more unit
//! of credit would save in each. [`crate::policy::optimal`] trades the known slots against that curve.
//!
//! Why the mean of prices over futures, and not the price in a mean future: a clean week and a dirty one
//! are not a fortnight of both. Pooling them lets the plan pay for dirty hours with the credit of a week
//! that may not come.

pub mod futures;
pub mod hours;
pub mod skill;
pub mod worth;

/// Choices of the outlook. How the defaults were chosen, and how little depends on them: see
/// `docs/steer-theory.md` and `cargo xtask bench constants`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutlookSettings {
    /// How many trailing days futures are made of.
    pub trailing_days: usize,
    /// How many futures are made of them.
    pub futures: usize,
    /// How much of a difference in level is still there a day later.
    pub persistence: f64,
    /// How likely last year's season is thought to return, against the last weeks going on.
    pub last_year: f64,
    /// How many days of a future are looked at; a longer one is sampled evenly.
    pub sampled_days: usize,
    /// How long the curve is kept, in seconds.
    pub kept: i64,
    /// Over how many days past errors of forecasts count; without, forecasts are believed in full.
    pub trust_days: Option<usize>,
}

impl Default for OutlookSettings {
    fn default() -> Self {
        Self {
            trailing_days: 60,
            futures: 14,
            persistence: 0.6,
            last_year: 0.5,
            sampled_days: 30,
            kept: 6 * 3_600,
            trust_days: Some(60),
        }
    }
}
