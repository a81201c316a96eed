//! `cargo xtask bench operator-scale`: the operator's hold with 10,000 ElastiServices that sleep: how long it takes the first
//! time and after a restart until there is nothing more to do, what it writes when nothing has changed, how much memory it
//! needs, and how much of a core while nothing happens; then the same with a trigger each.
//!
//! API server, operator and resolvers are the real ones, each a process of its own. The resolvers listen on a port for each
//! service, at addresses of their own; that needs a network of its own, so the benchmark begins anew in one where
//! 10.98.0.0/16 is local. There are no nodes, so nothing wakes: [`objects`] makes what is asleep, and what Kubernetes' own
//! controllers would have made of it, which do not run. [`settled`] says when there is nothing more to do, [`resolvers`] runs
//! the resolvers, [`prometheus`] answers triggers.

mod objects;
mod prometheus;
mod resolvers;
mod settled;

use std::{
    ffi::OsString,
    path::Path,
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use weir_lab::{cache::Cache, server::Server, tools::CONTROL_PLANE};

use self::{prometheus::Prometheus, resolvers::Resolvers};
use super::{
    Figure, finish, real,
    scale::{api::Api, definitions, network, operator::Operator},
    scratch::Scratch,
};
use crate::{program::WEIR, progress::Progress, tools};

/// How many services, and with `--quick`.
const SERVICES: u32 = 10_000;
const QUICK: u32 = 1_000;
/// Nothing happens for so long while idle time is measured: two rounds of questions to triggers.
const IDLE: Duration = Duration::from_mins(1);
/// What must be over by then has failed.
const PATIENCE: Duration = Duration::from_mins(20);
/// Their work is not what is measured, and would be most of what happens.
const CONTROLLERS: [&str; 7] = [
    "deployment-controller",
    "replicaset-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "endpointslice-mirroring-controller",
    "garbage-collector-controller",
    "resourcequota-controller",
];
/// What hold watches and may write. Its Lease is renewed whatever happens, so it is not among them.
const RESOURCES: [&str; 9] = [
    "elastiservices",
    "services",
    "endpointslices",
    "deployments",
    "statefulsets",
    "horizontalpodautoscalers",
    "rollouts",
    "scaledobjects",
    "events",
];

/// How many services are wanted.
pub(super) fn services(given: Option<u32>, is_quick: bool) -> u32 {
    given.unwrap_or(if is_quick { QUICK } else { SERVICES })
}

/// Builds what is needed, and begins anew in a network of its own.
pub(super) fn run(services: u32, program: Option<&Path>, json: Option<&Path>) -> Result<ExitCode> {
    tools::ensure(CONTROL_PLANE, &Cache::of_environment()?)?;
    let weir = match program {
        Some(program) => program.to_owned(),
        None => WEIR.build()?,
    };
    let services = services.to_string();
    let mut arguments: Vec<OsString> = ["operator-scale-inside", "--services", &services]
        .map(OsString::from)
        .to_vec();
    if let Some(file) = json {
        arguments.extend(["--json".into(), file.into()]);
    }
    network::begin_anew(&weir, arguments)
}

/// Measures, in a network of its own.
pub(super) fn run_inside(services: u32, json: Option<&Path>) -> Result<ExitCode> {
    let weir = network::enter("10.98.0.0/16")?;
    let bed = Bed::start(&weir, usize::try_from(services)?)?;
    let figures = bed.measure()?;
    finish("operator-scale", &figures, json)
}

/// What runs all the time.
struct Bed<'a> {
    progress: Progress,
    weir: &'a Path,
    services: usize,
    api: Api,
    /// These end with this value; the server after them.
    _resolvers: Resolvers,
    server: Server,
    scratch: Scratch,
}

/// An operator that has nothing more to do.
struct Settled {
    operator: Operator,
    after: Duration,
}

impl<'a> Bed<'a> {
    fn start(weir: &'a Path, services: usize) -> Result<Self> {
        let progress = Progress::new();
        let scratch = Scratch::new()?;
        progress.doing("starting an API server");
        let server = Server::fresh_without(&Cache::of_environment()?, &CONTROLLERS)?;
        let api = Api::new(&server, scratch.path())?;
        definitions::create(&server, weir, "elastiservices.elasti.truefoundry.com")?;
        objects::create_namespaces(&api)?;
        progress.doing("starting the resolvers");
        Ok(Self {
            _resolvers: Resolvers::start(weir, &server, &api, scratch.path())?,
            progress,
            weir,
            services,
            api,
            server,
            scratch,
        })
    }

    fn measure(&self) -> Result<Vec<Figure>> {
        let mut figures = self.first_time()?;
        figures.extend(self.restart()?);
        figures.extend(self.with_triggers()?);
        Ok(figures)
    }

