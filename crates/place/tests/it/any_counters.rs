//! Whatever an exporter's counters and the clock do, a figure is never negative, infinite or above what the counters say.

use std::time::Duration;

use proptest::{collection::vec, prelude::*};
use serde_json::json;
use weir_place::{
    exposition,
    history::{Answer, History},
    measure::measure,
    moment::Moment,
};

use super::cluster::{node, watch};

#[derive(Clone, Debug)]
struct Step {
    /// Forth, or back now and then.
    seconds: i64,
    transmit: String,
    receive: String,
    /// Now and then it is another machine.
    uid: u8,
}

fn step() -> impl Strategy<Value = Step> {
    let value = || {
        prop_oneof![
            8 => (0_u64..1 << 40).prop_map(|value| value.to_string()),
            1 => Just("NaN".to_owned()),
            1 => Just("-1".to_owned()),
            1 => Just("+Inf".to_owned()),
        ]
    };
    let seconds = prop_oneof![9 => 0_i64..30, 1 => -2000_i64..2000];
    let uid = prop_oneof![9 => Just(0_u8), 1 => 0_u8..3];
    (seconds, value(), value(), uid).prop_map(|(seconds, transmit, receive, uid)| Step {
        seconds,
        transmit,
        receive,
        uid,
    })
}

proptest! {
    #[test]
    fn no_figure_is_above_what_the_counters_say(steps in vec(step(), 1..60), direction in "transmit|receive|max") {
        let bits = 1_000_000_000_u64;
        let settings = watch("web", 1, &json!({
            "direction": direction, "capacities": [{ "nodeSelector": {}, "bitsPerSecond": bits }],
        })).settings();
        let mut history = History::default();
        let mut there = node("a");
        let mut seconds: i64 = 5000;
        let mut highest = 0.0_f64;
        for step in steps {
            seconds = (seconds + step.seconds).max(0);
            let now = Moment(Duration::from_secs(seconds.unsigned_abs()));
            there.uid = step.uid.to_string();
            let body = format!(
                "node_network_transmit_bytes_total{{device=\"eth0\"}} {}\nnode_network_receive_bytes_total{{device=\"eth0\"}} {}\n",
                step.transmit, step.receive,
            );
            for value in [&step.transmit, &step.receive] {
                highest = highest.max(value.parse().unwrap_or_default()).min(1e15);
            }
            if let Ok(scrape) = exposition::read(body.as_bytes()) {
                let answer = Answer { node: "a", uid: &there.uid, at: now, time: seconds, scrape: &scrape };
                history.observe(&answer, settings.window, |_| true);
            }
            let measured = measure(&there, history.of("a", &there.uid), &settings, now);
            if let Ok(figure) = measured.figure {
                // At most all that was ever counted, within the shortest window.
                let most = highest * 8.0 * 100.0 / 1e9 / (settings.window.as_secs_f64() * 0.9);
                prop_assert!(figure.percent.is_finite() && figure.percent >= 0.0);
                prop_assert!(figure.percent <= most, "{} > {most}", figure.percent);
            }
        }
    }
}
