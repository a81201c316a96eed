//! The services that are held, as they are served: for each port of each a backend in [`weir_wire`], and the ports that
//! are listened on. [`view`](crate::view)s go in, as changes; requests are led by what stands here ([`crate::request`]).

mod former;
mod observer;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use former::Former;
use http::HeaderValue;
use observer::{ServiceObserver, WakeProgress};
use weir_api::hold::defaults::RELEASED_PORT_REST;
use weir_role::cluster::ObjectId;
use weir_wire::{
    backend::{Backend, BackendName},
    hold::Owner,
    sniff::Spoken,
    waiting::WaitingRoom,
};

use crate::{
    admin::{BoundPort, HeldReport, KnownService, ServiceUsage, Unreachable},
    early::{EarlyHandle, machine::Uid},
    metrics::{Metrics, ServiceMetrics, WakePhase},
    probe::ProbeRules,
    reach::{self, Suspects},
    view::{Change, PortView, Protocol, ServiceId, ServiceView},
    wake::WakeHandle,
};

/// All services that are held.
pub struct Table {
    room: Arc<WaitingRoom>,
    metrics: Arc<Metrics>,
    wake: Option<WakeHandle>,
    early: Option<EarlyHandle>,
    access_log: bool,
    /// Services with an endpoint that accepted no connection in time.
    suspects: Arc<Suspects>,
    next_owner: AtomicU64,
    services: Mutex<HashMap<ServiceId, Service>>,
    former: Former,
    /// Grows when services come or go or lead elsewhere.
    changes: AtomicU64,
    /// What requests are led by: replaced as a whole, and never locked.
    pub(crate) routes: ArcSwap<Routes>,
}

/// Where requests go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    pub(crate) by_port: HashMap<u16, Route>,
    /// By namespace, then by name: the ports of each in the Service's order.
    pub(crate) by_name: HashMap<Arc<str>, PortsByName>,
}

/// The ports of each service of a namespace.
type PortsByName = HashMap<Arc<str>, Arc<[Route]>>;

/// The way to one port of one service.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// Its number in the Service.
    pub(crate) number: u16,
    pub(crate) spoken: Spoken,
    pub(crate) backend: Arc<Backend>,
    pub(crate) probes: Arc<ProbeRules>,
    /// All its clients come through resolvers.
    pub(crate) is_behind: bool,
    pub(crate) metrics: Arc<ServiceMetrics>,
    /// The port is closed; only connections from before still come here.
    pub(crate) retired: Option<Instant>,
}

struct Service {
    view: Arc<ServiceView>,
    owner: Owner,
    metrics: Arc<ServiceMetrics>,
    progress: Arc<WakeProgress>,
    /// Pods that are ready, though the kubelet has not said so yet.
    early: BTreeSet<Uid>,
    /// Whether requests have somewhere to go.
    is_ready: bool,
    /// Since when its use is.
    counted: Instant,
    /// In the order of the view's ports.
    backends: Vec<BackendOfPort>,
}

/// An endpoint that accepts no connection in time.
pub(crate) struct SilentEndpoint {
    pub(crate) address: SocketAddr,
    pub(crate) silent_for: Duration,
    pub(crate) backend: Arc<Backend>,
}

/// The port's name and number, and where its requests go.
type BackendOfPort = (Arc<str>, u16, Arc<Backend>);

/// What is to be done about ports after a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortChanges {
    /// To be listened on.
    pub open: Vec<u16>,
    /// No longer.
    pub close: Vec<u16>,
}

