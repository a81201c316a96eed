//! Does a flooded service delay another? A quiet one is woken again and again, alone and beside a flood.
//!
//! A wake is what a client sees of it: from its request to its answer, with a pod that takes [`START`] to be ready. Real
//! pods take a second or more, beside which a delay would show less. What the resolver itself needs of it, from "ready"
//! to the answer, is a fraction of a millisecond; it is told as well, and on a busy core it waits for its turn.
//!
//! The flood is held up to its service's limit, and the rest is refused. Phases with and without it alternate; the
//! generator has the lowest priority, so that it does not compete with what is measured for its own core.

use std::{
    fmt,
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use super::{
    site::Site,
    steady::Steady,
    target::Target,
    weir::{Resolver, Service},
};
use crate::bench::{Figure, median, message, ports};

const LIMIT: u32 = 500;
const RATE: u32 = 2000;
/// What the quiet service's pod takes to be ready.
const START: Duration = Duration::from_millis(50);
/// The flood must have reached the limit before anything is measured beside it.
const RISE: Duration = Duration::from_secs(1);

/// The resolver and its two services.
struct Street {
    resolver: Resolver,
    flooded: Service,
    quiet: Service,
    quiet_at: SocketAddr,
    target: Target,
}

pub(super) fn measure(site: &Site) -> Result<Vec<Figure>> {
    let (phases, phase) = if site.is_quick { (1, 2) } else { (5, 4) };
    let phase = Duration::from_secs(phase);
    let [flooded, quiet] = ports::ports()?;
    let services = [
        Service::new("flooded", flooded),
        Service::new("quiet", quiet),
    ];
    let limit = LIMIT.to_string();
    let arguments = ["--max-held-per-service", &limit];
    let resolver = Resolver::start(site, "neighbour-weir", &arguments, &services)?;
    let flooded_at = resolver.address(flooded);
    let [flooded, quiet_service] = services;
    let street = Street {
        quiet_at: resolver.address(quiet),
        resolver,
        flooded,
        quiet: quiet_service,
        target: Target::start(1, Duration::ZERO, None)?,
    };
    street.wakes_for(Duration::from_millis(500))?;
    let (mut alone, mut beside, mut ratios) = (Wakes::default(), Wakes::default(), Vec::new());
    for number in 1..=phases {
        let without = street.wakes_for(phase)?;
        let flood = flood(site, flooded_at, RISE + phase)?;
        thread::sleep(RISE);
        let with = street.wakes_for(phase)?;
        let report = flood.finish()?;
        let refused = report.outcomes.status.get(&503).copied().unwrap_or(0);
        site.say(&format!(
            "neighbour, phase {number}: alone {without}; beside a flood {with} (the flood: {})",
            report.outcomes
        ));
        if refused == 0 {
            bail!(
                "the flood did not reach its limit of {LIMIT}: {}",
                report.outcomes
            );
        }
        ratios.push(median(&with.whole) / median(&without.whole));
        alone.extend(without);
        beside.extend(with);
    }
    let figure = |id, values: &[f64]| Figure::new(id, median(values), "ms");
    let mut figures = vec![
        figure("resolver.neighbour_wake_ms.alone", &alone.whole),
        figure("resolver.neighbour_wake_ms.flooded", &beside.whole),
        figure(
            "resolver.neighbour_ready_to_answer_ms.alone",
            &alone.from_ready,
        ),
        figure(
            "resolver.neighbour_ready_to_answer_ms.flooded",
            &beside.from_ready,
        ),
    ];
    // One pair of phases says too little to judge by.
    if !site.is_quick {
        let ratio = Figure::new("resolver.neighbour_latency_ratio", median(&ratios), "ratio");
        figures.push(ratio.at_most(1.1));
    }
    Ok(figures)
}

/// What wakes took, in milliseconds.
#[derive(Default)]
struct Wakes {
    /// From the request to the answer.
    whole: Vec<f64>,
    /// From the moment at which the pod is ready.
    from_ready: Vec<f64>,
}

impl Wakes {
    fn extend(&mut self, more: Self) {
        self.whole.extend(more.whole);
        self.from_ready.extend(more.from_ready);
    }
}

impl fmt::Display for Wakes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{:.2} ms, {:.3} ms from ready ({} wakes)",
            median(&self.whole),
            median(&self.from_ready),
            self.whole.len()
        )
    }
}

/// Held requests are given up after a second, so that the service stays flooded and never becomes stale.
fn flood(site: &Site, to: SocketAddr, span: Duration) -> Result<Steady> {
    let arguments = [
        format!("http://{to}/flood"),
        format!("--rate={RATE}"),
        format!("--connections={}", 3 * LIMIT),
        format!("--duration={}s", span.as_secs()),
        "--time-out=1s".to_owned(),
    ];
    Steady::start(site, "flood", true, &arguments)
}

impl Street {
    /// Wakes for so long.
    fn wakes_for(&self, span: Duration) -> Result<Wakes> {
        let milliseconds = |since: Instant| since.elapsed().as_secs_f64() * 1000.0;
        let end = Instant::now() + span;
        let mut wakes = Wakes::default();
        while Instant::now() < end {
            let (mut client, sent) = self.held_client()?;
            thread::sleep(START.saturating_sub(sent.elapsed()));
            let awake = self.quiet.clone().ready_at(self.target.address());
            let ready = self.resolver.tell(&[self.flooded.clone(), awake])?;
            read_answer(&mut client)?;
            wakes.whole.push(milliseconds(sent));
            wakes.from_ready.push(milliseconds(ready));
            self.resolver
                .tell(&[self.flooded.clone(), self.quiet.clone()])?;
        }
        Ok(wakes)
    }

    /// A client whose request is held, and when it was sent. Until the resolver knows that the service sleeps it forwards at once; then
    /// it is tried again.
    fn held_client(&self) -> Result<(TcpStream, Instant)> {
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            let mut client = TcpStream::connect(self.quiet_at).context("cannot connect")?;
            client.set_nodelay(true)?;
            let sent = Instant::now();
            write!(client, "GET /wake HTTP/1.1\r\nhost: quiet\r\n\r\n")?;
            loop {
                if self.resolver.holds_for("quiet")? {
                    client.set_read_timeout(Some(Duration::from_secs(10)))?;
                    return Ok((client, sent));
                }
                if has_something(&client)? || Instant::now() > deadline {
                    break;
                }
                thread::sleep(Duration::from_millis(1));
            }
        }
        bail!("a request to a sleeping service was not held within 10 s")
    }
}

fn has_something(client: &TcpStream) -> Result<bool> {
    client.set_nonblocking(true)?;
    let peeked = client.peek(&mut [0]);
    client.set_nonblocking(false)?;
    Ok(!matches!(peeked, Err(error) if error.kind() == ErrorKind::WouldBlock))
}

fn read_answer(client: &mut TcpStream) -> Result<()> {
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    let answer = loop {
        let count = client
            .read(&mut buffer)
            .context("no answer to a held request")?;
        received.extend_from_slice(&buffer[..count]);
        if let Some(answer) = message::whole(&received) {
            break answer;
        }
        if count == 0 {
            bail!("a held request's connection was closed before its answer was whole");
        }
    };
    if answer.status != 200 {
        bail!("a held request was answered with status {}", answer.status);
    }
    Ok(())
}
