//! Connections from sources that are not served, until they are turned away.
//!
//! Who only looks whether a connection arrives says nothing and goes, and may come from anywhere: so silence is borne for as
//! long as it would be from a client who waits for the server to speak. After that, and with the first byte, it is over. What
//! is HTTP is answered ([`crate::exchange`] knows how), all else reset.

use std::io;

use tokio::{net::TcpStream, time::sleep_until};

use crate::{
    client::ClientConnection,
    first_words::{Heard, Said, hear},
    relay,
    shard::Site,
    sniff::Spoken,
};

/// What came of waiting for a first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    /// It came.
    Spoke,
    /// It did not, in the time that there is.
    Silent,
    /// Its client went, or it was told to go.
    Gone,
}

/// Waits until it is to be turned away. What it has said, if that is HTTP and so can be answered; none: it is over.
pub(crate) async fn first_words(
    stream: &mut TcpStream,
    connection: &ClientConnection,
    spoken: Spoken,
    site: &dyn Site,
) -> io::Result<Option<Said>> {
    let waited = wait(stream, connection).await?;
    if waited == Waited::Gone {
        return Ok(None);
    }
    site.turned_away(connection.peer);
    match (waited, spoken) {
        (Waited::Spoke, Spoken::Http) => return Ok(Some(Said::default())),
        (Waited::Spoke, Spoken::Unknown) => {
            if let Heard::Http(said) = hear(stream, connection, spoken, false).await? {
                return Ok(Some(said));
            }
        }
        _ => {}
    }
    relay::reset(stream);
    Ok(None)
}

async fn wait(stream: &TcpStream, connection: &ClientConnection) -> io::Result<Waited> {
    let mut first = [0];
    loop {
        let deadline = connection.born() + connection.sniff_patience();
        tokio::select! {
            biased;
            peeked = stream.peek(&mut first) => {
                return Ok(if peeked? == 0 { Waited::Gone } else { Waited::Spoke });
            }
            _ = connection.ordered() => return Ok(Waited::Gone),
            // It may have been asked for meanwhile, and so have more time.
            () = sleep_until(deadline.into()) => {
                if connection.born() + connection.sniff_patience() <= deadline {
                    return Ok(Waited::Silent);
                }
            }
        }
    }
}
