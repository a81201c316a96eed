//! Thousands of objects, made by several hands at a time.

use std::thread;

use anyhow::{Result, anyhow};

/// So many at a time: the API server has a core or two.
const HANDS: usize = 16;

/// Does this for each number of the range.
pub(in crate::bench) fn each(
    numbers: std::ops::Range<usize>,
    make: impl Fn(usize) -> Result<()> + Sync,
) -> Result<()> {
    let make = &make;
    thread::scope(|scope| {
        let hands: Vec<_> = (0..HANDS)
            .map(|first| {
                let mut mine = numbers.clone().skip(first).step_by(HANDS);
                scope.spawn(move || mine.try_for_each(make))
            })
            .collect();
        for hand in hands {
            hand.join().map_err(|_| anyhow!("a thread panicked"))??;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn each_number_is_taken_once() {
        let taken = Mutex::new(Vec::new());
        each(3..103, |number| {
            taken.lock().unwrap().push(number);
            Ok(())
        })
        .unwrap();
        let mut taken = taken.into_inner().unwrap();
        taken.sort_unstable();
        assert_eq!(taken, (3..103).collect::<Vec<_>>());
    }
}
