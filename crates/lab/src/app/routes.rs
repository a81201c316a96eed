//! Which path does what.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use http::{StatusCode, Uri, Version, header};
use tokio::sync::mpsc;

use super::{
    State, answer,
    body::{Held, Request, Response, pattern},
    echo,
    end::Ending,
    grpc,
    metrics::First,
    stream,
    websocket::{self, Tunnel},
};
use crate::load::{REQUEST_ID, VIA};

/// What `/` says.
const HELP: &str = "\
/echo                  says what it was sent, as JSON: headers, and the body's length and SHA-256
/mirror                gives the body back as it comes
/upload                counts and hashes the body, however long
/status/<n>            answers with this status
/delay/<seconds>       answers after this time
/bytes/<n>             so many bytes, always the same
/chunked/<n>           the same without a length, and with their SHA-256 as a trailer
/drip?bytes=&seconds=  so many bytes, spread evenly over this time
/stream?events=&seconds=  server-sent events, so many, at this distance
/ws                    WebSocket: gives back each message
/crash                 the server ends at once, without an answer
/healthz /ready /metrics
/weir.lab.Echo/{Unary,ServerStream,ClientStream,Bidi}  gRPC on raw bytes
";

/// The most bytes that are made up for one answer.
const MOST_BYTES: u64 = 1 << 30;
/// Whole answers are made in memory, so they are smaller.
const MOST_BYTES_AT_ONCE: u64 = 64 << 20;
const LONGEST: Duration = Duration::from_hours(1);
/// How a resolver's probes begin to name who sends them; the kubelet's have a version there.
const RESOLVER: &[u8] = b"kube-probe/weir-";

/// Answers a request, and counts it.
pub(super) async fn answer(
    state: Arc<State>,
    upgraded: mpsc::Sender<Tunnel>,
    request: Request,
) -> Response {
    let id = request.headers().get(REQUEST_ID).cloned();
    if let Some(id) = &id {
        state.metrics.id(id.as_bytes());
    }
    let via = request.headers().get(header::VIA).cloned();
    let class = class(request.uri().path());
    if !matches!(class, "healthz" | "ready" | "metrics") {
        state.metrics.happened(First::Request);
    }
    let is_http1 = request.version() < Version::HTTP_2;
    let mut response = match class {
        // What others watch us by does not wait in line.
        "healthz" => answer::text(StatusCode::OK, "well\n"),
        "ready" => ready(&state, &request),
        "metrics" => answer::text(StatusCode::OK, state.metrics.text(state.pressure.present())),
        _ => match state.pressure.enter().await {
            Ok(guest) => {
                // Not even for no time: that would cost the quickest answers something.
                if !state.settings.work.is_zero() {
                    tokio::time::sleep(state.settings.work).await;
                }
                let response = route(&state, upgraded, class, request).await;
                response.map(|body| Held::body(body, guest))
            }
            Err(too_many) => {
                let why = format!("it fell over with {} requests at once", too_many.0);
                state.end.crash(&why);
                // Nobody will see it: the connection goes with the crash.
                std::future::pending().await
            }
        },
    };
    if let Some(id) = id {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    let via = via.as_ref().and_then(|via| via.to_str().ok());
    answer::set(&mut response, VIA, via.unwrap_or("-"));
    answer::set(&mut response, "x-weir-pod", &state.settings.name);
    // Who is told so in time sends nothing more that could be cut.
    let switches = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    if is_http1 && !switches && state.end.now() != Ending::NotYet {
        answer::set(&mut response, header::CONNECTION.as_str(), "close");
    }
    state.metrics.answer(class, response.status().as_u16());
    response
}

/// The kind of a path: few enough to be a label.
fn class(path: &str) -> &'static str {
    const CLASSES: &[&str] = &[
        "echo", "mirror", "upload", "status", "delay", "bytes", "chunked", "drip", "stream", "ws",
        "crash", "healthz", "ready", "metrics",
    ];
    let first = path.split('/').nth(1).unwrap_or_default();
    match first {
        "" => "help",
        "weir.lab.Echo" => "grpc",
        _ => CLASSES
            .iter()
            .find(|class| **class == first)
            .unwrap_or(&"unknown"),
    }
}

