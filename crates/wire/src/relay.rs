//! Bytes between a client and an endpoint, both ways, for what is passed through as it is ([`crate::raw`]).
//!
//! The end of what one side says is passed on by itself: the other may still speak. Nothing is read that the other side does
//! not take, and nothing is kept but what it did not take of the last piece, so one that is quiet costs no buffer.

use std::{
    cell::RefCell,
    io,
    net::Shutdown,
    os::fd::AsFd,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    io::Interest, net::TcpStream, sync::Notify, task::coop::consume_budget, time::timeout,
};

use crate::waiting::Remains;

/// How much is read at a time.
const PIECE: usize = 64 * 1024;
/// When one side takes nothing more, what it said before is still passed on, for so long.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// A side that has vanished is found by asking after so long, so often.
const QUIET: Duration = Duration::from_mins(1);
const ASK_EVERY: Duration = Duration::from_secs(15);

/// How far it has come.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    sent: AtomicU64,
    received: AtomicU64,
    /// More was read from the client than what was kept of it.
    has_more: AtomicBool,
    /// Told at the first byte from the endpoint.
    answered: Notify,
}

/// What the endpoint is told first.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) pieces: Vec<Bytes>,
    /// What counts their memory, if that is no longer done by who waits. Dropped when they have been sent.
    pub(crate) remains: Arc<OnceLock<Remains>>,
}

/// Who broke it off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    Client,
    Endpoint,
}

/// Where it went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Read,
    Write,
}

/// What came of reading and writing as far as it goes.
enum Passed {
    /// There is nothing to read just now.
    Nothing,
    /// The side that speaks has said all.
    End,
    /// So much was read, and this of it was not taken yet.
    Some(usize, Result<Option<Box<[u8]>>, Fault>),
}

thread_local! {
    /// Shared by all that this thread carries: it is used between two awaits, and never across one.
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; PIECE].into_boxed_slice());
}

impl Progress {
    /// Bytes from the client to the endpoint.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Bytes from the endpoint to the client.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Whether the endpoint has been told no more than what was kept, and has said nothing.
    pub(crate) fn can_begin_again(&self) -> bool {
        self.received() == 0 && !self.has_more.load(Ordering::Relaxed)
    }

    /// Waits for the first byte from the endpoint.
    pub(crate) async fn is_answered(&self) {
        self.answered.notified().await;
    }
}

/// What is special about a conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// The client says no more than what was kept.
    pub(crate) is_finished: bool,
    /// An endpoint that ends without a word has failed.
    pub(crate) must_answer: bool,
}

/// Carries bytes until both sides have said all, or one breaks it off. The endpoint is first told what was kept.
pub(crate) async fn relay(
    client: &TcpStream,
    endpoint: &TcpStream,
    told: Told,
    manner: Manner,
    progress: &Progress,
    client_speaks: impl Fn(),
) -> Result<(), Broken> {
    let up = async {
        let Told { pieces, remains } = told;
        for piece in pieces {
            write_all(client, endpoint, &piece).await?;
            progress
                .sent
                .fetch_add(count(piece.len()), Ordering::Relaxed);
        }
        drop(remains);
        if !manner.is_finished {
            let more = |length| {
                progress.has_more.store(true, Ordering::Relaxed);
                progress.sent.fetch_add(count(length), Ordering::Relaxed);
                client_speaks();
            };
            pump(client, endpoint, more).await?;
        }
        say_no_more(endpoint);
        Ok::<(), Fault>(())
    };
    let down = async {
        let more = |length| {
            if progress
                .received
                .fetch_add(count(length), Ordering::Relaxed)
                == 0
            {
                progress.answered.notify_one();
            }
        };
        pump(endpoint, client, more).await?;
        if manner.must_answer && progress.received() == 0 {
            return Err(Fault::Read);
        }
        say_no_more(client);
        Ok::<(), Fault>(())
    };
    let mut up = std::pin::pin!(up);
    let mut down = std::pin::pin!(down);
    // One that cannot be read has said all that it ever will, and hears nothing. One that cannot be written to may have said
    // something that is still on its way.
    tokio::select! {
        outcome = &mut up => match outcome {
            Ok(()) => down.await.map_err(Fault::of_endpoint),
            Err(fault) => {
                if fault == Fault::Write {
                    let _ = timeout(LAST_WORDS, down).await;
                }
                Err(fault.of_client())
            }
        },
        outcome = &mut down => match outcome {
            Ok(()) => up.await.map_err(Fault::of_client),
            Err(fault) => {
                if fault == Fault::Write {
                    let _ = timeout(LAST_WORDS, up).await;
                }
                Err(fault.of_endpoint())
            }
        },
    }
}

