//! `enabledPeriod`: whether now lies in a window, and when that changes.
//!
//! A window opens at each firing of the schedule and stays open for the duration; windows that touch
//! or overlap are one. How a line is read, and what the clock's changes do to it, is `weir_api`'s.

use jiff::{SignedDuration, Timestamp};
use weir_api::{
    form::{cron::Cron, go_duration::GoDuration},
    hold::EnabledPeriod,
};

use weir_hold::facts::Window;

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn period(schedule: &str, duration: &str) -> EnabledPeriod {
        EnabledPeriod {
            schedule: schedule.to_owned(),
            duration: duration.to_owned(),
        }
    }

    fn at(schedule: &str, duration: &str, now: &str) -> Window {
        window(Some(&period(schedule, duration)), time(now))
    }

    #[test]
    fn without_a_period_it_is_always_open() {
        assert_eq!(
            window(None, time("2026-11-16T00:00:00Z")),
            Window::Open(None)
        );
    }

    #[test]
    fn the_default_is_always_open_too_and_so_are_others_without_a_pause() {
        for (schedule, duration) in [
            ("0 0 * * *", "24h"),
            ("* * * * *", "1m"),
            ("* * * * *", "90s"),
            ("0 */6 * * *", "6h"),
            ("0 0 * * MON", "168h"),
            ("0 0 1 * *", "744h"),
            // A day of 25 hours needs another hour.
            ("CRON_TZ=Europe/Berlin 0 0 * * *", "25h"),
            ("0 0 1 1 *", "2562047h"),
        ] {
            let window = at(schedule, duration, "2026-11-16T12:34:56Z");
            assert_eq!(window, Window::Open(None), "{schedule} for {duration}");
        }
    }

    #[test]
    fn the_next_change_is_told() {
        use Window::{Closed, Open};
        for (schedule, duration, now, expected) in [
            // Before, at, in, at the end of and after a window.
            (
                "0 20 * * MON-FRI",
                "10h",
                "2026-11-16T19:59:59.999Z",
                Closed(Some(time("2026-11-16T20:00:00Z"))),
            ),
            (
                "0 20 * * MON-FRI",
                "10h",
                "2026-11-16T20:00:00Z",
                Open(Some(time("2026-11-17T06:00:00Z"))),
            ),
            (
                "0 20 * * MON-FRI",
                "10h",
                "2026-11-17T05:59:59.999Z",
                Open(Some(time("2026-11-17T06:00:00Z"))),
            ),
            (
                "0 20 * * MON-FRI",
                "10h",
                "2026-11-17T06:00:00Z",
                Closed(Some(time("2026-11-17T20:00:00Z"))),
            ),
            (
                "0 20 * * MON-FRI",
                "10h",
                "2026-11-21T06:00:00Z",
                Closed(Some(time("2026-11-23T20:00:00Z"))),
            ),
            // Those of five days are one.
            (
                "0 0 ? * MON-FRI",
                "24h",
                "2026-11-18T12:00:00Z",
                Open(Some(time("2026-11-21T00:00:00Z"))),
            ),
            // Each minute of an hour opens one; the last of them counts.
            (
                "* 9 * * *",
                "30m",
                "2026-11-18T09:10:00Z",
                Open(Some(time("2026-11-18T10:29:00Z"))),
            ),
            // The day is an hour longer, so midnight comes an hour after the window's end.
            (
                "CRON_TZ=Europe/Berlin 0 0 * * *",
                "24h",
                "2026-10-01T12:00:00Z",
                Open(Some(time("2026-10-25T22:00:00Z"))),
            ),
            (
                "CRON_TZ=Europe/Berlin 0 0 * * *",
                "24h",
                "2026-10-25T22:30:00Z",
                Closed(Some(time("2026-10-25T23:00:00Z"))),
            ),
            // 2:30 is jumped over, so the window of the day before is the last for two days.
            (
                "CRON_TZ=Europe/Berlin 30 2 * * *",
                "24h",
                "2026-03-28T12:00:00Z",
                Open(Some(time("2026-03-29T01:30:00Z"))),
            ),
            // Years away is an answer as well.
            (
                "0 0 29 2 *",
                "24h",
                "2028-03-01T00:00:00Z",
                Closed(Some(time("2032-02-29T00:00:00Z"))),
            ),
        ] {
            let found = at(schedule, duration, now);
            assert_eq!(found, expected, "{schedule} for {duration} at {now}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_neither_open_nor_closed() {
        for (schedule, duration) in [
            ("@daily", "24h"),
            ("0 0 * *", "24h"),
            ("", "24h"),
            ("CRON_TZ=Mars/Base 0 0 * * *", "24h"),
            ("0 0 30 2 *", "24h"),
            ("0 0 * * *", "1d"),
            ("0 0 * * *", ""),
            ("0 0 * * *", "0"),
            ("0 0 * * *", "-1h"),
        ] {
            let window = at(schedule, duration, "2026-11-16T12:00:00Z");
            assert_eq!(window, Window::Unreadable, "{schedule} for {duration}");
        }
    }

    /// Days that the scan looks ahead.
    const AHEAD: SignedDuration = SignedDuration::from_hours(6 * 24);
    const MINUTE: SignedDuration = SignedDuration::from_mins(1);

    /// Every minute at which the line fires, found by trying each.
    fn firings(cron: &Cron, from: Timestamp, until: Timestamp) -> Vec<Timestamp> {
        let start = Timestamp::from_second(from.as_second().div_euclid(60) * 60).unwrap();
        std::iter::successors(Some(start), |minute| Some(*minute + MINUTE))
            .take_while(|minute| *minute <= until)
            .filter(|minute| cron.matches(cron.zone().to_datetime(*minute)))
            .collect()
    }

    /// Whether it is open now, and the next change within the days ahead.
    fn scanned(cron: &Cron, duration: SignedDuration, now: Timestamp) -> (bool, Option<Timestamp>) {
        let firings = firings(cron, now - duration, now + AHEAD);
        let is_open = |moment: Timestamp| {
            firings
                .iter()
                .rev()
                .skip_while(|firing| **firing > moment)
                .take(1)
                .any(|firing| moment < *firing + duration)
        };
        let open_now = is_open(now);
        let mut moments: Vec<Timestamp> = firings
            .iter()
            .flat_map(|firing| [*firing, *firing + duration])
            .filter(|moment| *moment > now && *moment <= now + AHEAD)
            .collect();
        moments.sort_unstable();
        moments.dedup();
        let change = moments
            .into_iter()
            .find(|moment| is_open(*moment) != open_now);
        (open_now, change)
    }

    fn schedules() -> impl Strategy<Value = String> {
        let zone = prop::sample::select(vec![
            "",
            "CRON_TZ=Europe/Berlin ",
            "TZ=America/New_York ",
            "CRON_TZ=Australia/Lord_Howe ",
            "CRON_TZ=America/Sao_Paulo ",
            "CRON_TZ=Asia/Kathmandu ",
        ]);
        let minute = prop::sample::select(vec!["*", "0", "30", "*/15", "5/20", "0,59", "10-50"]);
        let hour = prop::sample::select(vec![
            "*", "0", "2", "1-3", "22,23", "*/6", "0-20,22", "8-18/5",
        ]);
        let day = prop::sample::select(vec!["*", "*", "*", "?", "1", "25-31", "*/2"]);
        let weekday = prop::sample::select(vec!["*", "*", "*", "?", "MON-FRI", "0", "sat,SUN"]);
        (zone, minute, hour, day, weekday).prop_map(|(zone, minute, hour, day, weekday)| {
            format!("{zone}{minute} {hour} {day} * {weekday}")
        })
    }

    /// Around the days on which one of these clocks changes, and others.
    fn moments() -> impl Strategy<Value = Timestamp> {
        let day = prop::sample::select(vec![
            "2026-03-08",
            "2026-03-29",
            "2026-04-05",
            "2026-10-04",
            "2026-10-25",
            "2026-11-01",
            "2018-02-18",
            "2018-11-04",
            "2026-07-15",
            "2028-02-29",
        ]);
        (day, -3 * 86_400_000_i64..3 * 86_400_000).prop_map(|(day, offset)| {
            time(&format!("{day}T00:00:00Z")) + SignedDuration::from_millis(offset)
        })
    }

    fn durations() -> impl Strategy<Value = SignedDuration> {
        prop_oneof![
            (1_i64..240).prop_map(SignedDuration::from_mins),
            (1_i64..80).prop_map(SignedDuration::from_hours),
            (1_i64..300_000).prop_map(SignedDuration::from_secs),
            (1_i64..300_000_000).prop_map(SignedDuration::from_millis),
        ]
    }

    proptest! {
        #[test]
        fn a_scan_of_every_minute_agrees(
            schedule in schedules(),
            duration in durations(),
            now in moments(),
        ) {
            let cron = Cron::parse(&schedule).unwrap();
            let nanos = i64::try_from(duration.as_nanos()).unwrap();
            let period = period(&schedule, &GoDuration::from_nanos(nanos).to_string());
            let (open, change) = scanned(&cron, duration, now);
            let (found_open, found) = match window(Some(&period), now) {
                Window::Open(change) => (true, change),
                Window::Closed(change) => (false, change),
                Window::Unreadable => panic!("unreadable"),
            };
            prop_assert_eq!(found_open, open);
            prop_assert_eq!(found.filter(|found| *found <= now + AHEAD), change);
        }

        #[test]
        fn no_text_makes_it_panic(schedule in "\\PC{0,24}", duration in "\\PC{0,8}", now in moments()) {
            let _ = window(Some(&period(&schedule, &duration)), now);
        }
    }
}
