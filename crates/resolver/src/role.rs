//! The resolver as a process: puts the parts together, follows its source of services, and leaves in order.

mod ports;
mod source;
#[cfg(test)]
mod tests;

use std::{
    collections::HashSet,
    hash::{BuildHasher, RandomState},
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::Pin,
    sync::{Arc, OnceLock, Weak, atomic::AtomicU16},
    time::Duration,
};

use ports::Ports;
use source::Follow;
use thiserror::Error;
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
    time::{MissedTickBehavior, interval},
};
use weir_api::hold::defaults::SHUTDOWN_REFUSE_BEFORE_END;
use weir_role::{
    cluster::{self, ClientError},
    files,
};
use weir_wire::{
    PoolLimits,
    client::Patience,
    hold::{Limits, Room},
    life::{Life, Open},
    listen::Wire,
    shard,
    waiting::WaitingRoom,
};

use crate::{
    admin::{self, AdminState, Readiness, sibling::Sibling},
    early::{EarlyHandle, ask::Asker},
    index::IndexSettings,
    metrics::Metrics,
    reach,
    request::Guide,
    settings::{Operator, Settings, Source},
    sources::Sources,
    table::Table,
    view::ServiceId,
    wake::{ByOurselves, Wake, WakeHandle, WakeSettings, client::OperatorClient, scaler::Scaler},
    watch::News,
};

/// A client that has connected and says nothing is let go after this long.
const SILENT: Duration = Duration::from_mins(1);
/// A connection between two requests is kept for so long: longer than the 10 minutes of the usual load balancers, so
/// that they close first and none is closed just when a request comes.
const IDLE: Duration = Duration::from_secs(620);
/// How often to look after what has no event of its own.
const LOOK: Duration = Duration::from_secs(1);

