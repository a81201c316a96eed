//! Requests that are forwarded at once: CPU time of the proxy for each, and how many it gets through.
//!
//! The generator always has 64 requests on their way, so each proxy is as busy as it can be. In a round they take turns
//! of a second (nginx, ours, Envoy, nginx, …), and a ratio is taken within its round: what else the machine does
//! meanwhile hits both sides of it. With turns as long as a round, a machine that became slower for some seconds gave
//! ratios between 1.1 and 1.3 for the same two programs.

use std::time::Duration;

use anyhow::Result;

use super::{
    h2load,
    proxies::{Protocol, Proxy},
    site::Site,
    upstreams::Upstream,
    wrk::{self, Run},
};
use crate::bench::{Figure, median, process::usage, real};

const CONNECTIONS: u32 = 64;
/// As many requests at once, on fewer connections.
const H2_CONNECTIONS: u32 = 8;
const H2_STREAMS: u32 = 8;
const WARM_UP: Duration = Duration::from_secs(1);
/// How long one proxy is driven before it is the next one's turn; generators count whole seconds.
const TURN: Duration = Duration::from_secs(1);

/// What one proxy came to, by round.
struct Measured {
    name: &'static str,
    microseconds: Vec<f64>,
    per_second: Vec<f64>,
}

/// What the turns of one proxy in one round come to.
#[derive(Clone, Copy, Default)]
struct Sum {
    used: Duration,
    ok: u64,
    seconds: f64,
}

/// Ten bytes each. Tells what nginx can do at most.
pub(super) fn small(site: &Site, nginx_most: &mut Option<f64>) -> Result<Vec<Figure>> {
    let upstream = Upstream::ten_bytes(site, Protocol::Http1)?;
    let proxies = all(site, &upstream)?;
    let measured = compare(site, "small", &proxies, |proxy, span| {
        wrk::run(&proxy.url("/"), CONNECTIONS, span)
    })?;
    *nginx_most = find(&measured, "nginx").map(|nginx| median(&nginx.per_second));
    Ok(figures("small", &measured, ("nginx", 1.25)))
}

/// What this one can do at most with ten bytes each, by itself.
pub(super) fn most(site: &Site, proxy: &Proxy) -> Result<f64> {
    let drive = |span| wrk::run(&proxy.url("/"), CONNECTIONS, span);
    drive(WARM_UP)?;
    let mut per_second = Vec::new();
    for _ in 1..=site.rounds() {
        let run = drive(site.span())?;
        per_second.push(real(run.ok) / run.seconds);
    }
    Ok(median(&per_second))
}

/// 1 MiB each.
pub(super) fn one_mebibyte(site: &Site) -> Result<Vec<Figure>> {
    let upstream = Upstream::one_mebibyte(site)?;
    let mut proxies = all(site, &upstream)?;
    proxies.push(Proxy::nginx_default(site, upstream.address)?);
    let measured = compare(site, "1mib", &proxies, |proxy, span| {
        wrk::run(&proxy.url("/1mib"), CONNECTIONS, span)
    })?;
    Ok(figures("1mib", &measured, ("nginx", 1.25)))
}

/// Ten bytes each by HTTP/2 on both sides. Without nginx, which does not speak it to an upstream.
pub(super) fn h2c(site: &Site) -> Result<Vec<Figure>> {
    if !site.programs.has_h2load {
        return Ok(Vec::new());
    }
    let upstream = Upstream::ten_bytes(site, Protocol::H2c)?;
    let ours = Proxy::weir(site, upstream.address, Protocol::H2c)?;
    let envoy = Proxy::envoy(site, upstream.address, Protocol::H2c)?;
    let proxies: Vec<Proxy> = envoy.into_iter().chain([ours]).collect();
    let measured = compare(site, "h2c", &proxies, |proxy, span| {
        h2load::run(&proxy.url("/"), H2_CONNECTIONS, H2_STREAMS, span)
    })?;
    Ok(figures("h2c", &measured, ("envoy", 0.8)))
}

fn all(site: &Site, upstream: &Upstream) -> Result<Vec<Proxy>> {
    let nginx = Proxy::nginx(site, upstream.address)?;
    let ours = Proxy::weir(site, upstream.address, Protocol::Http1)?;
    let envoy = Proxy::envoy(site, upstream.address, Protocol::Http1)?;
    Ok([nginx, ours].into_iter().chain(envoy).collect())
}

