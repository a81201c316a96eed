//! Steer's core: which flavour should answer, so that the least carbon is emitted and an error budget is
//! kept at every request. Values in, values out: no I/O, no clock, no chance of its own.
//!
//! | question | module |
//! |---|---|
//! | what is measured in what | [`mod@unit`], [`flavour`], [`weights`], [`trace`], [`forecast`] |
//! | what may be chosen | [`budget`] |
//! | what should be chosen | [`policy`], on [`spend`], [`outlook`] and [`demand`] |
//! | how much, and what may wait | [`throttle`], [`defer`]; [`credit`] is the older account |
//! | how did it go | [`accounting`], [`simulate`], against [`optimum`] |

pub mod accounting;
pub mod budget;
pub mod credit;
pub mod defer;
pub mod demand;
pub mod flavour;
pub mod forecast;
pub mod optimum;
pub mod outlook;
pub mod policy;
pub mod simulate;
pub mod spend;
pub mod throttle;
pub mod trace;
pub mod unit;
pub mod weights;
