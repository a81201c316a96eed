//! Many clients at once on one thread: each has a connection, one POST on it, and waits for its answer.
//!
//! An event loop of its own, since a thread for each would cost the machine more than what is measured.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use rustix::{
    event::{Timespec, epoll},
    io::Errno,
};

use crate::bench::message;

/// The clients, all of which have sent their request.
pub(super) struct Crowd {
    poll: OwnedFd,
    members: Vec<Member>,
}

struct Member {
    stream: TcpStream,
    body: Vec<u8>,
    received: Vec<u8>,
    end: Option<End>,
}

/// How a request ended.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) at: Instant,
    /// What was wrong, in a few words.
    pub(super) fault: Option<String>,
}

impl Crowd {
    /// One client for each of these addresses, with a body that no other one has; the answer must give it back.
    pub(super) fn send(
        to: impl IntoIterator<Item = SocketAddr>,
        body_bytes: usize,
    ) -> Result<Self> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).context("cannot make an epoll")?;
        let mut crowd = Self {
            poll,
            members: Vec::new(),
        };
        for (number, address) in to.into_iter().enumerate() {
            let member = Member::send(address, number, body_bytes);
            let member =
                member.with_context(|| format!("client {number} cannot send to {address}"))?;
            let key = epoll::EventData::new_u64(u64::try_from(number)?);
            epoll::add(&crowd.poll, &member.stream, key, epoll::EventFlags::IN)?;
            crowd.members.push(member);
        }
        Ok(crowd)
    }

    /// Waits for all answers. Who has none in time has failed.
    pub(super) fn answers(mut self, patience: Duration) -> Result<Vec<End>> {
        let deadline = Instant::now() + patience;
        let mut waiting = self.members.len();
        let mut events = Vec::with_capacity(1024);
        while waiting > 0 && Instant::now() < deadline {
            events.clear();
            let pause = Timespec {
                tv_sec: 0,
                tv_nsec: 100_000_000,
            };
            let spare = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.poll, spare, Some(&pause)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error).context("cannot wait for answers"),
            }
            for event in &events {
                let number = usize::try_from(event.data.u64())?;
                let Some(member) = self.members.get_mut(number) else {
                    continue;
                };
                if member.read() {
                    epoll::delete(&self.poll, &member.stream)?;
                    waiting -= 1;
                }
            }
        }
        let late = || End {
            at: Instant::now(),
            fault: Some("no answer in time".to_owned()),
        };
        let members = self.members.into_iter();
        Ok(members.map(|it| it.end.unwrap_or_else(late)).collect())
    }
}

impl Member {
    fn send(address: SocketAddr, number: usize, body_bytes: usize) -> std::io::Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let body: Vec<u8> = format!("{number:07} ")
            .bytes()
            .cycle()
            .take(body_bytes)
            .collect();
        let mut request = format!(
            "POST /mirror HTTP/1.1\r\nhost: {address}\r\nx-weir-request-id: {number}\r\n\
             content-length: {body_bytes}\r\n\r\n"
        )
        .into_bytes();
        request.extend_from_slice(&body);
        stream.write_all(&request)?;
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            body,
            received: Vec::new(),
            end: None,
        })
    }

    /// Takes in what there is; is it over?
    fn read(&mut self) -> bool {
        let mut buffer = [0; 4096];
        let fault = loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => break Some("closed before the answer was whole".to_owned()),
                Ok(count) => {
                    self.received.extend_from_slice(&buffer[..count]);
                    if let Some(answer) = message::whole(&self.received) {
                        let is_right = answer.status == 200 && answer.body == self.body;
                        let wrong = || match answer.status {
                            200 => "a wrong body".to_owned(),
                            status => format!("status {status}"),
                        };
                        break (!is_right).then(wrong);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break Some(error.to_string()),
            }
        };
        self.end = Some(End {
            at: Instant::now(),
            fault,
        });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::resolver::target::Target;

    #[test]
    fn every_client_gets_its_own_answer_and_a_closed_connection_is_a_fault() {
        let target = Target::start(2, Duration::ZERO, None).unwrap();
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let to = [
            target.address(),
            silent.local_addr().unwrap(),
            target.address(),
        ];
        let crowd = Crowd::send(to, 1024).unwrap();
        drop(silent.accept().unwrap());
        let ends = crowd.answers(Duration::from_secs(10)).unwrap();
        let faults: Vec<bool> = ends.iter().map(|end| end.fault.is_some()).collect();
        assert_eq!(faults, [false, true, false], "{ends:?}");
    }
}
