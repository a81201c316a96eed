//! Kubelets that do what real ones seldom do, over real TLS on loopback. Real ones are asked in the cluster tests of `weir`.

mod stand_in;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{sync::watch, task::JoinHandle, time::timeout};
use weir_hold::facts::Triggers;
use weir_operator::{
    elasti_service::triggers::{
        Verdict,
        network::{
            Find, Meter, MeterSettings,
            kubelet::{ANSWER_LIMIT, AskError, Kubelets},
            nodes::NodeError,
            table::PARALLEL,
            wanted::{Place, Traffic, Wanted},
        },
    },
    settings::kubelets::{KubeletSettings, Trust},
};
use weir_role::cluster::ObjectId;

use self::stand_in::{Authority, Says, StandIn};

const PATIENCE: Duration = Duration::from_mins(1);
/// Longer than any test: what happens by then happened at once, or in the first round.
const LONG: Duration = Duration::from_hours(1);
const SHORT: Duration = Duration::from_millis(50);
/// By the kubelets' clocks, which run faster here.
const COOLDOWN: Duration = Duration::from_mins(1);

/// For a machine with much else to do.
fn patient(authority: &Authority, trust: Option<Trust>) -> Kubelets {
    let trust = trust.unwrap_or_else(|| Trust::Authorities(authority.file("ca.crt")));
    let settings = KubeletSettings {
        port: None,
        trust,
        token: authority.file("token"),
    };
    Kubelets::new(&settings).with_timeout(PATIENCE)
}

#[tokio::test]
async fn a_kubelet_is_asked_for_its_summary_with_our_token() {
    let authority = Authority::new();
    let kubelet = StandIn::start(&authority, "127.0.0.1").await;
    let summary = patient(&authority, None)
        .ask(kubelet.address)
        .await
        .unwrap();
    assert_eq!(summary["uid-a"].counters.received, 1000);
    let asked = kubelet.asked();
    assert!(
        asked[0].starts_with("get /stats/summary http/1.1\r\n"),
        "{asked:?}"
    );

    std::fs::write(authority.file("token"), "wrong").unwrap();
    let refused = patient(&authority, None)
        .ask(kubelet.address)
        .await
        .unwrap_err();
    assert!(matches!(refused, AskError::Unauthorized), "{refused}");
}

