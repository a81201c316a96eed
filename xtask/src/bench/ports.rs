//! Ports on 127.0.0.1 for what a benchmark starts.
//!
//! They lie below those that the kernel gives to whoever asks for any: among thousands of connections one of them
//! would take a port between our looking at it and a program's binding it.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::atomic::{AtomicU16, Ordering},
};

use anyhow::{Result, bail};

const FIRST: u16 = 12_000;
const COUNT: u16 = 20_000;

/// How many were looked at; none is given twice before all were.
static LOOKED_AT: AtomicU16 = AtomicU16::new(0);

/// An address that nobody listens on now.
pub(super) fn address() -> Result<SocketAddr> {
    Ok((Ipv4Addr::LOCALHOST, port()?).into())
}

/// A port that is free on 127.0.0.1 now.
pub(super) fn port() -> Result<u16> {
    // Two runs at the same time begin at different places.
    let start = u16::try_from(std::process::id() % u32::from(COUNT)).unwrap_or(0);
    for _ in 0..COUNT {
        let looked_at = LOOKED_AT.fetch_add(1, Ordering::Relaxed) % COUNT;
        let port = FIRST + (start + looked_at) % COUNT;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no port from {FIRST} on is free on 127.0.0.1")
}

/// Several of them, all different.
pub(super) fn ports<const N: usize>() -> Result<[u16; N]> {
    let mut ports = [0; N];
    for port in &mut ports {
        *port = self::port()?;
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ_and_lie_in_their_range() {
        let mut ports = ports::<50>().unwrap();
        ports.sort_unstable();
        assert!(ports.windows(2).all(|two| two[0] != two[1]), "{ports:?}");
        assert!(ports.iter().all(|it| (FIRST..FIRST + COUNT).contains(it)));
    }
}
