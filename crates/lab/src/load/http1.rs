//! HTTP/1.1 for the load generator: as little as it takes, so that what went wrong is known exactly.
//!
//! A library would hide which system call failed, try again on a stale connection, and cost a task per
//! connection. [`answer`] reads answers; here are connections and sending.

mod answer;

use std::{io, io::Write, net::SocketAddr};

use bytes::BytesMut;
use tokio::{
    io::AsyncWriteExt,
    net::{TcpStream, tcp::WriteHalf},
};

use self::answer::Reader;
use super::{
    failure::Link,
    outcome::Outcome,
    request::{REQUEST_ID, Received, Request, Template},
};

/// One connection at a time to one address.
pub(super) struct Client {
    address: SocketAddr,
    reuse: bool,
    connection: Option<TcpStream>,
    /// What the last answer on it says of it.
    kept: Link,
    /// What the present request is sent on.
    link: Link,
    /// What was read and not yet used; kept so that it is not allocated for each request.
    buffer: BytesMut,
    head: Vec<u8>,
}

impl Client {
    pub(super) fn new(address: SocketAddr, reuse: bool) -> Self {
        Self {
            address,
            reuse,
            connection: None,
            kept: Link::New,
            link: Link::New,
            buffer: BytesMut::new(),
            head: Vec::new(),
        }
    }

    /// Forgets the connection: something half done is on it.
    pub(super) fn disconnect(&mut self) {
        self.connection = None;
    }

    /// What the last request was sent on.
    pub(super) fn link(&self) -> Link {
        self.link
    }

    /// Sends one request, once, and reads the whole answer.
    pub(super) async fn attempt(
        &mut self,
        template: &Template,
        request: &Request,
    ) -> Result<Received, Outcome> {
        let kept = self.connection.take().filter(is_usable);
        let mut stream = if let Some(stream) = kept {
            self.link = self.kept;
            stream
        } else {
            self.link = Link::New;
            self.connect().await.map_err(|e| Outcome::of_io(&e))?
        };
        self.buffer.clear();
        self.write_head(template, request)
            .map_err(|e| Outcome::of_io(&e))?;

        let answer = exchange(&mut stream, &self.head, &mut self.buffer, request).await;
        let (received, is_usable) = answer?;
        if self.reuse && is_usable {
            self.connection = Some(stream);
            self.kept = if received.is_direct {
                Link::KeptToServer
            } else {
                Link::KeptToProxy
            };
        }
        Ok(received)
    }

    async fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    fn write_head(&mut self, template: &Template, request: &Request) -> io::Result<()> {
        let head = &mut self.head;
        head.clear();
        let (method, path, host) = (template.method(), &template.path, &template.authority);
        write!(head, "{method} {path} HTTP/1.1\r\nhost: {host}\r\n")?;
        write!(head, "{REQUEST_ID}: {}\r\n", request.id)?;
        if !request.body.is_empty() {
            write!(head, "content-length: {}\r\n", request.body.len())?;
        }
        if !self.reuse {
            head.extend_from_slice(b"connection: close\r\n");
        }
        for (name, value) in &template.headers {
            write!(head, "{name}: ")?;
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        Ok(())
    }
}

/// Was the connection left alone since the last answer? If the server has closed it meanwhile nothing of the next
/// request was sent yet, so it goes to a new one, as with every client.
fn is_usable(stream: &TcpStream) -> bool {
    let asked = stream.try_read(&mut [0]);
    asked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// Sends and reads at once: a server may answer while it still reads, or before it has read all. Returns whether
/// the connection may be used again, too.
async fn exchange(
    stream: &mut TcpStream,
    head: &[u8],
    buffer: &mut BytesMut,
    request: &Request,
) -> Result<(Received, bool), Outcome> {
    let (read_half, write_half) = stream.split();
    let sending = send(write_half, head, &request.body);
    let reading = Reader::new(read_half, buffer, request.sink()).read();
    tokio::pin!(sending, reading);
    tokio::select! {
        biased;
        sent = &mut sending => {
            let (received, is_kept) = reading.await?;
            Ok((received, is_kept && sent.is_ok()))
        }
        answer = &mut reading => answer.map(|(received, _)| (received, false)),
    }
}

async fn send(mut stream: WriteHalf<'_>, head: &[u8], body: &[u8]) -> io::Result<()> {
    /// Below this, one system call with a copy beats two.
    const SMALL: usize = 16 * 1024;
    if body.is_empty() {
        return stream.write_all(head).await;
    }
    if body.len() <= SMALL {
        return stream.write_all(&[head, body].concat()).await;
    }
    stream.write_all(head).await?;
    stream.write_all(body).await
}
