//! Wake signals to a real HTTP server that refuses, hangs, fails and at last answers.

use std::{
    collections::VecDeque,
    convert::Infallible,
    future::pending,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use http::{Request, Response, StatusCode, header::AUTHORIZATION};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
    task::{JoinHandle, JoinSet},
    time::{Instant, timeout},
};
use weir_resolver::{
    metrics::Metrics,
    view::ServiceId,
    wake::{
        ByOurselves, Wake, WakeHandle, WakeSettings, Wakes, client::OperatorClient,
        scaler::ScaleError,
    },
};

const PATIENCE: Duration = Duration::from_mins(1);
/// A signal that hangs is given up after this; one that is answered must not be, on a machine that stalls.
const GIVEN_UP: Duration = Duration::from_secs(3);
const RETRY: Duration = Duration::from_millis(200);

/// What the operator does with a signal.
#[derive(Clone, Copy, Debug)]
enum Act {
    Hang,
    Answer(StatusCode),
}

#[derive(Debug)]
struct Heard {
    authorization: Option<String>,
    body: Value,
}

/// An operator that does these things in turn, then answers 200.
fn operator(listener: TcpListener, acts: &[Act]) -> mpsc::Receiver<Heard> {
    let (tell, heard) = mpsc::channel(1000);
    let acts = Arc::new(Mutex::new(acts.iter().copied().collect::<VecDeque<Act>>()));
    let answer = move |request: Request<Incoming>| {
        let (tell, acts) = (tell.clone(), Arc::clone(&acts));
        async move {
            assert_eq!(request.method(), "POST");
            assert_eq!(request.uri().path(), "/informer/incoming-request");
            let authorization = request.headers().get(AUTHORIZATION);
            let authorization = authorization.map(|value| value.to_str().unwrap().to_owned());
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let body = serde_json::from_slice(&body).unwrap();
            let act = acts.lock().unwrap().pop_front();
            let _ = tell
                .send(Heard {
                    authorization,
                    body,
                })
                .await;
            let status = match act.unwrap_or(Act::Answer(StatusCode::OK)) {
                Act::Hang => pending().await,
                Act::Answer(status) => status,
            };
            let body = Full::new(Bytes::from_static(br#"{"message":"ok"}"#));
            let mut response = Response::new(body);
            *response.status_mut() = status;
            Ok::<_, Infallible>(response)
        }
    };
    tokio::spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let service = service_fn(answer.clone());
            connections.spawn(async move {
                let stream = TokioIo::new(stream);
                let _ = http1::Builder::new()
                    .serve_connection(stream, service)
                    .await;
            });
        }
    });
    heard
}

fn client(address: SocketAddr, token: &std::path::Path) -> OperatorClient {
    let url = format!("http://{address}").parse().unwrap();
    let client = OperatorClient::new(&url, token.to_owned()).unwrap();
    client.with_patience(GIVEN_UP, PATIENCE)
}

async fn next(heard: &mut mpsc::Receiver<Heard>) -> Heard {
    let heard = timeout(PATIENCE, heard.recv()).await;
    heard.expect("a signal in time").expect("a server")
}

#[tokio::test]
async fn a_signal_is_repeated_until_it_is_answered_and_while_it_is_wanted() {
    let directory = tempfile::tempdir().unwrap();
    let token = directory.path().join("token");
    // A port on which nobody listens yet, and nobody else will.
    let address = SocketAddr::from(([127, 0, 0, 1], weir_lab::ports::free()));

    let metrics = Metrics::new();
    let (answered, mut answers) = mpsc::channel(100);
    let (stop, stopped) = oneshot::channel::<()>();
    let (wake, running) = Wake::spawn(
        client(address, &token),
        WakeSettings { retry: RETRY },
        Arc::clone(&metrics),
        Arc::new(move |id| {
            let _ = answered.try_send(id.clone());
        }),
        None,
        async {
            let _ = stopped.await;
        },
    );
    let web = ServiceId::new("shop", "web");
    wake.want(&web, 1);
    wake.want(&web, 7);
    weir_lab::eventually(PATIENCE, "a signal finds nobody", || async {
        match metrics.render() {
            text if text.contains(r#"rpc_count{error="unreachable"}"#) => Ok(()),
            text => Err(text),
        }
    })
    .await;

    let listener = TcpListener::bind(address).await.unwrap();
    let failing = Act::Answer(StatusCode::INTERNAL_SERVER_ERROR);
    let refusing = Act::Answer(StatusCode::UNAUTHORIZED);
    let mut heard = operator(listener, &[Act::Hang, failing, refusing]);
    let first = next(&mut heard).await;
    let body = json!({"count": 7, "svc": "web", "namespace": "shop"});
    assert_eq!((first.body, first.authorization), (body.clone(), None));
    // A token that appears later is used from then on, without the line end of its file.
    std::fs::write(&token, "secret\n").unwrap();
    next(&mut heard).await;
    let third = next(&mut heard).await;
    assert_eq!(third.authorization.as_deref(), Some("Bearer secret"));
    assert_eq!(
        next(&mut heard).await.body,
        body,
        "the one that is answered"
    );
    let told = timeout(PATIENCE, answers.recv()).await.unwrap();
    assert_eq!(told.as_ref(), Some(&web));
    assert_eq!(next(&mut heard).await.body, body, "still wanted, so again");

    // Settled: others are signalled again and again meanwhile, this one is not.
    wake.settled(&web);
    let other = ServiceId::new("shop", "other");
    wake.want(&other, 1);
    let mut others = 0;
    while others < 3 {
        let is_other = next(&mut heard).await.body["svc"] == "other";
        assert!(is_other || others < 1, "web is settled");
        others += u8::from(is_other);
    }
    let text = metrics.render();
    for error in ["", "timeout", "status", "unauthorized", "unreachable"] {
        assert!(
            text.contains(&format!("rpc_count{{error=\"{error}\"}}")),
            "{error}: {text}"
        );
    }
    stop.send(()).unwrap();
    timeout(PATIENCE, running).await.unwrap().unwrap();
}

#[tokio::test]
async fn signals_of_many_services_go_out_beside_each_other_but_not_all_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut heard = operator(listener, &[Act::Hang; 64]);
    let nowhere = std::path::Path::new("/nowhere/token");
    let patient = client(address, nowhere).with_patience(PATIENCE, PATIENCE);
    let (wake, running) = Wake::spawn(
        patient,
        WakeSettings { retry: RETRY },
        Metrics::new(),
        Arc::new(|_| {}),
        None,
        pending(),
    );
    for number in 0..100 {
        wake.want(&ServiceId::new("shop", &format!("s{number}")), 1);
    }
    // All that are let out hang, and nothing goes out beyond them.
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..64 {
        let body = next(&mut heard).await.body;
        assert!(seen.insert(body["svc"].to_string()), "twice: {body}");
    }
    assert!(heard.try_recv().is_err(), "a 65th signal");
    running.abort();
}

