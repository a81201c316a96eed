//! Place's core: how full each node's network is, which nodes are fit for a watch, and what every Node, Deployment and
//! status should then carry. Values in, values out: no I/O, no clock of its own.
//!
//! | question | module |
//! |---|---|
//! | what does the user want | [`settings`] |
//! | what did the exporter say | [`exposition`] |
//! | what counts, and against what | [`interfaces`], [`capacity`] |
//! | how full is a node | [`history`], then [`measure`] |
//! | who could take pods | [`node`], [`scheduling`] on [`quantity`] |
//! | who should take pods | [`judge`], and [`ready`] for when to begin |
//! | what to write | [`plan`] for nodes, [`annotation`], [`deployment`], [`status`] |
//! | what to move | [`rebalance`] |
//! | what to tell the user | [`condition`] |
//!
//! Time is a [`moment::Moment`] that the caller reads from a clock that nobody sets.

pub mod annotation;
pub mod capacity;
pub mod condition;
pub mod deployment;
pub mod exposition;
#[cfg(test)]
mod fixture;
pub mod history;
pub mod interfaces;
pub mod judge;
pub mod measure;
pub mod moment;
pub mod node;
pub mod plan;
pub mod quantity;
pub mod ready;
pub mod rebalance;
pub mod scheduling;
pub mod settings;
pub mod status;
