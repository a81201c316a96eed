//! Speaks to the API server, by way of `kubectl proxy`, which needs no TLS; and counts writes and watches by what the
//! server itself counts.

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
/// The API server.
pub(in crate::bench) struct Api {
    address: SocketAddr,
    /// Ends with this value.
    _proxy: Process,
}

impl Api {
    pub(in crate::bench) fn new(server: &Server, home: &Path) -> Result<Self> {
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
    pub(in crate::bench) fn send(
        &self,
        method: &str,
        path: &str,
        kind: &str,
        body: &Value,
    ) -> Result<()> {
        let body = body.to_string();
        let head = format!(
            "{method} {path} HTTP/1.0\r\nhost: localhost\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        self.ask(&(head + &body))?;
        Ok(())
    }

    /// What is at this path.
    pub(in crate::bench) fn get(&self, path: &str) -> Result<Vec<u8>> {
        self.ask(&format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n"))
    }

    /// The same as JSON.
    pub(in crate::bench) fn get_json(&self, path: &str) -> Result<Value> {
        serde_json::from_slice(&self.get(path)?).with_context(|| format!("{path} is no JSON"))
    }

    /// What a watch says, line by line, for ever.
    pub(in crate::bench) fn watch(&self, path: &str) -> Result<BufReader<TcpStream>> {
        let mut stream = TcpStream::connect(self.address)?;
        write!(stream, "GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n")?;
        Ok(BufReader::new(stream))
    }

    /// How many writes of these the server has taken so far, from whomever.
    pub(in crate::bench) fn writes(&self, resources: &[&str]) -> Result<u64> {
        let metrics = self.get("/metrics")?;
        let metrics = String::from_utf8_lossy(&metrics);
        let written = metrics.lines().filter_map(|line| written(line, resources));
        Ok(written.sum())
    }

    /// How many watches of these are open, whoever watches.
    pub(in crate::bench) fn watches(&self, resources: &[&str]) -> Result<u64> {
        let metrics = self.get("/metrics")?;
        let metrics = String::from_utf8_lossy(&metrics);
        let open = metrics.lines().filter_map(|line| open(line, resources));
        Ok(open.sum())
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

/// A sample of the server's metrics.
struct Sample<'a> {
    labels: &'a str,
    value: &'a str,
}

impl<'a> Sample<'a> {
    fn of(line: &'a str, name: &str) -> Option<Self> {
        let labels = line.strip_prefix(name)?.strip_prefix('{')?;
        let (labels, value) = labels.rsplit_once("} ")?;
        Some(Self { labels, value })
    }

    fn label(&self, name: &str) -> Option<&str> {
        let start = self.labels.find(&format!("{name}=\""))? + name.len() + 2;
        self.labels.get(start..)?.split('"').next()
    }

    fn count(&self) -> Option<u64> {
        self.value.trim().parse().ok()
    }
}

/// What a line counts, if it is about writes of these.
fn written(line: &str, resources: &[&str]) -> Option<u64> {
    let sample = Sample::of(line, "apiserver_request_total")?;
    let is_write =
        VERBS.contains(&sample.label("verb")?) && resources.contains(&sample.label("resource")?);
    let is_real = sample.label("dry_run")?.is_empty();
    (is_write && is_real).then(|| sample.count())?
}

/// What a line counts, if it is about watches of these.
fn open(line: &str, resources: &[&str]) -> Option<u64> {
    let sample = Sample::of(line, "apiserver_longrunning_requests")?;
    let is_watch =
        sample.label("verb")? == "WATCH" && resources.contains(&sample.label("resource")?);
    is_watch.then(|| sample.count())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: [&str; 3] = ["nodes", "trafficwatches", "deployments"];

    #[test]
    fn only_writes_of_what_is_named_are_counted() {
        let line = |verb: &str, resource: &str, dry_run: &str| {
            format!(
                "apiserver_request_total{{code=\"200\",component=\"apiserver\",dry_run=\"{dry_run}\",group=\"\",resource=\"{resource}\",scope=\"resource\",subresource=\"\",verb=\"{verb}\",version=\"v1\"}} 12"
            )
        };
        let written = |line: &str| written(line, &OURS);
        assert_eq!(written(&line("APPLY", "nodes", "")), Some(12));
        assert_eq!(written(&line("PUT", "trafficwatches", "")), Some(12));
        assert_eq!(written(&line("LIST", "nodes", "")), None);
        assert_eq!(written(&line("PUT", "leases", "")), None);
        assert_eq!(written(&line("APPLY", "deployments", "All")), None);
        assert_eq!(written("apiserver_request_sli_total 3"), None);
    }

    #[test]
    fn only_watches_of_what_is_named_are_counted() {
        let line = |verb: &str, resource: &str| {
            format!(
                "apiserver_longrunning_requests{{component=\"apiserver\",group=\"apps\",resource=\"{resource}\",scope=\"cluster\",subresource=\"\",verb=\"{verb}\",version=\"v1\"}} 3"
            )
        };
        assert_eq!(open(&line("WATCH", "deployments"), &OURS), Some(3));
        assert_eq!(open(&line("WATCH", "pods"), &OURS), None);
        assert_eq!(open(&line("CONNECT", "nodes"), &OURS), None);
    }
}
