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
        "https" | "tls" | "tcp" | "wss" | "grpcs" | "h2" | "amqp" | "amqps" | "kafka" | "mongo"
        | "mysql" | "postgres" | "postgresql" | "redis" => Protocol::Opaque,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_is_said_by_app_protocol_then_by_name() {
        use Protocol::{Http1, Http2, Opaque, Sniff};
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
            (None, "https", Opaque),
            (None, "https-admin", Opaque),
            (None, "tls", Opaque),
            (None, "tcp-x", Opaque),
            (None, "httpx", Sniff),
            (None, "web-http", Sniff),
            (Some("kubernetes.io/h2c"), "http", Http2),
            (Some("h2c"), "", Http2),
            (Some("grpc"), "http", Http2),
            (Some("http2"), "", Http2),
            (Some("HTTP"), "grpc", Http1),
            (Some("kubernetes.io/ws"), "", Http1),
            (Some("kubernetes.io/wss"), "http", Opaque),
            (Some("https"), "http", Opaque),
            (Some("tls"), "", Opaque),
            (Some("tcp"), "", Opaque),
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
