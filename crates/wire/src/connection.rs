//! One connection of a client: what it speaks ([`crate::first_words`]), and its life until it ends or is told to. What is not
//! HTTP is passed through ([`crate::raw`]).

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use hyper::{
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use crate::{
    client::{ClientConnection, Entry, Order},
    exchange::exchange,
    first_words::{Heard, Said, first_words, hear},
    lock,
    raw::Passing,
    relay,
    replay::READ_BUFFER,
    shard::Shard,
    sniff::Spoken,
    unwelcome,
};

/// What is written in one piece, up to this many bytes.
const SMALL: usize = 1024;

/// Streams that one HTTP/2 connection may have open.
const STREAMS: u32 = 256;
/// What one stream may have on its way to us before we read it, and all of a connection together.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// Serves a connection until it ends.
pub(crate) async fn serve(shard: Arc<Shard>, stream: std::net::TcpStream, entry: Entry) {
    let connection = Arc::clone(&entry.connection);
    if let Err(error) = try_serve(shard, stream, &connection).await {
        tracing::debug!(client = %connection.peer, %error, "a client's connection ended in disorder");
    }
    drop(entry);
}

#[derive(Debug, thiserror::Error)]
enum Disorder {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Http(#[from] hyper::Error),
}

async fn try_serve(
    shard: Arc<Shard>,
    stream: std::net::TcpStream,
    connection: &Arc<ClientConnection>,
) -> Result<(), Disorder> {
    let mut stream = TcpStream::from_std(stream)?;
    // Without it small writes wait for the acknowledgement of the last.
    stream.set_nodelay(true)?;
    let settings = shard.shared.settings;
    let said = match shard.shared.site.speaks(connection.port) {
        spoken if !connection.is_welcome => {
            let site = &*shard.shared.site;
            let said = unwelcome::first_words(&mut stream, connection, spoken, site).await?;
            let Some(said) = said else {
                return Ok(());
            };
            said
        }
        Spoken::Http => Said::default(),
        spoken => {
            let led = shard.shared.site.lead(connection.port);
            let is_awake = led.as_ref().is_some_and(|led| led.backend.is_ready());
            match hear(&mut stream, connection, spoken, is_awake).await? {
                Heard::Http(said) => said,
                Heard::Raw {
                    protocol,
                    said,
                    is_finished,
                } => {
                    let Some(led) = led else {
                        relay::reset(&stream);
                        return Ok(());
                    };
                    let passing = Passing::new(&shard, led, connection, stream, protocol);
                    // Boxed, so that what speaks HTTP needs no room for it.
                    Box::pin(passing.run(said.bytes(), is_finished)).await;
                    return Ok(());
                }
                Heard::Nobody => return Ok(()),
            }
        }
    };
    let Some(said) = first_words(said, &mut stream, connection, &shard).await? else {
        return Ok(());
    };
    let is_http2 = said.is_preface();
    if is_http2 {
        connection.speaks_http2();
    }
    let stream = Arc::new(Mutex::new(stream));
    connection.speaks_through(&stream);
    let io = TokioIo::new(Conversation {
        said,
        stream,
        connection: Arc::clone(connection),
    });
    let service = {
        let connection = Arc::clone(connection);
        let shard = Arc::clone(&shard);
        service_fn(move |request| exchange(&shard, &connection, request))
    };
    if is_http2 && settings.http2 {
        let conversation = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(u32::try_from(settings.max_head).unwrap_or(u32::MAX))
            .serve_connection(io, service);
        // Boxed: it is twice as large as what most connections need.
        until_told(
            Box::pin(conversation).as_mut(),
            connection,
            http2::Connection::graceful_shutdown,
        )
        .await?;
    } else {
        let conversation = http1::Builder::new()
            .max_buf_size(settings.max_head.max(READ_BUFFER))
            .serve_connection(io, service)
            .with_upgrades();
        until_told(
            std::pin::pin!(conversation),
            connection,
            http1::UpgradeableConnection::graceful_shutdown,
        )
        .await?;
    }
    Ok(())
}

/// Lets a conversation run until it ends, or it is told to.
async fn until_told<C>(
    mut conversation: Pin<&mut C>,
    connection: &ClientConnection,
    close: impl Fn(Pin<&mut C>),
) -> Result<(), Disorder>
where
    C: Future<Output = hyper::Result<()>>,
{
    loop {
        tokio::select! {
            biased;
            outcome = conversation.as_mut() => return Ok(outcome?),
            order = connection.ordered() => match order {
                Order::Close => close(conversation.as_mut()),
                Order::Abort => return Ok(()),
            },
        }
    }
}

/// A stream with what was read of it already, which notes that bytes come.
#[derive(Debug)]
struct Conversation {
    said: Said,
    /// Also looked at by who watches over connections, once a second.
    stream: Arc<Mutex<TcpStream>>,
    connection: Arc<ClientConnection>,
}

impl AsyncRead for Conversation {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        this.said.give(buffer);
        // What came after the first words goes into the same buffer: given the first words alone, hyper would make
        // itself a second one of 8 KiB for the rest.
        let outcome = Pin::new(&mut *lock(&this.stream)).poll_read(context, buffer);
        if buffer.filled().len() > before {
            this.connection.bytes_came();
            return Poll::Ready(Ok(()));
        }
        outcome
    }
}

impl AsyncWrite for Conversation {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *lock(&self.stream)).poll_write(context, bytes)
    }

    /// Nothing to do: a socket keeps nothing back.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *lock(&self.stream)).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut stream = lock(&self.stream);
        let stream = Pin::new(&mut *stream);
        // A head and a small body: to copy them costs less than what `writev` does before it writes.
        let length: usize = slices.iter().map(|slice| slice.len()).sum();
        let mut gathered = [0; SMALL];
        let Some(whole) = gathered.get_mut(..length) else {
            return stream.poll_write_vectored(context, slices);
        };
        let mut rest = &mut *whole;
        for slice in slices {
            let (place, after) = rest.split_at_mut(slice.len());
            place.copy_from_slice(slice);
            rest = after;
        }
        stream.poll_write(context, whole)
    }
}