/// Why the resolver ended before its time.
#[derive(Debug, Error)]
pub enum RoleError {
    /// A port is taken, or not ours to take.
    #[error("the {what} port {port} cannot be opened; give another with {flag}")]
    Port {
        /// What it is for.
        what: &'static str,
        /// Its number.
        port: u16,
        /// The flag that sets it.
        flag: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// Threads cannot be started, or signals not listened to.
    #[error("the process cannot be set up")]
    SetUp(#[from] io::Error),
    /// Where services are learned from.
    #[error(transparent)]
    Source(#[from] source::SourceError),
    /// The cluster, for waking without an operator.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The operator's address.
    #[error("the operator's address cannot be used")]
    Operator(#[from] http::Error),
}

/// Runs until it is told to end.
pub async fn run(settings: Settings) -> Result<(), RoleError> {
    for note in &settings.notes {
        tracing::warn!("{note}");
    }
    let files = files::raise_limit();
    let max_connections = fit_connections(settings.listen.max_connections, files);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let index = IndexSettings {
        per_service_ports: settings.listen.per_service_ports,
        reserved_ports: reserved(&settings),
        early_readiness: settings.early_readiness,
    };
    let mut follow = Follow::start(&settings.source, index).await?;
    let parts = Parts::start(&settings, max_connections).await?;
    let mut allotted = parts.allotted();
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut leaving: Option<Pin<Box<dyn Future<Output = ()>>>> = None;
    loop {
        tokio::select! {
            news = follow.next() => match news {
                News::Changes(changes) => {
                    // What a batch closes is closed before it opens what it opens; backends are told in `apply`.
                    allotted.apply(&parts.table.apply(&changes));
                }
                News::Synced => {
                    parts.open_shared_port()?;
                    parts.readiness.set_synced();
                }
            },
            _ = look.tick() => {
                parts.table.tidy();
                allotted.open_missing();
            }
            () = told_to_end(&mut terminate, &mut interrupt) => {
                if leaving.is_some() {
                    tracing::warn!("told to end once more: what is open is cut");
                    break;
                }
                leaving = Some(parts.leave(&settings));
            }
            () = finished(&mut leaving) => break,
        }
    }
    let _ = parts.stop.send(true);
    tracing::info!(
        connections = parts.wire.life().count(Open::Connection),
        tunnels = parts.wire.life().count(Open::Tunnel),
        "ended; these were still open and are cut"
    );
    Ok(())
}

/// What no service may have.
fn reserved(settings: &Settings) -> Vec<u16> {
    let listen = &settings.listen;
    let own = [listen.proxy_port, listen.internal_port];
    own.into_iter().chain(listen.sibling_port).collect()
}

/// What runs.
struct Parts {
    wire: Arc<Wire>,
    table: Arc<Table>,
    guide: Arc<Guide>,
    readiness: Arc<Readiness>,
    stop: watch::Sender<bool>,
}

impl Parts {
    async fn start(settings: &Settings, max_connections: usize) -> Result<Self, RoleError> {
        let (stop, stopped) = watch::channel(false);
        let metrics = Metrics::new();
        let readiness = Arc::new(Readiness::default());
        let late = Arc::new(OnceLock::new());
        let wake = start_wake(settings, &metrics, &late, &stopped).await?;
        let room = WaitingRoom::new(limits(settings));
        let early = settings.early_readiness.then(EarlyHandle::new);
        let table = Table::new(
            room,
            Arc::clone(&metrics),
            wake,
            early.clone(),
            settings.access_log,
        );
        let _ = late.set(Arc::downgrade(&table));
        tokio::spawn(reach::look_again(
            Arc::clone(&table),
            settings.times.connect,
            until(stopped.clone()),
        ));
        if let Some(early) = early {
            let (table, metrics) = (Arc::clone(&table), Arc::clone(&metrics));
            let asks = early.run(table, Asker::default(), metrics, until(stopped.clone()));
            tokio::spawn(asks);
        }

        let address = settings.listen.address.unwrap_or_else(every_address);
        let guide = Arc::new(Guide {
            table: Arc::clone(&table),
            metrics: Arc::clone(&metrics),
            proxy_port: AtomicU16::new(settings.listen.proxy_port),
            header_for_host: settings.header_for_host.clone(),
            cluster_domain: settings.cluster_domain.clone(),
            sources: Sources::new(settings.listen.allow_from.clone(), Arc::clone(&metrics)),
        });
        let life = Arc::new(Life::default());
        let wire = Wire::start(
            address,
            behaviour(settings, max_connections),
            Arc::clone(&guide) as _,
            life,
        )?;
        let internal_port = settings.listen.internal_port;
        let listener = TcpListener::bind(SocketAddr::new(address, internal_port)).await;
        let listener = listener.map_err(|source| RoleError::Port {
            what: "internal",
            port: internal_port,
            flag: "--internal-port",
            source,
        })?;
        let internal = listener.local_addr()?;
        let mut state = admin_state(&metrics, &readiness, &table, &wire);
        let near = settings
            .listen
            .address
            .unwrap_or(Ipv4Addr::LOCALHOST.into());
        let sibling = |port| Sibling::new(SocketAddr::new(near, port), first_generation());
        state.sibling = settings.listen.sibling_port.map(sibling).map(Arc::new);
        tokio::spawn(admin::serve(listener, state, until(stopped)));
        let parts = Self {
            wire,
            table,
            guide,
            readiness,
            stop,
        };
        // What a sibling knows already is its own to answer, until we know it as well.
        if settings.listen.sibling_port.is_none() {
            parts.open_shared_port()?;
        }
        tracing::info!(%address, proxy = parts.guide.shared_port(), internal = internal.port(), "the resolver listens");
        Ok(parts)
    }

    /// The port where a header names the target. One that is open stays so.
    fn open_shared_port(&self) -> Result<(), RoleError> {
        let port = self.guide.shared_port();
        let opened = self.wire.open(port).map_err(|source| RoleError::Port {
            what: "proxy",
            port,
            flag: "--proxy-port",
            source,
        })?;
        self.guide.set_proxy_port(opened);
        Ok(())
    }

    /// For the ports of services; none is open yet.
    fn allotted(&self) -> Ports {
        let (wire, readiness) = (Arc::clone(&self.wire), Arc::clone(&self.readiness));
        Ports::new(wire, readiness, self.guide.shared_port())
    }

    /// Readiness fails first; then the way of `Wire::leave`.
    fn leave(&self, settings: &Settings) -> Pin<Box<dyn Future<Output = ()>>> {
        self.readiness.set_draining();
        let times = settings.times;
        let limit = times
            .termination_grace
            .saturating_sub(SHUTDOWN_REFUSE_BEFORE_END);
        tracing::info!(
            connections = self.wire.life().count(Open::Connection),
            requests = self.wire.life().count(Open::Request),
            tunnels = self.wire.life().count(Open::Tunnel),
            limit_seconds = limit.as_secs(),
            "told to end: not ready any more, and gone when nothing is open"
        );
        let wire = Arc::clone(&self.wire);
        Box::pin(async move { wire.leave(times.sync_period, limit).await })
    }
}

async fn start_wake(
    settings: &Settings,
    metrics: &Arc<Metrics>,
    table: &Arc<OnceLock<Weak<Table>>>,
    stopped: &watch::Receiver<bool>,
) -> Result<Option<WakeHandle>, RoleError> {
    let Some(operator) = &settings.operator else {
        return Ok(None);
    };
    let client = OperatorClient::new(&operator.url, operator.token_file.clone())?;
    let by_ourselves = by_ourselves(settings, operator, table).await?;
    let table = Arc::clone(table);
    let answered = move |id: &ServiceId| {
        if let Some(table) = table.get().and_then(Weak::upgrade) {
            table.signalled(id);
        }
    };
    let pace = WakeSettings {
        retry: operator.retry,
    };
    let (handle, _task) = Wake::spawn(
        client,
        pace,
        Arc::clone(metrics),
        Arc::new(answered),
        by_ourselves,
        until(stopped.clone()),
    );
    Ok(Some(handle))
}

/// How services are woken when no operator answers, where that is allowed. The way to the cluster is another one than that
/// of the watches.
async fn by_ourselves(
    settings: &Settings,
    operator: &Operator,
    table: &Arc<OnceLock<Weak<Table>>>,
) -> Result<Option<ByOurselves>, RoleError> {
    let (Some(after), Source::Cluster { kubeconfig, .. }) =
        (operator.scale_after, &settings.source)
    else {
        return Ok(None);
    };
    let client = cluster::client(kubeconfig.as_deref()).await?;
    let table = Arc::clone(table);
    let holder = move |id: &ServiceId| table.get().and_then(Weak::upgrade)?.holder(id);
    let scaler = Scaler::new(client, Arc::new(holder));
    Ok(Some(ByOurselves {
        after,
        wakes: Arc::new(scaler),
    }))
}

fn admin_state(
    metrics: &Arc<Metrics>,
    readiness: &Arc<Readiness>,
    table: &Arc<Table>,
    wire: &Arc<Wire>,
) -> AdminState {
    let refresh = {
        let (metrics, table, life) = (
            Arc::clone(metrics),
            Arc::clone(table),
            Arc::clone(wire.life()),
        );
        move || {
            table.refresh_metrics();
            let count = |what| i64::try_from(life.count(what)).unwrap_or(i64::MAX);
            metrics.connections.set(count(Open::Connection));
            metrics.tunnels.set(count(Open::Tunnel));
        }
    };
    let held = Arc::clone(table);
    let services = {
        let (table, wire) = (Arc::clone(table), Arc::clone(wire));
        move || {
            let bound: HashSet<u16> = wire.ports().into_iter().collect();
            table.services(|port| bound.contains(&port))
        }
    };
    let generation = {
        let (table, wire, start) = (Arc::clone(table), Arc::clone(wire), first_generation());
        // Both only grow, and so their sum is new whenever one of them is.
        move || start + table.changes() + wire.port_changes()
    };
    let silent = Arc::clone(wire);
    let reached = Arc::clone(table);
    let used = Arc::clone(table);
    AdminState {
        metrics: Arc::clone(metrics),
        readiness: Arc::clone(readiness),
        refresh: Arc::new(refresh),
        held: Arc::new(move || held.held()),
        services: Arc::new(services),
        generation: Arc::new(generation),
        unreachable: Arc::new(move || reached.unreachable()),
        usage: Arc::new(move || used.usage()),
        silent: Arc::new(move |port| silent.silent(port)),
        sibling: None,
    }
}

/// Another in each process, so that a number from before a restart says nothing after it. Below 2⁴⁸, so that it and
/// what is added stay exact where numbers are floating.
fn first_generation() -> u64 {
    RandomState::new().hash_one("generation") >> 16
}

fn limits(settings: &Settings) -> Limits {
    let limits = settings.limits;
    Limits {
        total: Room {
            requests: limits.held,
            bytes: limits.held_bytes,
        },
        each: Room {
            requests: limits.held_per_service,
            bytes: limits.held_bytes_per_service,
        },
    }
}

fn behaviour(settings: &Settings, max_connections: usize) -> shard::Settings {
    shard::Settings {
        shards: settings.threads.get(),
        max_connections,
        max_head: settings.limits.header_bytes,
        patience: Patience {
            head: settings.times.headers,
            silent: SILENT,
            idle: IDLE,
        },
        hold_time: settings.times.hold,
        max_replay: settings.limits.body_replay,
        connect_time: settings.times.connect,
        pool: PoolLimits {
            idle: settings.upstream.max_idle,
            idle_per_endpoint: settings.upstream.max_idle_per_endpoint,
            idle_for: settings.upstream.idle_timeout,
        },
        http2: settings.h2c,
        share_ports: settings.listen.sibling_port.is_some(),
    }
}

/// IPv6 and IPv4, or IPv4 alone where there is no IPv6.
fn every_address() -> IpAddr {
    let probe = std::net::TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0));
    if probe.is_ok() {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    }
}

/// As many connections of clients as are wanted, but a quarter of the open files is for connections to pods, ports and
/// the rest: at the limit clients are told so, and out of files everybody would wait.
fn fit_connections(wanted: Option<usize>, files: usize) -> usize {
    let most = files / 4 * 3;
    match wanted {
        Some(wanted) if wanted > most => {
            tracing::warn!(
                wanted,
                most,
                open_files = files,
                "fewer connections are taken than --max-connections says: raise the limit of open files for more"
            );
            most
        }
        Some(wanted) => wanted,
        None => most,
    }
}

async fn told_to_end(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

async fn finished(leaving: &mut Option<Pin<Box<dyn Future<Output = ()>>>>) {
    match leaving {
        Some(leaving) => leaving.await,
        None => std::future::pending().await,
    }
}

async fn until(mut stopped: watch::Receiver<bool>) {
    // An error means that nobody is left to say it: as good.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}
