//! Where a test plays: a namespace of its own in the cluster, with Weir around it.

use std::{
    fmt::Display,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::net::TcpStream;
use weir_api::hold::names::{self, AddressFamily};
use weir_lab::{Namespace, TestCluster};

use super::{
    echo::Echo,
    install,
    objects::{Kind, Objects},
    second::{Second, Settings},
};

/// Longer than anything here takes: a pod that starts on a busy machine is the slowest.
pub(super) const PATIENCE: Duration = Duration::from_mins(3);
/// A resolver accepts at once.
const CONNECT: Duration = Duration::from_secs(1);
/// So many in a row do not go past a pod by chance.
const CONNECTIONS: usize = 10;

/// A namespace, and Weir.
pub(super) struct Bed {
    pub(super) cluster: TestCluster,
    pub(super) namespace: Namespace,
    /// What is in the namespace.
    pub(super) objects: Objects,
    /// What is in Weir's.
    pub(super) weir: Objects,
    /// Weir, where it is not the usual one.
    pub(super) second: Option<Second>,
}

impl Bed {
    /// A new namespace; Weir is installed before if it is not.
    pub(super) async fn new(name: &str) -> Self {
        let cluster = weir_lab::cluster().await;
        install::installed(&cluster).await;
        let namespace = cluster.namespace(&format!("hold-{name}")).await;
        Self {
            objects: Objects::new(cluster.client(), namespace.name()),
            weir: Objects::new(cluster.client(), install::NAMESPACE),
            cluster,
            namespace,
            second: None,
        }
    }

    /// A new namespace that another Weir than the usual one cares for, with these settings.
    pub(super) async fn with_second(name: &str, settings: Settings) -> Self {
        let bed = Self::new(name).await;
        let second = Second::installed(&bed.cluster, bed.namespace.name(), settings).await;
        Self {
            weir: Objects::new(bed.cluster.client(), &second.namespace),
            second: Some(second),
            ..bed
        }
    }

    /// Looks until it is so.
    pub(super) async fn until<T, E, F>(&self, what: &str, look: impl FnMut() -> F) -> T
    where
        E: Display,
        F: Future<Output = Result<T, E>>,
    {
        self.namespace.eventually(PATIENCE, what, look).await
    }

    /// Makes it, awake and held.
    pub(super) async fn hold(&self, echo: &Echo) {
        self.serve(echo).await;
        self.apply_elasti(echo, &echo.elasti()).await;
        self.is_in(echo, "serve").await;
    }

    /// Makes the workload and its Service, and waits for a pod.
    pub(super) async fn serve(&self, echo: &Echo) {
        let objects = &self.objects;
        objects
            .apply(Kind::Service, echo.name, &echo.service())
            .await;
        objects.apply(echo.kind, echo.name, &echo.workload()).await;
        self.has_a_pod(echo).await;
        self.is_led_to(echo).await;
    }

    /// Waits until the Service's address leads to somebody: nodes follow a new pod by themselves, up to a second later.
    pub(super) async fn is_led_to(&self, echo: &Echo) {
        let address = self.address(echo).await;
        self.until("somebody takes connections", || async {
            // Nothing is said in it.
            let connection = TcpStream::connect(address).await;
            connection.map(drop)
        })
        .await;
    }

    /// Waits until one of its pods is ready.
    pub(super) async fn has_a_pod(&self, echo: &Echo) {
        self.until("a pod is ready", || async {
            let labels = format!("app={}", echo.name);
            let pods = self.objects.list(Kind::Pod, &labels).await;
            let is_ready = pods.iter().any(is_ready);
            if is_ready { Ok(()) } else { Err("none is") }
        })
        .await;
    }

    pub(super) async fn apply_elasti(&self, echo: &Echo, elasti: &Value) {
        let objects = &self.objects;
        objects.apply(Kind::ElastiService, echo.name, elasti).await;
    }

    /// Awake, held, and then scaled to zero by hand; returns when requests are held.
    pub(super) async fn at_zero(&self, echo: &Echo) {
        self.hold(echo).await;
        self.put_to_zero(echo).await;
    }

    /// Scales to zero by hand; returns when requests are held, on this node as well.
    pub(super) async fn put_to_zero(&self, echo: &Echo) {
        self.scale(echo, 0).await;
        self.is_in(echo, "proxy").await;
        self.leads_to_resolvers(echo).await;
    }

    /// As a user does with `kubectl scale`.
    pub(super) async fn scale(&self, echo: &Echo, replicas: i32) {
        let change = json!({"spec": {"replicas": replicas}});
        self.objects.patch(echo.kind, echo.name, &change).await;
    }

    /// Waits until the ElastiService says so.
    pub(super) async fn is_in(&self, echo: &Echo, mode: &str) {
        self.until(&format!("{} is in mode {mode}", echo.name), || async {
            let status = self.status(echo).await;
            if status["mode"] == mode {
                Ok(())
            } else {
                Err(format!("status: {status}"))
            }
        })
        .await;
    }

    /// Waits until it is in this phase, or has been since this was asked: some last for seconds only.
    pub(super) async fn is_in_phase(&self, echo: &Echo, phase: &str) {
        let is_so = |object: &Value| object["status"]["phase"] == phase;
        let kind = Kind::ElastiService;
        let became = self.objects.becomes(kind, echo.name, PATIENCE, is_so).await;
        // Said with what Kubernetes has to say.
        let what = format!("{} is {phase}", echo.name);
        let look = || async { became.clone() };
        self.namespace.eventually(Duration::ZERO, &what, look).await;
    }

    /// Waits until its pods have gone and connections to the Service go to resolvers alone: kube-proxy follows up to a second
    /// later, and until then some go to a pod that is not there.
    pub(super) async fn leads_to_resolvers(&self, echo: &Echo) {
        let address = self.address(echo).await;
        self.until("pods are gone and connections are accepted", || async {
            let labels = format!("app={}", echo.name);
            let pods = self.objects.list(Kind::Pod, &labels).await;
            if !pods.is_empty() {
                return Err(format!("{} pods are there", pods.len()));
            }
            connects(address).await
        })
        .await;
    }

    /// Has the operator put it to sleep; returns when requests are held. From then on nobody does: what is awake again
    /// stays so.
    pub(super) async fn is_put_to_sleep(&self, echo: &Echo) {
        let mut elasti = echo.elasti();
        // Each minute opens a window of a minute: it is always in one.
        elasti["spec"]["triggers"] = json!([{"type": "schedule", "metadata": {
            "schedule": "* * * * *", "duration": "1m", "timeZone": "UTC",
        }}]);
        self.apply_elasti(echo, &elasti).await;
        self.falls_asleep(echo).await;
        self.apply_elasti(echo, &echo.elasti()).await;
    }

    /// Waits until the operator has put it to sleep, and requests are held.
    pub(super) async fn falls_asleep(&self, echo: &Echo) {
        self.is_in_phase(echo, "Asleep").await;
        assert_eq!(self.status(echo).await["mode"], "proxy");
        self.leads_to_resolvers(echo).await;
    }

    /// Waits until this condition of it is true, and returns what it says.
    pub(super) async fn is_told(&self, echo: &Echo, condition: &str) -> String {
        self.until(&format!("{} says {condition}", echo.name), || async {
            let status = self.status(echo).await;
            match self::condition(&status, condition) {
                Some(it) if it["status"] == "True" => Ok(it["message"].to_string()),
                _ => Err(format!("status: {status}")),
            }
        })
        .await
    }

    pub(super) async fn status(&self, echo: &Echo) -> Value {
        let elasti = self.objects.find(Kind::ElastiService, echo.name).await;
        elasti.map(|it| it["status"].clone()).unwrap_or_default()
    }

    /// What the workload is to have.
    pub(super) async fn replicas(&self, echo: &Echo) -> i64 {
        let workload = self.objects.get(echo.kind, echo.name).await;
        workload["spec"]["replicas"].as_i64().expect("replicas")
    }

    /// Where the Service is reached.
    pub(super) async fn address(&self, echo: &Echo) -> SocketAddr {
        let service = self.objects.get(Kind::Service, echo.name).await;
        let address = service["spec"]["clusterIP"].as_str();
        let address: Ipv4Addr = address.expect("an address").parse().expect("an address");
        let port = service["spec"]["ports"][0]["port"].as_u64();
        SocketAddr::from((
            address,
            port.and_then(|it| it.try_into().ok()).expect("a port"),
        ))
    }

    /// The addresses in the slice that leads to the resolvers; none if there is no such slice.
    pub(super) async fn slice(&self, echo: &Echo) -> Option<Vec<String>> {
        let name = names::resolver_slice(echo.name, AddressFamily::V4);
        let slice = self.objects.find(Kind::EndpointSlice, &name).await?;
        let mut addresses: Vec<String> = slice["endpoints"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|endpoint| endpoint["addresses"][0].as_str())
            .map(str::to_owned)
            .collect();
        addresses.sort();
        Some(addresses)
    }

    /// The addresses of the resolvers that are ready and stay.
    pub(super) async fn resolvers(&self) -> Vec<String> {
        let labels = "app.kubernetes.io/component=resolver";
        let pods = self.weir.list(Kind::Pod, labels).await;
        let mut addresses: Vec<String> = pods
            .iter()
            .filter(|pod| is_ready(pod))
            .filter_map(|pod| pod["status"]["podIP"].as_str())
            .map(str::to_owned)
            .collect();
        addresses.sort();
        addresses
    }

    /// Waits until the slice holds the resolvers that are ready, and no others.
    pub(super) async fn leads_to_all_resolvers(&self, echo: &Echo) {
        self.until("the slice holds all resolvers", || async {
            let resolvers = self.resolvers().await;
            let slice = self.slice(echo).await;
            if !resolvers.is_empty() && slice.as_ref() == Some(&resolvers) {
                Ok(())
            } else {
                Err(format!("{slice:?}, and {resolvers:?} are ready"))
            }
        })
        .await;
    }

    /// Waits until the Service's address leads to the pods and nowhere else.
    pub(super) async fn is_out_of_the_path(&self, echo: &Echo) {
        let address = self.address(echo).await;
        self.until("requests go straight to the pods", || async {
            if self.slice(echo).await.is_some() {
                return Err("the slice is still there".to_owned());
            }
            let answer = super::client::get(address, "/echo").await;
            assert_eq!(answer.status, 200, "{answer:?}");
            match answer.header("x-weir-via") {
                "-" => Ok(()),
                via => Err(format!("via {via}")),
            }
        })
        .await;
    }

    /// Ends a pod of Weir at once, as a crash would: it has no time to say goodbye.
    pub(super) fn kill(&self, pod: &str) {
        let mut kubectl = self.cluster.kubectl();
        kubectl.args(["-n", install::NAMESPACE, "delete", "pod", pod]);
        kubectl.args(["--grace-period=0", "--force", "--wait=false"]);
        let output = kubectl.output().expect("kubectl runs");
        assert!(output.status.success(), "{output:?}");
    }

    /// The test is over: what it has made would only be in the way of the next.
    pub(super) async fn end(self) {
        self.objects.delete_all().await;
    }
}

/// Whether somebody accepts each of many connections. They send nothing, so nobody is woken.
pub(super) async fn connects(address: SocketAddr) -> Result<(), String> {
    for _ in 0..CONNECTIONS {
        let connect = TcpStream::connect(address);
        let connected = tokio::time::timeout(CONNECT, connect).await;
        let connected = connected.map_err(|_| "no connection yet".to_owned())?;
        connected.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// The condition of this type.
pub(super) fn condition<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    let mut all = status["conditions"].as_array().into_iter().flatten();
    all.find(|it| it["type"] == kind)
}

/// Ready, and not about to go.
fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let ready = |it: &Value| it["type"] == "Ready" && it["status"] == "True";
    let is_going = !pod["metadata"]["deletionTimestamp"].is_null();
    !is_going && conditions.is_some_and(|all| all.iter().any(ready))
}