    /// All are new to the operator: a tenth of them first, to see whether it watches as much as for all.
    fn first_time(&self) -> Result<Vec<Figure>> {
        let tenth = self.services / 10;
        let others = self.api.watches(&RESOURCES)?;
        let (mut seconds, mut watches, mut peak) = (0.0, Vec::new(), 0.0_f64);
        for (before, all) in [(0, tenth), (tenth, self.services)] {
            self.progress
                .doing(&format!("making {} services", all - before));
            objects::create(&self.api, before..all)?;
            self.progress
                .doing("the operator sees them for the first time");
            let Settled { operator, after } = self.settle(all)?;
            self.progress
                .done(&format!("{all} services are held after {after:.1?}"));
            seconds += after.as_secs_f64();
            watches.push(real(self.api.watches(&RESOURCES)?.saturating_sub(others)));
            peak = peak.max(operator.peak_mebibytes()?);
            operator.stop()?;
        }
        let [of_a_tenth, of_all] = watches[..] else {
            return Ok(Vec::new());
        };
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small count"
        )]
        let as_many = of_a_tenth as u32;
        Ok(vec![
            Figure::new("hold.scale.first_seconds", seconds, "s").below(600.0),
            Figure::new("hold.scale.first_rss_mib", peak, "MiB"),
            Figure::new("hold.scale.watches_of_a_tenth", of_a_tenth, ""),
            Figure::new("hold.scale.watches", of_all, "").exactly(as_many),
        ])
    }

    /// Everything is in place, and the operator begins anew.
    fn restart(&self) -> Result<Vec<Figure>> {
        self.progress.doing("the operator begins anew");
        let written = self.api.writes(&RESOURCES)?;
        let Settled { operator, after } = self.settle(self.services)?;
        let busy = operator.cpu_seconds()?;
        self.progress.done(&format!("settled after {after:.1?}"));
        self.progress.doing("nothing happens");
        let idle = idle(&operator)?;
        let written = self.api.writes(&RESOURCES)?.saturating_sub(written);
        let (peak, now) = (operator.peak_mebibytes()?, operator.mebibytes()?);
        operator.stop()?;
        Ok(vec![
            Figure::new("hold.scale.restart_seconds", after.as_secs_f64(), "s").below(60.0),
            Figure::new("hold.scale.restart_cpu_seconds", busy, "s"),
            Figure::new("hold.scale.restart_writes", real(written), "").exactly(0),
            // The most that it ever had.
            Figure::new("hold.scale.rss_mib", peak, "MiB").below(256.0),
            Figure::new("hold.scale.idle_rss_mib", now, "MiB"),
            Figure::new("hold.scale.idle_cpu_percent", idle, "% of a core").below(5.0),
        ])
    }

    /// Each has a trigger that says that it is idle.
    fn with_triggers(&self) -> Result<Vec<Figure>> {
        self.progress.doing("giving each a trigger");
        let prometheus = Prometheus::start()?;
        objects::add_triggers(&self.api, self.services, prometheus.address())?;
        self.progress
            .doing("the operator sees the triggers for the first time");
        let Settled { operator, .. } = self.settle(self.services)?;
        self.progress.doing("nothing happens");
        prometheus.wait_for_a_pause(PATIENCE)?;
        let asked = prometheus.asked();
        let idle = idle(&operator)?;
        let asked = prometheus.asked() - asked;
        let rounds = IDLE.as_secs_f64() / prometheus::INTERVAL.as_secs_f64();
        let peak = operator.peak_mebibytes()?;
        operator.stop()?;
        Ok(vec![
            // Each query once, and once whether Prometheus itself was up.
            Figure::new(
                "hold.scale.triggers.questions_per_round",
                real(asked) / rounds,
                "",
            )
            .exactly(prometheus::QUERIES + 1),
            Figure::new("hold.scale.triggers.rss_mib", peak, "MiB"),
            Figure::new("hold.scale.triggers.idle_cpu_percent", idle, "% of a core"),
        ])
    }

    /// Starts an operator, and waits until it has nothing more to do with so many.
    fn settle(&self, services: usize) -> Result<Settled> {
        let began = Instant::now();
        let arguments = resolvers::known_to_the_operator();
        let home = self.scratch.path();
        let mut operator = Operator::start(self.weir, &self.server, home, "hold", &arguments)?;
        let done = || Ok(objects::held(&self.api)? == services);
        let at = settled::wait(&mut operator, services, PATIENCE, done)?;
        Ok(Settled {
            operator,
            after: at.duration_since(began),
        })
    }
}

/// The share of a core that it takes while nothing happens, in percent.
fn idle(operator: &Operator) -> Result<f64> {
    let (began, before) = (Instant::now(), operator.cpu_seconds()?);
    thread::sleep(IDLE);
    let worked = operator.cpu_seconds()? - before;
    Ok(worked * 100.0 / began.elapsed().as_secs_f64())
}
