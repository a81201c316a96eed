//! Waking a target at once, on a resolver's word. Every operator does it, leader or not: it is the same whoever does it,
//! and however often.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use kube::ResourceExt;
use weir_api::hold::{
    AutoscalerType, ElastiService,
    names::{metrics::scale_target, report::EventReason},
};
use weir_hold::facts::Version;
use weir_role::cluster::ObjectId;
use weir_wake::Sleeper;

use super::{
    context::{Context, lock},
    dereference,
    sight::Kind,
    world::sibling,
};
use crate::admin::{WakeAnswer, Wakes};

/// Wakes targets.
pub struct Waker {
    context: Arc<Context>,
    /// Wakes under way: who asks meanwhile gets the same answer.
    running: Mutex<HashMap<ObjectId, Shared<BoxFuture<'static, WakeAnswer>>>>,
}

impl Waker {
    /// Wakes what this context knows.
    pub fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            running: Mutex::default(),
        }
    }
}

impl Wakes for Waker {
    fn wake(&self, service: ObjectId, held: u64) -> BoxFuture<'_, WakeAnswer> {
        let holder = lock(&self.context.world).holder(&service).cloned();
        let Some(object) = holder else {
            return std::future::ready(WakeAnswer::Unknown).boxed();
        };
        let id = ObjectId::of(&**object);
        tracing::debug!(namespace = %id.namespace, name = %id.name, held, "a wake is asked for");
        let wake = {
            let mut running = lock(&self.running);
            // Whoever waited for it may have gone without taking it away.
            if running.get(&id).is_some_and(|entry| entry.peek().is_some()) {
                running.remove(&id);
            }
            let entry = running.entry(id.clone()).or_insert_with(|| {
                let context = Arc::clone(&self.context);
                let id = id.clone();
                async move { wake(&context, &id, &object).await }
                    .boxed()
                    .shared()
            });
            entry.clone()
        };
        async move {
            let answer = wake.clone().await;
            let mut running = lock(&self.running);
            if running.get(&id).is_some_and(|entry| entry.ptr_eq(&wake)) {
                running.remove(&id);
            }
            answer
        }
        .boxed()
    }
}

async fn wake(context: &Context, id: &ObjectId, object: &ElastiService) -> WakeAnswer {
    if !is_served(context, id) {
        context.wake_asked(id);
    }
    let reference = &object.spec.scale_target_ref;
    let kind = Kind::of(reference);
    let target = sibling(id, &reference.name);
    let autoscaler = object.spec.autoscaler.as_ref();
    let scaler = autoscaler.filter(|it| it.type_ == AutoscalerType::Keda);
    let scaler = scaler.map(|scaler| sibling(id, &scaler.name));
    let group = group(context, object);
    let group: Vec<&str> = group.iter().map(String::as_str).collect();
    let known = at_zero(context, id);
    let sleeper = Sleeper {
        kind: &kind,
        target: &target,
        scaler: scaler.as_ref(),
        group: &group,
        replicas: object.spec.min_target_replicas.max(1),
        at_zero: known.as_ref(),
    };
    let outcome = context.hands.waking.wake(&sleeper).await;
    let (_, kind) = reference.canonical();
    let label = scale_target(kind, &reference.name);
    let service = &object.spec.service;
    match outcome {
        Ok(true) => {
            context
                .metrics
                .scaled(&id.namespace, service, &label, "success");
            let text = format!("{kind} {} scaled up: requests are waiting", reference.name);
            context.tell(object, EventReason::SuccessToScale.as_str(), "Scale", text);
            tracing::info!(namespace = %id.namespace, service, target = label, "woken");
            WakeAnswer::Woken
        }
        Ok(false) => WakeAnswer::AlreadyAwake,
        Err(error) => {
            context
                .metrics
                .scaled(&id.namespace, service, &label, error.reason());
            let text = format!("{kind} {} not woken: {error}", reference.name);
            context.warn(
                object,
                EventReason::FailedToScale.as_str(),
                "Scale",
                text.clone(),
            );
            tracing::warn!(namespace = %id.namespace, service, error = &error as &dyn std::error::Error, "not woken");
            WakeAnswer::Failed(text)
        }
    }
}

/// Whether an endpoint is ready. Then a signal is a late one: were it remembered, it would overrule who scales the target
/// to zero in the next seconds. Should the watches be late instead, resolvers repeat it while they hold requests.
fn is_served(context: &Context, id: &ObjectId) -> bool {
    let sight = lock(&context.world).sight(id);
    sight.is_some_and(|sight| !dereference::endpoints(&sight).is_empty())
}

/// The version of the target at which the watches saw it at zero.
fn at_zero(context: &Context, id: &ObjectId) -> Option<Version> {
    let sight = lock(&context.world).sight(id)?;
    let target = sight.target.there()?;
    target.version.clone().filter(|_| target.replicas == 0)
}

/// The names of all on the target.
fn group(context: &Context, object: &ElastiService) -> Vec<String> {
    let world = lock(&context.world);
    let others = world.group(object);
    let others = others.iter().map(|other| other.name_any());
    others.chain([object.name_any()]).collect()
}
