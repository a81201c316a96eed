//! `lab-app load`: a run of [`crate::load`] from the command line.

use std::{error::Error, fs, path::PathBuf, process::ExitCode, time::Duration};

use clap::{Args, ValueEnum};

use super::time;
use crate::load::{Check, Load, Protocol};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Where to send, such as http://127.0.0.1:8080/mirror
    url: String,
    /// Requests per second
    #[arg(long, default_value_t = 100)]
    rate: u32,
    /// How long to send
    #[arg(long, default_value = "10s", value_parser = time)]
    duration: Duration,
    /// At most so many connections at once
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// A new connection for each request
    #[arg(long, conflicts_with = "h2c")]
    new_connections: bool,
    /// HTTP/2 without TLS
    #[arg(long)]
    h2c: bool,
    /// With --h2c: so many requests at once on each connection
    #[arg(long, default_value_t = 32, requires = "h2c")]
    streams: usize,
    /// Give a request up so long after it was meant to be sent
    #[arg(long, default_value = "10s", value_parser = time)]
    time_out: Duration,
    /// Send a body of so many bytes, which the answer must give back
    #[arg(long, default_value_t = 0)]
    body_bytes: usize,
    /// What a right answer is; with a body its mirror, else anything
    #[arg(long, value_enum)]
    check: Option<Expected>,
    /// Send a header, as `name: value`; may be given several times
    #[arg(long, value_parser = header)]
    header: Vec<(String, String)>,
    /// Threads to run on; 0 is one per core
    #[arg(long, default_value_t = 0)]
    pub(super) threads: usize,
    /// Write the report, with its timeline, to this file; `-` is standard output
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Expected {
    /// Any body
    Any,
    /// The request's body
    Mirror,
    /// A body with the SHA-256 that the header x-weir-sha256 says
    Declared,
}

/// Succeeds if all requests were sent and answered right.
pub(super) async fn run(arguments: Arguments) -> Result<ExitCode, Box<dyn Error>> {
    let Arguments {
        url,
        rate,
        duration,
        connections,
        new_connections,
        h2c,
        streams,
        time_out,
        body_bytes,
        check,
        header,
        threads: _,
        json,
    } = arguments;
    let protocol = match (h2c, new_connections) {
        (true, _) => Protocol::H2c { streams },
        (false, true) => Protocol::NewConnections,
        (false, false) => Protocol::KeepAlive,
    };
    let mut load = Load::new(url)
        .rate(rate)
        .duration(duration)
        .connections(connections)
        .protocol(protocol)
        .time_out(time_out)
        .body_bytes(body_bytes);
    if let Some(check) = check {
        load = load.check(match check {
            Expected::Any => Check::Any,
            Expected::Mirror => Check::Mirror,
            Expected::Declared => Check::Declared,
        });
    }
    for (name, value) in header {
        load = load.header(name, value);
    }
    let report = load.run().await?;
    match json {
        // In a pod the log is the way out, and it should be nothing but JSON.
        Some(path) if path.as_os_str() == "-" => {
            eprintln!("{report}");
            println!("{}", serde_json::to_string(&report)?);
        }
        Some(path) => {
            println!("{report}");
            let written = fs::write(&path, serde_json::to_vec_pretty(&report)?);
            written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
        None => println!("{report}"),
    }
    if !report.adds_up() {
        return Err("the counts do not add up: this is a fault of the load generator".into());
    }
    let is_perfect = report.outcomes.ok == report.intended;
    Ok(if is_perfect {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or_else(|| format!("{text:?} is no header: write `name: value`"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}