async fn route(
    state: &Arc<State>,
    upgraded: mpsc::Sender<Tunnel>,
    class: &'static str,
    request: Request,
) -> Response {
    match class {
        "help" => answer::text(StatusCode::OK, HELP),
        "echo" => echo::echo(&state.settings.name, request).await,
        "mirror" => echo::mirror(request),
        "upload" => echo::upload(request).await,
        "grpc" => grpc::answer(request).await,
        "ws" => websocket::accept(upgraded, request).await,
        "crash" => {
            state.end.crash("a request told it to");
            std::future::pending().await
        }
        _ => {
            let made = made_up(class, request.uri()).await;
            made.unwrap_or_else(answer::bad_request)
        }
    }
}

/// The answers that depend on nothing but the path.
async fn made_up(class: &str, uri: &Uri) -> Result<Response, String> {
    Ok(match class {
        "status" => {
            let status = StatusCode::from_u16(argument(uri)?).ok();
            let status = status.filter(|status| !status.is_informational());
            let status = status.ok_or("a status is 200 to 999")?;
            answer::text(status, format!("{status}\n"))
        }
        "delay" => {
            tokio::time::sleep(duration(argument(uri)?)?).await;
            answer::text(StatusCode::OK, "late\n")
        }
        "bytes" => {
            let length = below(argument(uri)?, MOST_BYTES_AT_ONCE)?;
            answer::bytes(pattern(0, length))
        }
        "chunked" => stream::chunked(below(argument(uri)?, MOST_BYTES)?),
        "drip" => {
            let bytes = below(parameter(uri, "bytes", 100)?, MOST_BYTES)?;
            stream::drip(bytes, duration(parameter(uri, "seconds", 1.0)?)?)
        }
        "stream" => {
            let events = parameter(uri, "events", 10)?;
            stream::events(events, duration(parameter(uri, "seconds", 0.1)?)?)
        }
        _ => answer::text(StatusCode::NOT_FOUND, HELP),
    })
}

fn ready(state: &State, request: &Request) -> Response {
    if Instant::now() >= state.ready_at {
        let agent = request.headers().get(header::USER_AGENT);
        let agent = agent.map_or(&[][..], |agent| agent.as_bytes());
        state.metrics.happened(if agent.starts_with(RESOLVER) {
            First::ReadyToldResolver
        } else {
            First::ReadyToldKubelet
        });
        answer::text(StatusCode::OK, "ready\n")
    } else {
        answer::text(StatusCode::SERVICE_UNAVAILABLE, "not yet\n")
    }
}

/// What follows the second slash.
fn argument<T: std::str::FromStr>(uri: &Uri) -> Result<T, String> {
    let text = uri.path().split('/').nth(2).unwrap_or_default();
    text.parse()
        .map_err(|_| format!("{text:?} is no number for this path"))
}

fn parameter<T: std::str::FromStr>(uri: &Uri, name: &str, default: T) -> Result<T, String> {
    let pairs = uri.query().unwrap_or_default().split('&');
    let mut values = pairs.filter_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    match values.next() {
        None => Ok(default),
        Some(text) => text
            .parse()
            .map_err(|_| format!("{name}={text:?} is no number")),
    }
}

fn below(number: u64, most: u64) -> Result<u64, String> {
    if number <= most {
        Ok(number)
    } else {
        Err(format!("at most {most} bytes"))
    }
}

fn duration(seconds: f64) -> Result<Duration, String> {
    let duration = Duration::try_from_secs_f64(seconds).ok();
    let duration = duration.filter(|duration| *duration <= LONGEST);
    duration.ok_or_else(|| "a time is 0 to 3600 seconds".to_owned())
}
