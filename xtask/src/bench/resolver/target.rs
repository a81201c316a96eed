//! A server with so many workers, each of which takes one connection at a time and gives one request's body back.
//!
//! Like the many servers that have a process for each request: who comes when all are busy waits in the listen
//! queue, which is short (128).

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::Sender,
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use crate::bench::message;

/// A server that ends with this value.
pub(super) struct Target {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    workers: Vec<JoinHandle<()>>,
}

#[derive(Clone)]
struct Worker {
    listener: Arc<TcpListener>,
    is_over: Arc<AtomicBool>,
    work: Duration,
    /// Told the moment at which the first byte of a request was there.
    first_bytes: Option<Sender<Instant>>,
}

impl Target {
    /// Listens on 127.0.0.1. Each request takes a worker for as long as `work`.
    pub(super) fn start(
        workers: usize,
        work: Duration,
        first_bytes: Option<Sender<Instant>>,
    ) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen on 127.0.0.1")?;
        let address = listener.local_addr()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            listener: Arc::new(listener),
            is_over: Arc::clone(&is_over),
            work,
            first_bytes,
        };
        let workers = (0..workers).map(|_| {
            let worker = worker.clone();
            thread::spawn(move || worker.run())
        });
        Ok(Self {
            address,
            is_over,
            workers: workers.collect(),
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for _ in &self.workers {
            // Each waits for a connection, and looks around when it has one.
            let _ = TcpStream::connect(self.address);
        }
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

impl Worker {
    fn run(self) {
        while let Ok((stream, _)) = self.listener.accept() {
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            // A connection that fails is its client's business, and counted there.
            let _ = self.serve(stream);
        }
    }

    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let mut received = Vec::new();
        let mut buffer = [0; 4096];
        let request = loop {
            let count = stream.read(&mut buffer)?;
            if count == 0 {
                return Ok(());
            }
            if let (true, Some(first_bytes)) = (received.is_empty(), &self.first_bytes) {
                // Nobody may be listening any more.
                let _ = first_bytes.send(Instant::now());
            }
            received.extend_from_slice(&buffer[..count]);
            if let Some(request) = message::whole(&received) {
                break request;
            }
        };
        thread::sleep(self.work);
        let length = request.body.len();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
        stream.write_all(&[head.as_bytes(), &request.body].concat())
    }
}
