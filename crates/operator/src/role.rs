//! The operator as a process: puts the parts together, leads or follows, and leaves in order.

use std::{
    io,
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use kube::{Client, runtime::events::Reporter};
use serde_json::Value;
use thiserror::Error;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::watch,
    task::JoinSet,
    time::{Instant, timeout},
};
use weir_api::hold::defaults::{
    RELEASED_PORT_REST, RESOLVER_CHECK_INTERVAL, RESOLVER_CHECK_MISSES, RESOLVER_PORT_RANGE,
};
use weir_role::{
    cluster::{self, ClientError},
    files,
};
use weir_wake::Kinds;

use crate::{
    admin::{self, AdminState, Authority, MetricsOn, table},
    elasti_service::{
        clock::Clock,
        context::{Context, lock},
        controller,
        hands::Hands,
        ports::PortBook,
        queue::SharedQueue,
        triggers::{
            Board, Secret, TriggerSettings,
            network::{Meter, MeterSettings, kubelet::Kubelets, nodes},
            usage::Turnstile,
        },
        wake::Waker,
        world::{World, service_of},
    },
    events::Events,
    leader::{self, LeaderError, Leadership},
    metrics::OperatorMetrics,
    resolvers::{News, ResolverSettings, Resolvers},
    settings::{Bind, Place, Settings},
    traffic_watch::{
        self,
        asking::most_questions,
        exporters::{Exporters, SetUpError},
    },
};

