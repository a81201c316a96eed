//! What is heard in which bytes, and that it does not matter how they come.

use proptest::prelude::*;

use super::*;

const HTTP: Decision = Decision::Http;
const TLS: Decision = Decision::Raw(Raw::Tls);
const TCP: Decision = Decision::Raw(Raw::Tcp);

const METHODS: [&str; 14] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "CONNECT",
    "OPTIONS",
    "TRACE",
    "PATCH",
    "PROPFIND",
    "M-SEARCH",
    "VERSION-CONTROL",
    "BASELINE-CONTROL",
    "UPDATEREDIRECTREF",
];

fn heard(said: &[u8]) -> Decision {
    decide(Spoken::Unknown, said, false)
}

/// The decision when bytes come one by one, and how many it took.
fn bit_by_bit(said: &[u8]) -> (Decision, usize) {
    let decided = (0..=said.len()).map(|length| (heard(&said[..length]), length));
    let mut decided = decided.filter(|(decision, _)| *decision != Decision::Wait);
    decided.next().unwrap_or((Decision::Wait, said.len()))
}

#[test]
fn what_is_said_of_a_port_counts_for_more_than_what_is_said_on_it() {
    let hello = [22, 3, 1, 2, 0, 1];
    for (spoken, said, in_time, at_the_end) in [
        (Spoken::Http, &b""[..], HTTP, HTTP),
        (Spoken::Http, &hello, HTTP, HTTP),
        (Spoken::Tls, b"", Decision::Wait, Decision::Wait),
        (Spoken::Tls, b"G", TLS, TLS),
        (Spoken::Tls, &hello, TLS, TLS),
        (Spoken::Tcp, b"", Decision::Wait, TCP),
        (Spoken::Tcp, b"GET / HTTP/1.1\r\n", TCP, TCP),
        (Spoken::Tcp, &hello, TCP, TCP),
        (Spoken::Unknown, b"", Decision::Wait, TCP),
        (Spoken::Unknown, &hello, TLS, TLS),
    ] {
        assert_eq!(decide(spoken, said, false), in_time, "{spoken:?} {said:?}");
        assert_eq!(
            decide(spoken, said, true),
            at_the_end,
            "{spoken:?} {said:?}"
        );
    }
}

#[test]
fn first_words_are_understood() {
    for (said, expected) in [
        (&b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"[..], HTTP),
        (b"GET / HTTP/1.0\n\n", HTTP),
        (b"OPTIONS * HTTP/1.1\r\nhost: a\r\n", HTTP),
        (b"CONNECT example.com:443 HTTP/1.1\r\n", HTTP),
        (b"GET http://example.com/ HTTP/1.1\r\n", HTTP),
        (b"UPDATEREDIRECTREF HTTPS://example.com/ HTTP/1.1\r\n", HTTP),
        (b"POST /a/long/path/that/goes/on HTTP/1.1\r\n", HTTP),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", HTTP),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", TLS),
        (b"\x16\x03\x03\x00\x90\x01", TLS),
        // An alert, another message than the first, an older version, lengths that cannot be.
        (b"\x15\x03\x03\x00\x02\x02\x28", TCP),
        (b"\x16\x03\x03\x00\x90\x02", TCP),
        (b"\x16\x02", TCP),
        (b"\x16\x03\x03\x00\x02\x01", TCP),
        (b"\x16\x03\x03\xff\xff\x01", TCP),
        // PostgreSQL's request for TLS and its first message, Redis in both forms, SSH, AMQP, MongoDB, SMTP.
        (b"\0\0\0\x08\x04\xd2\x16\x2f", TCP),
        (b"\0\0\0\x54\0\x03\0\0user\0me\0", TCP),
        (b"*1\r\n$4\r\nPING\r\n", TCP),
        (b"PING\r\n", TCP),
        (b"GET key\r\n", TCP),
        (b"GET /key\r\n", TCP),
        (b"SSH-2.0-OpenSSH_9.2\r\n", TCP),
        (b"AMQP\0\0\x09\x01", TCP),
        (b"\x3f\0\0\0\x01\0\0\0\0\0\0\0\xd4\x07\0\0", TCP),
        (b"EHLO example.com\r\n", TCP),
        (b"get / HTTP/1.1\r\n", TCP),
        (b" / HTTP/1.1\r\n", TCP),
        (b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", TCP),
        (b"VERYVERYVERYLONGWORDS / HTTP/1.1\r\n", TCP),
    ] {
        let text = String::from_utf8_lossy(said);
        assert_eq!(bit_by_bit(said).0, expected, "{text:?}");
        assert_eq!(heard(said), expected, "{text:?} in one piece");
    }
}

/// What the fuzzer begins with stays good for something.
#[test]
fn every_seed_is_understood() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/sniff");
    let mut seeds: Vec<_> = std::fs::read_dir(directory).unwrap().flatten().collect();
    seeds.sort_by_key(std::fs::DirEntry::file_name);
    let heard = seeds.iter().map(|seed| {
        let said = std::fs::read(seed.path()).unwrap();
        (seed.file_name().into_string().unwrap(), heard(&said))
    });
    let expected = [
        ("alert", TCP),
        ("client_hello", TLS),
        ("http1", HTTP),
        ("http1_absolute", HTTP),
        ("http1_connect", HTTP),
        ("http1_star", HTTP),
        ("http2", HTTP),
        ("postgres", TCP),
        ("redis", TCP),
        ("ssh", TCP),
    ];
    let expected = expected.map(|(name, decision)| (name.to_owned(), decision));
    assert_eq!(heard.collect::<Vec<_>>(), expected);
}

