//! nginx with one worker: what benchmarks compare with, and what they send to.

use std::{
    fs,
    net::{SocketAddr, TcpStream},
    path::Path,
};

use anyhow::{Context, Result};

use super::process::{Process, command};

/// A server that answers ten bytes from memory.
pub(super) fn ten_bytes(address: SocketAddr) -> String {
    format!("server {{ listen {address}; location / {{ return 200 'ten bytes\\n'; }} }}\n")
}

/// Starts it with these blocks inside of `http`; it listens on `address` once it is ready.
pub(super) fn start(
    home: &Path,
    blocks: &str,
    address: SocketAddr,
    core: Option<usize>,
) -> Result<Process> {
    let file = home.join("nginx.conf");
    fs::write(&file, configuration(home, blocks))
        .with_context(|| format!("cannot write {}", file.display()))?;
    let mut command = command("nginx", core);
    command.arg("-e").arg("stderr").arg("-c").arg(&file);
    let mut process = Process::start("nginx", command, home)?;
    process.wait_until_ready(|| TcpStream::connect(address).is_ok())?;
    Ok(process)
}

fn configuration(home: &Path, blocks: &str) -> String {
    let home = home.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("  {kind}_temp_path {home}/{kind};\n"))
        .concat();
    format!(
        "daemon off;\npid {home}/nginx.pid;\nworker_processes 1;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n{temporary}  access_log off;\n  sendfile on;\n  tcp_nopush on;\n  \
         keepalive_requests 1000000000;\n{blocks}}}\n"
    )
}
