//! Two resolvers behind a balancer, replaced one after another under load, as a rolling update does: a successor
//! is started at another address, and when the balancer sends to it the eldest gets SIGTERM. Nobody may notice.
//!
//! At the end one is killed without a word; what that costs is counted, not judged.

use std::{
    collections::VecDeque,
    net::{Ipv4Addr, SocketAddr},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use super::{
    balancer::Balancer,
    proxies::Protocol,
    site::Site,
    steady::{Report, Steady},
    upstreams::Upstream,
    weir::{Listen, Resolver, Service},
};
use crate::bench::{Figure, ports, process::wait_until, real};

/// Addresses for resolvers: two serve, one is on its way, the others may still be draining.
const PLACES: u8 = 12;
/// From one SIGTERM to the next.
const PACE: Duration = Duration::from_millis(1200);
/// Requests per second of each of the two generators.
const RATE: u32 = 100;
/// Few enough that each connection is in use several times a second.
const KEPT_CONNECTIONS: u32 = 16;
/// How long a resolver may take to end once it was told to.
const LONGEST_DRAIN: Duration = Duration::from_mins(1);

/// The resolvers there are, and where.
struct Fleet<'a> {
    site: &'a Site,
    balancer: Balancer,
    service: Service,
    listen: Listen,
    /// The eldest first.
    serving: VecDeque<(usize, Resolver)>,
    draining: Vec<(usize, Resolver, Instant)>,
    /// The one that was used longest ago first.
    free: VecDeque<usize>,
    slowest_drain: Duration,
    bad_ends: u32,
}

/// Half of the requests on connections that are kept, half on new ones.
struct Both(Steady, Steady);

pub(super) fn measure(site: &Site) -> Result<Vec<Figure>> {
    if !site.programs.has_haproxy {
        return Ok(Vec::new());
    }
    let upstream = Upstream::ten_bytes(site, Protocol::Http1)?;
    let mut fleet = Fleet::start(site, upstream.address)?;
    let mut figures = fleet.restart_all(if site.is_quick { 5 } else { 100 })?;
    figures.extend(fleet.kill_one()?);
    Ok(figures)
}

impl<'a> Fleet<'a> {
    fn start(site: &'a Site, upstream: SocketAddr) -> Result<Self> {
        let [proxy_port, internal_port, port] = ports::ports()?;
        let host = Ipv4Addr::LOCALHOST;
        let places: Vec<SocketAddr> = (0..PLACES)
            .map(|it| (place(it.into()), port).into())
            .collect();
        let mut fleet = Self {
            site,
            balancer: Balancer::start(site, &places, internal_port)?,
            service: Service::new("direct", port).ready_at(upstream),
            listen: Listen {
                host,
                proxy_port,
                internal_port,
            },
            serving: VecDeque::new(),
            draining: Vec::new(),
            free: (0..PLACES.into()).collect(),
            slowest_drain: Duration::ZERO,
            bad_ends: 0,
        };
        fleet.add()?;
        fleet.add()?;
        // It takes all for ready until it has asked them.
        wait_until("the balancer sees two", Duration::from_secs(10), || {
            fleet.balancer.ready().is_ok_and(|ready| ready.len() == 2)
        })?;
        Ok(fleet)
    }

    /// Starts one more, and waits until the balancer sends to it.
    fn add(&mut self) -> Result<()> {
        let number = self.free.pop_front();
        let number = number.context("no address is free: resolvers take too long to end")?;
        let listen = Listen {
            host: place(number),
            ..self.listen
        };
        let name = format!("fleet-{number}");
        let services = [self.service.clone()];
        let mut resolver = Resolver::begin(self.site, &name, listen, &[], &services)?;
        resolver.wait_until_ready()?;
        wait_until(
            "the balancer sees the new one",
            Duration::from_secs(10),
            || {
                self.balancer
                    .ready()
                    .is_ok_and(|ready| ready.contains(&number))
            },
        )?;
        self.serving.push_back((number, resolver));
        Ok(())
    }

    /// Tells the eldest to end, and does not wait for it.
    fn retire(&mut self) -> Result<()> {
        let (number, mut resolver) = self.serving.pop_front().context("no resolver is left")?;
        resolver.process().signal(Signal::TERM)?;
        self.draining.push((number, resolver, Instant::now()));
        Ok(())
    }

