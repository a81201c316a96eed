//! The loop: takes in what the watches say, and looks at who is touched, several at a time.
//!
//! Every operator follows the watches, so that it can wake targets. Only the leader looks after objects; [`stand_in`] says
//! what others do while it is silent.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};
use weir_api::hold::defaults::FAIL_OPEN_WAKES_PER_SECOND;
use weir_role::cluster::ObjectId;

use super::{
    context::{Context, lock},
    reconcile::reconcile,
    stand_in::stand_in,
    watches,
    world::rank,
};
use crate::leader::Leadership;

/// Looks at a time. Each is a few requests to the API server.
const LOOKS: usize = 32;
/// What was begun may be finished after the word to end.
const LAST_LOOKS: Duration = Duration::from_secs(5);
/// How often it is looked for what cannot wait while the leader is silent: that a resolver is lost need not be news to anybody
/// else, a write may fail, and either may happen while another look is under way.
const STAND_IN: Duration = Duration::from_secs(1);
/// Where nothing is to come by time alone.
const LONG: Duration = Duration::from_hours(1);

/// Runs until told to stop.
pub async fn run(
    context: Arc<Context>,
    namespaces: Vec<String>,
    mut leadership: watch::Receiver<Leadership>,
    synced: watch::Sender<bool>,
    mut stop: watch::Receiver<bool>,
) {
    let mut told = watches::watch(&context.client, &namespaces);
    let mut looks: JoinSet<(ObjectId, Option<jiff::Timestamp>)> = JoinSet::new();
    let mut fail_open = interval(Duration::from_secs(1) / FAIL_OPEN_WAKES_PER_SECOND);
    fail_open.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut leads = false;
    let mut standing_in: JoinSet<()> = JoinSet::new();
    let mut stand_in_again = interval(STAND_IN);
    stand_in_again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let wake_up = next_moment(&context);
        let is_silent = leadership.borrow().is_silent();
        let mut is_news = true;
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            changed = leadership.changed() => {
                if changed.is_err() {
                    break;
                }
            }
            Some(done) = looks.join_next() => match done {
                Ok((id, again)) => context.queue.lock().done(&id, again),
                // A look that panicked: its object is looked at again with all others.
                Err(error) => {
                    tracing::error!(%error, "a look failed inside; please report it with the log above");
                    context.queue.mark_everything();
                }
            },
            Some(told) = told.next() => hear(&context, told, &synced),
            () = context.queue.filled() => {}
            _ = fail_open.tick(), if !lock(&context.fail_open).is_idle() => {
                let granted = lock(&context.fail_open).grant();
                context.queue.mark(granted);
            }
            Some(_) = standing_in.join_next() => is_news = false,
            _ = stand_in_again.tick(), if is_silent => {}
            () = sleep_until(wake_up) => is_news = false,
        }
        let is_silent = leadership.borrow().is_silent();
        if is_news && is_silent && *synced.borrow() && standing_in.is_empty() {
            standing_in.spawn(stand_in(Arc::clone(&context)));
        }
        let is_leader = leadership.borrow().is_leader() && *synced.borrow();
        if is_leader && !leads {
            begin_to_lead(&context);
        }
        leads = is_leader;
        // Nobody may say what is asleep before it is known who holds requests.
        if leads && context.resolvers.is_synced() {
            start_looks(&context, &mut looks);
        }
    }
    let finish = async { while looks.join_next().await.is_some() {} };
    // What takes longer is cut: every write may be the last one of this process.
    let _ = tokio::time::timeout(LAST_LOOKS, finish).await;
}

fn hear(context: &Arc<Context>, told: super::world::Told, synced: &watch::Sender<bool>) {
    let mut world = lock(&context.world);
    let touched = world.hear(told);
    let is_synced = world.is_synced();
    drop(world);
    context.queue.mark(touched);
    synced.send_if_modified(|synced| {
        let is_new = is_synced && !*synced;
        *synced |= is_synced;
        is_new
    });
}

/// The book of ports is read from what the objects say, the oldest first; then all are looked at.
fn begin_to_lead(context: &Arc<Context>) {
    let world = lock(&context.world);
    let mut objects: Vec<_> = world.objects().collect();
    objects.sort_by_cached_key(|(_, object)| rank(object));
    let mut book = lock(&context.book);
    for (id, object) in &objects {
        if let Some(status) = &object.status {
            book.enter(id, &status.ports);
        }
    }
    tracing::info!(elasti_services = objects.len(), "leads, and looks at all");
    drop(book);
    drop(world);
    context.board.set_active(true);
    context.meter.set_active(true);
    context.turnstile.set_active(true);
    context.metrics.set_leader(true);
    context.queue.mark_everything();
}

fn start_looks(context: &Arc<Context>, looks: &mut JoinSet<(ObjectId, Option<jiff::Timestamp>)>) {
    if context.queue.take_everything() {
        let all: Vec<ObjectId> = lock(&context.world)
            .objects()
            .map(|(id, _)| id.clone())
            .collect();
        context.queue.mark(all);
    }
    let services = context.queue.take_services();
    if !services.is_empty() {
        let world = lock(&context.world);
        let holders = services.iter().filter_map(|service| world.holder(service));
        let holders: Vec<ObjectId> = holders.map(|holder| ObjectId::of(&***holder)).collect();
        drop(world);
        context.queue.mark(holders);
    }
    while looks.len() < LOOKS {
        let Some(id) = context.queue.lock().take(context.now()) else {
            return;
        };
        let context = Arc::clone(context);
        looks.spawn(async move {
            let again = reconcile(&context, &id).await;
            (id, again)
        });
    }
}

fn next_moment(context: &Arc<Context>) -> Instant {
    let moment = context.queue.lock().next_moment();
    moment.map_or_else(
        || Instant::now() + LONG,
        |moment| context.clock.instant(moment),
    )
}
