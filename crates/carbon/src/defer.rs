//! Work that may wait: how much of it to start when, so that it is done where the grid is cleanest and
//! never past its deadline. [`crate::throttle`] slows everything; this moves only what said that it can wait.

/// Requests that may wait until the same deadline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deferrable {
    /// How many.
    pub requests: f64,
    /// The last slot in which they may start, counted from the present one.
    pub last_slot: usize,
}

/// For each slot, the present one first, how many of the deferrable requests to start.
///
/// Those with the nearest deadline choose first, each taking the cleanest slots with room up to its
/// deadline. `room` is what a slot can take; what finds no room anywhere starts now. A slot whose
/// intensity is unknown (NaN) is never waited for.
pub fn plan(work: &[Deferrable], intensity: &[f64], room: f64) -> Vec<f64> {
    let slots = intensity.len().max(1);
    let mut started = vec![0.0; slots];
    let room = if room.is_nan() { 0.0 } else { room.max(0.0) };
    let mut work = work.to_vec();
    work.sort_by_key(|one| one.last_slot);
    let mut order: Vec<(usize, f64)> = intensity
        .iter()
        .copied()
        .enumerate()
        .filter(|(_, value)| !value.is_nan())
        .collect();
    // Equally clean: the earlier one.
    order.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    for one in work {
        let mut left = if one.requests.is_finite() {
            one.requests.max(0.0)
        } else {
            0.0
        };
        for (slot, _) in order.iter().filter(|(slot, _)| *slot <= one.last_slot) {
            if let Some(taken) = started.get_mut(*slot) {
                let more = left.min((room - *taken).max(0.0));
                *taken += more;
                left -= more;
            }
        }
        if let Some(now) = started.first_mut() {
            *now += left;
        }
    }
    started
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(requests: f64, last_slot: usize) -> Deferrable {
        Deferrable {
            requests,
            last_slot,
        }
    }

    #[test]
    fn work_waits_for_the_cleanest_slot_before_its_deadline() {
        let forecast = [200.0, 150.0, 300.0, 50.0];
        assert_eq!(
            plan(&[all(10.0, 2)], &forecast, 100.0),
            [0.0, 10.0, 0.0, 0.0]
        );
        assert_eq!(
            plan(&[all(10.0, 9)], &forecast, 100.0),
            [0.0, 0.0, 0.0, 10.0]
        );
        assert_eq!(
            plan(&[all(10.0, 0)], &forecast, 100.0),
            [10.0, 0.0, 0.0, 0.0]
        );
    }

    #[test]
    fn the_nearer_deadline_chooses_first_and_room_is_respected() {
        let forecast = [200.0, 50.0, 100.0];
        let started = plan(&[all(8.0, 2), all(8.0, 1)], &forecast, 10.0);
        assert_eq!(started, [0.0, 10.0, 6.0]);
        assert_eq!(plan(&[all(25.0, 1)], &forecast, 10.0), [15.0, 10.0, 0.0]);
    }

    #[test]
    fn what_is_unknown_is_not_waited_for() {
        assert_eq!(plan(&[all(5.0, 3)], &[f64::NAN, 300.0], 10.0), [0.0, 5.0]);
        assert_eq!(plan(&[all(5.0, 3)], &[], 10.0), [5.0]);
        assert_eq!(plan(&[all(f64::NAN, 3)], &[1.0], f64::NAN), [0.0]);
    }
}
