//! What cannot wait for the next leader: while the leader is silent, every other operator takes resolvers that do not
//! answer out of our slices.
//!
//! A node may be lost with the leader and a resolver on it. Connections for what sleeps would go to that resolver, and to
//! nowhere, until the Lease has run out and somebody else leads. To take it away is no decision: any leader would, and the
//! write is on the version that was read. All else waits.

use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use futures_util::{StreamExt, stream};
use weir_hold::facts::Knows;
use weir_role::cluster::ObjectId;

use super::{
    context::{Context, lock},
    dereference::{Claim, our_slices},
    hands::HandError,
    world::{service_of, sibling},
};

/// Slices at a time. Each is two requests to the API server.
const AT_A_TIME: usize = 16;

/// Takes resolvers that do not answer out of all slices that lead to others as well.
pub async fn stand_in(context: Arc<Context>) {
    let lost = context.resolvers.lost();
    let slices = slices_with(&context, &lost);
    let (context, lost) = (&*context, &lost);
    stream::iter(slices)
        .for_each_concurrent(AT_A_TIME, |slice| async move {
            match context.hands.take_out(&slice, lost).await {
                Ok(()) => tracing::info!(
                    namespace = %slice.namespace, slice = %slice.name, resolvers = ?lost,
                    "resolvers that do not answer were taken out, in place of the leader"
                ),
                // Somebody else was faster, which is as good.
                Err(HandError::Changed(_) | HandError::Gone(_)) => {}
                Err(error) => tracing::warn!(
                    namespace = %slice.namespace, slice = %slice.name,
                    error = &error as &dyn std::error::Error,
                    "a resolver that does not answer cannot be taken out"
                ),
            }
        })
        .await;
}

/// Our slices that lead to one of these, and to another that knows the service.
fn slices_with(context: &Context, lost: &BTreeSet<IpAddr>) -> Vec<ObjectId> {
    if lost.is_empty() {
        return Vec::new();
    }
    let world = lock(&context.world);
    let mut found = Vec::new();
    for (id, object) in world.objects() {
        let Some(sight) = world.sight(id) else {
            continue;
        };
        let slices = our_slices(&sight, Claim::All);
        if slices.iter().all(|slice| slice.ready.is_disjoint(lost)) {
            continue;
        }
        let ports = object.status.as_ref().map(|status| &status.ports[..]);
        let there = context
            .resolvers
            .for_service(&service_of(object), ports.unwrap_or_default());
        for slice in slices.iter().filter(|slice| !slice.ready.is_disjoint(lost)) {
            let takes = |(resolver, knows): &(crate::resolvers::Resolver, Knows)| {
                *knows == Knows::Yes && slice.ready.contains(&resolver.address)
            };
            if there.iter().any(takes) {
                found.push(sibling(id, &slice.name));
            }
        }
    }
    found
}
