//! From "the endpoint is ready" to the first byte at the pod, with 1,000 requests held over 100 services.
//!
//! The services become ready one after another. The targets are threads of this process, so that both moments are
//! on one clock. What is measured holds the resolver's reading of a file with 100 services, which it does not do
//! in a cluster, and the waking of the target's thread: the figure is above the truth, and nothing is subtracted.

use std::{
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use anyhow::{Context, Result, bail};

use super::{
    crowd::Crowd,
    site::Site,
    target::Target,
    weir::{Resolver, Service},
};
use crate::bench::{Figure, median, ports, process::wait_until, quantile};

const SERVICES: usize = 100;
const REQUESTS_EACH: usize = 10;
const BODY_BYTES: usize = 1024;

/// A service, and what it will be ready at.
struct Sleeper {
    service: Service,
    port: u16,
    target: Target,
    first_bytes: Receiver<std::time::Instant>,
}

pub(super) fn measure(site: &Site) -> Result<Vec<Figure>> {
    let rounds = if site.is_quick { 1 } else { 3 };
    let mut milliseconds = Vec::new();
    for round in 1..=rounds {
        let of_round = wake_all(site)?;
        site.say(&format!(
            "ready to first byte, round {round}: median {:.2} ms, p99 {:.2} ms",
            median(&of_round),
            quantile(&of_round, 0.99)
        ));
        milliseconds.extend(of_round);
    }
    let p99 = quantile(&milliseconds, 0.99);
    Ok(vec![
        Figure::new("resolver.ready_to_first_byte_ms.p99", p99, "ms").below(20.0),
        Figure::new(
            "resolver.ready_to_first_byte_ms.median",
            median(&milliseconds),
            "ms",
        ),
    ])
}

fn wake_all(site: &Site) -> Result<Vec<f64>> {
    let sleepers: Result<Vec<Sleeper>> = (0..SERVICES).map(Sleeper::new).collect();
    let sleepers = sleepers?;
    let mut services: Vec<Service> = sleepers.iter().map(|it| it.service.clone()).collect();
    let resolver = Resolver::start(site, "ready-weir", &[], &services)?;
    let each = |it: &Sleeper| [resolver.address(it.port); REQUESTS_EACH];
    let crowd = Crowd::send(sleepers.iter().flat_map(each), BODY_BYTES)?;
    wait_until("all requests are held", Duration::from_secs(30), || {
        let held = resolver.held().ok();
        held.and_then(|held| usize::try_from(held).ok()) >= Some(SERVICES * REQUESTS_EACH)
    })?;
    let mut milliseconds = Vec::new();
    for (number, sleeper) in sleepers.iter().enumerate() {
        let ready = sleeper.service.clone().ready_at(sleeper.target.address());
        services[number] = ready;
        let began = resolver.tell(&services)?;
        let first = sleeper.first_bytes.recv_timeout(Duration::from_secs(10));
        let first = first.with_context(|| format!("nothing came to service {number} in 10 s"))?;
        milliseconds.push((first - began).as_secs_f64() * 1000.0);
    }
    let ends = crowd.answers(Duration::from_secs(30))?;
    let faults: Vec<String> = ends.into_iter().filter_map(|end| end.fault).collect();
    if let Some(fault) = faults.first() {
        bail!("{} requests failed; the first: {fault}", faults.len());
    }
    Ok(milliseconds)
}

impl Sleeper {
    fn new(number: usize) -> Result<Self> {
        let port = ports::port()?;
        let (sender, first_bytes) = channel();
        Ok(Self {
            service: Service::new(format!("s{number}"), port),
            port,
            // Most pods do several things at once; the first byte is waited for alone.
            target: Target::start(2, Duration::ZERO, Some(sender))?,
            first_bytes,
        })
    }
}
