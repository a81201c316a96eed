//! A server that answers as the path in its address says.

use std::{
    convert::Infallible,
    future::pending,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::stream;
use http::{Method, StatusCode, header::LOCATION};
use http_body_util::BodyExt;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::watch,
    task::JoinHandle,
    time::{sleep, timeout},
};

const PATIENCE: Duration = Duration::from_mins(1);

pub(super) struct Server {
    listens: SocketAddr,
    state: Arc<Told>,
    task: JoinHandle<()>,
}

/// A request that came.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    method: String,
    path: String,
    query: String,
    authorization: String,
    tenant: String,
}

/// What the server is told to do, and what it saw.
struct Told {
    value: Mutex<String>,
    uptime: Mutex<String>,
    heard: Mutex<Vec<Heard>>,
    gate: watch::Sender<bool>,
    under_way: watch::Sender<usize>,
    most_under_way: AtomicUsize,
}

/// Counts a request while it waits at the gate, however that ends.
struct AtGate(Arc<Told>);

/// Listens, reads what comes and answers this, each time; then it closes the connection.
pub(super) async fn blunt(answer: &'static str) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listens = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (listens, task)
}

impl Server {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listens = listener.local_addr().unwrap();
        let state = Arc::new(Told {
            value: Mutex::new("0".to_owned()),
            uptime: Mutex::new("1".to_owned()),
            heard: Mutex::default(),
            gate: watch::Sender::new(false),
            under_way: watch::Sender::new(0),
            most_under_way: AtomicUsize::new(0),
        });
        let router = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&state));
        let task = tokio::spawn(weir_role::internal_port::serve(listener, router, pending()));
        Self {
            listens,
            state,
            task,
        }
    }

    pub(super) fn address(&self, path: &str) -> String {
        format!("http://{}/{path}", self.listens)
    }

    pub(super) fn set_value(&self, value: &str) {
        value.clone_into(&mut self.state.value.lock().unwrap());
    }

    pub(super) fn set_uptime(&self, value: &str) {
        value.clone_into(&mut self.state.uptime.lock().unwrap());
    }

    pub(super) fn heard(&self) -> Vec<Heard> {
        self.state.heard.lock().unwrap().clone()
    }

    pub(super) fn open_gate(&self) {
        self.state.gate.send_replace(true);
    }

    pub(super) async fn until_under_way(&self, count: usize) {
        let mut under_way = self.state.under_way.subscribe();
        let so_many = under_way.wait_for(|under_way| *under_way == count);
        timeout(PATIENCE, so_many).await.expect("in time").unwrap();
    }

    pub(super) fn most_under_way(&self) -> usize {
        self.state.most_under_way.load(Ordering::SeqCst)
    }

    /// Ends it. Where nobody listens any more.
    pub(super) async fn stop(mut self) -> SocketAddr {
        self.task.abort();
        let _ = (&mut self.task).await;
        self.listens
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Heard {
    pub(super) fn as_texts(&self) -> [&str; 5] {
        [
            &self.method,
            &self.path,
            &self.query,
            &self.authorization,
            &self.tenant,
        ]
    }
}

impl AtGate {
    fn new(told: &Arc<Told>) -> Self {
        told.under_way.send_modify(|count| *count += 1);
        let now = *told.under_way.borrow();
        told.most_under_way.fetch_max(now, Ordering::SeqCst);
        Self(Arc::clone(told))
    }
}

impl Drop for AtGate {
    fn drop(&mut self) {
        self.0.under_way.send_modify(|count| *count -= 1);
    }
}

async fn answer(State(told): State<Arc<Told>>, request: Request) -> Response {
    let heard = hear(request).await;
    told.heard.lock().unwrap().push(heard.clone());
    let way = heard.path.trim_start_matches('/');
    let way = way.strip_suffix("/api/v1/query").unwrap_or_default();
    if heard.query.starts_with("min_over_time") && !way.starts_with("gate") {
        if way == "only-get" && heard.method != "GET" {
            return StatusCode::METHOD_NOT_ALLOWED.into_response();
        }
        let uptime = told.uptime.lock().unwrap().clone();
        return vector(&[&uptime]);
    }
    match way {
        "value" => {
            let value = told.value.lock().unwrap().clone();
            vector(&[&value])
        }
        "empty" => vector(&[]),
        "several" => vector(&["0", "0"]),
        "page" => "<html>welcome</html>".into_response(),
        "bad" => {
            let error =
                json!({"status": "error", "errorType": "bad_data", "error": "unknown function"});
            (StatusCode::BAD_REQUEST, error.to_string()).into_response()
        }
        "broken" => (StatusCode::INTERNAL_SERVER_ERROR, "out of order").into_response(),
        "closed" => StatusCode::UNAUTHORIZED.into_response(),
        "redirect" => {
            let there = [(LOCATION, "/says/0/api/v1/query")];
            (StatusCode::TEMPORARY_REDIRECT, there).into_response()
        }
        "huge" => " ".repeat(1024 * 1024 + 1).into_response(),
        "endless" => {
            let spaces = stream::repeat(Ok::<_, Infallible>(Bytes::from_static(&[b' '; 4096])));
            Body::from_stream(spaces).into_response()
        }
        "slow" => pending().await,
        "drip" => {
            let drop = |()| async {
                sleep(Duration::from_millis(100)).await;
                Some((Ok::<_, Infallible>(Bytes::from_static(b" ")), ()))
            };
            Body::from_stream(stream::unfold((), drop)).into_response()
        }
        "only-get" if heard.method == "GET" => vector(&["0"]),
        "only-get" => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        way if way.starts_with("gate/") => {
            let _counted = AtGate::new(&told);
            let mut gate = told.gate.subscribe();
            let _ = gate.wait_for(|open| *open).await;
            vector(&[if heard.query.starts_with("min_over_time") {
                "1"
            } else {
                "0"
            }])
        }
        way => match way.strip_prefix("says/") {
            Some(value) => vector(&[value]),
            None => StatusCode::NOT_FOUND.into_response(),
        },
    }
}

fn vector(values: &[&str]) -> Response {
    let sample = |value: &&str| json!({"metric": {}, "value": [1_700_000_000.123, value]});
    let result: Vec<_> = values.iter().map(sample).collect();
    let data = json!({"resultType": "vector", "result": result});
    axum::Json(json!({"status": "success", "data": data})).into_response()
}

async fn hear(request: Request) -> Heard {
    let (parts, body) = request.into_parts();
    let header = |name: &str| {
        let value = parts.headers.get(name);
        value.map_or(String::new(), |value| value.to_str().unwrap().to_owned())
    };
    let form = if parts.method == Method::GET {
        parts.uri.query().unwrap_or_default().to_owned()
    } else {
        let body = body.collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    };
    // As a browser's form: read by a library, not by what wrote it.
    let uri = format!("http://any/?{form}").parse().unwrap();
    let form: axum::extract::Query<Vec<(String, String)>> =
        axum::extract::Query::try_from_uri(&uri).unwrap();
    let query = form.0.into_iter().find(|(name, _)| name == "query");
    Heard {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query: query.unwrap().1,
        authorization: header("authorization"),
        tenant: header("x-scope-orgid"),
    }
}
