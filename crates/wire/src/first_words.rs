//! The first bytes of a connection: read until it is clear what is spoken, and kept for whoever goes on. What they mean is
//! decided in [`crate::sniff`].

use std::io;

use tokio::{
    io::{AsyncReadExt, ReadBuf},
    net::TcpStream,
    time::{sleep_until, timeout},
};

use crate::{
    client::ClientConnection,
    shard::Shard,
    sniff::{self, Decision, ENOUGH, PREFACE, Raw, Spoken},
};

/// Bytes that were read before it was known for whom.
#[derive(Debug, Default)]
pub(crate) struct Said {
    bytes: [u8; ENOUGH],
    length: usize,
    given: usize,
}

/// What was heard.
#[derive(Debug)]
pub(crate) enum Heard {
    /// HTTP, beginning with this.
    Http(Said),
    /// Something else, beginning with this.
    Raw {
        protocol: Raw,
        said: Said,
        /// The client will say no more.
        is_finished: bool,
    },
    /// It went, or was told to, before it was clear. Such a connection wakes nobody.
    Nobody,
}

impl Said {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Gives what has not been given yet.
    pub(crate) fn give(&mut self, buffer: &mut ReadBuf<'_>) {
        let rest = &self.bytes[self.given..self.length];
        let some = &rest[..rest.len().min(buffer.remaining())];
        buffer.put_slice(some);
        self.given += some.len();
    }

    pub(crate) fn is_preface(&self) -> bool {
        self.bytes() == PREFACE
    }

    async fn read(&mut self, stream: &mut TcpStream) -> io::Result<usize> {
        let read = stream.read(&mut self.bytes[self.length..]).await?;
        self.length += read;
        Ok(read)
    }
}

/// Reads until it is clear what is spoken, on a port that speaks this. `is_awake`: what is passed through can go on at once.
pub(crate) async fn hear(
    stream: &mut TcpStream,
    connection: &ClientConnection,
    spoken: Spoken,
    is_awake: bool,
) -> io::Result<Heard> {
    let mut said = Said::default();
    // Where a server may speak first and is there, nobody has to be woken, and the client need not wait.
    let mut is_over = spoken == Spoken::Tcp && is_awake;
    let mut is_finished = false;
    loop {
        match sniff::decide(spoken, said.bytes(), is_over) {
            Decision::Http => return Ok(Heard::Http(said)),
            Decision::Raw(protocol) => {
                return Ok(Heard::Raw {
                    protocol,
                    said,
                    is_finished,
                });
            }
            // It can only be silent, and will stay so.
            Decision::Wait if is_finished => return Ok(Heard::Nobody),
            Decision::Wait => {}
        }
        let is_timed = spoken != Spoken::Tls;
        let deadline = connection.born() + connection.sniff_patience();
        tokio::select! {
            biased;
            // First: one that has gone by the time that is up has gone.
            read = said.read(stream) => match read? {
                0 if said.length == 0 => return Ok(Heard::Nobody),
                0 => (is_over, is_finished) = (true, true),
                _ => connection.bytes_came(),
            },
            _ = connection.ordered() => return Ok(Heard::Nobody),
            // It may have been asked for meanwhile, and so have more time.
            () = sleep_until(deadline.into()), if is_timed => {
                is_over = connection.born() + connection.sniff_patience() <= deadline;
            }
        }
    }
}

/// Reads on until it is clear whether this is HTTP/2. None: it said nothing, or was told to end.
pub(crate) async fn first_words(
    mut said: Said,
    stream: &mut TcpStream,
    connection: &ClientConnection,
    shard: &Shard,
) -> io::Result<Option<Said>> {
    let patience = shard.shared.settings.patience;
    while said.length < ENOUGH && PREFACE.starts_with(said.bytes()) {
        let patience = if said.length == 0 {
            patience.silent
        } else {
            patience.head
        };
        let read = tokio::select! {
            read = timeout(patience, said.read(stream)) => read.unwrap_or(Ok(0))?,
            _ = connection.ordered() => 0,
        };
        if read == 0 {
            return Ok(None);
        }
        connection.bytes_came();
    }
    Ok(Some(said))
}
