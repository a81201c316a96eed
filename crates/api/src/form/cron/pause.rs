//! When the windows that a cron line opens come to a pause.
//!
//! Windows may follow each other without one for ever, so this is asked with a horizon, and answered
//! without a look at each firing: where no two firings of a day are further apart than a window is
//! long, a day needs but two of them. As in [`super::search`], each span of an even clock is walked
//! by itself.

use jiff::{
    SignedDuration, Timestamp,
    civil::{Date, DateTime, Time},
};

use super::Cron;

const DAY: SignedDuration = SignedDuration::from_hours(24);

/// The firings of a day that matches, as time since its midnight.
struct Firings {
    first: SignedDuration,
    last: SignedDuration,
    /// The longest time between two of them.
    widest: SignedDuration,
}

/// A walk from day to day over a span with an even clock. Times are those since the first midnight.
struct Walk {
    /// The day that is looked at, and when it begins.
    date: Date,
    midnight: SignedDuration,
    /// The span that is looked at.
    from: SignedDuration,
    until: SignedDuration,
    /// The last firing so far.
    last: SignedDuration,
    /// How long each window is.
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
        let firings = self.firings_of_a_day()?;
        let (mut last, mut from) = (opened, opened);
        while from < horizon {
            let offset = self.zone.to_offset(from);
            let change = self.zone.following(from).next();
            let until = change.map_or(horizon, |change| change.timestamp().min(horizon));
            let clock = |time| offset.to_datetime(time);
            let mut walk = Walk::new(clock(last), clock(from), clock(until), duration);
            let paused = self.finds_pause(&firings, &mut walk);
            // The clock is even, so what lies between two firings on it lies between them in time.
            last = from.checked_add(walk.last - walk.from).ok()?;
            if paused {
                return last.checked_add(duration).ok();
            }
            from = until;
        }
        None
    }

    /// Walks to the end of the span, or to the last firing before a pause.
    fn finds_pause(&self, firings: &Firings, walk: &mut Walk) -> bool {
        let even = firings.widest <= walk.duration;
        while walk.midnight < walk.until {
            if walk.is_pause_before(walk.midnight) {
                return true;
            }
            if self.matches_day(walk.date) {
                let paused = if even && walk.is_whole_day() {
                    let paused = walk.fires(firings.first);
                    if !paused {
                        // What lies between the two leaves no pause.
                        walk.last = walk.midnight + firings.last;
                    }
                    paused
                } else {
                    self.minutes_of_a_day().any(|time| walk.fires(time))
                };
                if paused {
                    return true;
                }
            }
            if !walk.next_day() {
                return false;
            }
        }
        walk.is_pause_before(walk.until)
    }

    fn firings_of_a_day(&self) -> Option<Firings> {
        let mut times = self.minutes_of_a_day();
        let first = times.next()?;
        let mut firings = Firings {
            first,
            last: first,
            widest: SignedDuration::ZERO,
        };
        for time in times {
            firings.widest = firings.widest.max(time - firings.last);
            firings.last = time;
        }
        Some(firings)
    }

    /// The matching minutes of a day in their order, as time since midnight.
    fn minutes_of_a_day(&self) -> impl Iterator<Item = SignedDuration> {
        let hours = (0..24).filter(|hour| self.hours.contains(*hour));
        hours.flat_map(|hour| {
            let minutes = (0..60).filter(|minute| self.minutes.contains(*minute));
            minutes.map(move |minute| {
                SignedDuration::from_mins(i64::from(hour) * 60 + i64::from(minute))
            })
        })
    }
}

impl Walk {
    fn new(last: DateTime, from: DateTime, until: DateTime, duration: SignedDuration) -> Self {
        let date = from.date();
        let midnight = date.to_datetime(Time::midnight());
        Self {
            date,
            midnight: SignedDuration::ZERO,
            from: from.duration_since(midnight),
            until: until.duration_since(midnight),
            last: last.duration_since(midnight),
            duration,
        }
    }

    /// Whether the last window is over before that moment; at that very moment is early enough.
    fn is_pause_before(&self, moment: SignedDuration) -> bool {
        // Written so that it cannot overflow: a window may be as long as 292 years.
        moment - self.last > self.duration
    }

    /// The line fires at this time of the day, if that is in the span. Whether a pause came before.
    fn fires(&mut self, time: SignedDuration) -> bool {
        let firing = self.midnight + time;
        if firing < self.from || firing >= self.until {
            return false;
        }
        let paused = self.is_pause_before(firing);
        if !paused {
            self.last = firing;
        }
        paused
    }

    fn is_whole_day(&self) -> bool {
        self.from <= self.midnight && self.midnight + DAY <= self.until
    }

    /// Moves on, unless time ends.
    fn next_day(&mut self) -> bool {
        let next = self.date.tomorrow();
        if let Ok(date) = next {
            self.date = date;
            self.midnight += DAY;
        }
        next.is_ok()
    }
}