/// As when the Service leads to two operators, and the node of one was lost.
#[tokio::test]
async fn a_signal_without_an_answer_is_sent_again_beside_the_first() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut heard = operator(listener, &[Act::Hang, Act::Hang]);
    let nowhere = std::path::Path::new("/nowhere/token");
    let another_after = Duration::from_millis(20);
    let client = client(address, nowhere).with_patience(PATIENCE, another_after);
    let web = ServiceId::new("shop", "web");
    client.signal(&web, 1).await.unwrap();
    for _ in 0..3 {
        next(&mut heard).await;
    }

    // But not for ever, nor more than some at a time.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut heard = operator(listener, &[Act::Hang; 100]);
    let client = self::client(address, nowhere).with_patience(GIVEN_UP, another_after);
    assert!(client.signal(&web, 1).await.is_err());
    let mut count = 0;
    while heard.try_recv().is_ok() {
        count += 1;
    }
    assert!((1..=4).contains(&count), "{count}");
}

/// Notes who is to be woken, and says that it was.
struct Notes(mpsc::Sender<ServiceId>);

impl Wakes for Notes {
    fn wake(&self, service: ServiceId) -> BoxFuture<'static, Result<bool, ScaleError>> {
        let tell = self.0.clone();
        async move {
            let _ = tell.send(service).await;
            Ok(true)
        }
        .boxed()
    }
}

/// One that may wake by itself after this time, and whom it wakes.
fn allowed(
    address: SocketAddr,
    after: Duration,
) -> (WakeHandle, JoinHandle<()>, mpsc::Receiver<ServiceId>) {
    let (tell, woken) = mpsc::channel(100);
    let nowhere = std::path::Path::new("/nowhere/token");
    let (wake, running) = Wake::spawn(
        client(address, nowhere),
        WakeSettings { retry: RETRY },
        Metrics::new(),
        Arc::new(|_| {}),
        Some(ByOurselves {
            after,
            wakes: Arc::new(Notes(tell)),
        }),
        pending(),
    );
    (wake, running, woken)
}

#[tokio::test]
async fn where_no_operator_answers_a_service_is_woken_without_one_while_it_is_wanted() {
    let after = Duration::from_millis(300);
    let address = SocketAddr::from(([127, 0, 0, 1], weir_lab::ports::free()));
    let (wake, running, mut woken) = allowed(address, after);
    let web = ServiceId::new("shop", "web");
    let began = Instant::now();
    wake.want(&web, 1);
    let next = async |woken: &mut mpsc::Receiver<ServiceId>| {
        timeout(PATIENCE, woken.recv()).await.expect("it is woken")
    };
    assert_eq!(next(&mut woken).await.as_ref(), Some(&web));
    assert!(began.elapsed() >= after, "not at once");
    // It may have come to nothing.
    assert_eq!(next(&mut woken).await.as_ref(), Some(&web));

    wake.settled(&web);
    let other = ServiceId::new("shop", "other");
    wake.want(&other, 1);
    let mut others = 0;
    while others < 2 {
        let is_other = next(&mut woken).await.as_ref() == Some(&other);
        assert!(is_other || others < 1, "web is settled");
        others += u8::from(is_other);
    }
    running.abort();
}

#[tokio::test]
async fn an_operator_that_answers_is_left_to_it_also_when_it_refuses() {
    // Longer than a machine stalls: an answer that comes later is none.
    let after = Duration::from_secs(5);
    let is_left_to = async |status| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut heard = operator(listener, &[Act::Answer(status); 1000]);
        let (wake, running, mut woken) = allowed(address, after);
        wake.want(&ServiceId::new("shop", "web"), 1);
        let began = Instant::now();
        while began.elapsed() < after * 3 / 2 {
            next(&mut heard).await;
        }
        assert!(woken.try_recv().is_err(), "{status}");
        running.abort();
    };
    tokio::join!(
        is_left_to(StatusCode::OK),
        is_left_to(StatusCode::SERVICE_UNAVAILABLE)
    );
}
