//! Leader election: one process at a time keeps objects and puts targets to sleep.
