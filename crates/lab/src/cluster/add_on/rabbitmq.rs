//! RabbitMQ as a process of root's with everything in its own directory, and epmd, which Erlang finds its nodes by.
//!
//! Debian's wrapper would change to another user with another home; the script below /usr/lib does not.

use std::{fs, path::Path};

use super::super::{Cluster, ClusterError, http, launch, launch::Launch, layout};
use super::cannot_use;

/// The broker.
pub const PART: &str = "rabbitmq";
/// What Erlang's nodes find each other by.
pub const EPMD: &str = "epmd";
/// Where it speaks AMQP, on the control plane's address.
pub const AMQP_PORT: u16 = 5672;
/// Where its HTTP API is.
pub const MANAGEMENT_PORT: u16 = 15672;
const PROMETHEUS_PORT: u16 = 15692;
const EPMD_PORT: u16 = 4369;
const DISTRIBUTION_PORT: u16 = 25672;
const SERVER: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";
/// `guest:guest`, for the HTTP API.
pub const GUEST: (&str, &str) = ("Authorization", "Basic Z3Vlc3Q6Z3Vlc3Q=");

pub(super) fn start(cluster: &Cluster) -> Result<(), ClusterError> {
    let directory = cluster.layout.state_directory().join(PART);
    let write = |name: &str, text: &str| fs::write(directory.join(name), text);
    fs::create_dir_all(&directory)
        .and_then(|()| write("rabbitmq.conf", &configuration()))
        .and_then(|()| {
            write(
                "enabled_plugins",
                "[rabbitmq_management,rabbitmq_prometheus].\n",
            )
        })
        .map_err(|source| cannot_use(&directory, source))?;

    // Started by us: the one that Erlang starts by itself would be a daemon that outlives the broker.
    let epmd = cluster.launch(EPMD, Path::new("epmd")).args([
        "-address",
        "127.0.0.1",
        "-port",
        &EPMD_PORT.to_string(),
    ]);
    let mut child = epmd.start(&cluster.layout)?;
    launch::wait_until_ready(&cluster.layout, EPMD, &mut child, || {
        let ask = || http::listens(std::net::Ipv4Addr::LOCALHOST, EPMD_PORT);
        cluster.network().inside(ask).unwrap_or(false)
    })?;
    let broker = environment(cluster.launch(PART, Path::new(SERVER)), &directory);
    let mut child = broker.start(&cluster.layout)?;
    launch::wait_until_ready(&cluster.layout, PART, &mut child, || {
        let ask = || {
            http::send(
                layout::CONTROL_PLANE,
                MANAGEMENT_PORT,
                "GET",
                "/api/overview",
                &[GUEST],
                "",
            )
        };
        let asked = cluster.network().inside(ask).and_then(|answer| answer);
        asked.is_ok_and(|answer| answer.status == 200)
    })
}

fn configuration() -> String {
    let address = layout::CONTROL_PLANE;
    format!(
        "listeners.tcp.1 = {address}:{AMQP_PORT}\n\
         management.tcp.ip = {address}\n\
         management.tcp.port = {MANAGEMENT_PORT}\n\
         prometheus.tcp.ip = {address}\n\
         prometheus.tcp.port = {PROMETHEUS_PORT}\n\
         # `guest` may come from pods, too.\n\
         loopback_users = none\n"
    )
}

fn environment(launch: Launch, directory: &Path) -> Launch {
    let at = |name: &str| directory.join(name).to_string_lossy().into_owned();
    launch
        .env("HOME", directory.to_string_lossy())
        .env("RABBITMQ_NODENAME", "weir@localhost")
        .env("RABBITMQ_BASE", directory.to_string_lossy())
        .env("RABBITMQ_MNESIA_BASE", at("mnesia"))
        .env("RABBITMQ_LOG_BASE", at("log"))
        .env("RABBITMQ_LOGS", "-")
        .env("RABBITMQ_CONFIG_FILE", at("rabbitmq.conf"))
        .env("RABBITMQ_ENABLED_PLUGINS_FILE", at("enabled_plugins"))
        // There is none, so that none of the machine's is read.
        .env("RABBITMQ_CONF_ENV_FILE", at("none"))
        .env("RABBITMQ_PID_FILE", at("pid"))
        .env("RABBITMQ_DIST_PORT", DISTRIBUTION_PORT.to_string())
        .env("ERL_EPMD_PORT", EPMD_PORT.to_string())
        .env("ERL_EPMD_ADDRESS", "127.0.0.1")
        .env(
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
            "-kernel inet_dist_use_interface {127,0,0,1}",
        )
}