impl Table {
    /// An empty table.
    pub fn new(
        room: Arc<WaitingRoom>,
        metrics: Arc<Metrics>,
        wake: Option<WakeHandle>,
        early: Option<EarlyHandle>,
        access_log: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            room,
            metrics,
            wake,
            early,
            access_log,
            suspects: Arc::default(),
            next_owner: AtomicU64::new(1),
            services: Mutex::default(),
            former: Former::default(),
            changes: AtomicU64::new(0),
            routes: ArcSwap::default(),
        })
    }

    /// Carries out changes, and says what they mean for the ports.
    pub fn apply(&self, changes: &[Change]) -> PortChanges {
        let mut services = lock(&self.services);
        // Most changes are of endpoints alone, which the backends know: then the routes stay as they are.
        let mut routes: Option<Routes> = None;
        let mut ports = PortChanges::default();
        for change in changes {
            match change {
                Change::Set(view) => {
                    let changes_routes = self.set(&mut services, view);
                    if changes_routes {
                        let routes =
                            routes.get_or_insert_with(|| Routes::clone(&self.routes.load()));
                        if let Some(service) = services.get(&view.id) {
                            routes.lead_to(service, &mut ports);
                        }
                    }
                }
                Change::Gone(id) => {
                    if let Some(service) = services.remove(id) {
                        let routes =
                            routes.get_or_insert_with(|| Routes::clone(&self.routes.load()));
                        routes.retire(&service, &mut ports);
                        self.retire(&service);
                    }
                }
            }
        }
        if let Some(routes) = routes {
            self.routes.store(Arc::new(routes));
            self.changes.fetch_add(1, Ordering::Release);
        }
        drop(services);
        if let Some(early) = &self.early {
            early.apply(changes);
        }
        ports
    }

    /// Says which pods of a service are ready before the kubelet says so. Where they are no longer among those that start,
    /// the kubelet has said it, or they are gone: then they count no more.
    pub fn set_early(&self, id: &ServiceId, pods: BTreeSet<Uid>) {
        let mut services = lock(&self.services);
        let Some(service) = services.get_mut(id) else {
            return;
        };
        let was = std::mem::replace(&mut service.early, pods);
        let starts = |uid: &Uid| {
            let mut ports = service.view.ports.iter();
            ports.any(|port| port.starting.iter().any(|it| it.pod.uid == *uid))
        };
        let withdrawn = was.difference(&service.early).filter(|uid| starts(uid));
        self.metrics.early_withdrawn.add(withdrawn.count() as u64);
        for uid in service.early.difference(&was).filter(|uid| starts(uid)) {
            service.metrics.early_ready.add(1);
            tracing::debug!(service = %id, pod = %uid, "a pod is ready by its own probes");
        }
        service.tell_backends();
    }

    /// Whether requests for this service have somewhere to go.
    #[cfg(test)]
    pub(crate) fn is_ready(&self, id: &ServiceId) -> bool {
        let services = lock(&self.services);
        services.get(id).is_some_and(|service| service.is_ready)
    }

    /// The ElastiService that holds this service.
    pub fn holder(&self, id: &ServiceId) -> Option<ObjectId> {
        let services = lock(&self.services);
        let holder = services.get(id)?.view.held_by.as_ref()?;
        Some(ObjectId {
            namespace: Arc::clone(&id.namespace),
            name: Arc::clone(holder),
        })
    }

    /// Whether requests are held for this service because no endpoint is ready.
    pub fn waits(&self, id: &ServiceId) -> bool {
        let services = lock(&self.services);
        let mut backends = services.get(id).into_iter().flat_map(|it| &it.backends);
        backends.any(|(_, _, backend)| {
            let waits = backend.waits_for().is_some() || backend.line_state().waiting > 0;
            waits && !backend.is_ready()
        })
    }

    /// Says whether the routes have to change.
    fn set(&self, services: &mut HashMap<ServiceId, Service>, view: &Arc<ServiceView>) -> bool {
        let is_new = !services.contains_key(&view.id);
        let service = services
            .entry(view.id.clone())
            .or_insert_with(|| self.new_service(view));
        let was = std::mem::replace(&mut service.view, Arc::clone(view));
        service.metrics = self.metrics.service(view);
        let same_ports = was.ports.len() == view.ports.len()
            && was
                .ports
                .iter()
                .zip(&view.ports)
                .all(|(was, is)| was.is_led_like(is));
        let changes_routes =
            is_new || !same_ports || was.probes != view.probes || was.behind != view.behind;
        if changes_routes {
            // A backend that goes takes with it what it counted.
            service.counted = Instant::now();
            self.set_backends(service);
        }
        if was.switched != view.switched {
            service.metrics.traffic_switched(!view.switched);
        }
        let was_listed = was.is_ready() && !is_new;
        // While only we say that a pod is ready the operator is signalled on: should we have to take it back, somebody still
        // wakes it.
        if let Some(wake) = self
            .wake
            .as_ref()
            .filter(|_| !was_listed && view.is_ready())
        {
            wake.settled(&view.id);
        }
        for (_, _, backend) in &service.backends {
            backend.set_switched(view.switched && !view.behind);
        }
        service.tell_backends();
        changes_routes
    }

    fn new_service(&self, view: &Arc<ServiceView>) -> Service {
        Service {
            view: Arc::clone(view),
            owner: Owner(self.next_owner.fetch_add(1, Ordering::Relaxed)),
            metrics: self.metrics.service(view),
            progress: Arc::default(),
            early: BTreeSet::new(),
            is_ready: false,
            counted: Instant::now(),
            backends: Vec::new(),
        }
    }

    /// A backend for each port, in the view's order; those that are there already stay, with what waits in them.
    fn set_backends(&self, service: &mut Service) {
        let mut before = std::mem::take(&mut service.backends);
        for port in &service.view.ports {
            let known = before
                .iter()
                .position(|(name, number, _)| *name == port.name && *number == port.number);
            let backend = match known {
                Some(known) => before.swap_remove(known).2,
                None => self.new_backend(service, port),
            };
            let entry = (Arc::clone(&port.name), port.number, backend);
            service.backends.push(entry);
        }
        for (_, _, gone) in before {
            self.former.add(&service.view.id, &gone);
            gone.set_switched(true);
            if !gone.is_ready() {
                gone.close();
            }
        }
    }

    fn new_backend(&self, service: &Service, port: &PortView) -> Arc<Backend> {
        let id = &service.view.id;
        // Names of Services and namespaces are DNS labels, and so always valid here.
        let text = |text: String| {
            HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("weir"))
        };
        let name = BackendName {
            display: format!("{id}:{}", port.number).into(),
            via: text(format!("1.1 {}.{}.weir", id.name, id.namespace)),
            host: text(format!("{}.{}", id.name, id.namespace)),
            owner: service.owner,
        };
        let observer = ServiceObserver {
            id: id.clone(),
            metrics: Arc::clone(&service.metrics),
            all: Arc::clone(&self.metrics),
            wake: self.wake.clone(),
            early: self.early.clone(),
            progress: Arc::clone(&service.progress),
            suspects: Arc::clone(&self.suspects),
            access_log: self.access_log,
        };
        Backend::new(name, Arc::clone(&self.room), Box::new(observer))
    }

    /// It is no longer held. Connections that are there are still served where it was last, and asked to move on.
    fn retire(&self, service: &Service) {
        if let Some(wake) = &self.wake {
            wake.settled(&service.view.id);
        }
        self.metrics.forget(&service.view.id);
        for (_, _, backend) in &service.backends {
            self.former.add(&service.view.id, backend);
            backend.set_switched(true);
            if !backend.is_ready() {
                backend.close();
            }
        }
    }

    /// The operator has answered a wake signal.
    pub fn signalled(&self, id: &ServiceId) {
        let services = lock(&self.services);
        let Some(service) = services.get(id) else {
            return;
        };
        let waited = service.backends.iter();
        let waited = waited
            .filter_map(|(_, _, backend)| backend.waits_for())
            .max();
        if let Some(waited) = waited {
            service.metrics.wake(WakePhase::Signalled, waited);
        }
    }

    /// The services there are, each with those of its ports that are bound.
    pub fn services(&self, is_bound: impl Fn(u16) -> bool) -> Vec<KnownService> {
        let services = lock(&self.services);
        services
            .values()
            .map(|service| service.view.known(&is_bound))
            .collect()
    }

    /// A number that grows whenever services come or go or get other ports. Read it first, and [`Table::services`] are
    /// at least as new.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// What is held, and why.
    pub fn held(&self) -> Vec<HeldReport> {
        let services = lock(&self.services);
        let mut reports: Vec<HeldReport> =
            services.values().filter_map(|it| self.report(it)).collect();
        reports.sort_by(|a, b| a.service.cmp(&b.service));
        reports
    }

    fn report(&self, service: &Service) -> Option<HeldReport> {
        let held = self.room.held_by(service.owner);
        if held.requests == 0 {
            return None;
        }
        let is_ready = service
            .backends
            .iter()
            .any(|(_, _, backend)| backend.is_ready());
        let lines = service
            .backends
            .iter()
            .map(|(_, _, backend)| backend.line_state());
        let waiting: usize = lines.map(|line| line.waiting).sum();
        let reason = if is_ready {
            format!("{waiting} wait behind those that its endpoints take just now")
        } else {
            "no endpoint is ready".to_owned()
        };
        let connections = service
            .backends
            .iter()
            .map(|(_, _, backend)| backend.unconnected());
        // Those that are just being connected are not held.
        let connections = connections.sum::<usize>().min(held.requests);
        let waits = service
            .backends
            .iter()
            .filter_map(|(_, _, backend)| backend.waits_for());
        Some(HeldReport {
            service: service.view.id.clone(),
            reason,
            requests: held.requests,
            connections,
            bytes: held.bytes,
            oldest_seconds: waits.max().unwrap_or_default().as_secs_f64(),
        })
    }

    /// Endpoints that are ready by the kubelet's word and accept no connection in time, by service. Services without one are
    /// suspected no longer.
    pub(crate) fn silent(&self) -> BTreeMap<ServiceId, Vec<SilentEndpoint>> {
        let services = lock(&self.services);
        self.suspects.confirmed(|id| {
            let service = services.get(id)?;
            let ports = service.view.ports.iter().zip(&service.backends);
            let silent = ports.flat_map(|(port, (_, _, backend))| {
                let silent = backend.silent().into_iter();
                let ready = silent.filter(|(address, _)| port.endpoints.contains(address));
                ready.map(|(address, silent_for)| SilentEndpoint {
                    address,
                    silent_for,
                    backend: Arc::clone(backend),
                })
            });
            let silent: Vec<SilentEndpoint> = silent.collect();
            (!silent.is_empty()).then_some(silent)
        })
    }

    /// Services with a ready pod that has accepted no connection for so long that somebody should look, in order.
    pub fn unreachable(&self) -> Vec<Unreachable> {
        let silent = self.silent().into_iter();
        reach::told(silent.map(|(id, endpoints)| {
            let endpoints = endpoints.iter();
            let endpoints = endpoints.map(|it| (it.address, it.silent_for));
            (id, endpoints.collect())
        }))
    }

    /// How much the services are used that stay behind resolvers, in order.
    pub fn usage(&self) -> Vec<ServiceUsage> {
        let services = lock(&self.services);
        let behind = services.values().filter(|service| service.view.behind);
        let usages = behind.map(|service| {
            let mut usage = service.usage();
            usage.open += self.former.open(&service.view.id);
            usage
        });
        let mut usages: Vec<ServiceUsage> = usages.collect();
        drop(services);
        usages.sort_unstable_by(|a, b| (&a.namespace, &a.service).cmp(&(&b.namespace, &b.service)));
        usages
    }

    /// Brings the counts up to date that are looked at rather than counted.
    pub fn refresh_metrics(&self) {
        let held = self.room.held();
        self.metrics.held_requests.set(signed(held.requests));
        self.metrics.held_bytes.set(signed(held.bytes));
        for service in lock(&self.services).values() {
            let held = self.room.held_by(service.owner).requests;
            service.metrics.queued.set(signed(held));
        }
    }

    /// Forgets ports that were closed so long ago that they may be another's by now.
    pub fn tidy(&self) {
        let routes = self.routes.load();
        let is_over = |route: &Route| {
            route
                .retired
                .is_some_and(|since| since.elapsed() >= RELEASED_PORT_REST)
        };
        if routes.by_port.values().any(is_over) {
            // `apply` runs on the same thread as this, so nothing is overwritten.
            let mut tidied = Routes::clone(&routes);
            tidied.by_port.retain(|_, route| !is_over(route));
            self.routes.store(Arc::new(tidied));
        }
    }
}

