//! Probes of real servers on this machine.

use std::{
    convert::Infallible,
    sync::atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::{
    Request, Response,
    body::{Frame, Incoming},
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ServerConfig, pki_types::PrivateKeyDer};
use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpSocket},
    task::{JoinHandle, JoinSet},
    time::Instant,
};
use tokio_rustls::TlsAcceptor;

use super::*;
use ::http::{HeaderName, HeaderValue, header::HOST, uri::PathAndQuery};

const PATIENCE: Duration = Duration::from_mins(1);

async fn ask(address: SocketAddr, action: &Action) -> Outcome {
    let asker = Asker::default();
    asker.ask(address, action, PATIENCE).await
}

fn get(path: &'static str, tls: bool) -> Action {
    Action::Http {
        tls,
        path: PathAndQuery::from_static(path),
        headers: Vec::new(),
    }
}

/// A server that lets each connection be handled so.
async fn serve<F, R>(handle: F) -> (SocketAddr, JoinHandle<()>)
where
    F: Fn(TcpStream) -> R + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let mut all = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            all.spawn(handle(stream));
        }
    });
    (address, server)
}

/// Answers by the path: `/200` with 200, `/to/…` with a redirect there.
async fn by_path(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path();
    let mut answer = Response::builder();
    if let Some(elsewhere) = path.strip_prefix("/to") {
        answer = answer.status(302).header("location", elsewhere);
    } else if path == "/headers" {
        let header = |name: &str| request.headers().get(name).map(HeaderValue::as_bytes);
        let agent = header("user-agent").is_some_and(|it| it.starts_with(b"kube-probe/"));
        let as_it_should = agent
            && header("host") == Some(b"shop.example")
            && header("x-a") == Some(b"b")
            && header("connection") == Some(b"close");
        answer = answer.status(if as_it_should { 200 } else { 500 });
    } else {
        let status: u16 = path[1..].parse().unwrap_or(404);
        answer = answer.status(status);
    }
    Ok(answer.body(Full::default()).unwrap())
}

#[tokio::test]
async fn a_get_succeeds_by_its_status() {
    let (address, server) = serve(|stream| async {
        let _ = http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service_fn(by_path))
            .await;
    })
    .await;
    for (path, expected) in [
        ("/200", Outcome::Succeeded),
        ("/399", Outcome::Succeeded),
        ("/400", Outcome::Failed),
        ("/503", Outcome::Failed),
        ("/to/200", Outcome::Succeeded),
        ("/to/503", Outcome::Failed),
        ("/to/to/to/200", Outcome::Succeeded),
        ("/to/to/to/to/to/to/to/to/to/to/to/200", Outcome::Failed),
    ] {
        assert_eq!(ask(address, &get(path, false)).await, expected, "{path}");
    }
    let headers = Action::Http {
        tls: false,
        path: PathAndQuery::from_static("/headers"),
        headers: vec![
            (HOST, HeaderValue::from_static("shop.example")),
            (
                HeaderName::from_static("x-a"),
                HeaderValue::from_static("b"),
            ),
        ],
    };
    assert_eq!(ask(address, &headers).await, Outcome::Succeeded);
    assert_eq!(ask(address, &Action::Tcp).await, Outcome::Succeeded);
    assert_eq!(ask(address, &get("/200", true)).await, Outcome::Failed);
    server.abort();
}

#[tokio::test]
async fn whoever_answers_over_tls_may_have_any_certificate() {
    let made = rcgen::generate_simple_self_signed(["shop.example".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (address, server) = serve(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                let _ = http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service_fn(by_path))
                    .await;
            }
        }
    })
    .await;
    for (path, tls, expected) in [
        ("/200", true, Outcome::Succeeded),
        ("/500", true, Outcome::Failed),
        ("/200", false, Outcome::Failed),
    ] {
        assert_eq!(
            ask(address, &get(path, tls)).await,
            expected,
            "{path} {tls}"
        );
    }
    server.abort();
}

/// Health as gRPC has it: `well` serves, `ill` does not, others are not known.
async fn health(
    request: Request<Incoming>,
) -> Result<Response<impl hyper::body::Body<Data = Bytes, Error = Infallible>>, Infallible> {
    let is_call = request.uri().path() == "/grpc.health.v1.Health/Check"
        && request.headers()["content-type"] == "application/grpc"
        && request.headers()["te"] == "trailers";
    let question = request.into_body().collect().await.unwrap().to_bytes();
    let (message, status): (&'static [u8], &str) = match &question[5..] {
        b"" | b"\x0a\x04well" if is_call => (&[0, 0, 0, 0, 2, 8, 1], "0"),
        b"\x0a\x03ill" => (&[0, 0, 0, 0, 2, 8, 2], "0"),
        b"\x0a\x05tired" => (&[0, 0, 0, 0, 2, 8, 1], "14"),
        _ => (b"", "5"),
    };
    let mut trailers = ::http::HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_str(status).unwrap());
    let frames = [
        Ok(Frame::data(Bytes::from_static(message))),
        Ok(Frame::trailers(trailers)),
    ];
    let body = StreamBody::new(futures_util::stream::iter(frames));
    Ok(Response::new(body))
}

#[tokio::test]
async fn a_grpc_server_says_how_it_is() {
    let (address, server) = serve(|stream| async {
        let _ = http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(stream), service_fn(health))
            .await;
    })
    .await;
    for (service, expected) in [
        ("", Outcome::Succeeded),
        ("well", Outcome::Succeeded),
        ("ill", Outcome::Failed),
        ("tired", Outcome::Failed),
        ("unknown", Outcome::Failed),
    ] {
        let action = Action::Grpc {
            service: service.to_owned(),
        };
        assert_eq!(ask(address, &action).await, expected, "{service}");
    }
    server.abort();
}

#[tokio::test]
async fn nothing_takes_longer_than_it_may() {
    static BYTES: AtomicUsize = AtomicUsize::new(0);
    let (address, server) = serve(|mut stream| async move {
        let mut buffer = [0; 1024];
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            BYTES.fetch_add(read, Ordering::Relaxed);
        }
    })
    .await;
    let asker = Asker::default();
    let short = Duration::from_millis(200);
    let grpc = Action::Grpc {
        service: String::new(),
    };
    for action in [get("/", false), get("/", true), grpc] {
        let began = Instant::now();
        let outcome = asker.ask(address, &action, short).await;
        assert_eq!(outcome, Outcome::Failed, "{action:?}");
        assert!(began.elapsed() >= short, "it has waited");
    }
    assert!(BYTES.load(Ordering::Relaxed) > 0);
    server.abort();

    let nobody = SocketAddr::from(([127, 0, 0, 1], weir_lab::ports::free()));
    assert_eq!(ask(nobody, &Action::Tcp).await, Outcome::Failed);
}

/// Linux says nothing to who comes while as many wait to be accepted as may.
#[tokio::test]
async fn who_says_nothing_at_all_cannot_be_reached() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let listener = socket.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = timeout(CONNECT, TcpStream::connect(address)).await {
        waiting.push(stream.unwrap());
        assert!(waiting.len() < 100, "all of them are let in");
    }
    assert_eq!(ask(address, &Action::Tcp).await, Outcome::Unreachable);
}
