//! Following and asking, with resolvers that are real servers: each on its own loopback address, all on one port.

pub(crate) mod stand_in;

use std::{collections::BTreeMap, time::Duration};

use futures_util::stream;
use serde_json::{Value, json};
use stand_in::{Mood, StandIn, beside_each_other};
use tokio::{
    sync::{Notify, mpsc},
    task::JoinHandle,
    time::timeout,
};

use super::*;

const PATIENCE: Duration = Duration::from_mins(1);

/// What follows resolvers, and who hears of it.
pub(crate) struct Following {
    pub(crate) resolvers: Resolvers,
    slices: mpsc::Sender<Update<EndpointSlice>>,
    heard: Arc<Mutex<Vec<News>>>,
    news: Arc<Notify>,
    run: JoinHandle<()>,
}

impl Following {
    pub(crate) fn start(internal_port: u16) -> Self {
        let settings = ResolverSettings {
            namespace: "weir".to_owned(),
            service: "resolvers".to_owned(),
            internal_port,
            interval: Duration::from_millis(300),
            misses: 3,
        };
        let (send, receive) = mpsc::channel(16);
        let updates = stream::unfold(receive, |mut receive| async {
            let update = receive.recv().await?;
            Some((update, receive))
        });
        let heard = Arc::new(Mutex::new(Vec::new()));
        let news = Arc::new(Notify::new());
        let tell = {
            let (heard, news) = (Arc::clone(&heard), Arc::clone(&news));
            move |what| {
                heard.lock().unwrap().push(what);
                news.notify_one();
            }
        };
        let (resolvers, run) = Resolvers::follow(updates, &settings, Arc::new(tell));
        Self {
            resolvers,
            slices: send,
            heard,
            news,
            run: tokio::spawn(run),
        }
    }

    /// These addresses are ready, and no others.
    pub(crate) async fn place(&self, addresses: &[IpAddr]) {
        let update = Update::Set(Box::new(slice(addresses)));
        self.slices.send(update).await.unwrap();
    }

    /// All that is ready has been asked.
    pub(crate) async fn synced(&self) {
        self.until("synced", Resolvers::is_synced).await;
    }

    /// So many are ready.
    pub(crate) async fn ready(&self, count: usize) {
        let what = format!("{count} are ready");
        self.until(&what, |now| knows(now).len() == count).await;
    }

    /// Looks after each piece of news, and never without: so it is news that is tested as well.
    async fn until(&self, what: &str, is_so: impl Fn(&Resolvers) -> bool) {
        let listen = async {
            while !is_so(&self.resolvers) {
                self.news.notified().await;
            }
        };
        let in_time = timeout(PATIENCE, listen).await;
        assert!(in_time.is_ok(), "not in time: {what}; {:?}", self.resolvers);
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.run.abort();
    }
}

fn slice(addresses: &[IpAddr]) -> EndpointSlice {
    let endpoints = addresses.iter().map(|address| {
        json!({"addresses": [address.to_string()], "conditions": {"ready": true}, "nodeName": "n"})
    });
    let slice = json!({
        "metadata": {"namespace": "weir", "name": "resolvers-1"},
        "addressType": "IPv4",
        "endpoints": endpoints.collect::<Vec<Value>>(),
    });
    serde_json::from_value(slice).unwrap()
}

fn web() -> (ObjectId, [PortAllotment; 1]) {
    let port = PortAllotment {
        name: "http".to_owned(),
        resolver_port: 10240,
    };
    (ObjectId::new("shop", "web"), [port])
}

/// The ready ones, and whether each knows the service.
fn knows(resolvers: &Resolvers) -> BTreeMap<IpAddr, bool> {
    let (id, ports) = web();
    let answers = resolvers.for_service(&id, &ports).into_iter();
    answers
        .map(|(resolver, knows)| (resolver.address, knows == Knows::Yes))
        .collect()
}

