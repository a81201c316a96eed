//! When the next bytes may go, so that a rate is kept. Who was held up does not catch up for long: a link that was full
//! is not flooded afterwards.

use std::{
    str::FromStr,
    time::{Duration, Instant},
};

/// So much of what was missed is caught up.
const ARREARS: Duration = Duration::from_millis(100);
/// Bytes go out in portions, about so many a second: timers cannot do much better than a millisecond.
const PORTIONS: f64 = 200.0;
/// Smaller ones are more work than bytes.
const SMALLEST: usize = 1400;

/// Bits per second; more than none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate(f64);

/// Keeps one sender to a rate.
#[derive(Clone, Debug)]
pub struct Pace {
    rate: Option<Rate>,
    /// When the next portion may go.
    due: Instant,
}

impl Rate {
    /// So many bits each second, if that is a rate.
    pub fn bits_per_second(bits: f64) -> Option<Self> {
        (bits.is_finite() && bits > 0.0).then_some(Self(bits))
    }

    /// What each of so many may send.
    #[must_use]
    pub fn shared_by(self, count: usize) -> Self {
        #[allow(clippy::cast_precision_loss, reason = "some connections")]
        let count = count.max(1) as f64;
        Self(self.0 / count)
    }

    fn bytes_per_second(self) -> f64 {
        self.0 / 8.0
    }

    /// How long so many bytes take.
    fn time_for(self, bytes: usize) -> Duration {
        #[allow(clippy::cast_precision_loss, reason = "a portion")]
        let seconds = bytes as f64 / self.bytes_per_second();
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

impl FromStr for Rate {
    type Err = String;

    /// `100Mbit`, `1.5Gbit`, `500kbit`, `8000bit`: as `tc` has them, and in any case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("{text:?} is no rate: write `500kbit`, `100Mbit` or `1.5Gbit`");
        let small = text.to_ascii_lowercase();
        let number = small.strip_suffix("bit").ok_or_else(wrong)?;
        let (number, factor) = match number.chars().last() {
            Some('k') => (number.strip_suffix('k'), 1e3),
            Some('m') => (number.strip_suffix('m'), 1e6),
            Some('g') => (number.strip_suffix('g'), 1e9),
            _ => (Some(number), 1.0),
        };
        let number: f64 = number.and_then(|it| it.parse().ok()).ok_or_else(wrong)?;
        Self::bits_per_second(number * factor).ok_or_else(wrong)
    }
}

impl Pace {
    /// Begins now.
    pub fn new(rate: Option<Rate>) -> Self {
        Self {
            rate,
            due: Instant::now(),
        }
    }

    /// How many bytes should go at once.
    pub fn portion(&self, most: usize) -> usize {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and bounded by the clamp"
        )]
        let portion = self.rate.map_or(most, |rate| {
            (rate.bytes_per_second() / PORTIONS).min(1e9) as usize
        });
        portion.clamp(SMALLEST.min(most), most)
    }

    /// Waits until so many bytes may go.
    pub async fn wait(&mut self, bytes: usize) {
        let pause = self.pause(bytes, Instant::now());
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }

    /// How long to wait until so many bytes may go; they count as gone.
    fn pause(&mut self, bytes: usize, now: Instant) -> Duration {
        let Some(rate) = self.rate else {
            return Duration::ZERO;
        };
        let earliest = now.checked_sub(ARREARS).unwrap_or(now);
        let goes = self.due.max(earliest);
        self.due = goes.checked_add(rate.time_for(bytes)).unwrap_or(goes);
        goes.saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rates_are_written_as_tc_has_them() {
        let bits = |text: &str| text.parse::<Rate>().map(|rate| rate.0);
        assert_eq!(bits("100Mbit"), Ok(100e6));
        assert_eq!(bits("1.5gbit"), Ok(1.5e9));
        assert_eq!(bits("500kbit"), Ok(500e3));
        assert_eq!(bits("8000bit"), Ok(8000.0));
        for wrong in [
            "", "bit", "Mbit", "100", "100M", "0Mbit", "-1kbit", "infbit", "1Tbit",
        ] {
            assert!(bits(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_delay_makes_it_send_more_than_its_rate_and_what_it_catches_up(
            bits in 1e5_f64..1e10,
            held_up in prop::collection::vec(0_u64..400_000, 1..200),
        ) {
            let rate = Rate::bits_per_second(bits).unwrap();
            let began = Instant::now();
            let mut pace = Pace { rate: Some(rate), due: began };
            let portion = pace.portion(64 << 10);
            let mut now = began;
            let mut sent = 0.0;
            for microseconds in held_up {
                now += pace.pause(portion, now);
                let elapsed = now.duration_since(began) + ARREARS;
                let most = elapsed.as_secs_f64() * rate.bytes_per_second();
                // Rounded to nanoseconds, each time.
                prop_assert!(sent <= most * (1.0 + 1e-6) + 1.0, "{sent} of {most}");
                #[allow(clippy::cast_precision_loss, reason = "a portion")]
                let bytes = portion as f64;
                sent += bytes;
                now += Duration::from_micros(microseconds);
            }
        }

        #[test]
        fn who_is_not_held_up_keeps_the_rate(bits in 1e5_f64..1e10, portions in 1_u32..500) {
            let rate = Rate::bits_per_second(bits).unwrap();
            let began = Instant::now();
            let mut pace = Pace { rate: Some(rate), due: began };
            let portion = pace.portion(64 << 10);
            let mut now = began;
            for _ in 0..portions {
                now += pace.pause(portion, now);
            }
            let expected = rate.time_for(portion).as_secs_f64() * f64::from(portions - 1);
            let took = now.duration_since(began).as_secs_f64();
            prop_assert!((took - expected).abs() <= expected * 1e-4 + 1e-6, "{took} for {expected}");
        }
    }
}
