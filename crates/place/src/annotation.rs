//! The annotation with a node's load, for schedulers that score by node metadata: in steps, and not often, since each
//! write of a Node reaches everybody who watches nodes. Off by default; [`crate::plan`] carries it in the node's apply.

use weir_api::place::defaults::{BANDWIDTH_PERCENT_MIN_INTERVAL, BANDWIDTH_PERCENT_STEP};

use crate::moment::Moment;

/// What the annotation should say now. `there` is what it says, `written` when this process last wrote it. Without a
/// figure it goes: an old figure would mislead.
pub fn value(
    percent: Option<f64>,
    there: Option<&str>,
    written: Option<Moment>,
    now: Moment,
) -> Option<String> {
    let wanted = percent.map(|percent| step(percent).to_string());
    let is_too_soon = written.is_some_and(|at| now.since(at) < BANDWIDTH_PERCENT_MIN_INTERVAL);
    if is_too_soon {
        there.map(str::to_owned)
    } else {
        wanted
    }
}

/// The nearest step. More than 100 is possible where a capacity is said to be less than it is; a thousand is enough.
fn step(percent: f64) -> u32 {
    let steps = percent.clamp(0.0, 1000.0) / f64::from(BANDWIDTH_PERCENT_STEP);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped, and NaN becomes 0"
    )]
    let steps = steps.round() as u32;
    steps * BANDWIDTH_PERCENT_STEP
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn loads_are_written_in_steps_of_five() {
        for (percent, text) in [
            (0.0, "0"),
            (2.4, "0"),
            (2.6, "5"),
            (97.6, "100"),
            (1e9, "1000"),
        ] {
            let value = value(Some(percent), None, None, Moment::default());
            assert_eq!(value.as_deref(), Some(text), "{percent}");
        }
    }

    #[test]
    fn at_most_once_a_minute() {
        let at = |seconds| {
            let written = Some(Moment::default());
            value(Some(50.0), Some("10"), written, Moment::from_secs(seconds))
        };
        assert_eq!(at(59).as_deref(), Some("10"));
        assert_eq!(at(60).as_deref(), Some("50"));
    }

    #[test]
    fn without_a_figure_it_goes() {
        assert_eq!(value(None, Some("10"), None, Moment::default()), None);
    }

    proptest! {
        #[test]
        fn any_figure_gives_a_step(percent in any::<f64>()) {
            let value = value(Some(percent), None, None, Moment::default());
            prop_assert!(value.is_some_and(|text| text.parse::<u32>().is_ok_and(|step| step % 5 == 0)));
        }
    }
}
