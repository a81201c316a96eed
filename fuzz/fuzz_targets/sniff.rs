//! Any bytes as the first of a connection: what is decided of some of them stands whatever follows, no more than a few are
//! waited for, and HTTP and TLS are what a parser and the RFC call so.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_wire::sniff::{Decision, ENOUGH, Raw, Spoken, decide};

const TLS: Decision = Decision::Raw(Raw::Tls);

fuzz_target!(|said: &[u8]| {
    for spoken in [Spoken::Http, Spoken::Tls, Spoken::Tcp, Spoken::Unknown] {
        let in_time = decide(spoken, said, false);
        let at_the_end = decide(spoken, said, true);
        for length in 0..=said.len() {
            let decision = decide(spoken, &said[..length], false);
            if decision != Decision::Wait {
                assert_eq!(
                    (decision, decision),
                    (in_time, at_the_end),
                    "{spoken:?}, {length}"
                );
            }
        }
        let is_silent_tls = spoken == Spoken::Tls && said.is_empty();
        assert_eq!(at_the_end == Decision::Wait, is_silent_tls, "{spoken:?}");
        assert!(
            in_time != Decision::Wait || said.len() < ENOUGH,
            "{spoken:?}"
        );
    }
    let heard = decide(Spoken::Unknown, said, true);
    assert_eq!(heard == TLS, is_client_hello(said));
    if is_usual_request(said) {
        assert_eq!(heard, Decision::Http);
    }
    if heard == Decision::Http {
        let word = said.iter().take_while(|byte| **byte != b' ').count();
        assert!(said.len() > word && said[..word].iter().all(|byte| is_of_method(*byte)));
    }
});

/// RFC 8446, 5.1 and 4: a record of type 22 and version 3.x, no longer than a record may be, that begins with a message of
/// type 1, which is not shorter than the least of them.
fn is_client_hello(said: &[u8]) -> bool {
    let [22, 3, 0..=4, high, low, 1, ..] = said else {
        return false;
    };
    (40..=1 << 14).contains(&u16::from_be_bytes([*high, *low]))
}

/// A whole request line by the parser that hyper uses, of a method and an address such as are in use.
fn is_usual_request(said: &[u8]) -> bool {
    let mut headers = [httparse::EMPTY_HEADER; 100];
    let mut request = httparse::Request::new(&mut headers);
    let end = said.iter().position(|byte| *byte == b'\n');
    let Some(line) = end.map(|end| [&said[..=end], b"\r\n"].concat()) else {
        return false;
    };
    if request.parse(&line).is_err() || request.version.is_none() {
        return false;
    }
    let (Some(method), Some(address)) = (request.method, request.path) else {
        return false;
    };
    let schemes = ["http://", "https://"];
    let is_usual = (1..=17).contains(&method.len()) && method.bytes().all(is_of_method);
    let address = address.to_ascii_lowercase();
    // HTTP/2 begins with what looks like a method.
    let is_star = address.starts_with('*') && method != "PRI";
    is_usual
        // Empty lines may come before it, by the parser; clients send none.
        && said.starts_with(method.as_bytes())
        && (method == "CONNECT"
            || address.starts_with('/')
            || is_star
            || schemes.iter().any(|scheme| address.starts_with(scheme)))
}

fn is_of_method(byte: u8) -> bool {
    byte.is_ascii_uppercase() || matches!(byte, b'-' | b'_')
}
