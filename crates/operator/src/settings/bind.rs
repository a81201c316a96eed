//! Addresses to listen on, as Go programs take them: `host:port`, `:port`, or `0` for none.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use tokio::net::TcpListener;

/// Where to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bind {
    /// The address; none: all, IPv6 and IPv4, or IPv4 alone where there is no IPv6.
    pub address: Option<IpAddr>,
    /// The port. 0 takes a free one.
    pub port: u16,
}

/// Where to listen, if at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaybeBind(pub Option<Bind>);

impl Bind {
    /// A port on all addresses.
    pub const fn port(port: u16) -> Self {
        Self {
            address: None,
            port,
        }
    }

    /// Opens it.
    pub async fn listen(self) -> io::Result<TcpListener> {
        let Self { address, port } = self;
        match address {
            Some(address) => TcpListener::bind((address, port)).await,
            None => match TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await {
                // The port is taken: IPv4 alone would hide that.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
                Err(_) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await,
                listener => listener,
            },
        }
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => SocketAddr::new(address, self.port).fmt(formatter),
            None => write!(formatter, ":{}", self.port),
        }
    }
}

/// `:8081`, `127.0.0.1:8081`, `[::1]:8081`, `localhost:8081`, or `0`, which is none.
pub(super) fn bind(text: &str) -> Result<MaybeBind, String> {
    if text == "0" {
        return Ok(MaybeBind(None));
    }
    let refuse = || {
        format!("`{text}` is not an address to listen on; write host:port, :port, or 0 for none")
    };
    let (host, port) = text.rsplit_once(':').ok_or_else(refuse)?;
    // A sign would be taken as part of the number.
    if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refuse());
    }
    let port = port.parse().map_err(|_| refuse())?;
    let address = match host {
        "" => None,
        "localhost" => Some(Ipv4Addr::LOCALHOST.into()),
        host => Some(address(host).ok_or_else(refuse)?),
    };
    Ok(MaybeBind(Some(Bind { address, port })))
}

/// IPv6 stands in brackets here, IPv4 does not.
fn address(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?.parse().ok().map(IpAddr::V6),
        None => host.parse().ok().map(IpAddr::V4),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_are_read_as_go_reads_them() {
        for text in [
            ":8081",
            "127.0.0.1:1",
            "0.0.0.0:8080",
            "[::]:80",
            "[::1]:80",
            ":0",
        ] {
            let Ok(MaybeBind(Some(bind))) = bind(text) else {
                panic!("{text}")
            };
            assert_eq!(bind.to_string(), text);
        }
        assert_eq!(bind("0"), Ok(MaybeBind(None)));
        let local = bind("localhost:80").map(|MaybeBind(bind)| bind.map(|bind| bind.to_string()));
        assert_eq!(local, Ok(Some("127.0.0.1:80".to_owned())));
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in [
            "",
            "8081",
            ":",
            ":http",
            ":+80",
            ":65536",
            "::1:80",
            "[127.0.0.1]:80",
            "host:80",
            "[::1:80",
            "::1]:80",
        ] {
            let refusal = bind(text).expect_err(text);
            assert!(refusal.contains(":port"), "{refusal}");
        }
    }

    #[tokio::test]
    async fn a_taken_port_is_said_to_be_taken() {
        let first = Bind::port(0).listen().await.unwrap();
        let port = first.local_addr().unwrap().port();
        let error = Bind::port(port).listen().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "[0-9a-f:.\\[\\]+-]{0,20}|\\PC{0,12}") {
            let _ = bind(&text);
        }
    }
}
