//! Cron lines against robfig's answers, and against a scan that tries every minute.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, civil::date};
use proptest::prelude::*;

use super::*;

fn cron(text: &str) -> Cron {
    Cron::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Line, time, and what `cron.ParseStandard(line).Next(time)` of robfig/cron v3.0.1 gives.
const GIVEN_BY_ROBFIG: &[(&str, &str, &str)] = &[
    // The clock jumps from 2:00 to 3:00 on 29 March: that day is left out.
    (
        "CRON_TZ=Europe/Berlin 30 2 * * *",
        "2026-03-28T12:00:00Z",
        "2026-03-30T00:30:00Z",
    ),
    // It shows 2:30 twice on 25 October: both times fire.
    (
        "CRON_TZ=Europe/Berlin 30 2 * * *",
        "2026-10-24T12:00:00Z",
        "2026-10-25T00:30:00Z",
    ),
    (
        "CRON_TZ=Europe/Berlin 30 2 * * *",
        "2026-10-25T00:30:00Z",
        "2026-10-25T01:30:00Z",
    ),
    (
        "CRON_TZ=Europe/Berlin 30 2 * * *",
        "2026-10-25T01:30:00Z",
        "2026-10-26T01:30:00Z",
    ),
    // A day without a midnight.
    (
        "CRON_TZ=America/Sao_Paulo 0 0 * * *",
        "2018-11-03T12:00:00Z",
        "2018-11-05T02:00:00Z",
    ),
    (
        "TZ=America/New_York 0 9 * * MON-FRI",
        "2026-11-15T12:00:00Z",
        "2026-11-16T14:00:00Z",
    ),
    // Both days restricted: either will do, and `*/2` is a restriction, but `*/1` is none.
    (
        "0 0 13 * FRI",
        "2026-11-10T00:00:00Z",
        "2026-11-13T00:00:00Z",
    ),
    (
        "0 0 */2 * FRI",
        "2026-11-10T00:00:00Z",
        "2026-11-11T00:00:00Z",
    ),
    (
        "0 0 13 * */1",
        "2026-11-10T00:00:00Z",
        "2026-11-13T00:00:00Z",
    ),
    (
        "5/15 * ? * ?",
        "2026-11-10T00:06:00Z",
        "2026-11-10T00:20:00Z",
    ),
    ("0 0 29 2 *", "2026-11-10T00:00:00Z", "2028-02-29T00:00:00Z"),
    ("* * * * *", "2026-11-10T00:00:00Z", "2026-11-10T00:01:00Z"),
];

#[test]
fn fires_when_robfig_fires() {
    for (line, after, next) in GIVEN_BY_ROBFIG {
        let found = cron(line).next_after(time(after));
        assert_eq!(found, Some(time(next)), "{line} after {after}");
        assert_eq!(
            cron(line).prev_at_or_before(time(next)),
            Some(time(next)),
            "{line}"
        );
    }
}

#[test]
fn a_date_that_never_comes_is_not_looked_for_for_ever() {
    let now = time("2026-11-15T00:00:00Z");
    assert_eq!(cron("0 0 30 2 *").next_after(now), None);
    assert_eq!(cron("0 0 30 2 *").prev_at_or_before(now), None);
    assert!(!cron("0 0 31 4 *").window_contains(now, Duration::MAX));
    // 2100 is no leap year, so eight years pass.
    let leap_day = cron("0 0 29 2 *");
    assert_eq!(
        leap_day.next_after(time("2096-03-01T00:00:00Z")),
        Some(time("2104-02-29T00:00:00Z"))
    );
}

#[test]
fn the_ends_of_time_are_no_trouble() {
    let every_minute = cron("CRON_TZ=Pacific/Apia * * * * *");
    assert_eq!(every_minute.next_after(Timestamp::MAX), None);
    assert!(every_minute.next_after(Timestamp::MIN).is_some());
    let _ = every_minute.prev_at_or_before(Timestamp::MAX);
    let _ = every_minute.prev_at_or_before(Timestamp::MIN);
}

#[test]
fn names_lists_ranges_and_steps() {
    let monday = date(2026, 11, 16).at(9, 30, 0, 0);
    for line in [
        "30 9 * * *",
        "30 9 ? ? ?",
        "*/30 9 * * *",
        "0/15 9-17 * nov mon-fri",
        "30 9 16 NOV *",
        "0,30, 9,, * * Mon",
        "10-40/20 8/1 * * 1",
        "30 9 1 1 MON,*",
    ] {
        let expected = line != "30 9 1 1 MON,*";
        assert_eq!(cron(line).matches(monday), expected, "{line}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    for (line, message) in [
        (
            "",
            "the schedule has 0 fields; write five: minute, hour, day of month, month, day of week",
        ),
        (
            "0 0 * * * *",
            "the schedule has 6 fields; write five: minute, hour, day of month, month, day of week",
        ),
        (
            "@daily",
            "`@daily` is not accepted; write `0 0 * * *`, which means the same",
        ),
        (
            "TZ=UTC @hourly",
            "`@hourly` is not accepted; write `0 * * * *`, which means the same",
        ),
        (
            "@every 1h",
            "`@every 1h` is not accepted; \
             write five fields: minute, hour, day of month, month, day of week",
        ),
        (
            "CRON_TZ=Mars/Olympus 0 0 * * *",
            "`Mars/Olympus` is not a time zone; use an IANA name, such as Europe/Berlin",
        ),
        (
            "TZ= 0 0 * * *",
            "`` is not a time zone; use an IANA name, such as Europe/Berlin",
        ),
        ("60 0 * * *", "minute `60`: 60 is out of range; use 0 to 59"),
        (
            "0 0 0 * *",
            "day of month `0`: 0 is out of range; use 1 to 31",
        ),
        (
            "0 0 * * 7",
            "day of week `7`: 7 is out of range; use 0 to 6",
        ),
        (
            "0 0 * * FRI-MON",
            "day of week `FRI-MON`: the range 5-1 runs backwards; \
             split it into two, separated by a comma",
        ),
        (
            "*/0 * * * *",
            "minute `*/0`: `0` is not a step; write a number above zero",
        ),
        (
            "1/2/3 * * * *",
            "minute `1/2/3`: `2/3` is not a step; write a number above zero",
        ),
        (
            "*-5 * * * *",
            "minute `*-5`: `*` is not a value; write a number, a range such as 1-5, or *",
        ),
        (
            "0 MON * * *",
            "hour `MON`: `MON` is not a value; write a number, a range such as 1-5, or *",
        ),
        (
            ", * * * *",
            "minute `,`: the list is empty; write * for any",
        ),
    ] {
        assert_eq!(
            Cron::parse(line).unwrap_err().to_string(),
            message,
            "{line}"
        );
    }
}

#[test]
fn a_window_holds_its_start_but_not_its_end() {
    let office_hours = cron("0 9 * * MON-FRI");
    let eight_hours = Duration::from_hours(8);
    for (now, expected) in [
        ("2026-11-16T08:59:59.999Z", false),
        ("2026-11-16T09:00:00Z", true),
        ("2026-11-16T16:59:59.999Z", true),
        ("2026-11-16T17:00:00Z", false),
        ("2026-11-15T12:00:00Z", false),
    ] {
        assert_eq!(
            office_hours.window_contains(time(now), eight_hours),
            expected,
            "{now}"
        );
    }
    assert!(!office_hours.window_contains(time("2026-11-16T09:00:00Z"), Duration::ZERO));
    // The default: always.
    assert!(
        cron("0 0 * * *").window_contains(time("2026-11-16T23:59:59Z"), Duration::from_hours(24))
    );
}

/// A field: mostly `*`, so that lines fire often enough for the scan to find something.
fn any_field(min: u32, max: u32) -> impl Strategy<Value = String> {
    let value = min..=max;
    prop_oneof![
        4 => Just("*".to_owned()),
        2 => value.clone().prop_map(|a| a.to_string()),
        1 => (value.clone(), value.clone()).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        1 => (1..=max).prop_map(|step| format!("*/{step}")),
        1 => (value.clone(), 1..=max, value).prop_map(|(a, step, b)| format!("{a}/{step},{b}")),
    ]
}

fn any_line() -> impl Strategy<Value = String> {
    let zone = prop_oneof![
        Just(""),
        Just("TZ=UTC "),
        Just("CRON_TZ=Europe/Berlin "),
        Just("CRON_TZ=America/New_York "),
        // Midnight does not exist on some days; half an hour of daylight saving; no whole hours.
        Just("CRON_TZ=America/Sao_Paulo "),
        Just("CRON_TZ=Australia/Lord_Howe "),
        Just("CRON_TZ=Asia/Kathmandu "),
        // The clock goes back across midnight.
        Just("CRON_TZ=America/St_Johns "),
    ];
    let fields = (
        any_field(0, 59),
        any_field(0, 23),
        any_field(1, 31),
        any_field(1, 12),
        any_field(0, 6),
    );
    (zone, fields).prop_map(|(zone, (minute, hour, day, month, weekday))| {
        format!("{zone}{minute} {hour} {day} {month} {weekday}")
    })
}

/// Times near the changes of the clock, and any others.
fn any_time() -> impl Strategy<Value = Timestamp> {
    let around = |text: &str| {
        let second = time(text).as_second();
        (second - 90_000..second + 90_000).boxed()
    };
    prop_oneof![
        around("2026-03-29T01:00:00Z"),
        around("2026-10-25T01:00:00Z"),
        around("2026-11-01T06:00:00Z"),
        around("2018-11-04T03:00:00Z"),
        around("2026-10-03T15:30:00Z"),
        around("2010-11-07T02:31:00Z"),
        1_000_000_000..2_000_000_000_i64,
    ]
    .prop_map(|second| Timestamp::from_second(second).unwrap())
}

proptest! {
    #[test]
    fn agrees_with_a_scan_of_every_minute(line in any_line(), from in any_time()) {
        let cron = cron(&line);
        let minute = SignedDuration::from_mins(1);
        let scanned_minutes = 4_000;
        let fires = |at: Timestamp| cron.matches(cron.zone().to_datetime(at));

        // Offsets here are whole minutes, so the clock's minutes are those of UTC.
        let floor = Timestamp::from_second(from.as_second().div_euclid(60) * 60).unwrap();
        let next = (1..=scanned_minutes).map(|n| floor + minute * n).find(|at| fires(*at));
        let last = (0..scanned_minutes).map(|n| floor - minute * n).find(|at| fires(*at));
        match next {
            Some(next) => prop_assert_eq!(cron.next_after(from), Some(next)),
            None => prop_assert!(
                cron.next_after(from).is_none_or(|at| at > floor + minute * scanned_minutes)
            ),
        }
        match last {
            Some(last) => {
                prop_assert_eq!(cron.prev_at_or_before(from), Some(last));
                let elapsed = Duration::try_from(from.duration_since(last)).unwrap();
                prop_assert!(!cron.window_contains(from, elapsed));
                prop_assert!(cron.window_contains(from, elapsed + Duration::from_nanos(1)));
            }
            None => prop_assert!(
                cron.prev_at_or_before(from).is_none_or(|at| at <= floor - minute * scanned_minutes)
            ),
        }
    }

    #[test]
    fn next_and_last_fit_together(line in any_line(), from in any_time()) {
        let cron = cron(&line);
        if let Some(next) = cron.next_after(from) {
            prop_assert!(next > from);
            prop_assert!(cron.matches(cron.zone().to_datetime(next)));
            prop_assert_eq!(cron.prev_at_or_before(next), Some(next));
            let before = next - SignedDuration::from_nanos(1);
            prop_assert!(cron.prev_at_or_before(before).is_none_or(|last| last <= from));
            prop_assert_eq!(cron.next_after(before), Some(next));
        }
    }

    #[test]
    fn a_pause_is_where_two_firings_are_further_apart_than_a_window(
        line in any_line(),
        from in any_time(),
        seconds in prop_oneof![1..7_200_i64, 80_000..100_000_i64, 1..3_000_000_i64],
        days in 1..400_i64,
    ) {
        let cron = cron(&line);
        let duration = SignedDuration::from_secs(seconds);
        let Some(opened) = cron.next_after(from) else {
            return Ok(());
        };
        let horizon = opened + SignedDuration::from_hours(24 * days);
        let steps = 2_000;
        let firings = std::iter::successors(Some(opened), |firing| cron.next_after(*firing));
        let last = firings.take(steps).find(|firing| {
            cron.next_after(*firing).is_none_or(|next| next - duration > *firing)
        });
        let pause = cron.pause_after(opened, duration, horizon);
        match last {
            Some(last) => {
                let expected = Some(last + duration).filter(|end| *end < horizon);
                prop_assert_eq!(pause, expected);
            }
            // Further away than was stepped: each step is a minute at least.
            None => prop_assert!(pause.is_none_or(|end| end - duration > opened)),
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "([A-Z=/]{0,8} )?([0-9*?,/-]{1,5} ){0,6}|\\PC{0,30}") {
        let _ = Cron::parse(&text);
    }
}
