//! One process that answers as the exporters of all nodes, by the address that was asked. It counts for each node what it
//! sent, and when it last answered; and it can have some of them do what exporters should not.

mod page;

use std::{
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use self::page::Page;
use super::objects;

/// Where they listen.
pub(super) const PORT: u16 = 9810;
/// So many connections may wait to be taken: a round begins with many at once.
const BACKLOG: i32 = 4096;
const ACCEPTORS: usize = 4;
/// How long a slow one thinks; a node whose network is full may take as long.
const THINKS: Duration = Duration::from_secs(3);
/// A round is over if nobody was asked for so long.
const PAUSE: Duration = Duration::from_millis(700);
/// What a liar sends, again and again.
const RUBBISH: &[u8] = b"node_network_transmit_bytes_total{device=\"eth0\"} NaN\nnode_network_x ";

/// All exporters. They run until the process ends.
pub(super) struct Exporters {
    all: Arc<All>,
}

struct All {
    nodes: Vec<Mutex<Node>>,
    page: Page,
    crowd: String,
    asked: Mutex<Asked>,
}

/// When anybody was asked.
#[derive(Default)]
struct Asked {
    last: Option<Instant>,
    /// Since somebody wanted to know.
    first: Option<Instant>,
}

struct Node {
    sent: u64,
    per_second: u64,
    since: Instant,
    behaviour: Behaviour,
    answered: Option<Instant>,
    longest_gap: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behaviour {
    Well,
    /// Answers rightly, but late.
    Slow,
    /// Sends one byte now and then.
    Drips,
    /// Takes the question and says nothing.
    Silent,
    /// Sends rubbish without end.
    Floods,
    /// A page for people.
    Page,
    /// Counters that go down each time.
    Falls,
    /// Thousands of interfaces.
    Crowds,
}

impl Exporters {
    pub(super) fn start(nodes: usize) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT));
        let listener = listener.with_context(|| format!("cannot listen on port {PORT}"))?;
        rustix::net::listen(&listener, BACKLOG)?;
        let node = || {
            Mutex::new(Node {
                sent: 1 << 40,
                per_second: 0,
                since: Instant::now(),
                behaviour: Behaviour::Well,
                answered: None,
                longest_gap: Duration::ZERO,
            })
        };
        let all = Arc::new(All {
            nodes: (0..nodes).map(|_| node()).collect(),
            page: Page::new(),
            crowd: page::crowd(),
            asked: Mutex::default(),
        });
        for _ in 0..ACCEPTORS {
            let (listener, all) = (listener.try_clone()?, Arc::clone(&all));
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    // One that broke will ask again.
                    let _ = all.answer(stream);
                }
            });
        }
        Ok(Self { all })
    }

    /// All send so many bytes per second from now on.
    pub(super) fn send_all(&self, per_second: u64) {
        for node in &self.all.nodes {
            let mut node = lock(node);
            node.count();
            node.per_second = per_second;
        }
    }

    /// One has just sent so much.
    pub(super) fn jump(&self, number: usize, bytes: u64) {
        if let Some(node) = self.all.nodes.get(number) {
            lock(node).sent += bytes;
        }
    }

    /// One third does harm from now on, in all ways there are; what counts for the others begins anew.
    pub(super) fn spoil_a_third(&self) {
        let bad = [
            Behaviour::Slow,
            Behaviour::Silent,
            Behaviour::Floods,
            Behaviour::Drips,
            Behaviour::Page,
            Behaviour::Falls,
            Behaviour::Crowds,
        ];
        for (number, node) in self.all.nodes.iter().enumerate() {
            let mut node = lock(node);
            node.longest_gap = Duration::ZERO;
            if number % 3 == 0 {
                node.behaviour = bad[number / 3 % bad.len()];
            }
        }
    }

    /// How long each of those that answer well was left alone, at the longest.
    pub(super) fn gaps(&self) -> Vec<Duration> {
        let now = Instant::now();
        let nodes = self.all.nodes.iter().map(lock);
        let well = nodes.filter(|node| node.behaviour == Behaviour::Well);
        well.map(|node| {
            let since = node.answered.map(|at| now.duration_since(at));
            since.map_or(Duration::MAX, |since| since.max(node.longest_gap))
        })
        .collect()
    }

    /// Until a round is over, but not for longer than this.
    pub(super) fn wait_for_a_pause(&self, longest: Duration) {
        let deadline = Instant::now() + longest;
        let is_pause = || {
            lock(&self.all.asked)
                .last
                .is_none_or(|it| it.elapsed() > PAUSE)
        };
        while !is_pause() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// When the next question came.
    pub(super) fn next_question(&self, patience: Duration) -> Result<Instant> {
        lock(&self.all.asked).first = None;
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if let Some(first) = lock(&self.all.asked).first {
                return Ok(first);
            }
            thread::sleep(Duration::from_millis(5));
        }
        bail!("no node was asked for {} s", patience.as_secs())
    }
}

