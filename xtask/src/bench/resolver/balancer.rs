//! haproxy as kube-proxy would be: new connections go to the resolvers that say they are ready, those that there are
//! stay where they are, and nothing is tried twice.

use std::{
    fmt::Write as _,
    fs,
    io::{Read, Write as _},
    net::SocketAddr,
    os::unix::net::UnixStream,
    path::PathBuf,
};

use anyhow::{Context, Result};

use super::site::Site;
use crate::bench::{
    ports,
    process::{Process, command},
};

/// A balancer that runs.
pub(super) struct Balancer {
    pub(super) address: SocketAddr,
    socket: PathBuf,
    _process: Process,
}

impl Balancer {
    /// In front of these, each of which may or may not be there; readiness is asked for at `internal_port`.
    pub(super) fn start(site: &Site, to: &[SocketAddr], internal_port: u16) -> Result<Self> {
        let home = site.scratch.part("balancer")?;
        let address = ports::address()?;
        let socket = home.join("socket");
        let file = home.join("haproxy.cfg");
        let text = configuration(&socket.display().to_string(), address, to, internal_port);
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        let mut command = command("haproxy", None);
        command.arg("-db").arg("-f").arg(&file);
        let mut process = Process::start("haproxy", command, &home)?.killed_at_the_end();
        process.wait_until_ready(|| show(&socket).is_ok())?;
        Ok(Self {
            address,
            socket,
            _process: process,
        })
    }

    /// Which of them it sends new connections to.
    pub(super) fn ready(&self) -> Result<Vec<usize>> {
        Ok(ready(&show(&self.socket)?))
    }
}

fn configuration(
    socket: &str,
    address: SocketAddr,
    to: &[SocketAddr],
    internal_port: u16,
) -> String {
    let mut text = format!(
        "global\n  nbthread 1\n  stats socket {socket} mode 600 level user\n\
         defaults\n  mode tcp\n  retries 0\n  timeout connect 5s\n  timeout client 10m\n  \
         timeout server 10m\n\
         frontend service\n  bind {address}\n  default_backend resolvers\n\
         backend resolvers\n  balance roundrobin\n  option httpchk GET /readyz\n  \
         default-server check port {internal_port} inter 200ms rise 1 fall 1\n"
    );
    for (number, address) in to.iter().enumerate() {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  server r{number} {address}");
    }
    text
}

fn show(socket: &PathBuf) -> Result<String> {
    let asked = || {
        let mut stream = UnixStream::connect(socket)?;
        stream.write_all(b"show stat resolvers 4 -1\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        std::io::Result::Ok(text)
    };
    asked().context("cannot ask haproxy for the state of its servers")
}

/// The numbers of those that are up, from haproxy's CSV.
fn ready(csv: &str) -> Vec<usize> {
    let mut lines = csv.lines();
    let head = lines.next().unwrap_or_default().trim_start_matches("# ");
    let Some(status) = head.split(',').position(|name| name == "status") else {
        return Vec::new();
    };
    lines
        .filter_map(|line| {
            let mut fields = line.split(',');
            let number = fields.nth(1)?.strip_prefix('r')?.parse().ok()?;
            // Two are gone already.
            let status = fields.nth(status - 2)?;
            status.starts_with("UP").then_some(number)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_are_up_are_found() {
        let csv = "# pxname,svname,qcur,status,weight\n\
                   resolvers,r0,0,UP,1\nresolvers,r1,0,DOWN,1\nresolvers,r2,0,UP 1/2,1\n\n";
        assert_eq!(ready(csv), [0, 2]);
        assert_eq!(ready(""), [0; 0]);
    }
}
