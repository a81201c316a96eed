//! Reads one answer from an HTTP/1.1 connection: head, and body by length, in chunks, or up to the end.

use bytes::{Buf, BytesMut};
use tokio::{io::AsyncReadExt, net::tcp::ReadHalf};

use super::super::{
    outcome::Outcome,
    request::{BodySink, REQUEST_ID, Received, SHA256, VIA},
};

const MOST_HEADERS: usize = 100;
/// The largest head of an answer, and the largest line between chunks.
const LARGEST_HEAD: usize = 64 * 1024;
const READ_AT_ONCE: usize = 16 * 1024;

pub(super) struct Reader<'a> {
    stream: ReadHalf<'a>,
    buffer: &'a mut BytesMut,
    sink: BodySink,
}

struct Head {
    received: Received,
    body: Body,
    keep: bool,
}

enum Body {
    Length(u64),
    Chunks,
    UpToTheEnd,
}

impl<'a> Reader<'a> {
    pub(super) fn new(stream: ReadHalf<'a>, buffer: &'a mut BytesMut, sink: BodySink) -> Self {
        Self {
            stream,
            buffer,
            sink,
        }
    }

    /// The whole answer, and whether the connection may be used again.
    pub(super) async fn read(mut self) -> Result<(Received, bool), Outcome> {
        let Head {
            mut received,
            body,
            keep,
        } = self.head().await?;
        let read = match body {
            Body::Length(length) => self.take(length).await,
            Body::Chunks => self.chunks().await,
            Body::UpToTheEnd => self.up_to_the_end().await,
        };
        match read {
            Ok(()) => {}
            // Its body does not matter then, and the status says more than that it was cut.
            Err(_) if !(200..300).contains(&received.status) => return Ok((received, false)),
            Err(outcome) => return Err(outcome),
        }
        self.sink.finish(&mut received);
        Ok((received, keep && self.buffer.is_empty()))
    }

    async fn head(&mut self) -> Result<Head, Outcome> {
        loop {
            match parse(self.buffer)? {
                // 100 Continue and its like: the answer comes after it.
                Some((length, head)) if head.received.status < 200 => {
                    if head.received.status == 101 {
                        return Err(Outcome::Status(101));
                    }
                    self.buffer.advance(length);
                }
                Some((length, head)) => {
                    self.buffer.advance(length);
                    return Ok(head);
                }
                None if self.buffer.len() > LARGEST_HEAD => {
                    return Err(nonsense("a head too long"));
                }
                None => self.more().await?,
            }
        }
    }

    async fn take(&mut self, mut length: u64) -> Result<(), Outcome> {
        while length > 0 {
            if self.buffer.is_empty() {
                self.more().await?;
            }
            let here = usize::try_from(length).unwrap_or(usize::MAX);
            let here = here.min(self.buffer.len());
            self.sink.take(&self.buffer[..here]);
            self.buffer.advance(here);
            length -= u64::try_from(here).unwrap_or(u64::MAX);
        }
        Ok(())
    }

    async fn chunks(&mut self) -> Result<(), Outcome> {
        loop {
            let parsed = httparse::parse_chunk_size(self.buffer);
            match parsed.map_err(|_| nonsense("a bad chunk size"))? {
                httparse::Status::Partial => self.more_of_a_line().await?,
                httparse::Status::Complete((used, length)) => {
                    self.buffer.advance(used);
                    if length == 0 {
                        return self.trailers().await;
                    }
                    self.take(length).await?;
                    while self.buffer.len() < 2 {
                        self.more().await?;
                    }
                    if !self.buffer.starts_with(b"\r\n") {
                        return Err(nonsense("a chunk longer than it says"));
                    }
                    self.buffer.advance(2);
                }
            }
        }
    }

    /// Lines up to an empty one. What they say is not asked for.
    async fn trailers(&mut self) -> Result<(), Outcome> {
        loop {
            match self.buffer.windows(2).position(|pair| pair == b"\r\n") {
                Some(0) => {
                    self.buffer.advance(2);
                    return Ok(());
                }
                Some(end) => self.buffer.advance(end + 2),
                None => self.more_of_a_line().await?,
            }
        }
    }

    async fn up_to_the_end(&mut self) -> Result<(), Outcome> {
        loop {
            self.sink.take(self.buffer);
            self.buffer.clear();
            if self.fill().await? == 0 {
                return Ok(());
            }
        }
    }

    async fn more_of_a_line(&mut self) -> Result<(), Outcome> {
        if self.buffer.len() > LARGEST_HEAD {
            return Err(nonsense("a line too long"));
        }
        self.more().await
    }

    /// Reads more; the end of the connection is not expected here.
    async fn more(&mut self) -> Result<(), Outcome> {
        match self.fill().await? {
            0 => Err(Outcome::Cut),
            _ => Ok(()),
        }
    }

    async fn fill(&mut self) -> Result<usize, Outcome> {
        self.buffer.reserve(READ_AT_ONCE);
        let read = self.stream.read_buf(self.buffer).await;
        read.map_err(|error| Outcome::of_io(&error))
    }
}

/// The head at the start of these bytes with its length, once all of it is there.
fn parse(bytes: &[u8]) -> Result<Option<(usize, Head)>, Outcome> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = response.parse(bytes);
    let httparse::Status::Complete(length) = parsed.map_err(|e| nonsense(&e.to_string()))? else {
        return Ok(None);
    };
    let mut received = Received {
        status: response.code.unwrap_or_default(),
        ..Received::default()
    };
    let mut keep = response.version == Some(1);
    let mut stated = None;
    let mut in_chunks = false;
    for header in response.headers.iter() {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        let says = |word: &str| {
            let value = String::from_utf8_lossy(header.value);
            value
                .split(',')
                .any(|part| part.trim().eq_ignore_ascii_case(word))
        };
        if is("content-length") {
            let text = std::str::from_utf8(header.value).ok();
            let number = text.and_then(|text| text.trim().parse().ok());
            stated = Some(number.ok_or_else(|| nonsense("a bad content-length"))?);
        } else if is("transfer-encoding") {
            in_chunks = says("chunked");
        } else if is("connection") && says("close") {
            keep = false;
        } else if is(REQUEST_ID) {
            received.request_id = Some(header.value.to_vec());
        } else if is(SHA256) {
            received.declared = Some(header.value.to_vec());
        } else if is(VIA) {
            received.is_direct = header.value == b"-";
        }
    }
    let body = match (received.status, in_chunks, stated) {
        (..200 | 204 | 304, ..) => Body::Length(0),
        (_, true, _) => Body::Chunks,
        (_, false, Some(length)) => Body::Length(length),
        (_, false, None) => Body::UpToTheEnd,
    };
    keep &= !matches!(body, Body::UpToTheEnd);
    let head = Head {
        received,
        body,
        keep,
    };
    Ok(Some((length, head)))
}

fn nonsense(what: &str) -> Outcome {
    Outcome::Other(format!("no HTTP: {what}"))
}