    /// Takes note of those that have ended.
    fn reap(&mut self) -> Result<()> {
        let mut still = Vec::new();
        for (number, mut resolver, since) in self.draining.drain(..) {
            match resolver.process().ended() {
                None if since.elapsed() > LONGEST_DRAIN => {
                    bail!("a resolver did not end within {LONGEST_DRAIN:?} of SIGTERM")
                }
                None => still.push((number, resolver, since)),
                Some(status) => {
                    self.slowest_drain = self.slowest_drain.max(since.elapsed());
                    if !status.success() {
                        self.bad_ends += 1;
                        self.site
                            .say(&format!("a resolver ended after SIGTERM with {status}"));
                    }
                    self.free.push_back(number);
                }
            }
        }
        self.draining = still;
        Ok(())
    }

    fn restart_all(&mut self, restarts: u32) -> Result<Vec<Figure>> {
        let before = Duration::from_secs(1);
        let after = Duration::from_secs(8);
        let span = before + PACE * restarts + after;
        self.site.say(&format!(
            "{restarts} restarts under {} requests/s, for {} s",
            2 * RATE,
            span.as_secs()
        ));
        let load = Both::start(self.site, self.balancer.address, span)?;
        let began = Instant::now();
        for number in 0..restarts {
            let due = began + before + PACE * number;
            while Instant::now() < due {
                self.reap()?;
                thread::sleep(Duration::from_millis(20).min(due - Instant::now().min(due)));
            }
            self.add()?;
            self.retire()?;
        }
        let took = began.elapsed();
        if took + Duration::from_secs(2) > span {
            bail!(
                "{restarts} restarts took {took:?}, longer than the load: the machine is too busy"
            );
        }
        while !self.draining.is_empty() {
            self.reap()?;
            thread::sleep(Duration::from_millis(20));
        }
        let reports = load.finish()?;
        for (kind, report) in ["kept connections", "new connections"].iter().zip(&reports) {
            self.site
                .say(&format!("{restarts} restarts, {kind}: {}", report.outcomes));
        }
        let sent: u64 = reports.iter().map(|it| it.sent).sum();
        let slowest = self.slowest_drain.as_secs_f64();
        Ok(vec![
            Figure::new("resolver.sigterm.failed", real(failed(&reports)), "").exactly(0),
            Figure::new("resolver.sigterm.bad_ends", f64::from(self.bad_ends), "").exactly(0),
            Figure::new("resolver.sigterm.restarts", f64::from(restarts), ""),
            Figure::new("resolver.sigterm.requests", real(sent), ""),
            Figure::new("resolver.sigterm.slowest_end_seconds", slowest, "s"),
        ])
    }

    fn kill_one(&mut self) -> Result<Vec<Figure>> {
        let load = Both::start(self.site, self.balancer.address, Duration::from_secs(6))?;
        thread::sleep(Duration::from_secs(2));
        let (_, mut victim) = self.serving.pop_front().context("no resolver is left")?;
        victim.process().signal(Signal::KILL)?;
        let reports = load.finish()?;
        let [kept, new] = &reports;
        self.site.say(&format!(
            "SIGKILL of one of two: kept connections {}; new connections {}",
            kept.outcomes, new.outcomes
        ));
        let sent: u64 = reports.iter().map(|it| it.sent).sum();
        Ok(vec![
            Figure::new("resolver.sigkill.failed", real(failed(&reports)), ""),
            Figure::new("resolver.sigkill.requests", real(sent), ""),
        ])
    }
}

/// Loopback has more addresses than one.
fn place(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 12, u8::try_from(number + 1).unwrap_or(u8::MAX))
}

fn failed(reports: &[Report]) -> u64 {
    reports
        .iter()
        .map(|it| it.outcomes.failed() + it.unsent)
        .sum()
}

impl Both {
    fn start(site: &Site, to: SocketAddr, span: Duration) -> Result<Self> {
        let start = |name, more: &str| {
            let arguments = [
                format!("http://{to}/"),
                format!("--rate={RATE}"),
                format!("--duration={}s", span.as_secs()),
                more.to_owned(),
            ];
            Steady::start(site, name, false, &arguments)
        };
        let kept = start("kept", &format!("--connections={KEPT_CONNECTIONS}"))?;
        let new = start("new", "--new-connections")?;
        Ok(Self(kept, new))
    }

    fn finish(self) -> Result<[Report; 2]> {
        Ok([self.0.finish()?, self.1.finish()?])
    }
}
