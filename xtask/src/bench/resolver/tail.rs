//! Latency at a rate that leaves time: half of what nginx can do at most, through nginx and through ours.
//!
//! The generator keeps the rate whether answers come or not, and counts from when a request was meant to be sent.

use anyhow::{Result, bail};

use super::{
    proxies::{Protocol, Proxy},
    site::Site,
    steady::Steady,
    upstreams::Upstream,
};
use crate::bench::{Figure, median};

const CONNECTIONS: u32 = 64;

/// `nginx_most` is what nginx was measured to do; without it there is no rate to keep.
pub(super) fn measure(site: &Site, nginx_most: Option<f64>) -> Result<Vec<Figure>> {
    let Some(most) = nginx_most else {
        bail!("what nginx can do at most is not known, since that part failed");
    };
    let rate = (most / 2.0).round();
    let upstream = Upstream::ten_bytes(site, Protocol::Http1)?;
    let nginx = Proxy::nginx(site, upstream.address)?;
    let ours = Proxy::weir(site, upstream.address, Protocol::Http1)?;
    let (mut theirs_ms, mut ours_ms) = (Vec::new(), Vec::new());
    for round in 1..=site.rounds() {
        theirs_ms.push(p99(site, &nginx, rate)?);
        ours_ms.push(p99(site, &ours, rate)?);
        site.say(&format!(
            "p99 at {rate}/s, round {round}: nginx {:.2} ms; weir {:.2} ms",
            theirs_ms[round - 1],
            ours_ms[round - 1]
        ));
    }
    let (theirs, ours) = (median(&theirs_ms), median(&ours_ms));
    Ok(vec![
        Figure::new("resolver.p99_ms_over_nginx", ours - theirs, "ms").at_most(1.0),
        Figure::new("resolver.p99_ms.weir", ours, "ms"),
        Figure::new("resolver.p99_ms.nginx", theirs, "ms"),
        Figure::new("resolver.p99_rate", rate, "1/s"),
    ])
}

/// In milliseconds.
fn p99(site: &Site, proxy: &Proxy, rate: f64) -> Result<f64> {
    let arguments = [
        proxy.url("/"),
        format!("--rate={rate}"),
        format!("--connections={CONNECTIONS}"),
        format!("--duration={}s", site.span().as_secs()),
        "--time-out=30s".to_owned(),
    ];
    let report = Steady::start(site, "p99", false, &arguments)?.finish()?;
    if report.outcomes.failed() + report.unsent > 0 {
        bail!(
            "{} did not answer all of {}: {}, unsent {}",
            proxy.name,
            report.sent,
            report.outcomes,
            report.unsent
        );
    }
    let Some(latency) = report.latency else {
        bail!("the load generator told no latency");
    };
    Ok(latency.p99 / 1000.0)
}
