//! Triggers asked of a server that does what a real Prometheus seldom does. The real one is in
//! `on_cluster`.

pub(crate) mod asker;
mod server;

use std::time::Duration;

use serde_json::{Value, json};
use weir_hold::facts::Triggers;
use weir_operator::elasti_service::triggers::{Secret, TriggerSettings, Verdict, client::Client};

use self::{asker::Asker, server::Server};

/// Longer than any test: what happens by then happened at once, or in the first round.
const LONG: Duration = Duration::from_hours(1);
const SHORT: Duration = Duration::from_millis(50);

fn settings(polling_interval: Duration) -> TriggerSettings {
    TriggerSettings {
        polling_interval,
        default_address: None,
        default_authorization: None,
    }
}

/// For a machine with much else to do.
fn patient() -> Client {
    Client::new().with_timeout(Duration::from_mins(1))
}

fn asked_at(address: &str) -> Value {
    json!({"query": "q", "threshold": "1", "serverAddress": address})
}

#[tokio::test]
async fn what_is_not_one_number_is_unknown_and_says_why() {
    let server = Server::start().await;
    let mut asker = Asker::start(patient(), settings(LONG));
    for (path, why, outcome) in [
        (
            "says/NaN",
            "the result is NaN, which cannot be compared",
            "not_a_number",
        ),
        (
            "says/+Inf",
            "the result is +Inf, which cannot be compared",
            "not_a_number",
        ),
        (
            "empty",
            "the result is empty; add `or vector(0)` if that means idle",
            "empty",
        ),
        (
            "several",
            "the result has 2 series where one is needed; add `sum(…)` around it",
            "several",
        ),
        (
            "page",
            "the answer is not one of Prometheus; see whether the address is right",
            "malformed",
        ),
        (
            "bad",
            "Prometheus answers 400 Bad Request: unknown function",
            "status",
        ),
        (
            "broken",
            "Prometheus answers 500 Internal Server Error",
            "status",
        ),
        (
            "closed",
            "Prometheus refuses us with 401 Unauthorized; see metadata.headers",
            "unauthorized",
        ),
        (
            "redirect",
            "307 Temporary Redirect leads elsewhere, which is not followed; give the address that answers itself",
            "redirect",
        ),
        ("huge", "the answer is longer than 1024 KiB", "too_long"),
        ("endless", "the answer is longer than 1024 KiB", "too_long"),
    ] {
        let address = server.address(path);
        asker.set(path, &[asked_at(&address)]);
        let verdict = asker.until(path, has_been_asked).await;
        assert_eq!(verdict.triggers, Triggers::Unknown, "{path}");
        let expected = format!("`q` at {address}: {why}");
        assert_eq!(verdict.why.as_deref(), Some(expected.as_str()));
        assert!(asker.outcomes().contains(&outcome), "{outcome}");
    }
}

