//! When an ElastiService is looked at though nothing has happened. Each has a moment of its own in every period, by its
//! name: thousands that were all looked at at one time, as after a start, do not come all together again.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use jiff::Timestamp;
use weir_hold::settings::after;
use weir_role::cluster::ObjectId;

/// Its next moment: after `now`, and not more than a period.
pub fn next_turn(id: &ObjectId, now: Timestamp, period: Duration) -> Timestamp {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    let period = i64::try_from(period.as_millis()).unwrap_or(i64::MAX).max(1);
    let own = hasher.finish() % period.unsigned_abs();
    let gone = now.as_millisecond().rem_euclid(period).unsigned_abs();
    let period = period.unsigned_abs();
    let ahead = (own + period - gone) % period;
    let ahead = if ahead == 0 { period } else { ahead };
    after(now, Duration::from_millis(ahead))
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use proptest::prelude::*;

    use super::*;

    const PERIOD: Duration = Duration::from_mins(10);

    fn id(number: u32) -> ObjectId {
        ObjectId::new("shop", &format!("web-{number}"))
    }

    #[test]
    fn thousands_that_were_looked_at_together_come_one_after_the_other() {
        let now = Timestamp::from_second(1_790_000_000).unwrap();
        let mut in_each_minute = [0_u32; 10];
        for number in 0..10_000 {
            let ahead = next_turn(&id(number), now, PERIOD).duration_since(now);
            let minute = usize::try_from(ahead.as_millis() / 60_000).unwrap();
            in_each_minute[minute.min(9)] += 1;
        }
        assert!(
            in_each_minute
                .iter()
                .all(|count| (800..1200).contains(count)),
            "{in_each_minute:?}"
        );
    }

    proptest! {
        #[test]
        fn a_turn_comes_once_in_every_period(number in any::<u32>(), now in 0_i64..4_000_000_000_000) {
            let now = Timestamp::from_millisecond(now).unwrap();
            let first = next_turn(&id(number), now, PERIOD);
            let ahead = first.duration_since(now);
            prop_assert!(ahead > SignedDuration::ZERO && ahead <= SignedDuration::from_mins(10));
            let second = next_turn(&id(number), first, PERIOD);
            prop_assert!(second.duration_since(first) >= SignedDuration::from_mins(10) - SignedDuration::from_millis(1));
        }
    }
}
