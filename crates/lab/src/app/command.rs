//! What the program `lab-app` can be told to do. Parsing does no work; [`run`] does.
//!
//! In an image the one program is everything: the pods' sandbox (`pause`), the server (`echo`), who puts it under
//! load (`load`), who fills a network (`generate`, `discard`), and a server that speaks TLS (`tls`, with the feature of that name).

#![allow(clippy::print_stdout, reason = "a program for the command line")]

mod generate;
mod load;
#[cfg(feature = "tls")]
mod tls;

use std::{
    net::SocketAddr,
    process::{self, ExitCode},
    time::Duration,
};

use clap::{Args, Parser, Subcommand};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{App, Settings};
use crate::load::allow_many_connections;

/// The lab's own server, load generator, traffic generator and pause container
#[derive(Debug, Parser)]
#[command(name = "lab-app", disable_help_subcommand = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Do nothing until told to end: the container that holds a pod's namespaces
    Pause,
    /// Serve: HTTP/1.1, h2c, gRPC and WebSocket on one port, raw TCP on another
    Echo(Box<Echo>),
    /// Send requests at a constant rate and count how each ended
    Load(load::Arguments),
    /// Send bytes of no meaning at a constant rate: fills a network interface
    Generate(generate::Generate),
    /// Take what `generate` sends, and forget it
    Discard(generate::Discard),
    /// Serve TLS: say which server the client asked for, then give back what it sends
    #[cfg(feature = "tls")]
    Tls(tls::Tls),
}

#[derive(Debug, Args)]
struct Echo {
    /// Where HTTP is served
    #[arg(long, env = "LAB_APP_LISTEN", default_value = "0.0.0.0:8080")]
    listen: SocketAddr,
    /// Where raw TCP is echoed
    #[arg(long, env = "LAB_APP_TCP_LISTEN", default_value = "0.0.0.0:9000")]
    tcp_listen: SocketAddr,
    /// Speak first on raw TCP connections, with this line
    #[arg(long, env = "LAB_APP_TCP_GREETING")]
    tcp_greeting: Option<String>,
    /// Who we are, told in every answer
    #[arg(long, env = "POD_NAME", default_value = "lab-app")]
    name: String,
    /// Listen only after so long (`1.5s`, `300ms`)
    #[arg(long, env = "LAB_APP_START_DELAY", default_value = "0s", value_parser = time)]
    start_delay: Duration,
    /// Say on /ready that we are not, for so long after that
    #[arg(long, env = "LAB_APP_READY_DELAY", default_value = "0s", value_parser = time)]
    ready_delay: Duration,
    /// Crash by itself after so long
    #[arg(long, env = "LAB_APP_CRASH_AFTER", value_parser = time)]
    crash_after: Option<Duration>,
    /// Work on so many requests at once; the others wait
    #[arg(long, env = "LAB_APP_MAX_CONCURRENT")]
    max_concurrent: Option<usize>,
    /// Work on each of them for so long, at least
    #[arg(long, env = "LAB_APP_WORK", default_value = "0s", value_parser = time)]
    work: Duration,
    /// Crash when so many requests are there at once
    #[arg(long, env = "LAB_APP_FALL_OVER_AT")]
    fall_over_at: Option<usize>,
    /// How long requests may take to finish after SIGTERM
    #[arg(long, env = "LAB_APP_GRACE", default_value = "25s", value_parser = time)]
    grace: Duration,
    /// How long a kept connection may bring one more request after SIGTERM
    #[arg(long, env = "LAB_APP_LINGER", default_value = "0s", value_parser = time)]
    linger: Duration,
    /// On SIGTERM do not finish anything, but exit
    #[arg(long, env = "LAB_APP_EXIT_AT_ONCE_ON_SIGTERM")]
    exit_at_once_on_sigterm: bool,
}

