//! What is spoken on a port: `appProtocol` says it, or else the port's name, as service meshes read it.

use crate::view::Protocol;

/// By `appProtocol`, then by the first part of the name (`grpc`, `grpc-api`), else by the first bytes.
pub(super) fn of(app_protocol: Option<&str>, port_name: &str) -> Protocol {
    app_protocol
        .and_then(|name| {
            let name = name.to_ascii_lowercase();
            known(name.strip_prefix("kubernetes.io/").unwrap_or(&name))
        })
        .or_else(|| by_name(port_name))
        .unwrap_or(Protocol::Sniff)
}

fn by_name(port_name: &str) -> Option<Protocol> {
    // `grpc-web` is a protocol of its own, and `grpc` with a suffix is not.
    let whole = if port_name.starts_with("grpc-web") {
        "grpc-web"
    } else {
        port_name.split('-').next().unwrap_or_default()
    };
    known(whole)
}

fn known(name: &str) -> Option<Protocol> {
    Some(match name {
        "http" | "ws" | "grpc-web" => Protocol::Http1,
        "h2c" | "http2" | "grpc" => Protocol::Http2,
        "https" | "tls" | "wss" | "grpcs" | "h2" | "amqps" | "imaps" | "ldaps" | "mqtts"
        | "rediss" | "smtps" => Protocol::Tls,
        "tcp" | "amqp" | "imap" | "kafka" | "ldap" | "mariadb" | "memcache" | "memcached"
        | "mongo" | "mongodb" | "mqtt" | "mysql" | "nats" | "postgres" | "postgresql" | "redis"
        | "smtp" | "ssh" => Protocol::Tcp,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_is_said_by_app_protocol_then_by_name() {
        use Protocol::{Http1, Http2, Sniff, Tcp, Tls};
        for (app_protocol, name, expected) in [
            (None, "", Sniff),
            (None, "web", Sniff),
            (None, "http", Http1),
            (None, "http-web", Http1),
            (None, "http2", Http2),
            (None, "http2-api", Http2),
            (None, "h2c", Http2),
            (None, "grpc-api", Http2),
            (None, "grpc-web-api", Http1),
            (None, "https", Tls),
            (None, "https-admin", Tls),
            (None, "tls", Tls),
            (None, "tls-x", Tls),
            (None, "grpcs", Tls),
            (None, "tcp", Tcp),
            (None, "tcp-x", Tcp),
            (None, "postgres", Tcp),
            (None, "postgresql-main", Tcp),
            (None, "mysql", Tcp),
            (None, "redis-0", Tcp),
            (None, "mongo", Tcp),
            (None, "amqp", Tcp),
            (None, "amqps", Tls),
            (None, "tcpx", Sniff),
            (None, "db-tcp", Sniff),
            (None, "httpx", Sniff),
            (None, "web-http", Sniff),
            (Some("kubernetes.io/h2c"), "http", Http2),
            (Some("h2c"), "", Http2),
            (Some("grpc"), "http", Http2),
            (Some("http2"), "", Http2),
            (Some("HTTP"), "grpc", Http1),
            (Some("kubernetes.io/ws"), "", Http1),
            (Some("kubernetes.io/wss"), "http", Tls),
            (Some("https"), "http", Tls),
            (Some("HTTPS"), "tcp", Tls),
            (Some("tls"), "", Tls),
            (Some("tcp"), "", Tcp),
            (Some("tcp"), "http", Tcp),
            (Some("postgresql"), "tls", Tcp),
            (Some("mysql"), "", Tcp),
            (Some("redis"), "http", Tcp),
            (Some("example.com/own"), "redis", Tcp),
            (Some("example.com/own"), "http", Http1),
            (Some("example.com/own"), "", Sniff),
        ] {
            assert_eq!(
                of(app_protocol, name),
                expected,
                "{app_protocol:?} {name:?}"
            );
        }
    }
}
