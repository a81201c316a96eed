//! Waits for something to become so, with a firm deadline: [`eventually`].
//!
//! For tests. When the deadline passes it panics with the last state that was seen, so that a failure says what
//! was there instead. [`crate::Namespace::eventually`] adds what Kubernetes itself has to say.

#![allow(clippy::panic, reason = "for tests, which end by panicking")]

use std::{
    fmt::Display,
    pin::pin,
    time::{Duration, Instant},
};

/// How long after a look the next one is made: short at first, since most things are quick, and then less often.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// How long the last look may take, which is made when the time is up: a machine that stalled until then gets it all the same.
const LAST_LOOK: Duration = Duration::from_secs(5);

/// Looks again and again until it is so, and returns what was found.
///
/// Panics when `patience` is over, even in the middle of a look, with `what` was waited for and the last state seen. Where
/// there was an earlier look, a last one is made then.
///
/// ```no_run
/// # async fn replicas() -> u32 { 0 }
/// # async fn example() {
/// use std::time::Duration;
/// weir_lab::eventually(Duration::from_secs(5), "three replicas are ready", || async {
///     match replicas().await {
///         3 => Ok(()),
///         other => Err(format!("{other} are ready")),
///     }
/// })
/// .await;
/// # }
/// ```
pub async fn eventually<T, E, F>(patience: Duration, what: &str, look: impl FnMut() -> F) -> T
where
    E: Display,
    F: Future<Output = Result<T, E>>,
{
    match try_eventually(patience, look).await {
        Ok(found) => found,
        Err(last) => panic!("not so after {patience:?}: {what}; {last}"),
    }
}

/// As [`eventually`], with the last state as the error.
pub(crate) async fn try_eventually<T, E, F>(
    patience: Duration,
    mut look: impl FnMut() -> F,
) -> Result<T, String>
where
    E: Display,
    F: Future<Output = Result<T, E>>,
{
    let deadline = Instant::now() + patience;
    let mut last = None;
    let mut pause = FIRST_PAUSE;
    let mut is_last = false;
    loop {
        let end = if is_last {
            deadline.max(Instant::now() + LAST_LOOK)
        } else {
            deadline
        };
        let looked = tokio::time::timeout_at(end.into(), pin!(look())).await;
        match looked {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(state)) => last = Some(state.to_string()),
            Err(_) => {
                let hung = "the last look did not end in time";
                return Err(match last {
                    Some(state) => format!("last seen: {state} ({hung})"),
                    None => hung.to_owned(),
                });
            }
        }
        if is_last {
            return Err(format!("last seen: {}", last.unwrap_or_default()));
        }
        is_last = Instant::now() + pause >= deadline;
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, convert::Infallible, future};

    use super::*;

    #[tokio::test]
    async fn it_looks_until_it_is_so() {
        let looks = Cell::new(0);
        let found = eventually(Duration::from_secs(10), "the third look", || async {
            looks.set(looks.get() + 1);
            if looks.get() == 3 {
                Ok("there")
            } else {
                Err("not yet")
            }
        });
        assert_eq!(found.await, "there");
        assert_eq!(looks.get(), 3);
    }

    #[tokio::test]
    async fn it_looks_once_more_when_the_time_is_up_and_tells_the_last_state() {
        let looks = Cell::new(0);
        let told = try_eventually(Duration::from_millis(100), || async {
            looks.set(looks.get() + 1);
            Err::<Infallible, _>(format!("state {}", looks.get()))
        });
        assert_eq!(told.await, Err(format!("last seen: state {}", looks.get())));
        assert!(looks.get() > 1);
    }

    #[tokio::test]
    async fn a_machine_that_stalled_all_the_time_gets_another_look() {
        let looks = Cell::new(0);
        let found = try_eventually(Duration::from_millis(20), || async {
            looks.set(looks.get() + 1);
            if looks.get() == 1 {
                std::thread::sleep(Duration::from_millis(50));
                return Err("not yet");
            }
            Ok("there")
        });
        assert_eq!(found.await, Ok("there"));
    }

    #[tokio::test]
    async fn a_look_that_hangs_does_not_move_the_deadline() {
        let began = Instant::now();
        let told = try_eventually(Duration::from_millis(50), || {
            future::pending::<Result<Infallible, Infallible>>()
        });
        assert!(told.await.unwrap_err().contains("did not end in time"));
        assert!(began.elapsed() < Duration::from_mins(1));
    }

    #[tokio::test]
    #[should_panic(expected = "not so after 20ms: pigs fly; last seen: they walk")]
    async fn it_panics_with_what_was_waited_for() {
        eventually(Duration::from_millis(20), "pigs fly", || async {
            Err::<(), _>("they walk")
        })
        .await;
    }
}
