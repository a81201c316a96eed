//! Endpoints that misbehave, or note exactly what reaches them.

use std::{
    future::Future,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// A server that does with each connection what it was told. It ends when it is dropped.
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

/// A request as it came over the wire.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// The whole of it.
    pub(crate) raw: Vec<u8>,
}

/// A server that notes what it sees, strictly: what cannot be understood is a panic in [`Recorder::seen`].
pub(crate) struct Recorder {
    pub(crate) endpoint: Endpoint,
    seen: Noted,
}

/// Requests, and the bytes of what was none.
type Noted = Arc<Mutex<Vec<Result<Seen, Vec<u8>>>>>;

/// Why there is no request.
#[derive(Debug)]
pub(crate) enum Bad {
    /// It broke off, as one does whose client is at fault.
    Off,
    /// It is not what HTTP says a request is.
    Garbled,
}

impl Endpoint {
    /// Does this with each connection, which are counted from 0.
    pub(crate) async fn start<F>(with: impl Fn(TcpStream, usize) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let accepting = tokio::spawn(async move {
            let mut tasks = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let number = count.fetch_add(1, Ordering::Relaxed);
                tasks.spawn(with(stream, number));
            }
        });
        Self {
            address,
            connections,
            accepting,
        }
    }

    /// Takes connections and says nothing.
    pub(crate) async fn silent() -> Self {
        Self::start(|mut stream, _| async move {
            let mut sink = tokio::io::sink();
            let _ = tokio::io::copy(&mut stream, &mut sink).await;
        })
        .await
    }

    /// An address where nobody listens, nor any other test begins to: the kernel gives such a port to nobody.
    pub(crate) fn nowhere() -> SocketAddr {
        ([127, 0, 0, 1], weir_lab::ports::free()).into()
    }

    /// Connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Recorder {
    /// Answers all with 200 and `ok`.
    pub(crate) async fn start() -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        let endpoint = Endpoint::start(move |stream, _| record(stream, Arc::clone(&noted))).await;
        Self { endpoint, seen }
    }

    /// What came whole so far, all of it well-formed.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        let seen = self.seen.lock().unwrap();
        seen.iter()
            .map(|seen| match seen {
                Ok(seen) => seen.clone(),
                Err(raw) => panic!("not HTTP: {:?}", String::from_utf8_lossy(raw)),
            })
            .collect()
    }
}

async fn record(mut stream: TcpStream, noted: Noted) {
    let mut buffer = Vec::new();
    loop {
        match read_request(&mut stream, &mut buffer).await {
            Ok(Some(seen)) => noted.lock().unwrap().push(Ok(seen)),
            Ok(None) | Err(Bad::Off) => return,
            Err(Bad::Garbled) => {
                noted.lock().unwrap().push(Err(buffer));
                return;
            }
        }
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
        if stream.write_all(answer).await.is_err() {
            return;
        }
    }
}

/// The next request of a connection, or none when it ends between two.
pub(crate) async fn read_request(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
) -> Result<Option<Seen>, Bad> {
    let mut seen = loop {
        if let Some((seen, length)) = parse(buffer)? {
            buffer.drain(..length);
            break seen;
        }
        if stream.read_buf(buffer).await.unwrap_or(0) == 0 {
            return if buffer.is_empty() {
                Ok(None)
            } else {
                Err(Bad::Off)
            };
        }
    };
    let length = seen.header("content-length").map(ToOwned::to_owned);
    let coding = seen.header("transfer-encoding").map(ToOwned::to_owned);
    match (length, coding.as_deref()) {
        (None, None) => {}
        (Some(length), None) => {
            let length: usize = length.parse().map_err(garbled)?;
            seen.body = take(stream, buffer, length).await?;
            seen.raw.extend(&seen.body);
        }
        (None, Some("chunked")) => loop {
            let line = take_line(stream, buffer).await?;
            seen.raw.extend(line.as_bytes());
            let digits = line.strip_suffix("\r\n").ok_or(Bad::Garbled)?;
            if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(Bad::Garbled);
            }
            let length = usize::from_str_radix(digits, 16).map_err(garbled)?;
            if length == 0 {
                loop {
                    let line = take_line(stream, buffer).await?;
                    seen.raw.extend(line.as_bytes());
                    match line
                        .strip_suffix("\r\n")
                        .ok_or(Bad::Garbled)?
                        .split_once(": ")
                    {
                        None => return Ok(Some(seen)),
                        Some((name, value)) => {
                            let name = format!("trailer {}", name.to_ascii_lowercase());
                            seen.headers.push((name, value.to_owned()));
                        }
                    }
                }
            }
            let piece = take(stream, buffer, length).await?;
            seen.raw.extend(&piece);
            seen.body.extend(piece);
            let end = take(stream, buffer, 2).await?;
            seen.raw.extend(&end);
            if end != b"\r\n" {
                return Err(Bad::Garbled);
            }
        },
        _ => return Err(Bad::Garbled),
    }
    Ok(Some(seen))
}

fn garbled<E>(_: E) -> Bad {
    Bad::Garbled
}

/// The head of a request, by the letter: CR LF at the ends of lines, no folding, no blank before a colon.
fn parse(buffer: &[u8]) -> Result<Option<(Seen, usize)>, Bad> {
    let Some(end) = buffer.windows(4).position(|it| it == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&buffer[..end]).map_err(garbled)?;
    if text
        .replace("\r\n", "")
        .contains(|it: char| it.is_control() && it != '\t')
    {
        return Err(Bad::Garbled);
    }
    let mut lines = text.split("\r\n");
    let mut first = lines.next().ok_or(Bad::Garbled)?.split(' ');
    let (method, path) = (
        first.next().ok_or(Bad::Garbled)?,
        first.next().ok_or(Bad::Garbled)?,
    );
    if first.next() != Some("HTTP/1.1") || first.next().is_some() {
        return Err(Bad::Garbled);
    }
    let mut headers = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(": ").ok_or(Bad::Garbled)?;
        if name.is_empty() || name.contains([' ', '\t']) {
            return Err(Bad::Garbled);
        }
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let seen = Seen {
        method: method.to_owned(),
        path: path.to_owned(),
        headers,
        body: Vec::new(),
        raw: buffer[..end + 4].to_vec(),
    };
    Ok(Some((seen, end + 4)))
}

async fn take(stream: &mut TcpStream, buffer: &mut Vec<u8>, length: usize) -> Result<Vec<u8>, Bad> {
    while buffer.len() < length {
        if stream.read_buf(buffer).await.unwrap_or(0) == 0 {
            return Err(Bad::Off);
        }
    }
    Ok(buffer.drain(..length).collect())
}

async fn take_line(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<String, Bad> {
    loop {
        if let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let line = buffer.drain(..=end).collect();
            return String::from_utf8(line).map_err(garbled);
        }
        if stream.read_buf(buffer).await.unwrap_or(0) == 0 {
            return Err(Bad::Off);
        }
    }
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(it, _)| it == name);
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "{name} is there twice");
        value
    }
}