#[test]
fn what_breaks_off_is_http_only_if_it_looks_like_it() {
    for (said, expected) in [
        (&b""[..], TCP),
        (b"G", TCP),
        (b"GET", TCP),
        (b"GET ", TCP),
        (b"GET http", TCP),
        (b"GET /", HTTP),
        (b"GET /index", HTTP),
        (b"PRI * HTTP/2.0", TCP),
        (b"\x16\x03\x01", TCP),
    ] {
        assert_eq!(heard(said), Decision::Wait, "{said:?}");
        assert_eq!(decide(Spoken::Unknown, said, true), expected, "{said:?}");
    }
}

fn spoken() -> impl Strategy<Value = Spoken> {
    prop_oneof![
        Just(Spoken::Http),
        Just(Spoken::Tls),
        Just(Spoken::Tcp),
        Just(Spoken::Unknown),
    ]
}

/// Any bytes, and such as come near to what is known.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let any = prop::collection::vec(any::<u8>(), 0..60);
    let near = (
        prop::sample::select(vec![
            &b"\x16\x03\x01\x02\0\x01"[..],
            b"GET / HTTP/1.1\r\n",
            b"GET http://a.example/ HTTP/1.1\r\n",
            PREFACE,
        ]),
        0..30_usize,
        any.clone(),
    );
    let near = near.prop_map(|(known, length, rest)| {
        let known = &known[..length.min(known.len())];
        [known, &rest].concat()
    });
    prop_oneof![any, near]
}

proptest! {
    #[test]
    fn it_does_not_matter_in_which_pieces_bytes_come(said in bytes(), more in bytes(), spoken in spoken()) {
        let first = decide(spoken, &said, false);
        if first != Decision::Wait {
            let all = [said, more].concat();
            prop_assert_eq!(decide(spoken, &all, false), first);
            prop_assert_eq!(decide(spoken, &all, true), first);
        }
    }

    #[test]
    fn some_bytes_are_enough(said in bytes()) {
        let (decision, length) = bit_by_bit(&said);
        prop_assert!(length <= ENOUGH);
        prop_assert!(decision != Decision::Wait || said.len() < ENOUGH);
    }

    #[test]
    fn at_the_end_everything_is_decided_but_silence_where_the_client_must_speak(
        said in bytes(),
        spoken in spoken(),
    ) {
        let decision = decide(spoken, &said, true);
        let is_silent_tls = spoken == Spoken::Tls && said.is_empty();
        prop_assert_eq!(decision == Decision::Wait, is_silent_tls);
    }

    #[test]
    fn every_request_line_is_http(
        method in prop::sample::select(METHODS.as_slice()),
        path in "[!-~]{0,40}",
        is_absolute in any::<bool>(),
        minor in 0..=1_u8,
    ) {
        let before = if is_absolute { "http://" } else { "/" };
        let line = format!("{method} {before}{path} HTTP/1.{minor}\r\nhost: a\r\n\r\n");
        prop_assert_eq!(bit_by_bit(line.as_bytes()).0, HTTP);
    }

    #[test]
    fn every_client_hello_is_tls(minor in 0..=4_u8, length in 40..=16_384_u16, rest in bytes()) {
        let [high, low] = length.to_be_bytes();
        let hello = [&[HANDSHAKE, 3, minor, high, low, CLIENT_HELLO], &*rest].concat();
        prop_assert_eq!(bit_by_bit(&hello), (TLS, 6));
    }
}
