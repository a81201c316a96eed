//! What answers triggers in place of Prometheus: that everything is idle, and that it was up. It counts what it is asked.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

use crate::bench::message;

/// From one round of questions to the next, where nothing else is said.
pub(super) const INTERVAL: Duration = Duration::from_secs(30);
/// Queries that differ.
pub(super) const QUERIES: u32 = 100;
/// A round is over if nothing was asked for so long.
const PAUSE: Duration = Duration::from_secs(5);
/// After it, the next is near.
const LATE: Duration = Duration::from_secs(25);
/// In the question whether Prometheus was up, and in no query.
const UPTIME: &[u8] = b"min_over_time";

/// It answers until the process ends.
pub(super) struct Prometheus {
    address: SocketAddr,
    asked: Arc<Mutex<Asked>>,
}

#[derive(Default)]
struct Asked {
    count: u64,
    last: Option<Instant>,
}

/// What the trigger of this service asks.
pub(super) fn query(number: usize) -> String {
    let group = number % usize::try_from(QUERIES).unwrap_or(1);
    format!("sum(rate(http_requests_total{{group=\"{group}\"}}[1m])) or vector(0)")
}

impl Prometheus {
    pub(super) fn start() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let asked = Arc::new(Mutex::new(Asked::default()));
        let counts = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counts = Arc::clone(&counts);
                // A thread each: whoever asks bounds how many there are. A connection that breaks is made again.
                thread::spawn(move || answer_all(stream, &counts));
            }
        });
        Ok(Self { address, asked })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many questions it has answered.
    pub(super) fn asked(&self) -> u64 {
        lock(&self.asked).count
    }

    /// Until one round is over and the next is not near.
    pub(super) fn wait_for_a_pause(&self, patience: Duration) -> Result<()> {
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            let last = lock(&self.asked).last;
            let rested = last.map(|last| last.elapsed());
            if rested.is_some_and(|rested| rested > PAUSE && rested < LATE) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(100));
        }
        bail!("there is no pause between two rounds of questions to triggers")
    }
}

/// One after the other, for as long as the connection is kept.
fn answer_all(mut stream: TcpStream, asked: &Mutex<Asked>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        received.extend_from_slice(&buffer[..count]);
        let Some(question) = message::whole(&received) else {
            continue;
        };
        received.clear();
        {
            let mut asked = lock(asked);
            asked.count += 1;
            asked.last = Some(Instant::now());
        }
        stream.write_all(answer(&question.body).as_bytes())?;
    }
}

fn answer(question: &[u8]) -> String {
    let mut windows = question.windows(UPTIME.len());
    let value = u8::from(windows.any(|it| it == UPTIME));
    let body = format!(
        r#"{{"status":"success","data":{{"resultType":"vector","result":[{{"metric":{{}},"value":[1,"{value}"]}}]}}}}"#
    );
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_idle_and_it_was_up() {
        assert!(answer(b"query=sum%28rate%28a%29%29").ends_with(r#"[1,"0"]}]}}"#));
        assert!(answer(b"query=min_over_time%28a%29").ends_with(r#"[1,"1"]}]}}"#));
    }

    #[test]
    fn there_are_as_many_queries_as_said() {
        let all: std::collections::BTreeSet<String> = (0..10_000).map(query).collect();
        assert_eq!(all.len(), usize::try_from(QUERIES).unwrap());
    }
}
