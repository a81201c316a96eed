//! `enabledPeriod`: whether now lies in a window, and when that changes.
//!
//! A window opens at each firing of the schedule and stays open for the duration; windows that touch
//! or overlap are one. How a line is read, and what the clock's changes do to it, is `weir_api`'s.

use jiff::{SignedDuration, Timestamp};
use weir_api::{
    form::{cron::Cron, go_duration::GoDuration},
    hold::EnabledPeriod,
};

use super::plan::facts::Window;

/// What stays open for this long counts as always open: a year, and a leap day.
const HORIZON: SignedDuration = SignedDuration::from_hours(366 * 24);

/// Where `now` lies in the period; without one, sleeping is always allowed.
pub fn window(period: Option<&EnabledPeriod>, now: Timestamp) -> Window {
    let Some(period) = period else {
        return Window::Open(None);
    };
    let duration = GoDuration::parse(&period.duration);
    let (Ok(cron), Ok(duration)) = (Cron::parse(&period.schedule), duration) else {
        return Window::Unreadable;
    };
    if duration.as_nanos() <= 0 {
        return Window::Unreadable;
    }
    let duration = SignedDuration::from_nanos(duration.as_nanos());
    let opened = cron.prev_at_or_before(now);
    match opened.filter(|opened| now.duration_since(*opened) < duration) {
        Some(opened) => {
            let horizon = now.checked_add(HORIZON).unwrap_or(Timestamp::MAX);
            Window::Open(cron.pause_after(opened, duration, horizon))
        }
        None => match cron.next_after(now) {
            // A day that never comes: the schedule is as good as unreadable.
            None if opened.is_none() => Window::Unreadable,
            next => Window::Closed(next),
        },
    }
}