impl All {
    fn answer(self: &Arc<Self>, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        read_request(&mut stream)?;
        let now = Instant::now();
        {
            let mut asked = lock(&self.asked);
            asked.last = Some(now);
            asked.first.get_or_insert(now);
        }
        let IpAddr::V4(address) = stream.local_addr()?.ip() else {
            return Ok(());
        };
        let number = objects::number_of(address);
        let Some(node) = number.and_then(|number| self.nodes.get(number)) else {
            return Ok(());
        };
        let (behaviour, sent) = {
            let mut node = lock(node);
            node.count();
            if node.behaviour == Behaviour::Falls {
                node.sent = node.sent.saturating_sub(1000);
            }
            if let Some(before) = node.answered.replace(now) {
                node.longest_gap = node.longest_gap.max(now.duration_since(before));
            }
            (node.behaviour, node.sent)
        };
        match behaviour {
            Behaviour::Well | Behaviour::Falls => self.page.write(&mut stream, sent),
            Behaviour::Page => stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n<html>login</html>"),
            Behaviour::Slow
            | Behaviour::Drips
            | Behaviour::Silent
            | Behaviour::Floods
            | Behaviour::Crowds => {
                let all = Arc::clone(self);
                // A thread each: whoever asks bounds how many there are.
                let builder = thread::Builder::new().stack_size(64 << 10);
                builder.spawn(move || all.misbehave(behaviour, stream, sent))?;
                Ok(())
            }
        }
    }

    /// Until whoever asked has had enough.
    fn misbehave(&self, behaviour: Behaviour, mut stream: TcpStream, sent: u64) -> io::Result<()> {
        match behaviour {
            Behaviour::Slow => {
                thread::sleep(THINKS);
                self.page.write(&mut stream, sent)
            }
            // More than a socket takes at once: whoever answers others must not wait for it.
            Behaviour::Crowds => stream.write_all(self.crowd.as_bytes()),
            Behaviour::Silent => {
                stream.set_read_timeout(Some(Duration::from_mins(1)))?;
                stream.read(&mut [0]).map(drop)
            }
            _ => {
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
                let rubbish = RUBBISH.repeat(1 << 10);
                loop {
                    if behaviour == Behaviour::Drips {
                        stream.write_all(b"#")?;
                        thread::sleep(Duration::from_millis(500));
                    } else {
                        stream.write_all(&rubbish)?;
                    }
                }
            }
        }
    }
}

impl Node {
    fn count(&mut self) {
        let now = Instant::now();
        let micros = now.duration_since(self.since).as_micros();
        let sent = micros * u128::from(self.per_second) / 1_000_000;
        self.sent += u64::try_from(sent).unwrap_or_default();
        self.since = now;
    }
}

fn read_request(stream: &mut TcpStream) -> io::Result<()> {
    let mut received = Vec::new();
    let mut buffer = [0; 1024];
    while !received.ends_with(b"\r\n\r\n") {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        received.extend_from_slice(&buffer[..count]);
    }
    Ok(())
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
