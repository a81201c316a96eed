//! A constant rate on connections that stay, whether answers come or not; each request counts from the moment at
//! which it was meant to be sent.
//!
//! The lab's generator does the same ([`super::steady`]), but each of its runs begins with new connections, and its
//! runtime and its pacer's thread take turns on the core that the target needs as well. For [`super::tail`] rounds
//! must be short and the generator cheap: here is one thread with one event loop, and connections outlive rounds.

use std::{
    collections::VecDeque,
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::{
    event::{PollFd, PollFlags, Timespec, epoll, poll},
    io::Errno,
};

use super::upstreams::TEN_BYTES;

/// How long the last answers of a round may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// More than an answer of ten bytes has with its head.
const LONGEST_ANSWER: usize = 2048;

/// Connections to one server, all idle between rounds.
pub(super) struct Paced {
    address: SocketAddr,
    request: Vec<u8>,
    epoll: OwnedFd,
    lines: Vec<Line>,
    /// Those that wait for a request; the one that has waited longest goes first, so that all are used.
    free: VecDeque<usize>,
}

struct Line {
    stream: TcpStream,
    /// When the request that is on its way was meant to be sent.
    meant: Instant,
    answer: [u8; LONGEST_ANSWER],
    received: usize,
}

impl Paced {
    /// Connects, and asks once on each connection, so that the server has opened all it needs.
    pub(super) fn connect(address: SocketAddr, connections: usize) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context("cannot make an epoll")?;
        let mut paced = Self {
            address,
            request: format!("GET / HTTP/1.1\r\nhost: {address}\r\n\r\n").into_bytes(),
            epoll,
            lines: Vec::with_capacity(connections),
            free: (0..connections).collect(),
        };
        for number in 0..connections {
            let line = Line::connect(address);
            let line = line.with_context(|| format!("cannot connect to {address}"))?;
            let key = epoll::EventData::new_u64(u64::try_from(number)?);
            epoll::add(&paced.epoll, &line.stream, key, epoll::EventFlags::IN)?;
            paced.lines.push(line);
        }
        // All at once.
        paced.ask(connections, |_| Duration::ZERO)?;
        Ok(paced)
    }

    /// Asks so often each second for so long. Returns how long each request took, in milliseconds.
    pub(super) fn round(&mut self, rate: f64, span: Duration) -> Result<Vec<f64>> {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "some thousand, and not negative"
        )]
        let count = (rate * span.as_secs_f64()) as usize;
        #[allow(clippy::cast_precision_loss, reason = "exact up to 2^53")]
        let offset = |index: usize| Duration::from_secs_f64(index as f64 / rate);
        self.ask(count, offset)
    }

    /// Sends `count` requests, each at its time from now on, or as soon as a connection is free.
    fn ask(&mut self, count: usize, offset: impl Fn(usize) -> Duration) -> Result<Vec<f64>> {
        let mut took = Vec::with_capacity(count);
        let mut events = Vec::with_capacity(self.lines.len());
        let start = Instant::now();
        let deadline = start + offset(count) + PATIENCE;
        let mut sent = 0;
        let mut next = start;
        while took.len() < count {
            let mut now = Instant::now();
            while sent < count && next <= now {
                let Some(number) = self.free.pop_front() else {
                    break;
                };
                self.send(number, next)?;
                sent += 1;
                next = start + offset(sent);
                now = Instant::now();
            }
            if now > deadline {
                let missing = count - took.len();
                bail!("{} left {missing} of {count} unanswered", self.address);
            }
            // Without a free connection only an answer lets anything happen.
            let is_waiting = sent < count && !self.free.is_empty();
            let until = if is_waiting { next } else { deadline };
            self.wait(until.saturating_duration_since(now), &mut events)?;
            for event in &events {
                let number = usize::try_from(event.data.u64())?;
                if let Some(milliseconds) = self.receive(number)? {
                    took.push(milliseconds);
                    self.free.push_back(number);
                }
            }
        }
        Ok(took)
    }

    fn send(&mut self, number: usize, meant: Instant) -> Result<()> {
        let line = &mut self.lines[number];
        line.meant = meant;
        line.received = 0;
        // So little always fits into the socket's buffer.
        let sent = line.stream.write_all(&self.request);
        sent.with_context(|| format!("cannot send to {}", self.address))
    }

    /// Takes in what there is; returns how long it took once the answer is whole.
    fn receive(&mut self, number: usize) -> Result<Option<f64>> {
        let line = &mut self.lines[number];
        let read = match line.stream.read(&mut line.answer[line.received..]) {
            Ok(0) => bail!(
                "{} closed a connection, or its answer is too long",
                self.address
            ),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read from {}", self.address));
            }
        };
        line.received += read;
        let answer = &line.answer[..line.received];
        if !answer.ends_with(TEN_BYTES) {
            return Ok(None);
        }
        let took = line.meant.elapsed().as_secs_f64() * 1000.0;
        if !answer.starts_with(b"HTTP/1.1 200 ") {
            let answer = String::from_utf8_lossy(answer);
            bail!("{} answered {answer:?}", self.address);
        }
        Ok(Some(took))
    }

    /// Waits for answers. By `ppoll`, since rustix has `epoll_wait` count in milliseconds.
    fn wait(&self, at_most: Duration, events: &mut Vec<epoll::Event>) -> Result<()> {
        events.clear();
        let at_most = Timespec::try_from(at_most).context("a time that is too long")?;
        let mut fds = [PollFd::new(&self.epoll, PollFlags::IN)];
        match poll(&mut fds, Some(&at_most)) {
            Ok(0) | Err(Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(error).context("cannot wait for answers"),
        }
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let spare = rustix::buffer::spare_capacity(events);
        epoll::wait(&self.epoll, spare, Some(&at_once)).context("cannot look for answers")?;
        Ok(())
    }
}

impl Line {
    fn connect(address: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            meant: Instant::now(),
            answer: [0; LONGEST_ANSWER],
            received: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;

    const STALL: Duration = Duration::from_millis(50);

    /// Answers one connection, and stalls once, before its third answer.
    fn serve(listener: &TcpListener, status: &str) {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 1024];
        for number in 0.. {
            if !matches!(stream.read(&mut request), Ok(1..)) {
                return;
            }
            if number == 2 {
                thread::sleep(STALL);
            }
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: 10");
            let answer = [head.as_bytes(), TEN_BYTES].concat();
            if stream.write_all(&answer).is_err() {
                return;
            }
        }
    }

    #[test]
    fn what_was_meant_to_be_sent_during_a_stall_is_late() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || serve(&listener, "200 OK"));
        let mut paced = Paced::connect(address, 1).unwrap();
        let took = paced.round(100.0, Duration::from_millis(100)).unwrap();
        drop(paced);
        server.join().unwrap();
        assert_eq!(took.len(), 10);
        // The one that met it, and those meant 10, 20 and 30 ms later, which had to wait for the only connection.
        let late = took.iter().filter(|took| **took >= 20.0).count();
        assert!(late >= 4, "{took:?}");
    }

    #[test]
    fn an_answer_that_is_not_right_ends_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || serve(&listener, "503 No"));
        assert!(Paced::connect(address, 1).is_err());
        server.join().unwrap();
    }
}
