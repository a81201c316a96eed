//! Latency at a rate that leaves time: half of what nginx can do at most, through nginx and through ours.
//!
//! The generator keeps the rate whether answers come or not, and counts from when a request was meant to be sent.
//! A virtual machine is kept from its processors for some milliseconds now and then, longer than anything a proxy does,
//! and all that was meant to be sent meanwhile is late. So rounds are many and short, in pairs: one through nginx, one
//! through ours, each first in every other pair. The p99 is taken of each round, the difference within each pair, and
//! the median of those counts: a stall spoils the pair that it hits and no other. What comes too seldom for that is
//! seen in the quantiles of all rounds together, which are told as well.
//!
//! With each pair goes a round straight to the target. There is no proxy in it: what it takes is the rig's own.

use std::time::Duration;

use anyhow::Result;

use super::{
    direct,
    paced::Paced,
    proxies::{Protocol, Proxy},
    site::Site,
    upstreams::Upstream,
};
use crate::bench::{Figure, median, quantile};

const CONNECTIONS: usize = 64;
/// Some thousand requests.
const SPAN: Duration = Duration::from_millis(200);
/// How often progress is told.
const PAIRS_TOLD: usize = 20;

/// Where requests are sent, and how long they took there.
struct Place {
    generator: Paced,
    measured: Measured,
}

/// In milliseconds.
struct Measured {
    name: &'static str,
    /// Of each round.
    p99: Vec<f64>,
    /// Of all requests.
    all: Vec<f64>,
}

/// `nginx_most` is what nginx was measured to do, if it was.
pub(super) fn measure(site: &Site, nginx_most: Option<f64>) -> Result<Vec<Figure>> {
    let upstream = Upstream::ten_bytes(site, Protocol::Http1)?;
    let nginx = Proxy::nginx(site, upstream.address)?;
    let ours = Proxy::weir(site, upstream.address, Protocol::Http1)?;
    let most = match nginx_most {
        Some(most) => most,
        None => direct::most(site, &nginx)?,
    };
    let rate = (most / 2.0).round();
    let mut places = [
        Place::new("nginx", Paced::connect(nginx.address, CONNECTIONS)?),
        Place::new("weir", Paced::connect(ours.address, CONNECTIONS)?),
        Place::new("rig", Paced::connect(upstream.address, CONNECTIONS)?),
    ];
    for pair in 1..=pairs(site) {
        // Whoever comes second finds the machine as the first has left it.
        places[..2].reverse();
        for place in &mut places {
            place.round(rate)?;
        }
        if pair % PAIRS_TOLD == 0 {
            let told = places.iter().map(|it| it.told(pair - PAIRS_TOLD));
            let told = told.collect::<Vec<_>>().join("; ");
            site.say(&format!("p99 at {rate}/s, pairs up to {pair}: {told}"));
        }
    }
    let mut figures = figures(&places.map(Place::finish));
    figures.push(Figure::new("resolver.p99_rate", rate, "1/s"));
    Ok(figures)
}

fn pairs(site: &Site) -> usize {
    if site.is_quick { 20 } else { 80 }
}

impl Place {
    fn new(name: &'static str, generator: Paced) -> Self {
        let measured = Measured {
            name,
            p99: Vec::new(),
            all: Vec::new(),
        };
        Self {
            generator,
            measured,
        }
    }

    fn round(&mut self, rate: f64) -> Result<()> {
        let took = self.generator.round(rate, SPAN)?;
        self.measured.p99.push(quantile(&took, 0.99));
        self.measured.all.extend(took);
        Ok(())
    }

    /// Half a million are sorted once: each quantile sorts by itself, which takes no time then.
    fn finish(mut self) -> Measured {
        self.measured.all.sort_by(f64::total_cmp);
        self.measured
    }

    fn told(&self, from: usize) -> String {
        let Measured { name, p99, .. } = &self.measured;
        format!("{name} {:.2} ms", median(&p99[from..]))
    }
}

fn figures(measured: &[Measured]) -> Vec<Figure> {
    let of = |name| measured.iter().find(|it| it.name == name);
    let mut figures = Vec::new();
    if let (Some(ours), Some(theirs)) = (of("weir"), of("nginx")) {
        let differences: Vec<f64> = ours
            .p99
            .iter()
            .zip(&theirs.p99)
            .map(|(ours, theirs)| ours - theirs)
            .collect();
        let difference = median(&differences);
        figures.push(Figure::new("resolver.p99_ms_over_nginx", difference, "ms").at_most(1.0));
        let together = quantile(&ours.all, 0.99) - quantile(&theirs.all, 0.99);
        let id = "resolver.p99_ms_over_nginx.all_rounds";
        figures.push(Figure::new(id, together, "ms"));
    }
    for Measured { name, p99, all } in measured {
        let id = format!("resolver.p99_ms.{name}");
        figures.push(Figure::new(id, median(p99), "ms"));
        for (which, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
            let id = format!("resolver.latency_ms.{name}.{which}");
            figures.push(Figure::new(id, quantile(all, share), "ms"));
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_that_was_stalled_does_not_count_and_is_seen_all_the_same() {
        let measured = |name, p99: [f64; 3]| Measured {
            name,
            p99: p99.into(),
            all: p99.into(),
        };
        let all = [
            measured("weir", [0.5, 9.0, 0.75]),
            measured("nginx", [0.25, 0.5, 0.5]),
        ];
        let figures = figures(&all);
        let told: Vec<_> = figures
            .iter()
            .map(|it| (it.id.as_str(), it.value, it.met))
            .collect();
        assert_eq!(told[0], ("resolver.p99_ms_over_nginx", 0.25, Some(true)));
        let id = "resolver.p99_ms_over_nginx.all_rounds";
        assert_eq!(told[1], (id, 8.5, None));
        assert_eq!(told[2], ("resolver.p99_ms.weir", 0.75, None));
    }
}