impl Service {
    /// How much it is used, on all its ports together.
    fn usage(&self) -> ServiceUsage {
        let id = &self.view.id;
        let mut usage = ServiceUsage::unused(&id.namespace, &id.name, self.counted.elapsed());
        for (_, _, backend) in &self.backends {
            usage.add(backend.usage());
        }
        usage
    }

    /// Tells the backends where requests can go.
    fn tell_backends(&mut self) {
        let was_ready = self.is_ready;
        self.is_ready = false;
        for (port, (_, _, backend)) in self.view.ports.iter().zip(&self.backends) {
            let endpoints = port.endpoints_with(&self.early);
            self.is_ready |= !endpoints.is_empty();
            if backend.addresses() == *endpoints {
                continue;
            }
            if !was_ready && let Some(waited) = backend.waits_for() {
                self.metrics.wake(WakePhase::Ready, waited);
                self.progress.ready();
            }
            backend.set_endpoints(&endpoints);
        }
    }
}

impl Routes {
    fn lead_to(&mut self, service: &Service, ports: &mut PortChanges) {
        let view = &service.view;
        let route = |(port, (_, number, backend)): (&PortView, &BackendOfPort)| Route {
            number: *number,
            spoken: port.spoken(),
            backend: Arc::clone(backend),
            probes: Arc::clone(&view.probes),
            is_behind: view.behind,
            metrics: Arc::clone(&service.metrics),
            retired: None,
        };
        let backends = view.ports.iter().zip(&service.backends);
        let routes: Arc<[Route]> = backends.map(route).collect();
        let wanted: HashMap<u16, Route> = view
            .ports
            .iter()
            .zip(routes.iter())
            .filter_map(|(port, route)| Some((port.resolver_port?, route.clone())))
            .collect();
        self.close_others(service.owner, &wanted.keys().copied().collect(), ports);
        for (port, route) in wanted {
            let before = self.by_port.insert(port, route);
            if before.is_none_or(|before| before.retired.is_some()) {
                ports.open.push(port);
            }
        }
        let namespace = self
            .by_name
            .entry(Arc::clone(&view.id.namespace))
            .or_default();
        namespace.insert(Arc::clone(&view.id.name), routes);
    }

