//! Our resolver with a file of targets instead of a cluster's watches.
//!
//! "Ready" is the file rewritten and SIGHUP. That a file is read and parsed is a cost that an event from a watch
//! does not have; it counts in all that is measured from [`Resolver::tell`] on.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Instant,
};

use anyhow::{Context, Result};
use rustix::process::Signal;
use serde::Serialize;
use serde_json::{Value, json};

use super::site::Site;
use crate::bench::{
    ask, ports,
    process::{Process, command, usage},
    real,
};

const NAMESPACE: &str = "bench";

/// A service as the file has it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Service {
    namespace: &'static str,
    name: String,
    ports: [Port; 1],
}

#[derive(Clone, Debug, Serialize)]
struct Port {
    number: u16,
    #[serde(rename = "resolverPort")]
    resolver: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<&'static str>,
    endpoints: Vec<SocketAddr>,
}

/// A resolver that runs.
pub(super) struct Resolver {
    process: Process,
    targets: PathBuf,
    host: Ipv4Addr,
    internal: SocketAddr,
}

/// Where a resolver listens, beside the ports of its services.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listen {
    pub(super) host: Ipv4Addr,
    pub(super) proxy_port: u16,
    pub(super) internal_port: u16,
}

impl Listen {
    /// On 127.0.0.1, wherever it is free.
    pub(super) fn anywhere() -> Result<Self> {
        let [proxy_port, internal_port] = ports::ports()?;
        Ok(Self {
            host: Ipv4Addr::LOCALHOST,
            proxy_port,
            internal_port,
        })
    }
}

impl Service {
    /// Asleep: it has no endpoint.
    pub(super) fn new(name: impl Into<String>, resolver_port: u16) -> Self {
        let port = Port {
            number: 80,
            resolver: resolver_port,
            protocol: None,
            endpoints: Vec::new(),
        };
        Self {
            namespace: NAMESPACE,
            name: name.into(),
            ports: [port],
        }
    }

    /// The same, awake.
    pub(super) fn ready_at(mut self, endpoint: SocketAddr) -> Self {
        self.ports[0].endpoints = vec![endpoint];
        self
    }

    /// The same, whose pods speak HTTP/2.
    pub(super) fn h2c(mut self) -> Self {
        self.ports[0].protocol = Some("http2");
        self
    }
}

impl Resolver {
    /// Starts it where it may, and waits until it is ready.
    pub(super) fn start(
        site: &Site,
        name: &str,
        arguments: &[&str],
        services: &[Service],
    ) -> Result<Self> {
        let mut resolver = Self::begin(site, name, Listen::anywhere()?, arguments, services)?;
        resolver.wait_until_ready()?;
        Ok(resolver)
    }

    /// Starts it, and leaves it to the caller to wait.
    pub(super) fn begin(
        site: &Site,
        name: &str,
        listen: Listen,
        arguments: &[&str],
        services: &[Service],
    ) -> Result<Self> {
        let home = site.scratch.part(name)?;
        let targets = home.join("targets.json");
        write(&targets, services)?;
        let mut command = command(&site.programs.weir, Some(site.proxy_core));
        command
            .args(["resolver", "--threads", "1", "--targets"])
            .arg(&targets);
        command.args(["--bind-address", &listen.host.to_string()]);
        command.args(["--proxy-port", &listen.proxy_port.to_string()]);
        command.args(["--internal-port", &listen.internal_port.to_string()]);
        command.args(["--operator-url", &format!("http://{}", site.operator)]);
        command.args(arguments);
        let process = Process::start("weir", command, &home)?.killed_at_the_end();
        Ok(Self {
            process,
            targets,
            host: listen.host,
            internal: (listen.host, listen.internal_port).into(),
        })
    }

    pub(super) fn wait_until_ready(&mut self) -> Result<()> {
        let internal = self.internal;
        let is_ready = || ask::get(internal, "/readyz").is_ok_and(|answer| answer.status == 200);
        self.process.wait_until_ready(is_ready)
    }

    /// Where the service with this port is served.
    pub(super) fn address(&self, resolver_port: u16) -> SocketAddr {
        (self.host, resolver_port).into()
    }

    pub(super) fn into_process(self) -> Process {
        self.process
    }

    pub(super) fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// For how long it has worked.
    pub(super) fn cpu_seconds(&self) -> Result<f64> {
        Ok(usage::cpu(self.process.id())?.as_secs_f64())
    }

    /// Its resident memory in MiB.
    pub(super) fn mebibytes(&self) -> Result<f64> {
        Ok(real(usage::resident(self.process.id())?) / f64::from(1 << 20))
    }

    /// Tells it what there is now. Returns the moment just before the signal, with the file in place.
    pub(super) fn tell(&self, services: &[Service]) -> Result<Instant> {
        write(&self.targets, services)?;
        let now = Instant::now();
        self.process.signal(Signal::HUP)?;
        Ok(now)
    }

    /// How many requests it holds.
    pub(super) fn held(&self) -> Result<u64> {
        let answer = ask::get(self.internal, "/debug/held")?;
        let value = serde_json::from_slice(&answer.body);
        let value: Value = value.context("/debug/held did not answer with JSON")?;
        count(&value).with_context(|| format!("/debug/held does not say how many: {value}"))
    }

    /// Does it hold anything for this service?
    pub(super) fn holds_for(&self, name: &str) -> Result<bool> {
        let path = format!("/queue-status?namespace={NAMESPACE}&service={name}");
        let answer = ask::get(self.internal, &path)?;
        let value: Value = serde_json::from_slice(&answer.body)
            .with_context(|| format!("{path} did not answer with JSON"))?;
        Ok(value["queueStatus"] == 1)
    }
}

/// Written beside its place and moved there, so that nobody reads half of it.
fn write(path: &PathBuf, services: &[Service]) -> Result<()> {
    let beside = path.with_extension("new");
    fs::write(&beside, json!({"services": services}).to_string())
        .and_then(|()| fs::rename(&beside, path))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// The sum over the services that hold something.
fn count(value: &Value) -> Option<u64> {
    let services = value.as_array()?.iter();
    services.map(|it| it["requests"].as_u64()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_as_the_resolver_reads_it() {
        let service = Service::new("a", 9001).h2c();
        let service = service.ready_at(([127, 0, 0, 1], 80).into());
        assert_eq!(
            json!([service, Service::new("b", 9002)]),
            json!([
                {"namespace": "bench", "name": "a", "ports": [{"number": 80, "resolverPort": 9001,
                 "protocol": "http2", "endpoints": ["127.0.0.1:80"]}]},
                {"namespace": "bench", "name": "b", "ports": [{"number": 80, "resolverPort": 9002,
                 "endpoints": []}]},
            ])
        );
    }

    #[test]
    fn what_is_held_is_summed_up() {
        for (told, held) in [
            (json!([]), Some(0)),
            (
                json!([{"service": "bench/a", "requests": 2}, {"service": "bench/b", "requests": 5}]),
                Some(7),
            ),
            (json!([{"service": "bench/a"}]), None),
            (json!({"error": "no"}), None),
        ] {
            assert_eq!(count(&told), held, "{told}");
        }
    }
}
