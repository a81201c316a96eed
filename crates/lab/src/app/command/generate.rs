//! `lab-app generate` and `lab-app discard`: [`Traffic`] and its [`Sink`] from the command line.

use std::{error::Error, net::SocketAddr, process::ExitCode, time::Duration};

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use super::{either, time};
use crate::app::traffic::{Over, Sink, Traffic, pace::Rate};

#[derive(Debug, Args)]
pub(super) struct Generate {
    /// Where to send, as host:port
    to: String,
    /// So many bits a second in all, such as 100Mbit; without it as fast as it goes
    #[arg(long, env = "LAB_APP_RATE")]
    rate: Option<Rate>,
    /// Over UDP, which does not give way on a full link
    #[arg(long)]
    udp: bool,
    /// So many connections at once
    #[arg(long, default_value_t = 4)]
    connections: usize,
    /// How long; without it until told to end
    #[arg(long, value_parser = time)]
    duration: Option<Duration>,
}

#[derive(Debug, Args)]
pub(super) struct Discard {
    /// Where to listen, over TCP and UDP
    #[arg(long, default_value = "0.0.0.0:9001")]
    listen: SocketAddr,
}

pub(super) async fn send(arguments: Generate) -> Result<ExitCode, Box<dyn Error>> {
    let Generate {
        to,
        rate,
        udp,
        connections,
        duration,
    } = arguments;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let traffic = Traffic {
        to,
        over: if udp { Over::Udp } else { Over::Tcp },
        rate,
        connections,
        duration,
    };
    tokio::select! {
        sent = traffic.send() => println!("sent {} bytes", sent?),
        () = either(&mut terminate, &mut interrupt) => {}
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn receive(arguments: Discard) -> Result<ExitCode, Box<dyn Error>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let sink = Sink::start(arguments.listen).await?;
    println!("taking anything on {}", sink.address());
    either(&mut terminate, &mut interrupt).await;
    println!("received {} bytes", sink.received());
    Ok(ExitCode::SUCCESS)
}
