//! Resets, clock steps, devices and nodes that come and go.

use proptest::prelude::*;

use super::*;
use crate::exposition::Counters;

const WINDOW: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_mins(3);

fn scrape(devices: &[(&str, u64)]) -> Scrape {
    let counters = |value: u64| Counters {
        transmit: Some(value),
        receive: Some(value / 2),
        speed: Some(-1.0),
    };
    let own = |(name, value): &(&str, u64)| ((*name).to_owned(), counters(*value));
    Scrape {
        interfaces: devices.iter().map(own).collect(),
        ..Scrape::default()
    }
}

fn see(history: &mut History, node: &str, at: u64, devices: &[(&str, u64)]) {
    see_uid(history, (node, "1"), at, devices);
}

fn see_uid(history: &mut History, (node, uid): (&str, &str), at: u64, devices: &[(&str, u64)]) {
    let answer = Answer {
        node,
        uid,
        at: Moment::from_secs(at),
        time: 0,
        scrape: &scrape(devices),
    };
    history.observe(&answer, WINDOW, |name| name != "lo");
}

fn transmit(history: &History, node: &str, device: &str) -> Option<f64> {
    let rates = history.of(node, "1")?.rates(device, WINDOW, LONGEST)?;
    rates.transmit
}

#[test]
fn a_rate_needs_a_full_window() {
    let mut history = History::default();
    see(&mut history, "a", 0, &[("eth0", 100)]);
    assert_eq!(transmit(&history, "a", "eth0"), None);
    see(&mut history, "a", 8, &[("eth0", 150)]);
    assert_eq!(transmit(&history, "a", "eth0"), None);
    see(&mut history, "a", 10, &[("eth0", 200)]);
    assert_eq!(transmit(&history, "a", "eth0"), Some(10.0));
}

#[test]
fn a_counter_that_went_down_begins_a_new_window() {
    let mut history = History::default();
    see(&mut history, "a", 0, &[("eth0", 1000), ("eth1", 0)]);
    see(&mut history, "a", 10, &[("eth0", 500), ("eth1", 100)]);
    assert_eq!(transmit(&history, "a", "eth0"), None);
    assert_eq!(transmit(&history, "a", "eth1"), Some(10.0));
    see(&mut history, "a", 20, &[("eth0", 600), ("eth1", 100)]);
    assert_eq!(transmit(&history, "a", "eth0"), Some(10.0));
}

#[test]
fn two_answers_within_a_second_divide_by_nothing() {
    let mut history = History::default();
    see(&mut history, "a", 0, &[("eth0", 0)]);
    see(&mut history, "a", 10, &[("eth0", 100)]);
    see(&mut history, "a", 10, &[("eth0", 1_000_000)]);
    assert_eq!(transmit(&history, "a", "eth0"), Some(10.0));
}

#[test]
fn a_clock_that_steps_back_begins_a_new_window() {
    let mut history = History::default();
    see(&mut history, "a", 1000, &[("eth0", 0)]);
    see(&mut history, "a", 5, &[("eth0", 100)]);
    assert_eq!(transmit(&history, "a", "eth0"), None);
    see(&mut history, "a", 15, &[("eth0", 200)]);
    assert_eq!(transmit(&history, "a", "eth0"), Some(10.0));
}

#[test]
fn a_gap_longer_than_data_may_be_old_is_no_window() {
    let mut history = History::default();
    see(&mut history, "a", 0, &[("eth0", 0)]);
    see(&mut history, "a", 181, &[("eth0", 100)]);
    assert_eq!(transmit(&history, "a", "eth0"), None);
    see(&mut history, "a", 191, &[("eth0", 200)]);
    assert_eq!(transmit(&history, "a", "eth0"), Some(10.0));
}

#[test]
fn a_node_that_leaves_or_joins_changes_nothing_for_the_others() {
    let mut history = History::default();
    for node in ["a", "b"] {
        see(&mut history, node, 0, &[("eth0", 0)]);
    }
    history.retain(|node| node != "b");
    see(&mut history, "a", 10, &[("eth0", 100)]);
    see(&mut history, "b", 10, &[("eth0", 5)]);
    assert_eq!(transmit(&history, "a", "eth0"), Some(10.0));
    assert_eq!(transmit(&history, "b", "eth0"), None);
}

#[test]
fn a_new_node_of_the_same_name_is_another_one() {
    let mut history = History::default();
    see_uid(&mut history, ("a", "old"), 0, &[("eth0", 0)]);
    see_uid(&mut history, ("a", "1"), 10, &[("eth0", 1_000_000)]);
    assert_eq!(transmit(&history, "a", "eth0"), None);
    assert!(history.of("a", "old").is_none());
}

#[test]
fn a_device_that_comes_back_is_another_one() {
    let mut history = History::default();
    see(&mut history, "a", 0, &[("eth0", 0), ("eth1", 0)]);
    see(&mut history, "a", 10, &[("eth0", 100)]);
    see(&mut history, "a", 20, &[("eth0", 200), ("eth1", 1_000_000)]);
    assert_eq!(transmit(&history, "a", "eth0"), Some(10.0));
    assert_eq!(transmit(&history, "a", "eth1"), None);
}

