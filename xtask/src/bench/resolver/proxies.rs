//! The proxies that are compared, as values: each forwards everything to one upstream, on one core, with
//! connections kept on both sides and no access log.
//!
//! nginx and Envoy are set up to be fast rather than as they come: what would only cost them time (buffering on
//! disk, request ids, statistics headers) is off.

use std::{fs, net::SocketAddr, net::TcpStream};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{
    site::Site,
    weir::{Resolver, Service},
};
use crate::bench::{
    nginx, ports,
    process::{Process, command},
};

/// What upstream and clients speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    H2c,
}

/// A proxy that runs.
pub(super) struct Proxy {
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
    process: Process,
}

impl Proxy {
    /// The process that uses CPU time, or its parent.
    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// nginx. It cannot speak h2c to an upstream.
    ///
    /// With larger buffers than it has by itself: 1 MiB takes half the CPU time then.
    pub(super) fn nginx(site: &Site, upstream: SocketAddr) -> Result<Self> {
        let buffers = "proxy_buffers 16 64k; proxy_buffer_size 16k;";
        Self::nginx_with(site, "nginx", upstream, buffers)
    }

    /// nginx with its own sizes of buffers, which is what most people have.
    pub(super) fn nginx_default(site: &Site, upstream: SocketAddr) -> Result<Self> {
        Self::nginx_with(site, "nginx_default", upstream, "")
    }

    fn nginx_with(
        site: &Site,
        name: &'static str,
        upstream: SocketAddr,
        settings: &str,
    ) -> Result<Self> {
        let address = ports::address()?;
        let blocks = format!(
            "upstream target {{ server {upstream}; keepalive 256; keepalive_requests 1000000000; }}\n\
             server {{ listen {address}; location / {{ proxy_pass http://target; \
             proxy_http_version 1.1; proxy_set_header Connection ''; \
             proxy_max_temp_file_size 0; {settings} }} }}\n"
        );
        let home = site.scratch.part(&format!("proxy-{name}"))?;
        let process = nginx::start(&home, &blocks, address, Some(site.proxy_core))?;
        Ok(Self {
            name,
            address,
            process,
        })
    }

    /// Ours.
    pub(super) fn weir(site: &Site, upstream: SocketAddr, protocol: Protocol) -> Result<Self> {
        let port = ports::port()?;
        let mut service = Service::new("direct", port).ready_at(upstream);
        if protocol == Protocol::H2c {
            service = service.h2c();
        }
        let resolver = Resolver::start(site, "proxy-weir", &[], &[service])?;
        Ok(Self {
            name: "weir",
            address: resolver.address(port),
            process: resolver.into_process(),
        })
    }

    /// Envoy, where it can be had.
    pub(super) fn envoy(
        site: &Site,
        upstream: SocketAddr,
        protocol: Protocol,
    ) -> Result<Option<Self>> {
        let Some(program) = &site.programs.envoy else {
            return Ok(None);
        };
        let address = ports::address()?;
        let home = site.scratch.part("proxy-envoy")?;
        let file = home.join("envoy.json");
        fs::write(&file, envoy(address, upstream, protocol).to_string())
            .with_context(|| format!("cannot write {}", file.display()))?;
        let mut command = command(program, Some(site.proxy_core));
        command.args(["--concurrency", "1", "--disable-hot-restart", "-l", "error"]);
        command.arg("-c").arg(&file);
        let mut process = Process::start("envoy", command, &home)?.killed_at_the_end();
        process.wait_until_ready(|| TcpStream::connect(address).is_ok())?;
        Ok(Some(Self {
            name: "envoy",
            address,
            process,
        }))
    }
}

fn envoy(address: SocketAddr, upstream: SocketAddr, protocol: Protocol) -> Value {
    let socket = |address: SocketAddr| json!({"socket_address": {"address": address.ip(), "port_value": address.port()}});
    let of = |kind: &str| format!("type.googleapis.com/envoy.extensions.{kind}");
    let spoken = match protocol {
        Protocol::Http1 => json!({"http_protocol_options": {}}),
        Protocol::H2c => json!({"http2_protocol_options": {}}),
    };
    let manager = json!({
        "@type": of("filters.network.http_connection_manager.v3.HttpConnectionManager"),
        "stat_prefix": "bench",
        "generate_request_id": false,
        "http_filters": [{"name": "envoy.filters.http.router", "typed_config": {
            "@type": of("filters.http.router.v3.Router"), "suppress_envoy_headers": true}}],
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
            {"match": {"prefix": "/"}, "route": {"cluster": "target", "timeout": "0s"}}]}]},
    });
    // Its default limits are meant for one of many clusters.
    let limits = json!({"max_connections": 100_000, "max_requests": 100_000, "max_pending_requests": 100_000});
    json!({"static_resources": {
        "listeners": [{"address": socket(address), "filter_chains": [{"filters": [
            {"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}]}],
        "clusters": [{
            "name": "target", "type": "STATIC", "connect_timeout": "2s",
            "circuit_breakers": {"thresholds": [limits]},
            "typed_extension_protocol_options": {
                "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                    "@type": of("upstreams.http.v3.HttpProtocolOptions"),
                    "explicit_http_config": spoken}},
            "load_assignment": {"cluster_name": "target", "endpoints": [{"lb_endpoints": [
                {"endpoint": {"address": socket(upstream)}}]}]},
        }],
    }})
}