/// Closes a connection so that the other side sees that it did not end in order: it is dropped next.
pub(crate) fn reset(stream: &impl AsFd) {
    // That it cannot be set means that it has ended already.
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

/// Has the kernel look whether the other side is still there when nothing is said. Connections have it from the socket that
/// accepts them.
pub(crate) fn keep_alive(socket: &impl AsFd) {
    let keepalive = TcpKeepalive::new()
        .with_time(QUIET)
        .with_interval(ASK_EVERY);
    // Without it a side that vanishes is found later, or never; nothing to refuse a client for.
    let _ = SockRef::from(socket).set_tcp_keepalive(&keepalive);
}

impl Fault {
    /// Whose fault it is on the way from the client.
    fn of_client(self) -> Broken {
        match self {
            Self::Read => Broken::Client,
            Self::Write => Broken::Endpoint,
        }
    }

    /// Whose fault it is on the way from the endpoint.
    fn of_endpoint(self) -> Broken {
        match self {
            Self::Read => Broken::Endpoint,
            Self::Write => Broken::Client,
        }
    }
}

/// Passes on what one side says, to its end.
async fn pump(from: &TcpStream, to: &TcpStream, passes: impl Fn(usize)) -> Result<(), Fault> {
    loop {
        from.readable().await.map_err(|_| Fault::Read)?;
        match pass(from, to)? {
            Passed::Nothing => {}
            Passed::End => return Ok(()),
            Passed::Some(length, rest) => {
                passes(length);
                if let Some(rest) = rest? {
                    write_all(from, to, &rest).await?;
                }
            }
        }
        // Two that are never at a loss for words would leave this thread no time for others.
        consume_budget().await;
    }
}

fn pass(from: &TcpStream, to: &TcpStream) -> Result<Passed, Fault> {
    BUFFER.with_borrow_mut(|buffer| {
        let length = match from.try_read(buffer) {
            Ok(0) => return Ok(Passed::End),
            Ok(length) => length,
            Err(error) if is_not_now(&error) => return Ok(Passed::Nothing),
            Err(_) => return Err(Fault::Read),
        };
        let piece = &buffer[..length];
        let rest = match to.try_write(piece) {
            Ok(written) if written == length => Ok(None),
            Ok(written) => Ok(Some(piece[written..].into())),
            Err(error) if is_not_now(&error) => Ok(Some(piece.into())),
            Err(_) => Err(Fault::Write),
        };
        Ok(Passed::Some(length, rest))
    })
}

/// Writes what one side has said, unless that side goes meanwhile: nobody reads it then who could notice.
async fn write_all(from: &TcpStream, to: &TcpStream, mut bytes: &[u8]) -> Result<(), Fault> {
    while !bytes.is_empty() {
        match to.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if is_not_now(&error) => tokio::select! {
                writable = to.writable() => writable.map_err(|_| Fault::Write)?,
                _ = from.ready(Interest::ERROR) => return Err(Fault::Read),
            },
            Err(_) => return Err(Fault::Write),
        }
    }
    Ok(())
}

fn say_no_more(to: &TcpStream) {
    // It has gone: then it need not be told.
    let _ = SockRef::from(to).shutdown(Shutdown::Write);
}

fn is_not_now(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