#[test]
fn what_nobody_counts_has_no_history() {
    let mut history = History::default();
    see(&mut history, "a", 0, &[("eth0", 0), ("lo", 0)]);
    let node = history.of("a", "1").unwrap();
    assert_eq!(node.devices().collect::<Vec<_>>(), ["eth0"]);
    assert_eq!(node.others(), ["lo"]);
}

#[test]
fn a_node_that_names_interfaces_without_end_takes_little() {
    let names: Vec<String> = (0..4096).map(|number| format!("eth{number:04}")).collect();
    let devices: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 7)).collect();
    let mut history = History::default();
    see(&mut history, "a", 0, &devices);
    see(&mut history, "a", 10, &devices);
    let node = history.of("a", "1").unwrap();
    assert_eq!(node.devices().count(), DEVICES_LIMIT);
    assert_eq!(node.others().len(), OTHERS_LIMIT);
    assert_eq!(
        transmit(&history, "a", "eth0000"),
        Some(0.0),
        "always the same"
    );
}

#[test]
fn long_windows_are_kept_in_few_readings_and_short_ones_stay_exact() {
    let mut ring = Ring::default();
    let long = Duration::from_hours(6);
    for second in 0..40_000_u64 {
        let counters = Counters {
            transmit: Some(second * 100),
            ..Counters::default()
        };
        ring.push(Reading::of(Moment::from_secs(second * 5), &counters), long);
    }
    for (window, most) in [(10, 10), (60, 90), (3600, 5400), (21_600, 32_400)] {
        let rates = ring.rates(Duration::from_secs(window), Duration::MAX);
        let rates = rates.unwrap();
        assert!(
            rates.over <= Duration::from_secs(most),
            "{window}: {rates:?}"
        );
        assert_eq!(rates.transmit, Some(20.0));
    }
}

proptest! {
    #[test]
    fn no_rate_is_negative_infinite_or_above_what_the_counters_say(
        steps in proptest::collection::vec(
            (0_u64..40_000, proptest::option::weighted(0.9, 0_u64..1 << 50), any::<bool>()), 1..200),
        window in 1_u64..120, longest in 1_u64..400,
    ) {
        let mut ring = Ring::default();
        let mut at = 0;
        let mut total: u64 = 0;
        let mut highest = 0;
        for (millis, value, steps_back) in steps {
            at = if steps_back && millis % 7 == 0 { at / 2 } else { at + millis };
            // Mostly growing, now and then a reset.
            let counter = value.map(|value| {
                total = if value % 11 == 0 { value / 1000 } else { total + value / 1000 };
                total
            });
            highest = highest.max(counter.unwrap_or_default());
            let reading = Reading {
                at: Moment(Duration::from_millis(at)), transmit: counter, receive: Some(7), speed: None,
            };
            ring.push(reading, Duration::from_secs(longest));
            prop_assert!(ring.0.len() <= READINGS_LIMIT);
            let grows = ring.0.iter().zip(ring.0.iter().skip(1)).all(|(one, next)| {
                next.goes_on_from(one) && next.at.since(one.at) >= Duration::from_secs(1)
            });
            prop_assert!(grows);
            if let Some(rates) = ring.rates(Duration::from_secs(window), Duration::from_secs(longest)) {
                let rate = rates.transmit.unwrap_or_default();
                prop_assert!(rate.is_finite() && rate >= 0.0);
                #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
                let most = highest as f64 / rates.over.as_secs_f64();
                prop_assert!(rate <= most);
                prop_assert_eq!(rates.receive, Some(0.0));
                prop_assert!(rates.over <= Duration::from_secs(longest));
            }
        }
    }
}

proptest! {
    #[test]
    fn what_is_cut_off_an_answer_would_not_be_kept(
        names in prop::collection::btree_set("(eth|veth)[0-9]{1,3}", 0..400),
    ) {
        let devices: Vec<(&str, u64)> = names.iter().map(|name| (&**name, 1)).collect();
        let (whole, mut cut) = (scrape(&devices), scrape(&devices));
        let counts = |name: &str| name.starts_with('e');
        cut_down(&mut cut, counts);
        prop_assert!(cut.interfaces.len() <= DEVICES_LIMIT + OTHERS_LIMIT);
        let [of_whole, of_cut] = [&whole, &cut].map(|scrape| {
            let mut history = History::default();
            let answer = Answer { node: "a", uid: "1", at: Moment::from_secs(0), time: 0, scrape };
            history.observe(&answer, WINDOW, counts);
            let node = history.of("a", "1").unwrap();
            let devices: Vec<String> = node.devices().map(str::to_owned).collect();
            (devices, node.others().to_vec())
        });
        prop_assert_eq!(of_whole, of_cut);
    }
}
