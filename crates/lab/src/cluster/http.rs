//! The least HTTP that asks a part whether it is ready: one request, no TLS, no connection kept.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddrV4, TcpStream},
    time::Duration,
};

const CONNECT: Duration = Duration::from_secs(1);
const ANSWER: Duration = Duration::from_secs(5);

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// 200, 404, …
    pub status: u16,
    /// All after the headers.
    pub body: String,
}

/// `GET path`.
pub fn get(address: Ipv4Addr, port: u16, path: &str) -> io::Result<Answer> {
    send(address, port, "GET", path, &[], "")
}

/// `GET path` of somebody who may take this long to answer.
pub fn get_within(
    patience: Duration,
    address: Ipv4Addr,
    port: u16,
    path: &str,
) -> io::Result<Answer> {
    exchange(patience, address, port, "GET", path, &[], "")
}

/// Any request, with headers beside those that it must have.
pub fn send(
    address: Ipv4Addr,
    port: u16,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<Answer> {
    exchange(ANSWER, address, port, method, path, headers, body)
}

fn exchange(
    patience: Duration,
    address: Ipv4Addr,
    port: u16,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<Answer> {
    let mut stream = TcpStream::connect_timeout(&SocketAddrV4::new(address, port).into(), CONNECT)?;
    stream.set_read_timeout(Some(patience))?;
    // 1.0: the answer ends with the connection and is never in chunks.
    let mut request = format!("{method} {path} HTTP/1.0\r\nHost: {address}\r\n").into_bytes();
    for (name, value) in headers {
        write!(request, "{name}: {value}\r\n")?;
    }
    write!(request, "Content-Length: {}\r\n\r\n{body}", body.len())?;
    stream.write_all(&request)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    parse(&String::from_utf8_lossy(&answer))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "this is no HTTP"))
}

/// Does it answer this path with 200?
pub fn is_ok(address: Ipv4Addr, port: u16, path: &str) -> bool {
    get(address, port, path).is_ok_and(|answer| answer.status == 200)
}

/// Does anything listen there?
pub fn listens(address: Ipv4Addr, port: u16) -> bool {
    TcpStream::connect_timeout(&SocketAddrV4::new(address, port).into(), CONNECT).is_ok()
}

fn parse(answer: &str) -> Option<Answer> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?;
    Some(Answer {
        status: status.parse().ok()?,
        body: body.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_status_and_a_body() {
        let answer = parse("HTTP/1.0 204 No Content\r\nA: b\r\n\r\nbody").unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (204, "body"));
        assert_eq!(parse("SSH-2.0\r\n\r\n"), None);
        assert_eq!(parse("HTTP/1.1 200 OK\r\n"), None);
    }
}
