//! One question to an internal port, and its answer.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context, Result};

use crate::bench::message::{self, Message};

/// Asks on a connection of its own.
pub(in crate::bench) fn get(address: SocketAddr, path: &str) -> Result<Message> {
    let asked = || {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        // In HTTP/1.0 an answer ends with its connection.
        write!(stream, "GET {path} HTTP/1.0\r\nhost: {address}\r\n\r\n")?;
        let mut received = Vec::new();
        stream.read_to_end(&mut received)?;
        std::io::Result::Ok(received)
    };
    let received = asked().with_context(|| format!("cannot ask {address} for {path}"))?;
    message::until_the_end(&received)
        .with_context(|| format!("{address} answered {path} with something that is not HTTP"))
}
