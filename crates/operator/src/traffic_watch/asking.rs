//! Asks the nodes' exporters, beside the looks: while labels of thousands of nodes are written nobody waits to be measured.
//! [`super::schedule`] says who is due, [`super::exporters`] has the questions.
//!
//! Exporters that are silent or slow must not delay the others. So there are two bounds: few questions are young, which is
//! what a network and this process can take at once; one that has no answer within a moment makes room for the next, and
//! merely waits, which costs a socket. Many may wait, as far as files may be open.

use std::{future::pending, pin::pin, sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};
use weir_place::{history::cut_down, moment::Moment};

use super::{
    context::Context,
    exporters::{Answer, ScrapeError},
    schedule::{Due, SharedSchedule},
};

/// Young questions at a time.
const YOUNG: usize = 256;
/// After so long without an answer a question is young no more. An honest exporter takes some 10 ms; when a thousand fall
/// silent at once, the others wait for four such times in all.
const YOUTH: Duration = Duration::from_millis(50);
/// Questions at a time, of any age, where enough files may be open.
const MOST: usize = 2048;
/// Answers that may wait for whoever decides. When there are more, he is so late that new ones do not help.
pub const ANSWERS: usize = 8192;

/// What came of one question.
#[derive(Debug)]
pub struct Asked {
    /// The node.
    pub node: String,
    /// Which of that name.
    pub uid: String,
    /// When the answer came.
    pub at: Moment,
    /// The same by the wall clock, in seconds since 1970.
    pub time: i64,
    /// How long it took.
    pub took: Duration,
    /// The answer, or why there is none.
    pub outcome: Result<Answer, ScrapeError>,
    /// There was none the last time either.
    pub was_failing: bool,
}

/// How many questions there may be at a time where so many files may be open. Each takes one; a quarter is left to the API
/// server's connections, ports and the rest, which out of files would all come to nothing.
pub fn most_questions(files: usize) -> usize {
    (files / 4 * 3).clamp(1, MOST)
}

/// Asks whoever is due until told to stop, or until nobody wants to know.
pub async fn ask(
    context: Arc<Context>,
    schedule: SharedSchedule,
    answers: mpsc::Sender<Asked>,
    mut stop: watch::Receiver<bool>,
) {
    let young = Arc::new(Semaphore::new(YOUNG));
    let mut asking: JoinSet<Asked> = JoinSet::new();
    loop {
        let due = schedule.next().map(|due| context.began + due.0);
        let may_ask = async {
            match due {
                Some(due) => sleep_until(due).await,
                None => pending().await,
            }
            Arc::clone(&young).acquire_owned().await
        };
        tokio::select! {
            biased;
            () = told(&mut stop) => break,
            Some(asked) = asking.join_next() => match asked {
                Ok(mut asked) => {
                    asked.was_failing = note(&schedule, &asked);
                    if answers.send(asked).await.is_err() {
                        break;
                    }
                }
                Err(error) => {
                    tracing::error!(%error, "a question to an exporter failed inside; please report it with the log above");
                }
            },
            () = schedule.changed() => {}
            permit = may_ask, if asking.len() < context.questions => {
                let (Ok(permit), Some(due)) = (permit, schedule.take(context.now())) else {
                    continue;
                };
                asking.spawn(ask_one(Arc::clone(&context), due, permit));
            }
        }
    }
    asking.shutdown().await;
}

async fn told(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Says in the schedule what came of a question; whether the one before it came to nothing as well.
fn note(schedule: &SharedSchedule, asked: &Asked) -> bool {
    let was_failing = schedule.asked(&asked.node).is_some_and(|it| it.failing);
    match &asked.outcome {
        Ok(answer) => schedule.answered(&asked.node, &asked.uid, answer.is_plain),
        Err(_) => schedule.failed(&asked.node, &asked.uid),
    }
    was_failing
}

async fn ask_one(context: Arc<Context>, due: Due, permit: OwnedSemaphorePermit) -> Asked {
    let began = Instant::now();
    let Due {
        name,
        uid,
        address,
        is_plain,
        counted,
    } = due;
    let mut outcome = {
        let mut asking = pin!(context.exporters.ask(address, is_plain));
        let soon = timeout(YOUTH, &mut asking).await;
        drop(permit);
        match soon {
            Ok(outcome) => outcome,
            Err(_) => asking.await,
        }
    };
    if let Ok(answer) = &mut outcome {
        let counts = |name: &str| counted.iter().any(|it| it.does_count(name));
        cut_down(&mut answer.scrape, counts);
    }
    Asked {
        node: name,
        uid,
        at: context.now(),
        time: Timestamp::now().as_second(),
        took: began.elapsed(),
        outcome,
        was_failing: false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_quarter_of_the_open_files_is_for_others(files in 4..usize::MAX) {
            let most = most_questions(files);
            prop_assert!((1..=MOST).contains(&most));
            prop_assert!(most <= files - files / 4);
        }
    }

    #[test]
    fn the_usual_limits_are_used() {
        assert_eq!(most_questions(1024), 768);
        assert_eq!(most_questions(1 << 20), MOST);
        assert_eq!(most_questions(0), 1, "rather than to ask nobody");
    }
}
