//! The controllers of Weir, one module each.
//!
//! Of [`elasti_service`] there is today the pure part alone: which step a Service takes next between
//! awake and asleep. What reads the cluster and carries the steps out will stand around it.

pub mod elasti_service;
