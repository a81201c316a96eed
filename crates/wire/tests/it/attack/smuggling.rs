//! Requests that we and the endpoint could understand differently: refused, or made unmistakable.

use std::{sync::Arc, time::Duration};

use tokio::{io::AsyncWriteExt, time::timeout};

use crate::{
    bed::{Bed, PATIENCE},
    endpoint::{Recorder, Seen},
};

/// What is to become of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// An error, the end of the connection, and no whole request at the endpoint.
    Refused,
    /// One request at the endpoint, by the letter, with this body; and the connection is in step afterwards, or closed.
    Served(&'static str),
    /// The same, and the connection must be closed.
    ServedAndClosed(&'static str),
}

use Fate::{Refused, Served, ServedAndClosed};

/// What must never be a request of its own.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

/// `POST /first` with these header lines and this body.
fn post(lines: &str, body: &str) -> String {
    format!("POST /first HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n{body}")
}

fn chunked(body: &str) -> String {
    post("Transfer-Encoding: chunked", body)
}

/// As [`chunked`], with something that must not be understood after it.
fn bad_chunk(body: &str) -> String {
    chunked(&format!("{body}\r\n12345\r\n0\r\n\r\n{SMUGGLED}"))
}

type Case = (&'static str, String, Fate);

/// No chunks, and then what would be the next request.
fn no_chunks() -> String {
    format!("0\r\n\r\n{SMUGGLED}")
}

/// Lines of a head.
fn lines() -> Vec<Case> {
    let lines = [
        (
            "CL and TE",
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            ServedAndClosed(""),
        ),
        (
            "TE and CL",
            "Transfer-Encoding: chunked\r\nContent-Length: 5",
            ServedAndClosed(""),
        ),
        (
            "CL twice, different",
            "Content-Length: 5\r\nContent-Length: 50",
            Refused,
        ),
        ("CL as a list", "Content-Length: 5, 50", Refused),
        ("CL with a sign", "Content-Length: +5", Refused),
        ("CL below zero", "Content-Length: -5", Refused),
        ("CL in hexadecimal", "Content-Length: 0x5", Refused),
        ("CL with a blank in it", "Content-Length: 5 0", Refused),
        (
            "CL too large",
            "Content-Length: 99999999999999999999999",
            Refused,
        ),
        (
            "CL that overflows",
            "Content-Length: 18446744073709551615",
            Refused,
        ),
        ("CL without a value", "Content-Length:", Refused),
        ("a blank before CL's colon", "Content-Length : 5", Refused),
        (
            "a blank before TE's colon",
            "Content-Length: 5\r\nTransfer-Encoding : chunked",
            Refused,
        ),
        ("TE of another kind", "Transfer-Encoding: xchunked", Refused),
        (
            "TE with more after chunked",
            "Transfer-Encoding: chunked, identity",
            Refused,
        ),
        (
            "TE with more before chunked",
            "Transfer-Encoding: gzip, chunked",
            Refused,
        ),
        (
            "TE twice",
            "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
            Refused,
        ),
        (
            "TE twice, the other way",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
            Refused,
        ),
        (
            "TE with a vertical tab",
            "Transfer-Encoding: \u{b}chunked",
            Refused,
        ),
        ("TE folded", "Transfer-Encoding:\r\n chunked", Refused),
        ("a folded line", "X-A: b\r\n Content-Length: 50", Refused),
        ("a NUL in a value", "X-A: a\0b", Refused),
        ("a NUL in a name", "X-\0A: b", Refused),
        ("CR alone in a value", "X-A: b\rContent-Length: 50", Refused),
        ("CR alone before the colon", "X-A\r: b", Refused),
        ("a line without a colon", "X-A", Refused),
        ("a name without letters", ": b", Refused),
        ("a blank in a name", "X A: b", Refused),
        ("two Hosts", "Host: b", Refused),
    ];
    let case = |(name, lines, fate)| (name, post(lines, &no_chunks()), fate);
    lines.map(case).to_vec()
}

/// Sizes of a chunk.
fn sizes() -> Vec<Case> {
    let sizes = [
        ("a chunk with a sign", "+5"),
        ("a chunk below zero", "-5"),
        ("a chunk with 0x", "0x5"),
        ("a blank before a chunk", " 5"),
        ("a tab before a chunk", "\t5"),
        ("a chunk without a size", ""),
        ("a chunk with an underscore", "0_5"),
        ("a chunk that overflows", "FFFFFFFFFFFFFFFFF"),
        ("a chunk that overflows to 5", "10000000000000005"),
        ("an extension with LF alone", "5;a\n"),
        ("an extension with CR alone", "5;a\rb"),
        ("a size of two words", "5 5"),
    ];
    let case = |(name, size)| (name, bad_chunk(size), Refused);
    sizes.map(case).to_vec()
}

fn others() -> Vec<Case> {
    let chunks = no_chunks();
    let others = [
        (
            "chunks in HTTP/1.0",
            chunked(&chunks).replacen("1.1", "1.0", 1),
            Refused,
        ),
        (
            "a chunk longer than it says",
            chunked(&format!("5\r\n123456\r\n{chunks}")),
            Refused,
        ),
        (
            "LF alone after a size",
            chunked(&format!("5\n12345\r\n{chunks}")),
            Refused,
        ),
        (
            "LF alone after a chunk",
            chunked(&format!("5\r\n12345\n{chunks}")),
            Refused,
        ),
        (
            "a line before the head",
            format!(" Host: b\r\n{}", post("X-A: b", "")),
            Refused,
        ),
        (
            "a folded first line",
            post("X-A: b", &chunks).replacen("Host", " Host", 1),
            Refused,
        ),
        (
            "a blank in the path",
            post("X-A: b", "").replacen("/first", "/fir st", 1),
            Refused,
        ),
        (
            "no version",
            "POST /first\r\nHost: a\r\n\r\n".to_owned(),
            Refused,
        ),
        (
            "another version",
            post("X-A: b", "").replacen("1.1", "3.0", 1),
            Refused,
        ),
        (
            "a CL that is a body",
            post("Content-Length: 35", SMUGGLED),
            Served(SMUGGLED),
        ),
        (
            "CL twice, the same",
            post("Content-Length: 5\r\nContent-Length: 5", "12345"),
            Served("12345"),
        ),
        (
            "LF alone",
            post("X-A: b\r\nContent-Length: 5", "12345").replace("\r\n", "\n"),
            Served("12345"),
        ),
        (
            "an extension",
            chunked("5;a=b\r\n12345\r\n0\r\n\r\n"),
            Served("12345"),
        ),
        (
            "a blank after a size",
            chunked("5 \r\n12345\r\n0\r\n\r\n"),
            Served("12345"),
        ),
        (
            "zeros before a size",
            chunked("0005\r\n12345\r\n000\r\n\r\n"),
            Served("12345"),
        ),
        (
            "a length as a trailer",
            post(
                "Trailer: content-length\r\nTransfer-Encoding: chunked",
                "5\r\n12345\r\n0\r\nContent-Length: 50\r\n\r\n",
            ),
            Served("12345"),
        ),
    ];
    others.to_vec()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_smuggled_held_or_not() {
    let mut wrong = Vec::new();
    for (name, bytes, fate) in [lines(), sizes(), others()].concat() {
        for is_held in [false, true] {
            let trial = timeout(PATIENCE / 2, become_of(&bytes, is_held));
            let Ok(got) = trial.await else {
                wrong.push(format!(
                    "{name}, held: {is_held}: {fate:?}, but neither answer nor end"
                ));
                continue;
            };
            let is_right = match fate {
                Served(body) => matches!(&got, Ok((it, _)) if it == body),
                ServedAndClosed(body) => matches!(&got, Ok((it, true)) if it == body),
                Refused => got.is_err(),
            };
            if !is_right {
                wrong.push(format!("{name}, held: {is_held}: {fate:?}, but {got:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The body of the one request that the endpoint got and whether the connection was closed, or the status.
async fn become_of(bytes: &str, is_held: bool) -> Result<(String, bool), Option<u16>> {
    let recorder = Recorder::start().await;
    let bed = Bed::new();
    let mut client = bed.main.client().await;
    let endpoints = [recorder.endpoint.address];
    if is_held {
        // Woken by the request, if it is one.
        let backend = Arc::clone(&bed.main.backend);
        tokio::spawn(async move {
            while backend.line_state().waiting == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            backend.set_endpoints(&endpoints);
        });
    } else {
        bed.main.backend.set_endpoints(&endpoints);
    }
    client.send(bytes).await;
    let Some(answer) = client.try_answer(true).await else {
        assert!(recorder.seen().is_empty(), "{bytes:?}");
        return Err(None);
    };
    if answer.status != 200 {
        client.closed().await;
        assert!(recorder.seen().is_empty(), "{bytes:?}");
        return Err(Some(answer.status));
    }
    // In step: the next request is the next that the endpoint sees.
    let again = "GET /again HTTP/1.1\r\nHost: a\r\n\r\n";
    let _ = client.stream.write_all(again.as_bytes()).await;
    let next = client.try_answer(true).await;
    let seen = recorder.seen();
    let paths: Vec<&str> = seen.iter().map(|seen| &*seen.path).collect();
    if let Some(next) = &next {
        assert_eq!(next.status, 200, "{bytes:?}");
        assert_eq!(paths, ["/first", "/again"], "{bytes:?}");
    } else {
        assert_eq!(paths, ["/first"], "{bytes:?}");
    }
    assert!(seen.iter().all(has_no_forbidden_trailer), "{bytes:?}");
    let body = String::from_utf8(seen[0].body.clone()).unwrap();
    Ok((body, next.is_none()))
}

fn has_no_forbidden_trailer(seen: &Seen) -> bool {
    seen.header("trailer content-length").is_none()
}