#[tokio::test]
async fn who_is_there_is_asked_and_what_it_says_counts() {
    let [one, two] = beside_each_other().await;
    one.learns("web", 10240);
    let nobody: IpAddr = [127, 0, 0, 3].into();
    let following = Following::start(one.port);
    assert!(!following.resolvers.is_synced());
    following.place(&[one.address, two.address, nobody]).await;
    following.synced().await;
    let both = BTreeMap::from([(one.address, true), (two.address, false)]);
    following
        .until("both answer", |now| knows(now) == both)
        .await;
    let (id, ports) = web();
    let first = following.resolvers.for_service(&id, &ports).remove(0).0;
    assert_eq!(first.node.as_deref(), Some("n"));

    // One learns something: these are the services whose view has changed.
    following.heard.lock().unwrap().clear();
    two.learns("other", 10241);
    two.learns("web", 10240);
    let both = BTreeMap::from([(one.address, true), (two.address, true)]);
    following
        .until("both know it", |now| knows(now) == both)
        .await;
    let heard = following.heard.lock().unwrap().clone();
    let named = |news: &News| match news {
        News::All => Vec::new(),
        News::Services(ids) => ids.clone(),
    };
    let named: Vec<ObjectId> = heard.iter().flat_map(named).collect();
    assert!(named.contains(&id), "{heard:?}");

    // One cannot reach a pod, and then can.
    let pod: SocketAddr = "192.0.2.7:8080".parse().unwrap();
    for unreachable in [Some(pod), None] {
        two.cannot_reach(unreachable.map(|pod| ("web", pod)));
        following
            .until("it is said", |now| now.unreachable(&id) == unreachable)
            .await;
    }

    // The list is told once for each change, however often it is asked for.
    let lists = || (one.lists_told(), two.lists_told());
    let told = lists();
    two.asked(5).await;
    assert_eq!(lists(), told);
}

#[tokio::test]
async fn who_does_not_answer_is_left_out_until_it_does() {
    let [one, two] = beside_each_other().await;
    let following = Following::start(one.port);
    following.place(&[one.address, two.address]).await;
    let is_there = |address: IpAddr| move |now: &Resolvers| knows(now).contains_key(&address);
    let is_gone = |address: IpAddr| move |now: &Resolvers| !knows(now).contains_key(&address);
    following.until("one", is_there(one.address)).await;
    following.until("two", is_there(two.address)).await;
    for mood in [
        Mood::Fails,
        Mood::Hangs,
        Mood::Babbles,
        Mood::Drains,
        Mood::Starts,
    ] {
        two.is(mood);
        let what = format!("{mood:?}: gone");
        following.until(&what, is_gone(two.address)).await;
        two.is(Mood::Well);
        let what = format!("{mood:?}: back");
        following.until(&what, is_there(two.address)).await;
    }
    following.place(&[two.address]).await;
    following.until("one goes", is_gone(one.address)).await;
    // A process at the same address that is not the same.
    two.begins_anew();
    two.learns("web", 10240);
    let it_alone = BTreeMap::from([(two.address, true)]);
    following
        .until("two knows", |now| knows(now) == it_alone)
        .await;
}

#[tokio::test]
async fn a_connection_is_found_at_the_resolver_that_has_it() {
    let [one, two] = beside_each_other().await;
    let following = Following::start(one.port);
    following.place(&[one.address, two.address]).await;
    following.ready(2).await;
    let saw = |peer: &'static str| following.resolvers.saw(peer.parse().unwrap());
    let seen = async |peer: &'static str, by: &StandIn| {
        let look = async {
            // On a busy machine an answer may come too late.
            while saw(peer).await != Some(by.address) {}
        };
        let seen = timeout(PATIENCE, look).await;
        assert!(seen.is_ok(), "{peer} is not seen");
    };
    assert_eq!(saw("192.0.2.1:4000").await, None);
    two.accepts("192.0.2.1:4000".parse().unwrap());
    seen("192.0.2.1:4000", &two).await;
    // The address was rewritten on the way.
    seen("192.0.2.9:4000", &two).await;
    // Nobody of that family.
    assert_eq!(saw("[2001:db8::1]:4000").await, None);
    // It may be either's.
    one.accepts("192.0.2.2:4000".parse().unwrap());
    assert_eq!(saw("192.0.2.9:4000").await, None);
    seen("192.0.2.2:4000", &one).await;
    // It may be the one's that does not say.
    two.accepts("192.0.2.1:4001".parse().unwrap());
    seen("192.0.2.9:4001", &two).await;
    one.says_nothing_of_connections();
    assert_eq!(saw("192.0.2.9:4001").await, None);
    seen("192.0.2.1:4001", &two).await;
}
