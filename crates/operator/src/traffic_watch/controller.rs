//! The loop: takes in what the watches and the exporters say, and looks at all of it when something has changed, but not
//! more often than it helps. Only the leader asks exporters and writes; the others just follow, so that whoever leads next
//! knows the cluster already.

use std::{net::IpAddr, sync::Arc, time::Duration};

use futures_util::StreamExt;
use jiff::Timestamp;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};
use weir_place::moment::Moment;

use super::{
    context::Context,
    exporters::{Answer, ScrapeError},
    look::look,
    mind::{Mind, Scraped},
    watches,
    world::World,
};
use crate::leader::Leadership;

/// Questions to exporters at a time: each may hold an answer of some megabytes.
const SCRAPES: usize = 64;
/// From one look to the next, at least.
const PAUSE: Duration = Duration::from_millis(200);
/// While answers come in, a look waits for the others, but not longer than this.
const WAIT_FOR_ANSWERS: Duration = Duration::from_secs(1);
/// Without any news: figures grow old, and dwell times end.
const QUIET: Duration = Duration::from_secs(10);
/// After a write that failed, before it is tried again; doubled each time.
const RETRY: Duration = Duration::from_millis(500);
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// What was begun may be finished after the word to end.
const LAST_LOOK: Duration = Duration::from_secs(5);

/// What came of one question.
struct Asked {
    node: String,
    uid: String,
    at: Moment,
    time: i64,
    took: Duration,
    outcome: Result<Answer, ScrapeError>,
}

/// When to look next.
#[derive(Debug)]
struct Pace {
    /// Since when there is news.
    news: Option<Instant>,
    last: Instant,
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
    let mut told = watches::watch(&context.client, &namespaces, context.nodes.as_deref());
    let mut world = World::new(namespaces.len().max(1));
    let mut mind = Mind::default();
    let mut scrapes: JoinSet<Asked> = JoinSet::new();
    let mut pace = Pace::new();
    let mut leads = false;
    loop {
        let is_asking = !scrapes.is_empty();
        let wake_up = if leads && world.is_synced() {
            let due = mind.schedule.next().filter(|_| scrapes.len() < SCRAPES);
            let due = due.map(|due| context.began + due.0);
            due.into_iter().fold(pace.due(is_asking), Instant::min)
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
            Some(asked) = scrapes.join_next() => match asked {
                Ok(asked) => {
                    hear(&context, &mut mind, asked);
                    pace.hear();
                }
                Err(error) => {
                    tracing::error!(%error, "a question to an exporter failed inside; please report it with the log above");
                }
            },
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
        }
        leads |= is_leader;
        // A kind that was removed and comes back is listed anew: until then nobody knows what is an orphan.
        if !leads || !world.is_synced() {
            continue;
        }
        if pace.is_due(!scrapes.is_empty()) {
            let looking = look(&context, &mut world, &mut mind);
            let mut stop = stop.clone();
            let looked = tokio::select! {
                looked = looking => looked,
                () = async {
                    let _ = stop.wait_for(|stop| *stop).await;
                    tokio::time::sleep(LAST_LOOK).await;
                } => break,
            };
            pace.looked(looked.all_well);
            if looked.is_news {
                pace.hear();
            }
        }
        ask(&context, &world, &mut mind, &mut scrapes);
    }
    scrapes.abort_all();
    let ended = async { while scrapes.join_next().await.is_some() {} };
    let _ = timeout(LAST_LOOK, ended).await;
}

/// Asks whoever is due.
fn ask(context: &Arc<Context>, world: &World, mind: &mut Mind, scrapes: &mut JoinSet<Asked>) {
    let most = SCRAPES.saturating_sub(scrapes.len());
    for name in mind.schedule.take(most, context.now()) {
        let Some(node) = world.node(&name) else {
            continue;
        };
        let (uid, address) = (node.facts.uid.clone(), node.address);
        let is_plain = mind.schedule.is_plain(&name);
        scrapes.spawn(ask_one(Arc::clone(context), name, uid, address, is_plain));
    }
}

async fn ask_one(
    context: Arc<Context>,
    node: String,
    uid: String,
    address: Option<IpAddr>,
    is_plain: bool,
) -> Asked {
    let began = Instant::now();
    let outcome = context.exporters.ask(address, is_plain).await;
    Asked {
        node,
        uid,
        at: context.now(),
        time: Timestamp::now().as_second(),
        took: began.elapsed(),
        outcome,
    }
}

fn hear(context: &Context, mind: &mut Mind, asked: Asked) {
    context.metrics.place.scraped(asked.took);
    match asked.outcome {
        Ok(answer) => {
            mind.schedule
                .answered(&asked.node, &asked.uid, answer.is_plain);
            mind.hear(&Scraped {
                node: &asked.node,
                uid: &asked.uid,
                at: asked.at,
                time: asked.time,
                scrape: &answer.scrape,
            });
        }
        Err(error) => {
            context.metrics.place.scrape_failed(error.reason());
            let was_failing = (mind.schedule.asked(&asked.node)).is_some_and(|asked| asked.failing);
            if !was_failing {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(node = asked.node, error, "a node gives no figures");
            }
            mind.schedule.failed(&asked.node, &asked.uid);
        }
    }
}

impl Pace {
    fn new() -> Self {
        Self {
            news: None,
            last: Instant::now(),
            failures: 0,
        }
    }

    /// There is something to decide.
    fn hear(&mut self) {
        self.news.get_or_insert_with(Instant::now);
    }

    /// When to look.
    fn due(&self, is_asking: bool) -> Instant {
        let pause = match self.failures {
            0 => PAUSE,
            failures => RETRY
                .saturating_mul(1 << failures.min(8))
                .min(LONGEST_RETRY),
        };
        let soonest = self.last + pause;
        match self.news {
            Some(news) if is_asking => soonest.max(news + WAIT_FOR_ANSWERS),
            Some(news) => soonest.max(news),
            None if self.failures > 0 => soonest,
            None => self.last + QUIET,
        }
    }

    fn is_due(&self, is_asking: bool) -> bool {
        Instant::now() >= self.due(is_asking)
    }

    fn looked(&mut self, all_well: bool) {
        self.news = None;
        self.last = Instant::now();
        self.failures = if all_well {
            0
        } else {
            self.failures.saturating_add(1)
        };
    }
}