/// Who wrote an Event, as users see it.
const REPORTER: &str = "weir-operator";
/// Parts that have nothing more to do than to end.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Why the operator ended before its time.
#[derive(Debug, Error)]
pub enum RoleError {
    /// The cluster.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A port is taken, or not ours to take.
    #[error("{address} cannot be listened on; give another with {flag}")]
    Port {
        /// Where.
        address: Bind,
        /// The flag that sets it.
        flag: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// Signals cannot be listened to.
    #[error("the process cannot be set up")]
    SetUp(#[from] io::Error),
    /// Exporters cannot be asked at all.
    #[error(transparent)]
    Exporters(#[from] SetUpError),
    /// Another process leads.
    #[error(transparent)]
    Leader(#[from] LeaderError),
}

/// Runs until a signal tells it to end, or it no longer leads.
pub async fn run(settings: Settings) -> Result<(), RoleError> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let told = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    run_until(settings, told).await
}

/// Runs until it is told to end, or no longer leads.
pub async fn run_until(
    settings: Settings,
    told: impl Future<Output = ()>,
) -> Result<(), RoleError> {
    for note in &settings.notes {
        tracing::warn!("{note}");
    }
    // Work ends first, then the lease is given back, then all else.
    let (end_work, work_ends) = watch::channel(false);
    let (end_lead, lead_ends) = watch::channel(false);
    let (end_all, all_ends) = watch::channel(false);
    let (hold_synced, is_hold_synced) = watch::channel(!settings.runs_hold);
    let (place_synced, is_place_synced) = watch::channel(settings.place.is_none());
    let (lead, leadership) = watch::channel(Leadership::Follower {
        leader: None,
        is_silent: false,
    });
    let client = cluster::client(settings.cluster.kubeconfig.as_deref()).await?;
    let mut tasks = JoinSet::new();
    let context = context(&settings, client.clone(), &all_ends, &mut tasks);
    let is_synced = both(is_hold_synced, is_place_synced, &all_ends, &mut tasks);
    serve(&settings, &context, is_synced, &all_ends, &mut tasks).await?;

    let mut controllers = JoinSet::new();
    if settings.runs_hold {
        controllers.spawn(controller::run(
            Arc::clone(&context),
            settings.cluster.namespaces.clone(),
            leadership.clone(),
            hold_synced,
            work_ends.clone(),
        ));
    }
    if let Some(place) = &settings.place {
        controllers.spawn(traffic_watch::controller::run(
            Arc::new(place_context(place, &context)?),
            settings.cluster.namespaces.clone(),
            leadership,
            place_synced,
            work_ends,
        ));
    }
    let mut election = pin!(elect(client, &settings, lead, lead_ends));
    tokio::select! {
        // A lost lease ends all at once: whoever leads now must not be disturbed.
        outcome = &mut election => outcome?,
        () = told => {}
    }
    tracing::info!("told to end: finishes what was begun, then gives the lease back");
    end_work.send_replace(true);
    while controllers.join_next().await.is_some() {}
    end_lead.send_replace(true);
    election.await?;
    end_all.send_replace(true);
    // Events are written out when nobody can tell any more.
    drop(context);
    let last_words = async { while tasks.join_next().await.is_some() {} };
    let _ = timeout(LAST_WORDS, last_words).await;
    tracing::info!("ended");
    Ok(())
}

async fn elect(
    client: Client,
    settings: &Settings,
    lead: watch::Sender<Leadership>,
    ends: watch::Receiver<bool>,
) -> Result<(), LeaderError> {
    if let Some(settings) = &settings.leader {
        return leader::lead(client, settings, lead, until(ends)).await;
    }
    lead.send_replace(Leadership::Leader);
    until(ends).await;
    Ok(())
}

/// What all share, and the tasks behind it.
fn context(
    settings: &Settings,
    client: Client,
    ends: &watch::Receiver<bool>,
    tasks: &mut JoinSet<()>,
) -> Arc<Context> {
    let metrics = OperatorMetrics::new();
    let queue = Arc::new(SharedQueue::default());
    let reporter = Reporter {
        controller: REPORTER.to_owned(),
        instance: Some(settings.cluster.own_name.clone()),
    };
    let (events, writes) = Events::start(client.clone(), reporter);
    tasks.spawn(writes);

    let asked = Arc::clone(&metrics);
    let touched = Arc::clone(&queue);
    let (board, asks) = Board::start(
        triggers(settings),
        Arc::new(move |id| touched.mark([id])),
        Arc::new(move |outcome| asked.trigger_asked(outcome)),
    );
    let asked = Arc::clone(&metrics);
    let touched = Arc::clone(&queue);
    let (meter, measures) = Meter::start(
        kubelets(settings, &client),
        Arc::new(move |id| touched.mark([id])),
        Arc::new(move |outcome| asked.trigger_asked(outcome)),
    );
    if settings.runs_hold {
        spawn_until(tasks, ends, asks);
        spawn_until(tasks, ends, measures);
    }

    let (resolvers, follows) = Resolvers::start(
        client.clone(),
        ResolverSettings {
            namespace: settings.resolver.namespace.clone(),
            service: settings.resolver.service.clone(),
            internal_port: settings.resolver.internal_port,
            interval: RESOLVER_CHECK_INTERVAL,
            misses: RESOLVER_CHECK_MISSES,
        },
        Arc::new({
            let queue = Arc::clone(&queue);
            move |news| match news {
                News::All => queue.mark_everything(),
                News::Services(services) => queue.mark_services(services),
            }
        }),
    );
    let asked = Arc::clone(&metrics);
    let touched = Arc::clone(&queue);
    let (turnstile, counts) = Turnstile::start(
        triggers(settings).polling_interval,
        resolvers.clone(),
        Arc::new(move |id| touched.mark([id])),
        Arc::new(move |outcome| asked.trigger_asked(outcome)),
    );
    if settings.runs_hold {
        spawn_until(tasks, ends, follows);
        spawn_until(tasks, ends, counts);
    }

    let kinds = Arc::new(Kinds::new(client.clone()));
    let range = settings.port_range.clone().unwrap_or(RESOLVER_PORT_RANGE);
    Arc::new(Context {
        hands: Hands::new(client.clone(), Arc::clone(&kinds), Arc::clone(&metrics)),
        kinds,
        client,
        world: Mutex::new(World::new(settings.cluster.namespaces.len().max(1))),
        queue,
        resolvers,
        board,
        meter,
        turnstile,
        events,
        metrics,
        settings: settings.plan(),
        resolver_namespace: settings.resolver.namespace.clone(),
        shared_port: settings.resolver.proxy_port,
        per_service_ports: settings.port_range.is_some(),
        clock: Clock::start(),
        book: Mutex::new(PortBook::new(range, RELEASED_PORT_REST)),
        memories: Mutex::default(),
        fail_open: Mutex::default(),
        wakes: Mutex::default(),
        failures: Mutex::default(),
    })
}

/// What place shares, with what it has in common with hold.
fn place_context(
    place: &Place,
    context: &Context,
) -> Result<traffic_watch::context::Context, SetUpError> {
    let metrics = Arc::clone(&context.metrics);
    metrics.place.begin();
    Ok(traffic_watch::context::Context {
        client: context.client.clone(),
        hands: traffic_watch::hands::Hands::new(context.client.clone(), Arc::clone(&metrics)),
        exporters: Exporters::new(&place.exporters)?,
        exporters_at: place.exporters.place.clone(),
        events: context.events.clone(),
        metrics,
        options: place.options,
        nodes: place.nodes.clone(),
        questions: most_questions(files::raise_limit()),
        began: Instant::now(),
    })
}

/// True when both are.
fn both(
    mut one: watch::Receiver<bool>,
    mut other: watch::Receiver<bool>,
    ends: &watch::Receiver<bool>,
    tasks: &mut JoinSet<()>,
) -> watch::Receiver<bool> {
    let (both, are_both) = watch::channel(false);
    spawn_until(tasks, ends, async move {
        for each in [&mut one, &mut other] {
            if each.wait_for(|is_so| *is_so).await.is_err() {
                return;
            }
        }
        both.send_replace(true);
    });
    are_both
}

fn triggers(settings: &Settings) -> TriggerSettings {
    let prometheus = &settings.prometheus;
    let authorization = prometheus.authorization.as_ref();
    TriggerSettings {
        polling_interval: settings.times.polling_interval,
        default_address: prometheus.address.as_ref().map(ToString::to_string),
        default_authorization: authorization
            .and_then(|value| value.to_str().ok())
            .map(Secret::new),
    }
}

fn kubelets(settings: &Settings, client: &Client) -> MeterSettings {
    let client = client.clone();
    let port = settings.kubelets.port;
    MeterSettings {
        polling_interval: settings.times.polling_interval,
        // A kubelet tells of pods of all namespaces, and no Role gives the right to ask it.
        may_ask: settings.cluster.namespaces.is_empty(),
        kubelets: Kubelets::new(&settings.kubelets),
        find: Arc::new(move |node| {
            let client = client.clone();
            Box::pin(async move { nodes::find(client, &node, port).await })
        }),
    }
}

/// The ports: wake signals, health, metrics.
async fn serve(
    settings: &Settings,
    context: &Arc<Context>,
    synced: watch::Receiver<bool>,
    ends: &watch::Receiver<bool>,
    tasks: &mut JoinSet<()>,
) -> Result<(), RoleError> {
    let resolver = &settings.resolver;
    let authority = Authority::new(
        context.client.clone(),
        &resolver.namespace,
        &resolver.service_account,
    );
    let authority = if settings.listen.require_token {
        authority
    } else {
        authority.without_tokens_for_wakes()
    };
    let known = Arc::downgrade(context);
    let state = AdminState {
        wakes: Arc::new(Waker::new(Arc::clone(context))),
        metrics: Arc::clone(&context.metrics),
        authority: Arc::new(authority),
        cache: Arc::new(move || known.upgrade().map_or(Value::Null, |known| held(&known))),
        synced,
    };
    let listen = &settings.listen;
    let on = if listen.metrics_secure {
        MetricsOn::SecurePort
    } else {
        MetricsOn::InternalPort
    };
    let internal = bind(Bind::port(listen.internal_port), "--internal-port").await?;
    tracing::info!(internal = %internal.local_addr()?, "the operator listens");
    tasks.spawn(admin::serve_internal(
        internal,
        state.clone(),
        on,
        until(ends.clone()),
    ));
    if let Some(health) = listen.health {
        let health = bind(health, "--health-probe-bind-address").await?;
        tasks.spawn(admin::serve_health(
            health,
            state.clone(),
            until(ends.clone()),
        ));
    }
    if let Some(metrics) = listen.metrics {
        let metrics = bind(metrics, "--metrics-bind-address").await?;
        let ends = until(ends.clone());
        if listen.metrics_secure {
            let serve = admin::secure::serve(metrics, state, ends);
            tasks.spawn(async move {
                if let Err(error) = serve.await {
                    let error: &dyn std::error::Error = &error;
                    tracing::error!(error, "metrics cannot be served over TLS");
                }
            });
        } else {
            tasks.spawn(admin::serve_metrics(metrics, state, ends));
        }
    }
    Ok(())
}

/// The table of the services that are held.
fn held(context: &Context) -> Value {
    let world = lock(&context.world);
    let holders: Vec<_> = world
        .objects()
        .filter(|(_, object)| {
            let holder = world.holder(&service_of(object));
            holder.is_some_and(|holder| Arc::ptr_eq(holder, object))
        })
        .map(|(_, object)| Arc::clone(object))
        .collect();
    drop(world);
    table::table(holders.iter().map(|object| &***object))
}

async fn bind(bind: Bind, flag: &'static str) -> Result<TcpListener, RoleError> {
    let listener = bind.listen().await;
    listener.map_err(|source| RoleError::Port {
        address: bind,
        flag,
        source,
    })
}

fn spawn_until(
    tasks: &mut JoinSet<()>,
    ends: &watch::Receiver<bool>,
    work: impl Future<Output = ()> + Send + 'static,
) {
    let ends = ends.clone();
    tasks.spawn(async move {
        tokio::select! {
            () = work => {}
            () = until(ends) => {}
        }
    });
}

async fn until(mut ends: watch::Receiver<bool>) {
    // An error means that nobody is left to say it: as good.
    let _ = ends.wait_for(|ends| *ends).await;
}
