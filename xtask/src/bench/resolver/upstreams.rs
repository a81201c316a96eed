//! What the proxies forward to: nginx, since it answers for less than any proxy takes to forward, so that the proxy
//! is what limits a run. It also speaks h2c as a server, which it does not as a proxy.

use std::{fs, net::SocketAddr};

use anyhow::{Context, Result};

use super::{proxies::Protocol, site::Site};
use crate::bench::{nginx, ports, process::Process};

/// How an answer of [`Upstream::ten_bytes`] ends: its head, and all of its body.
pub(super) const TEN_BYTES: &[u8] = b"\r\n\r\nten bytes\n";

/// A target that runs.
pub(super) struct Upstream {
    pub(super) address: SocketAddr,
    _process: Process,
}

impl Upstream {
    /// Ten bytes from memory for every path.
    pub(super) fn ten_bytes(site: &Site, protocol: Protocol) -> Result<Self> {
        let address = ports::address()?;
        let listen = match protocol {
            Protocol::Http1 => address.to_string(),
            Protocol::H2c => format!("{address} http2"),
        };
        let block =
            format!("server {{ listen {listen}; location / {{ return 200 'ten bytes\\n'; }} }}\n");
        Self::start(site, address, &block)
    }

    /// A file of 1 MiB at `/1mib`, sent by the kernel.
    pub(super) fn one_mebibyte(site: &Site) -> Result<Self> {
        let files = site.scratch.part("files")?;
        fs::write(files.join("1mib"), vec![b'w'; 1 << 20])
            .context("cannot write a file of 1 MiB")?;
        let address = ports::address()?;
        let block = format!(
            "server {{ listen {address}; root {}; open_file_cache max=16; }}\n",
            files.display()
        );
        Self::start(site, address, &block)
    }

    fn start(site: &Site, address: SocketAddr, block: &str) -> Result<Self> {
        let home = site.scratch.part("upstream")?;
        Ok(Self {
            address,
            _process: nginx::start(&home, block, address, None)?,
        })
    }
}