#[tokio::test]
async fn what_is_no_summary_says_why() {
    let authority = Authority::new();
    let kubelet = StandIn::start(&authority, "127.0.0.1").await;
    let kubelets = patient(&authority, None);
    let found = "HTTP/1.1 302 Found\r\nlocation: /stats/summary/\r\ncontent-length: 0\r\n\r\n";
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"node\":";
    for (says, reason, why) in [
        (
            Says::Status("401 Unauthorized"),
            "unauthorized",
            "does not take our token",
        ),
        (
            Says::Status("403 Forbidden"),
            "unauthorized",
            "right to get nodes/stats",
        ),
        (
            Says::Status("500 Internal Server Error"),
            "status",
            "it answers 500",
        ),
        (Says::Raw(found), "status", "it answers 302"),
        (Says::Raw(cut), "cut", "breaks off"),
        (Says::Raw(""), "unreachable", "cannot be reached"),
        (Says::Raw("SSH-2.0\r\n"), "unreachable", "cannot be reached"),
        (Says::Body("<html>"), "malformed", "not a kubelet's summary"),
        (
            Says::Body("{\"pods\": []}"),
            "malformed",
            "not a kubelet's summary",
        ),
        (Says::Endless, "too_long", "longer than 8 MiB"),
    ] {
        kubelet.says(says);
        let error = kubelets.ask(kubelet.address).await.unwrap_err();
        assert_eq!(error.reason(), reason, "{says:?}: {error}");
        assert!(error.to_string().contains(why), "{says:?}: {error}");
    }
    const { assert!(ANSWER_LIMIT >= 8 * 1024 * 1024) };
    // None of that stays with it.
    kubelet.says(Says::Pods);
    assert_eq!(kubelets.ask(kubelet.address).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_kubelet_has_only_so_long_from_the_first_byte_to_the_last() {
    let authority = Authority::new();
    let kubelet = StandIn::start(&authority, "127.0.0.1").await;
    let hasty = patient(&authority, None).with_timeout(Duration::from_millis(500));
    for says in [Says::Nothing, Says::Drip] {
        kubelet.says(says);
        let error = hasty.ask(kubelet.address).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "no answer within 0.5 s; see whether the node is overloaded"
        );
    }
}

#[tokio::test]
async fn whoever_cannot_show_the_right_certificate_gets_no_token() {
    let authority = Authority::new();
    let other = Authority::new();
    let foreign = StandIn::start(&other, "127.0.0.1").await;
    let elsewhere = StandIn::start(&authority, "127.0.0.2").await;
    for kubelet in [&foreign, &elsewhere] {
        let error = patient(&authority, None)
            .ask(kubelet.address)
            .await
            .unwrap_err();
        assert_eq!(error.reason(), "certificate", "{error}");
        let told = error.to_string();
        assert!(told.contains("--kubelet-ca-file") && told.contains("--kubelet-insecure-tls"));
        assert_eq!(kubelet.asked(), [""; 0], "nothing was sent");

        let careless = patient(&authority, Some(Trust::Anybody));
        assert_eq!(careless.ask(kubelet.address).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn files_that_cannot_be_read_are_named_and_read_again() {
    let authority = Authority::new();
    let kubelet = StandIn::start(&authority, "127.0.0.1").await;
    let missing = authority.file("none");
    let kubelets = patient(&authority, Some(Trust::Authorities(missing.clone())));
    let kubelets = kubelets.good_for(Duration::ZERO);
    let error = kubelets.ask(kubelet.address).await.unwrap_err();
    assert_eq!(error.reason(), "ca");
    let told = error.to_string();
    assert!(
        told.contains(missing.to_str().unwrap()) && told.contains("--kubelet-ca-file"),
        "{told}"
    );
    std::fs::copy(authority.file("ca.crt"), &missing).unwrap();
    assert!(kubelets.ask(kubelet.address).await.is_ok());

    // Kubernetes renews both.
    let renewed = Authority::new();
    let kubelet = StandIn::start(&renewed, "127.0.0.1").await;
    kubelet.wants("renewed");
    std::fs::copy(renewed.file("ca.crt"), &missing).unwrap();
    std::fs::write(authority.file("token"), "renewed\n").unwrap();
    let answer = kubelets.ask(kubelet.address).await;
    assert_eq!(answer.unwrap().len(), 1);

    std::fs::remove_file(authority.file("token")).unwrap();
    let without = patient(&renewed, None);
    std::fs::remove_file(renewed.file("token")).unwrap();
    let error = without.ask(kubelet.address).await.unwrap_err();
    assert_eq!(error.reason(), "token");
    assert!(
        error.to_string().contains("--kubelet-token-file"),
        "{error}"
    );
}

/// A meter with the task behind it, and ears for what it tells.
struct Measuring {
    meter: Meter,
    told: watch::Receiver<u64>,
    outcomes: Arc<Mutex<Vec<&'static str>>>,
    task: JoinHandle<()>,
}

impl Measuring {
    fn start(kubelets: Kubelets, find: Find, polling_interval: Duration) -> Self {
        let (tell, told) = watch::channel(0);
        let outcomes = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&outcomes);
        let settings = MeterSettings {
            polling_interval,
            may_ask: true,
            kubelets,
            find,
        };
        let (meter, work) = Meter::start(
            settings,
            Arc::new(move |_| tell.send_modify(|count| *count += 1)),
            Arc::new(move |outcome| heard.lock().unwrap().push(outcome)),
        );
        Self {
            meter,
            told,
            outcomes,
            task: tokio::spawn(work),
        }
    }

    fn set(&self, name: &str, pods: &[(&str, &str)]) {
        let place = |(pod, node): &(&str, &str)| {
            let place = Place {
                name: (*pod).to_owned(),
                node: (*node).into(),
                address: "10.0.0.1".parse().unwrap(),
            };
            (format!("uid-{pod}").into(), place)
        };
        let traffic = Traffic {
            threshold: 4096.0,
            cooldown: COOLDOWN,
            pods: pods.iter().map(place).collect::<BTreeMap<_, _>>(),
            stranger: None,
        };
        self.meter.set(object(name), Wanted::Traffic(traffic));
    }

    /// Waits for a verdict; each look is after something was told.
    async fn until(&mut self, name: &str, is_so: impl Fn(&Verdict) -> bool) -> Verdict {
        let listen = async {
            loop {
                self.told.mark_unchanged();
                let verdict = self.meter.verdict(&object(name));
                if is_so(&verdict) {
                    return verdict;
                }
                self.told.changed().await.expect("the task goes on");
            }
        };
        let heard = timeout(PATIENCE, listen).await.ok();
        heard.unwrap_or_else(|| panic!("{name} is {:?}", self.meter.verdict(&object(name))))
    }

    async fn says(&mut self, name: &str, triggers: Triggers) -> Verdict {
        self.until(name, |verdict| verdict.triggers == triggers)
            .await
    }
}

impl Drop for Measuring {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn object(name: &str) -> ObjectId {
    ObjectId::new("default", name)
}

/// Where each of these is; of all others there is no Node.
fn at(nodes: &[(&'static str, &StandIn)]) -> Find {
    let nodes: HashMap<&str, _> = nodes.iter().map(|(name, it)| (*name, it.address)).collect();
    Arc::new(move |node| {
        let found = nodes.get(&*node).copied();
        Box::pin(async move { found.ok_or(NodeError::Missing) })
    })
}

#[tokio::test]
async fn quiet_pods_are_idle_after_a_cooldown_and_busy_ones_at_once() {
    let authority = Authority::new();
    let one = StandIn::start(&authority, "127.0.0.1").await;
    let other = StandIn::start(&authority, "127.0.0.1").await;
    other.calls_its_pod("uid-b");
    let find = at(&[("n1", &one), ("n2", &other)]);
    let mut measuring = Measuring::start(patient(&authority, None), find, SHORT);
    measuring.set("web", &[("a", "n1"), ("b", "n2")]);
    assert_eq!(measuring.meter.verdict(&object("web")), Verdict::unheard());
    measuring.meter.set_active(true);
    measuring.says("web", Triggers::Idle).await;
    // It was looked at over the whole cooldown by then: a kubelet here counts every 15 s.
    for kubelet in [&one, &other] {
        assert!(kubelet.asked().len() > 4, "{}", kubelet.asked().len());
    }
    other.sends(4096);
    let busy = measuring.says("web", Triggers::Busy).await;
    let why = "the traffic of the pod b is not below 4096 bytes per second";
    assert_eq!(busy.why.as_deref(), Some(why));
    assert_eq!(measuring.outcomes.lock().unwrap()[0], "success");
}

#[tokio::test]
async fn a_node_that_fails_makes_its_pods_unknown_and_no_others() {
    let authority = Authority::new();
    let good = StandIn::start(&authority, "127.0.0.1").await;
    let bad = StandIn::start(&authority, "127.0.0.1").await;
    let hangs = StandIn::start(&authority, "127.0.0.1").await;
    hangs.says(Says::Nothing);
    let find = at(&[("good", &good), ("bad", &bad), ("hangs", &hangs)]);
    let mut measuring = Measuring::start(patient(&authority, None), find, SHORT);
    measuring.meter.set_active(true);
    measuring.set("well", &[("a", "good")]);
    measuring.set("ill", &[("a", "bad")]);
    measuring.set("stuck", &[("a", "hangs")]);
    measuring.set("nowhere", &[("a", "gone")]);
    measuring.set("uncounted", &[("z", "good")]);
    measuring.says("well", Triggers::Idle).await;
    measuring.says("ill", Triggers::Idle).await;
    let nowhere = measuring
        .until("nowhere", |verdict| verdict.why.is_some())
        .await;
    assert_eq!(nowhere.triggers, Triggers::Unknown);
    let why = "the kubelet of the node gone: no Node is called so";
    assert_eq!(nowhere.why.as_deref(), Some(why));
    for name in ["stuck", "uncounted"] {
        let verdict = measuring.meter.verdict(&object(name));
        assert_eq!(verdict.triggers, Triggers::Unknown, "{name}");
    }

    bad.says(Says::Status("500 Internal Server Error"));
    let ill = measuring.says("ill", Triggers::Unknown).await;
    let why = "the kubelet of the node bad: it answers 500 Internal Server Error; see whether the node is well";
    assert_eq!(ill.why.as_deref(), Some(why));
    let before = good.asked().len();
    good.until_asked(before + 3).await;
    assert_eq!(
        measuring.meter.verdict(&object("well")).triggers,
        Triggers::Idle
    );
    assert_eq!(
        hangs.asked().len(),
        1,
        "it is not asked again while it hangs"
    );

    bad.says(Says::Pods);
    measuring.says("ill", Triggers::Idle).await;
}

#[tokio::test]
async fn a_kubelet_is_asked_once_for_a_hundred_services() {
    let authority = Authority::new();
    let kubelet = StandIn::start(&authority, "127.0.0.1").await;
    let find = at(&[("n1", &kubelet)]);
    let mut measuring = Measuring::start(patient(&authority, None), find, LONG);
    let names: Vec<String> = (0..100).map(|number| format!("web-{number}")).collect();
    for name in &names {
        measuring.set(name, &[("a", "n1")]);
    }
    assert_eq!(kubelet.asked(), [""; 0], "nobody is asked before it leads");
    measuring.meter.set_active(true);
    for name in &names {
        measuring.until(name, |verdict| !verdict.is_unheard).await;
    }
    assert_eq!(kubelet.asked().len(), 1);
}

#[tokio::test]
async fn not_all_kubelets_are_asked_at_the_same_time() {
    let authority = Authority::new();
    let (under_way, mut so_many) = watch::channel(0);
    let most = Arc::new(AtomicUsize::new(0));
    let gate = watch::Sender::new(false);
    let find: Find = {
        let (most, gate) = (Arc::clone(&most), gate.clone());
        Arc::new(move |_| {
            let (most, under_way, mut gate) =
                (Arc::clone(&most), under_way.clone(), gate.subscribe());
            Box::pin(async move {
                under_way.send_modify(|count: &mut usize| *count += 1);
                most.fetch_max(*under_way.borrow(), Ordering::SeqCst);
                let _ = gate.wait_for(|open| *open).await;
                under_way.send_modify(|count| *count -= 1);
                Err(NodeError::NoAddress)
            })
        })
    };
    let mut measuring = Measuring::start(patient(&authority, None), find, LONG);
    let names: Vec<String> = (0..50).map(|number| format!("n{number}")).collect();
    for name in &names {
        measuring.set(name, &[("a", name)]);
    }
    measuring.meter.set_active(true);
    let full = so_many.wait_for(|count| *count == PARALLEL);
    timeout(PATIENCE, full).await.expect("in time").unwrap();
    gate.send_replace(true);
    for name in &names {
        measuring.until(name, |verdict| verdict.why.is_some()).await;
    }
    assert_eq!(most.load(Ordering::SeqCst), PARALLEL);
}
