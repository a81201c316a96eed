//! Speaks to the API server, by way of `kubectl proxy`, which needs no TLS; and counts writes by what the server itself
//! counts.

use std::{
    io::{BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use weir_lab::server::Server;

use crate::bench::{
    message, ports,
    process::{Process, command},
};

/// Requests that the server counts as writes.
const VERBS: [&str; 6] = [
    "POST",
    "PUT",
    "PATCH",
    "APPLY",
    "DELETE",
    "DELETECOLLECTION",
];
/// What place could write. Its Lease is renewed whatever happens, so it is not among them.
const RESOURCES: [&str; 6] = [
    "nodes",
    "trafficwatches",
    "deployments",
    "replicasets",
    "pods",
    "events",
];

/// The API server.
pub(super) struct Api {
    address: SocketAddr,
    /// Ends with this value.
    _proxy: Process,
}

impl Api {
    pub(super) fn new(server: &Server, home: &Path) -> Result<Self> {
        let address = ports::address()?;
        let kubectl = server.kubectl();
        let mut command = command(kubectl.get_program(), None);
        command.envs(
            kubectl
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        command
            .arg("proxy")
            .arg(format!("--port={}", address.port()));
        let mut proxy = Process::start("kubectl", command, home)?;
        proxy.wait_until_ready(|| TcpStream::connect(address).is_ok())?;
        Ok(Self {
            address,
            _proxy: proxy,
        })
    }

    /// Sends an object, and wants success.
    pub(super) fn send(&self, method: &str, path: &str, kind: &str, body: &Value) -> Result<()> {
        let body = body.to_string();
        let head = format!(
            "{method} {path} HTTP/1.0\r\nhost: localhost\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        self.ask(&(head + &body))?;
        Ok(())
    }

    /// What is at this path.
    pub(super) fn get(&self, path: &str) -> Result<Vec<u8>> {
        self.ask(&format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n"))
    }

    /// The same as JSON.
    pub(super) fn get_json(&self, path: &str) -> Result<Value> {
        serde_json::from_slice(&self.get(path)?).with_context(|| format!("{path} is no JSON"))
    }

    /// What a watch says, line by line, for ever.
    pub(super) fn watch(&self, path: &str) -> Result<BufReader<TcpStream>> {
        let mut stream = TcpStream::connect(self.address)?;
        write!(stream, "GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n")?;
        Ok(BufReader::new(stream))
    }

    /// How many writes the server has taken so far, from whomever.
    pub(super) fn writes(&self) -> Result<u64> {
        let metrics = self.get("/metrics")?;
        Ok(String::from_utf8_lossy(&metrics)
            .lines()
            .filter_map(written)
            .sum())
    }

    /// In HTTP/1.0 an answer ends with its connection.
    fn ask(&self, request: &str) -> Result<Vec<u8>> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(Duration::from_mins(1)))?;
        stream.write_all(request.as_bytes())?;
        let mut received = Vec::new();
        stream.read_to_end(&mut received)?;
        let first = request.lines().next().unwrap_or_default();
        let answer = message::until_the_end(&received);
        let answer = answer.with_context(|| format!("no answer to {first}"))?;
        if !(200..300).contains(&answer.status) {
            let said = String::from_utf8_lossy(&answer.body);
            bail!("{first}: {} {said}", answer.status);
        }
        Ok(answer.body)
    }
}

/// What a line of the server's metrics counts, if it is about writes of ours.
fn written(line: &str) -> Option<u64> {
    let labels = line.strip_prefix("apiserver_request_total{")?;
    let (labels, count) = labels.rsplit_once("} ")?;
    let label = |name: &str| {
        let start = labels.find(&format!("{name}=\""))? + name.len() + 2;
        labels.get(start..)?.split('"').next()
    };
    let is_write = VERBS.contains(&label("verb")?) && RESOURCES.contains(&label("resource")?);
    let is_real = label("dry_run")?.is_empty();
    (is_write && is_real).then(|| count.trim().parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_writes_of_what_place_writes_are_counted() {
        let line = |verb: &str, resource: &str, dry_run: &str| {
            format!(
                "apiserver_request_total{{code=\"200\",component=\"apiserver\",dry_run=\"{dry_run}\",group=\"\",resource=\"{resource}\",scope=\"resource\",subresource=\"\",verb=\"{verb}\",version=\"v1\"}} 12"
            )
        };
        assert_eq!(written(&line("APPLY", "nodes", "")), Some(12));
        assert_eq!(written(&line("PUT", "trafficwatches", "")), Some(12));
        assert_eq!(written(&line("LIST", "nodes", "")), None);
        assert_eq!(written(&line("PUT", "leases", "")), None);
        assert_eq!(written(&line("APPLY", "deployments", "All")), None);
        assert_eq!(written("apiserver_request_sli_total 3"), None);
    }
}
