//! What may answer on an exporter's port, from real servers on loopback.

mod secure;

use std::{future::pending, io::Read, net::Ipv4Addr, time::Duration};

use axum::{Router, extract::RawQuery, http::StatusCode, response::Redirect, routing::get};
use tokio::{net::TcpListener, select};
use weir_operator::{
    settings::exporters::{ExporterSettings, Where},
    traffic_watch::exporters::{Answer, Exporters, ScrapeError},
};
use weir_place::exposition::{BODY_LIMIT, ExpositionError};
use weir_role::internal_port;

const COUNTERS: &str = "node_network_transmit_bytes_total{device=\"eth0\"} 7\n";

/// Asks without TLS and without a token.
fn plain() -> Exporters {
    Exporters::new(&ExporterSettings {
        place: Where::Nodes(9810),
        tls: None,
        token: None,
    })
    .unwrap()
}

async fn ask(metrics: Router, is_plain: bool) -> Result<Answer, ScrapeError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(internal_port::serve(listener, metrics, pending()));
    plain().ask(Some(address), is_plain).await
}

fn says(body: impl Into<String>) -> Router {
    let body = body.into();
    Router::new().route("/metrics", get(async || body))
}

#[tokio::test]
async fn an_exporter_is_asked_for_what_is_read() {
    let echo = async |RawQuery(query): RawQuery| {
        assert_eq!(
            query.as_deref(),
            Some("collect[]=netdev&collect[]=netclass")
        );
        COUNTERS
    };
    let answer = ask(Router::new().route("/metrics", get(echo)), false)
        .await
        .unwrap();
    assert_eq!(answer.scrape.interfaces["eth0"].transmit, Some(7));
    assert!(!answer.is_plain);
}

#[tokio::test]
async fn one_without_a_collector_is_asked_for_everything() {
    let picky = async |RawQuery(query): RawQuery| match query {
        Some(_) => (StatusCode::BAD_REQUEST, "disabled collector: netclass"),
        None => (StatusCode::OK, COUNTERS),
    };
    let answer = ask(Router::new().route("/metrics", get(picky)), false).await;
    assert!(answer.unwrap().is_plain, "it is remembered");
    let plain = async |RawQuery(query): RawQuery| {
        assert_eq!(query, None, "it is not asked again");
        COUNTERS
    };
    let answer = ask(Router::new().route("/metrics", get(plain)), true).await;
    assert!(answer.unwrap().is_plain);
}

#[tokio::test]
async fn what_is_no_exporter_is_named() {
    let page = ask(says("<html></html>"), false).await.unwrap_err();
    assert!(
        matches!(page, ScrapeError::Content(ExpositionError::WebPage)),
        "{page}"
    );
    let long = ask(says("#".repeat(BODY_LIMIT + 1)), false)
        .await
        .unwrap_err();
    assert!(
        matches!(long, ScrapeError::Content(ExpositionError::TooLong)),
        "{long}"
    );
    let elsewhere = Router::new()
        .route("/metrics", get(async || Redirect::temporary("/other")))
        .route("/other", get(async || COUNTERS));
    let elsewhere = ask(elsewhere, false).await.unwrap_err();
    assert_eq!(elsewhere.reason(), "status", "no redirect is followed");
    let nothing = ask(Router::new(), false).await.unwrap_err();
    assert_eq!(nothing.reason(), "status");
}

#[tokio::test]
async fn one_that_never_answers_is_given_up() {
    let silent = Router::new().route("/metrics", get(async || pending::<&str>().await));
    let silent = ask(silent, false).await.unwrap_err();
    assert_eq!(silent.reason(), "timeout");
}

/// Questions are counted so that no more files are open than may be: one that is over must not leave one open, not even until
/// some task runs.
#[tokio::test]
async fn what_is_given_up_is_closed_at_once() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let exporters = plain();
    let asked = async {
        let (stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            stream.readable().await.unwrap();
            // What is not there yet is waited for again.
            let _ = stream.try_read_buf(&mut head);
        }
        stream
    };
    let stream = select! {
        answer = exporters.ask(Some(address), false) => panic!("nobody has answered: {answer:?}"),
        stream = asked => stream,
    };
    // From here on no other task runs: this blocks.
    let mut stream = stream.into_std().unwrap();
    stream.set_nonblocking(false).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    let read = stream.read(&mut [0]);
    assert_eq!(read.expect("its end"), 0);
}

#[tokio::test]
async fn nobody_there_is_said() {
    let address = (Ipv4Addr::LOCALHOST, weir_lab::ports::free()).into();
    let exporters = plain();
    let nobody = exporters.ask(Some(address), false).await;
    assert_eq!(nobody.unwrap_err().reason(), "unreachable");
    let nowhere = exporters.ask(None, false).await;
    assert_eq!(nowhere.unwrap_err().reason(), "no_address");
}
