//! When the windows that a cron line opens come to a pause.
//!
//! Windows may follow each other without one for ever, so this is asked with a horizon, and answered
//! without a look at each firing: where no two firings of a day are further apart than a window is
//! long, a day needs but two of them. As in [`super::search`], each span of an even clock is walked
//! by itself.

use jiff::{
    SignedDuration, Timestamp,
    civil::{Date, DateTime, Time},
    tz::Offset,
};

use super::Cron;

/// A span of time in which the zone's offset does not change.
struct Span {
    offset: Offset,
    /// The first moment that is not in it any more, on its own clock.
    until: DateTime,
}

/// What is open so far: up to `last + duration`.
struct Open {
    last: DateTime,
    duration: SignedDuration,
}

impl Cron {
    /// When the windows of `duration` that follow the one opened at the firing `opened` leave a
    /// pause; none if that is not before the horizon.
    pub fn pause_after(
        &self,
        opened: Timestamp,
        duration: SignedDuration,
        horizon: Timestamp,
    ) -> Option<Timestamp> {
        let even = self
            .widest_in_a_day()
            .is_none_or(|widest| widest <= duration);
        let mut last = opened;
        let mut from = opened;
        while from < horizon {
            let offset = self.zone.to_offset(from);
            let change = self.zone.following(from).next();
            let until = change.map_or(horizon, |change| change.timestamp().min(horizon));
            let span = Span {
                offset,
                until: offset.to_datetime(until),
            };
            let mut open = Open {
                last: offset.to_datetime(last),
                duration,
            };
            if !self.stays_open(&span, offset.to_datetime(from), even, &mut open) {
                let pause = open.end()?;
                return span.offset.to_timestamp(pause).ok();
            }
            last = span.offset.to_timestamp(open.last).ok()?;
            from = until;
        }
        None
    }

    /// Whether there is no pause from `from` to the end of the span; `open` is moved on to the last
    /// firing in it, or to the one before the pause.
    fn stays_open(&self, span: &Span, from: DateTime, even: bool, open: &mut Open) -> bool {
        let mut start = from;
        while start < span.until {
            if open.is_over_before(start) {
                return false;
            }
            let date = start.date();
            if self.matches_day(date) {
                let whole = start.time() == Time::midnight() && date < span.until.date();
                let fits = if even && whole {
                    self.whole_day(date, open)
                } else {
                    self.each_firing(start, span, open)
                };
                if !fits {
                    return false;
                }
            }
            match date.tomorrow() {
                Ok(next) => start = next.to_datetime(Time::midnight()),
                Err(_) => return true,
            }
        }
        !open.is_over_before(span.until)
    }

    /// A day whose firings leave no pause between them: the first and the last say all.
    fn whole_day(&self, date: Date, open: &mut Open) -> bool {
        let first = self.first_time(Time::midnight());
        let last = self.last_time(Time::MAX);
        let (Some(first), Some(last)) = (first, last) else {
            return true;
        };
        let fits = !open.is_over_before(date.to_datetime(first));
        if fits {
            open.last = date.to_datetime(last);
        }
        fits
    }

    /// The firings of a day from `start` on, one by one.
    fn each_firing(&self, start: DateTime, span: &Span, open: &mut Open) -> bool {
        let mut next = self.first_time(start.time());
        while let Some(time) = next {
            let firing = start.date().to_datetime(time);
            if firing >= span.until {
                return true;
            }
            if open.is_over_before(firing) {
                return false;
            }
            // A clock may have changed in the middle of a minute, long ago.
            if firing >= start {
                open.last = firing;
            }
            next = self.time_after(time);
        }
        true
    }

    /// The longest time between two firings of one day; none if there is but one.
    fn widest_in_a_day(&self) -> Option<SignedDuration> {
        let mut widest = None;
        let mut time = self.first_time(Time::midnight())?;
        while let Some(next) = self.time_after(time) {
            widest = widest.max(Some(next.duration_since(time)));
            time = next;
        }
        widest
    }

    fn time_after(&self, time: Time) -> Option<Time> {
        let minute = SignedDuration::from_mins(1);
        self.first_time(time.checked_add(minute).ok()?)
    }
}

impl Open {
    /// The moment at which it closes, if time goes so far.
    fn end(&self) -> Option<DateTime> {
        self.last.checked_add(self.duration).ok()
    }

    /// Whether there is a pause before that moment. One that begins at that very moment is none.
    fn is_over_before(&self, clock: DateTime) -> bool {
        self.end().is_some_and(|end| end < clock)
    }
}