fn compare(
    site: &Site,
    what: &str,
    proxies: &[Proxy],
    drive: impl Fn(&Proxy, Duration) -> Result<Run>,
) -> Result<Vec<Measured>> {
    let mut measured = Vec::new();
    for proxy in proxies {
        drive(proxy, WARM_UP)?;
        measured.push(Measured {
            name: proxy.name,
            microseconds: Vec::new(),
            per_second: Vec::new(),
        });
    }
    for round in 1..=site.rounds() {
        let mut sums = vec![Sum::default(); proxies.len()];
        for _ in 0..(site.span().as_secs() / TURN.as_secs()).max(1) {
            for (proxy, sum) in proxies.iter().zip(&mut sums) {
                let before = usage::cpu(proxy.pid())?;
                let run = drive(proxy, TURN)?;
                sum.used += usage::cpu(proxy.pid())?.saturating_sub(before);
                sum.ok += run.ok;
                sum.seconds += run.seconds;
            }
        }
        let mut told = Vec::new();
        for (sum, measured) in sums.iter().zip(&mut measured) {
            let each = sum.used.as_secs_f64() * 1e6 / real(sum.ok);
            let rate = real(sum.ok) / sum.seconds;
            told.push(format!("{} {each:.1} µs, {rate:.0}/s", measured.name));
            measured.microseconds.push(each);
            measured.per_second.push(rate);
        }
        site.say(&format!("{what}, round {round}: {}", told.join("; ")));
    }
    Ok(measured)
}

fn find<'a>(measured: &'a [Measured], name: &str) -> Option<&'a Measured> {
    measured.iter().find(|it| it.name == name)
}

fn ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    let ratios: Vec<f64> = ours
        .iter()
        .zip(theirs)
        .map(|(our, their)| our / their)
        .collect();
    median(&ratios)
}

/// What there is to tell about a kind of request; `goal` is whom to compare with, and how much we may take.
fn figures(kind: &str, measured: &[Measured], goal: (&str, f64)) -> Vec<Figure> {
    let mut figures = Vec::new();
    let ours = find(measured, "weir");
    for them in measured.iter().filter(|them| them.name != "weir") {
        let Some(ours) = ours else { continue };
        let name = them.name;
        let cpu = ratio(&ours.microseconds, &them.microseconds);
        let cpu = Figure::new(format!("resolver.cpu_vs_{name}.{kind}"), cpu, "ratio");
        let (whom, most) = goal;
        figures.push(if whom == name { cpu.at_most(most) } else { cpu });
        let throughput = ratio(&ours.per_second, &them.per_second);
        let id = format!("resolver.throughput_vs_{name}.{kind}");
        figures.push(Figure::new(id, throughput, "ratio"));
    }
    if let (Some(envoy), Some(nginx)) = (find(measured, "envoy"), find(measured, "nginx")) {
        let cpu = ratio(&envoy.microseconds, &nginx.microseconds);
        let id = format!("resolver.envoy_cpu_vs_nginx.{kind}");
        figures.push(Figure::new(id, cpu, "ratio"));
    }
    for Measured {
        name,
        microseconds,
        per_second,
    } in measured
    {
        let id = format!("resolver.cpu_us.{kind}.{name}");
        figures.push(Figure::new(id, median(microseconds), "µs"));
        let id = format!("resolver.requests_per_second.{kind}.{name}");
        figures.push(Figure::new(id, median(per_second), "1/s"));
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(name: &'static str, microseconds: [f64; 3]) -> Measured {
        Measured {
            name,
            microseconds: microseconds.into(),
            per_second: microseconds.map(|it| 1e6 / it).into(),
        }
    }

    #[test]
    fn ratios_are_taken_within_a_round_and_only_one_is_judged() {
        let all = [
            measured("nginx", [10.0, 20.0, 10.0]),
            measured("weir", [12.0, 24.0, 20.0]),
            measured("envoy", [24.0, 48.0, 20.0]),
        ];
        let figures = figures("small", &all, ("nginx", 1.25));
        let told: Vec<_> = figures
            .iter()
            .map(|it| (it.id.as_str(), it.value, it.met))
            .collect();
        assert_eq!(told[0], ("resolver.cpu_vs_nginx.small", 1.2, Some(true)));
        assert_eq!(told[2], ("resolver.cpu_vs_envoy.small", 0.5, None));
        assert_eq!(told[4].0, "resolver.envoy_cpu_vs_nginx.small");
        assert_eq!(told[5], ("resolver.cpu_us.small.nginx", 10.0, None));
    }
}
