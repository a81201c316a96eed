//! Ready pods to which no connection goes through: most often a NetworkPolicy keeps the resolvers out, and requests are
//! held until their time is up. The operator is told, which tells users.
//!
//! [`weir_wire`] notes of each endpoint since when its connections time out. Here is who is suspected ([`Suspects`], filled
//! by `table`'s observers), what is said of them ([`told`]), and the task that looks again where requests do not: when they
//! have all been given up, nobody else would notice that the pod can be reached.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    mem,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use tokio::time::{MissedTickBehavior, interval};

use crate::{admin::Unreachable, table::Table, view::ServiceId};

/// After so long without one connection that went through, somebody should look. A server with more to accept than its
/// queue takes is silent for a second or two.
pub const UNREACHABLE_AFTER: Duration = Duration::from_secs(5);
/// So many services are told of, at most, the first by name: an answer to the operator stays small when no network is
/// there at all.
pub const MOST_TOLD: usize = 1000;
/// How often silent endpoints are connected to.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// So many of them in one look, and at a time.
const MOST_LOOKED_AT: usize = 256;
const AT_A_TIME: usize = 32;

/// Services with an endpoint that accepted no connection in time, each once; so there are never more than services.
#[derive(Debug, Default)]
pub(crate) struct Suspects(Mutex<BTreeSet<ServiceId>>);

impl Suspects {
    pub(crate) fn add(&self, id: &ServiceId) {
        self.lock().insert(id.clone());
    }

    /// Those of which something can be found; the others are suspected no longer.
    pub(crate) fn confirmed<T>(
        &self,
        find: impl Fn(&ServiceId) -> Option<T>,
    ) -> BTreeMap<ServiceId, T> {
        // Taken before the look: who is suspected anew meanwhile stays so.
        let suspects = mem::take(&mut *self.lock());
        let found: BTreeMap<ServiceId, T> = suspects
            .into_iter()
            .filter_map(|id| {
                let found = find(&id)?;
                Some((id, found))
            })
            .collect();
        self.lock().extend(found.keys().cloned());
        found
    }

    /// Never kept across an await.
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeSet<ServiceId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the operator is told, in order and one endpoint for each service: always the first, so that the same is said as long
/// as it is so.
pub(crate) fn told(
    silent: impl IntoIterator<Item = (ServiceId, Vec<(SocketAddr, Duration)>)>,
) -> Vec<Unreachable> {
    let unreachable = silent.into_iter().filter_map(|(id, endpoints)| {
        let long = endpoints.into_iter();
        let long = long.filter(|(_, silent_for)| *silent_for >= UNREACHABLE_AFTER);
        Some(Unreachable {
            endpoint: long.map(|(address, _)| address).min()?,
            namespace: id.namespace,
            service: id.name,
        })
    });
    unreachable.take(MOST_TOLD).collect()
}

/// Connects to silent endpoints now and then, until `shutdown`.
pub(crate) async fn look_again(
    table: Arc<Table>,
    patience: Duration,
    shutdown: impl Future<Output = ()>,
) {
    let look = async {
        let mut tick = interval(LOOK_AGAIN);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let silent = table.silent().into_values().flatten();
            stream::iter(silent.take(MOST_LOOKED_AT))
                .for_each_concurrent(AT_A_TIME, async |it| {
                    it.backend.try_again(it.address, patience).await;
                })
                .await;
        }
    };
    tokio::select! {
        () = look => {}
        () = shutdown => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> ServiceId {
        ServiceId::new("shop", name)
    }

    fn address(number: u8) -> SocketAddr {
        ([192, 0, 2, number], 80).into()
    }

    #[test]
    fn the_first_that_is_silent_for_long_is_told_of_each() {
        let short = UNREACHABLE_AFTER
            .checked_sub(Duration::from_millis(1))
            .unwrap();
        let silent = [
            ("a", vec![(address(1), short), (address(2), short)]),
            (
                "b",
                vec![
                    (address(3), UNREACHABLE_AFTER),
                    (address(1), short),
                    (address(2), UNREACHABLE_AFTER * 9),
                ],
            ),
        ];
        let told = told(silent.map(|(name, endpoints)| (id(name), endpoints)));
        let expected = Unreachable {
            namespace: "shop".into(),
            service: "b".into(),
            endpoint: address(2),
        };
        assert_eq!(told, [expected]);
    }

    #[test]
    fn no_more_are_told_of_than_an_answer_should_have() {
        let all = (0..=MOST_TOLD).map(|number| {
            let endpoints = vec![(address(1), UNREACHABLE_AFTER)];
            (id(&format!("{number:05}")), endpoints)
        });
        let told = told(all);
        assert_eq!(told.len(), MOST_TOLD);
        assert_eq!(*told[0].service, *"00000");
    }

    #[test]
    fn who_is_confirmed_stays_suspected_and_nobody_else() {
        let suspects = Suspects::default();
        for name in ["a", "b", "a"] {
            suspects.add(&id(name));
        }
        let found = suspects.confirmed(|found| (*found == id("b")).then_some(1));
        assert_eq!(found, BTreeMap::from([(id("b"), 1)]));
        let asked = Mutex::new(Vec::new());
        let found = suspects.confirmed(|found| {
            asked.lock().unwrap().push(found.clone());
            // As one whose endpoint falls silent again just now.
            suspects.add(&id("c"));
            None::<()>
        });
        assert!(found.is_empty());
        assert_eq!(*asked.lock().unwrap(), [id("b")]);
        assert_eq!(suspects.confirmed(|_| Some(())).len(), 1, "c");
    }
}
