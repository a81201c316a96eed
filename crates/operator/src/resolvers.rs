//! The resolvers that are there, and what each of them knows.
//!
//! Only a resolver that is ready and knows a service, with its ports, may stand in that service's slice. Who is there
//! comes from the EndpointSlices of the resolvers' own Service ([`places`]); each is then asked what it knows, once an
//! interval ([`ask`]). What follows from both is decided in [`known`].

mod ask;
mod known;
mod places;
#[cfg(test)]
pub(crate) mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::{IpAddr, SocketAddr},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use ask::{AskError, Asker, By};
use futures_util::{Stream, StreamExt, stream::FuturesUnordered};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use known::{Answer, Known, Turn};
use kube::{Client, runtime::watcher};
use places::Places;
use tokio::time::{MissedTickBehavior, interval};
use weir_api::hold::{PortAllotment, names::SERVICE_NAME_LABEL};
use weir_role::{
    cluster::{self, ObjectId, Update},
    metrics::lock,
};

use weir_hold::facts::Knows;

/// Where resolvers are, and how often they are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolverSettings {
    /// The namespace of their Service.
    pub namespace: String,
    /// Its name.
    pub service: String,
    /// The port on which each tells what it knows.
    pub internal_port: u16,
    /// How often each is asked.
    pub interval: Duration,
    /// After so many questions in a row without an answer a resolver is left out.
    pub misses: u32,
}

/// A resolver that is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolver {
    /// Where it is.
    pub address: IpAddr,
    /// The node that it runs on.
    pub node: Option<String>,
    /// That node's zone.
    pub zone: Option<String>,
}

/// How much a service is used that stays behind a resolver, as that one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Requests and connections that are held or being served.
    pub open: usize,
    /// How long ago the last of them ended; none if there has not been one since it is counted.
    pub ended: Option<Duration>,
    /// How long it has been counted.
    pub counted: Duration,
}

/// Why a resolver said nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// A label for metrics, out of a fixed set.
    pub reason: &'static str,
    /// For people.
    pub why: String,
}

/// For which services the answers of [`Resolvers::for_service`] may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// For all: a resolver came, went or moved.
    All,
    /// For these: a resolver learned or forgot something about them, or cannot reach a pod of theirs any more, or can again.
    Services(Vec<ObjectId>),
}

/// What is known of the resolvers. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Resolvers {
    known: Arc<Mutex<Known>>,
    /// All that stand in the EndpointSlices, ready or not.
    there: Arc<Mutex<BTreeSet<IpAddr>>>,
    asker: Arc<Asker>,
}

/// Who hears of changes.
type Tell = Arc<dyn Fn(News) + Send + Sync>;