    fn retire(&mut self, service: &Service, ports: &mut PortChanges) {
        self.close_others(service.owner, &HashSet::new(), ports);
        let id = &service.view.id;
        if let Some(namespace) = self.by_name.get_mut(&id.namespace) {
            namespace.remove(&id.name);
            if namespace.is_empty() {
                self.by_name.remove(&id.namespace);
            }
        }
    }

    /// Retires the ports of this owner but these.
    fn close_others(&mut self, owner: Owner, wanted: &HashSet<u16>, ports: &mut PortChanges) {
        for (port, route) in &mut self.by_port {
            let is_its_own = route.backend.name.owner == owner && route.retired.is_none();
            if is_its_own && !wanted.contains(port) {
                route.retired = Some(Instant::now());
                ports.close.push(*port);
            }
        }
    }
}

impl ServiceView {
    fn is_ready(&self) -> bool {
        self.ports.iter().any(|port| !port.endpoints.is_empty())
    }

    fn known(&self, is_bound: impl Fn(u16) -> bool) -> KnownService {
        let bound = self.ports.iter().filter_map(|port| {
            Some(BoundPort {
                name: Arc::clone(&port.name),
                resolver_port: port.resolver_port.filter(|number| is_bound(*number))?,
            })
        });
        KnownService {
            namespace: Arc::clone(&self.id.namespace),
            service: Arc::clone(&self.id.name),
            ports: bound.collect(),
        }
    }
}

impl PortView {
    /// Where requests can go: to what the kubelet says is ready, and to these pods.
    fn endpoints_with(&self, early: &BTreeSet<Uid>) -> Arc<[SocketAddr]> {
        let starting = self.starting.iter();
        let early = starting.filter(|it| early.contains(&it.pod.uid));
        let early: Vec<SocketAddr> = early.map(|it| it.address).collect();
        if early.is_empty() {
            return Arc::clone(&self.endpoints);
        }
        let mut all: Vec<SocketAddr> = self.endpoints.iter().copied().chain(early).collect();
        all.sort_unstable();
        all.dedup();
        all.into()
    }

    /// Whether requests for it go the same way, whatever its endpoints.
    fn is_led_like(&self, other: &Self) -> bool {
        let key = |port: &Self| {
            (
                Arc::clone(&port.name),
                port.number,
                port.resolver_port,
                port.protocol,
            )
        };
        key(self) == key(other)
    }

    fn spoken(&self) -> Spoken {
        match self.protocol {
            Protocol::Sniff => Spoken::Unknown,
            Protocol::Http1 | Protocol::Http2 => Spoken::Http,
            Protocol::Tls => Spoken::Tls,
            Protocol::Tcp => Spoken::Tcp,
        }
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