#[tokio::test]
async fn a_server_has_only_so_long_from_the_first_byte_to_the_last() {
    let server = Server::start().await;
    let client = Client::new().with_timeout(Duration::from_millis(500));
    let mut asker = Asker::start(client, settings(LONG));
    for path in ["slow", "drip"] {
        asker.set(path, &[asked_at(&server.address(path))]);
        let slow = asker.until(path, has_been_asked).await;
        assert_eq!(slow.triggers, Triggers::Unknown);
        let why = slow.why.unwrap_or_default();
        let part = ": no answer within 0.5 s; see whether Prometheus is overloaded";
        assert!(why.ends_with(part), "{why}");
        assert!(asker.outcomes().contains(&"timeout"));
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_and_a_server_that_is_not_there() {
    let server = Server::start().await;
    let mut asker = Asker::start(patient(), settings(LONG));
    for (answer, why) in [
        ("", "Prometheus cannot be reached ("),
        ("FTP", "Prometheus cannot be reached ("),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"status\":",
            "the answer breaks off (",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"sta",
            "the answer breaks off (",
        ),
    ] {
        let (address, listens) = server::blunt(answer).await;
        asker.set("cut", &[asked_at(&format!("http://{address}"))]);
        let cut = asker.until("cut", has_been_asked).await;
        assert_eq!(cut.triggers, Triggers::Unknown);
        let said = cut.why.unwrap_or_default();
        assert!(said.contains(why), "{said}");
        listens.abort();
    }

    let address = server.stop().await;
    asker.set(
        "gone",
        &[asked_at(&format!("http://me:secret@{address}/x"))],
    );
    let gone = asker.until("gone", has_been_asked).await;
    assert_eq!(
        gone.why.unwrap_or_default(),
        format!(
            "`q` at http://{address}/x: Prometheus cannot be reached (Connection refused (os error 111)); \
             see whether the address is right and it runs"
        ),
    );
    let outcomes = asker.outcomes();
    assert!(
        outcomes.contains(&"cut") && outcomes.contains(&"unreachable"),
        "{outcomes:?}"
    );
}

#[tokio::test]
async fn a_value_that_changes_is_told() {
    let server = Server::start().await;
    let mut asker = Asker::start(patient(), settings(SHORT));
    server.set_value("0.99");
    asker.set("a", &[asked_at(&server.address("value"))]);
    for (value, triggers) in [
        ("0.99", Triggers::Idle),
        ("1", Triggers::Busy),
        ("0", Triggers::Idle),
        ("-1", Triggers::Busy),
        ("-0.5", Triggers::Idle),
        ("NaN", Triggers::Unknown),
        ("0", Triggers::Idle),
    ] {
        server.set_value(value);
        asker
            .until("a", |verdict| verdict.triggers == triggers)
            .await;
    }
    // Prometheus was not up all the time.
    server.set_uptime("0");
    let verdict = asker
        .until("a", |verdict| verdict.triggers == Triggers::Unknown)
        .await;
    let why = verdict.why.unwrap_or_default();
    assert!(why.contains("was not up for the whole cooldown"), "{why}");
    // Which does not matter to one that is busy.
    server.set_value("7");
    asker
        .until("a", |verdict| verdict.triggers == Triggers::Busy)
        .await;
}

#[tokio::test]
async fn one_that_is_busy_is_enough() {
    let server = Server::start().await;
    let mut asker = Asker::start(patient(), settings(LONG));
    let idle = asked_at(&server.address("says/0"));
    let busy = asked_at(&server.address("says/5"));
    let broken = asked_at(&server.address("broken"));
    for (name, metadata, triggers) in [
        (
            "a",
            vec![idle.clone(), broken.clone(), busy],
            Triggers::Busy,
        ),
        ("b", vec![idle.clone(), broken], Triggers::Unknown),
        ("c", vec![idle.clone(), idle], Triggers::Idle),
        ("d", vec![], Triggers::Absent),
    ] {
        asker.set(name, &metadata);
        asker
            .until(name, |verdict| verdict.triggers == triggers)
            .await;
    }
}

#[tokio::test]
async fn questions_arrive_as_they_are_meant_to() {
    let server = Server::start().await;
    let settings = TriggerSettings {
        default_address: Some(server.address("says/0/")),
        default_authorization: Some(Secret::new("Bearer default")),
        ..settings(LONG)
    };
    let mut asker = Asker::start(patient(), settings);
    let query = "sum(rate(http_requests_total{code=~\"2..|3..\"}[1m])) + 1 & π %";
    asker.set(
        "a",
        &[json!({
            "query": query,
            "threshold": 1,
            "uptimeFilter": "job=\"p\"",
            "headers": {"X-Scope-OrgID": "tenant 1"},
        })],
    );
    asker
        .until("a", |verdict| verdict.triggers == Triggers::Idle)
        .await;
    // A server that takes GET alone, with a way of its own to know us.
    let own = json!({
        "query": query,
        "threshold": 1,
        "serverAddress": server.address("only-get"),
        "headers": {"authorization": "Basic own"},
    });
    asker.set("b", &[own]);
    asker
        .until("b", |verdict| verdict.triggers == Triggers::Idle)
        .await;

    let heard = server.heard();
    let told: Vec<[&str; 5]> = heard.iter().map(server::Heard::as_texts).collect();
    let path = "/says/0/api/v1/query";
    let uptime = |filter: &str| format!("min_over_time((max(up{{{filter}}}) or vector(0))[900s:])");
    let (own, default) = (uptime("job=\"p\""), uptime("container=\"prometheus\""));
    let get = "/only-get/api/v1/query";
    for expected in [
        ["POST", path, query, "Bearer default", "tenant 1"],
        ["POST", path, &own, "Bearer default", "tenant 1"],
        ["POST", get, query, "Basic own", ""],
        ["GET", get, query, "Basic own", ""],
        ["GET", get, &default, "Basic own", ""],
    ] {
        assert!(
            told.contains(&expected),
            "{expected:?} is not among {told:?}"
        );
    }
}

#[tokio::test]
async fn a_hundred_services_with_one_question_ask_it_once() {
    let server = Server::start().await;
    let mut asker = Asker::start_asleep(patient(), settings(LONG));
    let names: Vec<String> = (0..100).map(|number| format!("service-{number}")).collect();
    for name in &names {
        asker.set(name, &[asked_at(&server.address("says/0"))]);
    }
    assert!(
        server.heard().is_empty(),
        "nothing is asked before it is on"
    );
    asker.board.set_active(true);
    for name in &names {
        asker
            .until(name, |verdict| verdict.triggers == Triggers::Idle)
            .await;
    }
    let heard = server.heard();
    assert_eq!(heard.len(), 2, "{heard:?}");
}

#[tokio::test]
async fn not_all_are_asked_at_the_same_time() {
    let server = Server::start().await;
    let mut asker = Asker::start_asleep(patient(), settings(LONG));
    let names: Vec<String> = (0..120).map(|number| format!("service-{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        let mut metadata = asked_at(&server.address(&format!("gate/{}", number % 3)));
        metadata["query"] = json!(format!("q{number}"));
        asker.set(name, &[metadata]);
    }
    asker.board.set_active(true);
    server.until_under_way(32).await;
    server.open_gate();
    for name in &names {
        asker
            .until(name, |verdict| verdict.triggers == Triggers::Idle)
            .await;
    }
    assert_eq!(server.most_under_way(), 32);
}

#[tokio::test]
async fn one_server_that_hangs_does_not_stop_the_others() {
    let server = Server::start().await;
    let mut asker = Asker::start_asleep(patient(), settings(LONG));
    for number in 0..64 {
        let mut metadata = asked_at(&server.address("gate/0"));
        metadata["query"] = json!(format!("q{number}"));
        asker.set(&format!("stuck-{number}"), &[metadata]);
    }
    asker.set("lucky", &[asked_at(&server.address("says/0"))]);
    asker.board.set_active(true);
    asker
        .until("lucky", |verdict| verdict.triggers == Triggers::Idle)
        .await;
    server.until_under_way(16).await;
    // What is under way ends with the work behind the board.
    asker.stop().await;
    server.until_under_way(0).await;
}

#[tokio::test]
async fn an_answer_grows_too_old_to_be_believed() {
    let server = Server::start().await;
    let client = Client::new().with_timeout(Duration::from_secs(1));
    let mut asker = Asker::start(client, settings(SHORT));
    asker.set("a", &[asked_at(&server.address("value"))]);
    asker
        .until("a", |verdict| verdict.triggers == Triggers::Idle)
        .await;
    asker.stop().await;
    // Nobody asks any more, and nobody tells: what is read changes all the same.
    asker.reads("a", Triggers::Unknown).await;
}

fn has_been_asked(verdict: &Verdict) -> bool {
    verdict.triggers != Triggers::Unknown || verdict.why.is_some()
}