impl Resolvers {
    /// Follows the resolvers for as long as the future is polled; `tell` hears when something has changed.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "whoever starts it has no use for them afterwards"
    )]
    pub fn start(
        client: Client,
        settings: ResolverSettings,
        tell: Arc<dyn Fn(News) + Send + Sync>,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let theirs = format!("{SERVICE_NAME_LABEL}={}", settings.service);
        let config = watcher::Config::default().labels(&theirs);
        let slices = cluster::watch(&client, Some(&settings.namespace), config);
        Self::follow(slices, &settings, tell)
    }

    fn follow<S>(
        slices: S,
        settings: &ResolverSettings,
        tell: Tell,
    ) -> (Self, impl Future<Output = ()> + Send + use<S>)
    where
        S: Stream<Item = Update<EndpointSlice>> + Send,
    {
        let period = settings.interval;
        // One question is over before the next is due.
        let patience = period / 4 * 3;
        let resolvers = Self {
            known: Arc::new(Mutex::new(Known::new(settings.misses))),
            there: Arc::default(),
            asker: Arc::new(Asker::new(settings.internal_port, patience)),
        };
        let run = run(resolvers.clone(), slices, period, tell);
        (resolvers, run)
    }

    /// The ready resolvers in the order of their addresses, and whether each knows the service with all of these ports
    /// bound. Without ports it is enough to know the service.
    pub fn for_service(
        &self,
        service: &ObjectId,
        ports: &[PortAllotment],
    ) -> Vec<(Resolver, Knows)> {
        self.known().for_service(service, ports)
    }

    /// A ready pod of this service to which the resolvers, or one of them, cannot connect.
    pub fn unreachable(&self, service: &ObjectId) -> Option<SocketAddr> {
        self.known().unreachable(service)
    }

    /// The ones that are there and have not answered for a while.
    pub fn lost(&self) -> BTreeSet<IpAddr> {
        self.known().lost()
    }

    /// Asks all ready ones: which of them has a silent connection from this address?
    ///
    /// Where the address was rewritten on the way, the port is enough if exactly one resolver has one from there, and
    /// all others say that they do not.
    pub async fn saw(&self, peer: SocketAddr) -> Option<IpAddr> {
        // A resolver with addresses of both families is there twice; a connection goes to one of the same family.
        let asked: Vec<IpAddr> = {
            let known = self.known();
            let addresses = known.ready().map(|resolver| resolver.address);
            addresses
                .filter(|address| address.is_ipv4() == peer.is_ipv4())
                .collect()
        };
        let questions = asked
            .into_iter()
            .map(|address| async move { (address, self.asker.silent(address, peer).await) });
        let mut answers: FuturesUnordered<_> = questions.collect();
        let mut by_port = Vec::new();
        let mut is_complete = true;
        while let Some((address, answer)) = answers.next().await {
            match answer {
                Ok(Some(By::Address)) => return Some(address),
                Ok(Some(By::Port)) => by_port.push(address),
                Ok(None) => {}
                Err(_) => is_complete = false,
            }
        }
        match by_port[..] {
            [only] if is_complete => Some(only),
            _ => None,
        }
    }

    /// What all say of the services that stay behind them. That is more than the ready ones: who is led to no more still
    /// serves the connections that it has, for as long as it stands in an EndpointSlice.
    pub async fn usage(&self) -> BTreeMap<IpAddr, Result<HashMap<ObjectId, Usage>, Silence>> {
        let there = lock(&self.there).clone();
        let questions = there.into_iter().map(|address| async move {
            let answer = self.asker.usage(address).await;
            let answer = answer.map_err(|error| Silence {
                reason: error.reason(),
                why: error.to_string(),
            });
            (address, answer)
        });
        questions.collect::<FuturesUnordered<_>>().collect().await
    }

    /// Since the first look at the EndpointSlices and one round of questions is over. Before that an answer may leave
    /// out resolvers that are there.
    pub fn is_synced(&self) -> bool {
        self.known().is_synced()
    }

    /// Never kept across an await.
    fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }

    /// Takes in what came of a question.
    fn heard(&self, address: IpAddr, answer: Result<Answer, AskError>) -> Option<News> {
        let (answer, error) = match answer {
            Ok(answer) => (Some(answer), None),
            Err(error) => (None, Some(error)),
        };
        let outcome = match &error {
            Some(error) if error.is_refusal() => self.known().refused(address),
            _ => self.known().heard(address, answer),
        };
        match outcome.turn {
            Some(Turn::Lost) => {
                let error = error.as_ref().map(|error| error as &dyn std::error::Error);
                tracing::warn!(
                    %address, error,
                    "a resolver does not answer and is led to no more; see whether it runs and its internal port can be reached from here"
                );
            }
            Some(Turn::Back) => tracing::info!(%address, "a resolver answers again"),
            None => {}
        }
        outcome.news
    }
}

/// Watches and asks, until the watch ends: which is never.
async fn run(
    resolvers: Resolvers,
    slices: impl Stream<Item = Update<EndpointSlice>> + Send,
    period: Duration,
    tell: Tell,
) {
    let mut slices = pin!(slices);
    let mut places = Places::default();
    let mut tick = interval(period);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut questions = FuturesUnordered::new();
    let mut under_way = BTreeSet::new();
    loop {
        // Each is asked at every tick, and one that has just come at once.
        let mut is_tick = false;
        let news = tokio::select! {
            update = slices.next() => {
                let Some(update) = update else { return };
                places.apply(update);
                *lock(&resolvers.there) = places.all();
                resolvers.known().present(places.ready())
            }
            _ = tick.tick() => {
                is_tick = true;
                None
            }
            Some((address, answer)) = questions.next() => {
                under_way.remove(&address);
                resolvers.heard(address, answer)
            }
        };
        if let Some(news) = news {
            tell(news);
        }
        let known = resolvers.known();
        for (address, unless) in known.questions() {
            if (is_tick || known.is_new(address)) && under_way.insert(address) {
                let asker = Arc::clone(&resolvers.asker);
                questions.push(async move { (address, asker.status(address, unless).await) });
            }
        }
    }
}
