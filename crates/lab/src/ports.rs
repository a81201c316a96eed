//! Free ports on loopback for [`crate::control_plane`], and for servers that tests start.
//!
//! A port is free when we look and may be taken when the program binds it; programs that cannot be handed
//! an open socket leave no other way. So [`retry`] starts again with new ports when that has happened, and
//! [`free`] gives ports that the kernel gives to nobody of itself: not to another test, and not to the very program
//! that is to open them.

use std::{
    net::{Ipv4Addr, TcpListener},
    process,
    sync::atomic::{AtomicU16, Ordering},
};

const FIRST: u16 = 20_000;
/// The kernel's own range begins at 32,768 where nobody has changed it.
const COUNT: u16 = 12_000;

/// How often a start is tried with new ports.
const ATTEMPTS: u32 = 5;

/// The ports of one control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// Where etcd serves clients.
    pub etcd: u16,
    /// Where etcd would talk to its peers.
    pub etcd_peer: u16,
    /// Where the API server serves HTTPS.
    pub api_server: u16,
}

impl Ports {
    /// Three different ports that nobody listens on at this moment, nor is given by the kernel while a part that was
    /// killed is away.
    pub fn free() -> Self {
        Self {
            etcd: free(),
            etcd_peer: free(),
            api_server: free(),
        }
    }
}

/// A port that nobody listens on, and that this process is not given again soon.
///
/// # Panics
///
/// If there is none.
#[allow(clippy::panic, reason = "for tests, which end by panicking")]
pub fn free() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Processes that run at the same time begin at places of their own.
    let start = process::id() % 120 * 100;
    let start = u16::try_from(start).unwrap_or_default();
    (0..COUNT)
        .map(|_| NEXT.fetch_add(1, Ordering::Relaxed) % COUNT)
        .map(|number| FIRST + (start + number) % COUNT)
        .find(|port| TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port)).is_ok())
        .unwrap_or_else(|| panic!("no port from {FIRST} on is free"))
}

/// Calls `start` with new ports until it fails for another reason than a taken port, or succeeds.
pub fn retry<T, E>(
    port_was_taken: impl Fn(&E) -> bool,
    mut start: impl FnMut(Ports) -> Result<T, E>,
) -> Result<T, E> {
    let mut attempt = 1;
    loop {
        match start(Ports::free()) {
            Err(error) if port_was_taken(&error) && attempt < ATTEMPTS => attempt += 1,
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_taken_port_leads_to_another_attempt_and_other_failures_do_not() {
        let mut tries = 0;
        let taken = |e: &io::Error| e.kind() == io::ErrorKind::AddrInUse;
        let outcome = retry(taken, |_| {
            tries += 1;
            if tries < 3 {
                Err(io::ErrorKind::AddrInUse.into())
            } else {
                Ok(tries)
            }
        });
        assert_eq!(outcome.unwrap(), 3);

        let mut tries = 0;
        let outcome: io::Result<()> = retry(taken, |_| {
            tries += 1;
            Err(io::ErrorKind::NotFound.into())
        });
        assert_eq!(
            (outcome.unwrap_err().kind(), tries),
            (io::ErrorKind::NotFound, 1)
        );
    }

    #[test]
    fn it_gives_up_in_the_end() {
        let mut tries = 0;
        let outcome: io::Result<()> = retry(
            |_| true,
            |_| {
                tries += 1;
                Err(io::ErrorKind::AddrInUse.into())
            },
        );
        assert!(outcome.is_err());
        assert_eq!(tries, ATTEMPTS);
    }

    #[test]
    fn a_free_port_is_not_one_that_the_kernel_gives() {
        let ports: std::collections::BTreeSet<u16> = (0..100).map(|_| free()).collect();
        assert_eq!(ports.len(), 100);
        let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
        let first = range.split_whitespace().next().unwrap();
        assert!(ports.last() < first.parse().ok().as_ref());
    }

    #[test]
    fn ports_differ() {
        let Ports {
            etcd,
            etcd_peer,
            api_server,
        } = Ports::free();
        assert!(etcd != etcd_peer && etcd_peer != api_server && api_server != etcd);
    }
}