/// Does what was typed.
pub fn run(cli: Cli) -> Result<ExitCode, Box<dyn std::error::Error>> {
    // Where it cannot be had, fewer connections will do, or their outcomes will say so.
    let _ = allow_many_connections();
    match cli.command {
        Command::Pause => runtime(1)?.block_on(pause()),
        Command::Echo(echo) => runtime(0)?.block_on(serve(*echo)),
        Command::Load(arguments) => {
            let runtime = runtime(arguments.threads)?;
            runtime.block_on(load::run(arguments))
        }
        Command::Generate(arguments) => runtime(1)?.block_on(generate::send(arguments)),
        Command::Discard(arguments) => runtime(1)?.block_on(generate::receive(arguments)),
        #[cfg(feature = "tls")]
        Command::Tls(arguments) => runtime(1)?.block_on(tls::serve(arguments)),
    }
}

/// With one thread, or as many as told; 0 is as many as there are cores.
fn runtime(threads: usize) -> std::io::Result<tokio::runtime::Runtime> {
    use tokio::runtime::Builder;
    let mut builder = match threads {
        1 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    if threads > 1 {
        builder.worker_threads(threads);
    }
    builder.enable_all().build()
}

async fn pause() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut child = signal(SignalKind::child())?;
    loop {
        tokio::select! {
            () = either(&mut terminate, &mut interrupt) => return Ok(ExitCode::SUCCESS),
            // In a pod that shares processes we are the first, and orphans become ours.
            _ = child.recv() => reap(),
        }
    }
}

async fn either(first: &mut Signal, second: &mut Signal) {
    tokio::select! {
        _ = first.recv() => {}
        _ = second.recv() => {}
    }
}

fn reap() {
    use rustix::process::{WaitOptions, wait};
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}

async fn serve(echo: Echo) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let Echo {
        listen,
        tcp_listen,
        tcp_greeting,
        name,
        start_delay,
        ready_delay,
        crash_after,
        max_concurrent,
        work,
        fall_over_at,
        grace,
        linger,
        exit_at_once_on_sigterm,
    } = echo;
    // From the start: as process 1 of a container we would not even hear an unexpected signal.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let settings = Settings {
        listen,
        tcp_listen: Some(tcp_listen),
        tcp_greeting,
        name,
        start_delay,
        ready_delay,
        crash_after,
        max_concurrent,
        work,
        fall_over_at,
        grace,
        linger,
    };
    let app = tokio::select! {
        app = App::start(settings) => app?,
        () = either(&mut terminate, &mut interrupt) => return Ok(ExitCode::SUCCESS),
    };
    println!("HTTP on {}, raw TCP on {tcp_listen}", app.http());
    let stop = app.stopper();
    let ended = app.ended();
    tokio::pin!(ended);
    let crashed = tokio::select! {
        crashed = &mut ended => crashed,
        () = either(&mut terminate, &mut interrupt) => {
            if exit_at_once_on_sigterm {
                process::exit(0);
            }
            println!("finishing what is under way");
            stop();
            ended.await
        }
    };
    Ok(match crashed {
        None => ExitCode::SUCCESS,
        Some(why) => {
            eprintln!("crashed: {why}");
            // At once: what is left in other tasks must not get to finish.
            process::exit(1)
        }
    })
}

/// `2s`, `1.5s`, `300ms`, `1m`; a bare number is seconds.
fn time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time: write `2s`, `1.5s`, `300ms` or `1m`");
    let (number, unit) = match text.find(|c: char| c.is_ascii_alphabetic()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let factor = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        _ => return Err(wrong()),
    };
    Duration::try_from_secs_f64(number * factor).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_have_units_and_nonsense_is_refused() {
        assert_eq!(time("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(time("300ms"), Ok(Duration::from_millis(300)));
        assert_eq!(time("2"), Ok(Duration::from_secs(2)));
        assert_eq!(time("1m"), Ok(Duration::from_mins(1)));
        for wrong in ["", "s", "1h", "-1s", "inf", "1 s x"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
