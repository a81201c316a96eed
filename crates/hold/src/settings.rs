//! The time spans of the plan; the defaults are hold's.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use weir_api::hold::defaults;

/// Time spans that a decision rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long every node takes to follow a changed slice, at most: the overlap both ways.
    pub sync_period: Duration,
    /// How long the cut-over may take to be seen before it is undone.
    pub cut_over_timeout: Duration,
    /// How long there may be no usable resolver before a sleeping target is woken.
    pub fail_open_after: Duration,
    /// How long a request is held at most; a deletion waits no longer for an endpoint.
    pub hold_timeout: Duration,
    /// How long ready pods may be without an endpoint before a condition says so.
    pub no_ready_pod_grace: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            sync_period: defaults::SYNC_PERIOD,
            cut_over_timeout: defaults::CUT_OVER_TIMEOUT,
            fail_open_after: defaults::FAIL_OPEN_AFTER,
            hold_timeout: defaults::HOLD_TIMEOUT,
            no_ready_pod_grace: defaults::NO_READY_POD_GRACE,
        }
    }
}

/// `span` after `start`; a time that no calendar has is the last one.
pub fn after(start: Timestamp, span: Duration) -> Timestamp {
    SignedDuration::try_from(span)
        .ok()
        .and_then(|span| start.checked_add(span).ok())
        .unwrap_or(Timestamp::MAX)
}
