//! The loop: takes in what the watches and the exporters say, and looks at all of it when something has changed, but not
//! more often than it helps. Only the leader asks exporters and writes; the others just follow, so that whoever leads next
//! knows the cluster already.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

use super::{
    asking::{ANSWERS, Asked, ask},
    context::Context,
    look::look,
    mind::{Mind, Scraped},
    watches,
    world::World,
};
use crate::leader::Leadership;

/// From one look to the next, at least.
const PAUSE: Duration = Duration::from_millis(200);
/// In a large cluster a look takes its time: so many times as long nothing is looked at, and the processor is free.
const REST: u32 = 2;
/// While answers come in, a look waits for the others, but not longer than this.
const WAIT_FOR_ANSWERS: Duration = Duration::from_secs(1);
/// The last answer of many was so long ago.
const LULL: Duration = Duration::from_millis(100);
/// Without any news: figures grow old, and dwell times end.
const QUIET: Duration = Duration::from_secs(10);
/// After a write that failed, before it is tried again; doubled each time.
const RETRY: Duration = Duration::from_millis(500);
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// What was begun may be finished after the word to end.
const LAST_LOOK: Duration = Duration::from_secs(5);

/// When to look next.
#[derive(Debug)]
struct Pace {
    /// Since when there is news.
    news: Option<Instant>,
    /// When the last answer came.
    answered: Option<Instant>,
    last: Instant,
    /// How long the last look took.
    took: Duration,
    failures: u32,
}

/// Runs until told to stop.
pub async fn run(
    context: Arc<Context>,
    namespaces: Vec<String>,
    mut leadership: watch::Receiver<Leadership>,
    synced: watch::Sender<bool>,
    mut stop: watch::Receiver<bool>,
) {
    let mut told = watches::watch(
        &context.client,
        &namespaces,
        context.nodes.as_deref(),
        &context.exporters_at,
    );
    let mut world = World::new(namespaces.len().max(1), context.exporters_at.clone());
    let mut mind = Mind::default();
    let (tell, mut answers) = mpsc::channel::<Asked>(ANSWERS);
    let mut asking = JoinSet::new();
    let mut pace = Pace::new();
    let mut leads = false;
    loop {
        let wake_up = if leads && world.is_synced() {
            pace.due()
        } else {
            Instant::now() + QUIET
        };
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            changed = leadership.changed() => {
                if changed.is_err() {
                    break;
                }
            }
            Some(asked) = answers.recv() => {
                hear(&context, &mut mind, asked);
                pace.hear_answer();
            }
            Some(told) = told.next() => {
                if world.hear(told) {
                    pace.hear();
                }
                let is_synced = world.is_synced();
                synced.send_if_modified(|synced| is_synced && !std::mem::replace(synced, is_synced));
            }
            () = sleep_until(wake_up) => {}
        }
        let is_leader = leadership.borrow().is_leader() && world.is_synced();
        if is_leader && !leads {
            tracing::info!(
                traffic_watches = world.watches().count(),
                nodes = world.nodes().count(),
                "leads, and measures nodes"
            );
            context.metrics.set_leader(true);
            pace.hear();
            let (context, schedule) = (Arc::clone(&context), mind.schedule.clone());
            asking.spawn(ask(context, schedule, tell.clone(), stop.clone()));
        }
        leads |= is_leader;
        // A kind that was removed and comes back is listed anew: until then nobody knows what is an orphan.
        if !leads || !world.is_synced() {
            continue;
        }
        if pace.is_due() {
            let began = Instant::now();
            let looking = look(&context, &mut world, &mut mind);
            let mut stop = stop.clone();
            let looked = tokio::select! {
                looked = looking => looked,
                () = async {
                    let _ = stop.wait_for(|stop| *stop).await;
                    tokio::time::sleep(LAST_LOOK).await;
                } => break,
            };
            pace.looked(looked.all_well, began.elapsed());
            if looked.is_news {
                pace.hear();
            }
        }
    }
    drop(answers);
    let ended = async { while asking.join_next().await.is_some() {} };
    let _ = timeout(LAST_LOOK, ended).await;
}

fn hear(context: &Context, mind: &mut Mind, asked: Asked) {
    context.metrics.place.scraped(asked.took);
    match asked.outcome {
        Ok(answer) => mind.hear(&Scraped {
            node: &asked.node,
            uid: &asked.uid,
            at: asked.at,
            time: asked.time,
            scrape: &answer.scrape,
        }),
        Err(error) => {
            context.metrics.place.scrape_failed(error.reason());
            if !asked.was_failing {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(node = asked.node, error, "a node gives no figures");
            }
        }
    }
}

impl Pace {
    fn new() -> Self {
        Self {
            news: None,
            answered: None,
            last: Instant::now(),
            took: Duration::ZERO,
            failures: 0,
        }
    }

    /// There is something to decide.
    fn hear(&mut self) {
        self.news.get_or_insert_with(Instant::now);
    }

    /// An answer came, and more may follow.
    fn hear_answer(&mut self) {
        self.hear();
        self.answered = Some(Instant::now());
    }

    /// When to look.
    fn due(&self) -> Instant {
        let pause = match self.failures {
            0 => PAUSE.max(self.took * REST),
            failures => RETRY
                .saturating_mul(1 << failures.min(8))
                .min(LONGEST_RETRY),
        };
        let soonest = self.last + pause;
        match self.news {
            Some(news) => {
                let lull = self.answered.map_or(news, |answered| answered + LULL);
                soonest.max(lull.clamp(news, news + WAIT_FOR_ANSWERS))
            }
            None if self.failures > 0 => soonest,
            None => self.last + QUIET,
        }
    }

    fn is_due(&self) -> bool {
        Instant::now() >= self.due()
    }

    fn looked(&mut self, all_well: bool, took: Duration) {
        self.news = None;
        self.last = Instant::now();
        self.took = took;
        self.failures = if all_well {
            0
        } else {
            self.failures.saturating_add(1)
        };
    }
}
