//! Which connection is meant by who asks for a silent one: the operator, which opened it through a Service and wants to
//! know whether it arrived here.

use std::{net::SocketAddr, time::Duration};

use serde::Serialize;
use weir_wire::client::Silent;

/// By what a connection was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum By {
    /// Address and port.
    Address,
    /// The port alone: the address was rewritten on the way.
    Port,
}

/// Who asks does so within a second. An older one from the same port is somebody else's.
const YOUNG: Duration = Duration::from_secs(5);

/// The connection from this address. Where the port may be enough, also one from another address, but only if it is
/// young and no second one comes from that port: a mistake here would call a cut-over done that is not.
pub(super) fn find(silent: &[Silent], peer: SocketAddr, port_only: bool) -> Option<(Silent, By)> {
    let same_port = || silent.iter().filter(|one| one.peer.port() == peer.port());
    let address = peer.ip().to_canonical();
    let exact = same_port().find(|one| one.peer.ip() == address);
    if let Some(exact) = exact {
        return Some((*exact, By::Address));
    }
    let mut same_port = same_port().filter(|_| port_only);
    match (same_port.next(), same_port.next()) {
        (Some(only), None) if only.age < YOUNG => Some((*only, By::Port)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn silent(peer: &str, port: u16, seconds: u64) -> Silent {
        Silent {
            peer: peer.parse().unwrap(),
            port,
            age: Duration::from_secs(seconds),
        }
    }

    fn by(silent: &[Silent], peer: &str, port_only: bool) -> Option<(u16, By)> {
        let found = find(silent, peer.parse().unwrap(), port_only);
        found.map(|(one, by)| (one.port, by))
    }

    #[test]
    fn an_address_is_found_whatever_else_there_is() {
        let there = [
            silent("192.0.2.1:4000", 10240, 60),
            silent("192.0.2.2:4000", 10241, 0),
            silent("192.0.2.2:4001", 10242, 0),
        ];
        for port_only in [false, true] {
            let by = |peer| by(&there, peer, port_only);
            assert_eq!(by("192.0.2.1:4000"), Some((10240, By::Address)));
            assert_eq!(by("[::ffff:192.0.2.2]:4000"), Some((10241, By::Address)));
            assert_eq!(by("192.0.2.3:4000"), None, "two come from that port");
            assert_eq!(by("192.0.2.2:4002"), None);
        }
    }

    #[test]
    fn a_port_is_enough_only_if_asked_for_and_for_a_young_one_alone() {
        let one = [silent("192.0.2.1:4000", 10240, 1)];
        assert_eq!(by(&one, "192.0.2.9:4000", false), None);
        assert_eq!(by(&one, "192.0.2.9:4000", true), Some((10240, By::Port)));
        assert_eq!(by(&one, "192.0.2.9:4001", true), None);
        let old = [silent("192.0.2.1:4000", 10240, 5)];
        assert_eq!(by(&old, "192.0.2.9:4000", true), None);
        let two = [one[0], silent("192.0.2.2:4000", 10240, 60)];
        assert_eq!(by(&two, "192.0.2.9:4000", true), None);
    }
}
