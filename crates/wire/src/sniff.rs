//! What is spoken on a connection, decided from what its port is said to speak, the first bytes and the time: a function of
//! values. `connection` reads and waits; what is HTTP goes on to `exchange`, all else to `raw`.
//!
//! The bytes that come never change a decision once it is taken, so it does not matter in which pieces they come.

use std::time::Duration;

#[cfg(test)]
mod tests;

/// What a port is said to speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Spoken {
    /// HTTP without TLS, of any version.
    #[default]
    Http,
    /// TLS, or something else in which the client always speaks first: passed through.
    Tls,
    /// Anything, perhaps with a server that speaks first: passed through.
    Tcp,
    /// Nothing is said: the first bytes decide.
    Unknown,
}

/// What a connection speaks that is not HTTP, and so is passed through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Raw {
    /// The client speaks first, and cannot end its side before it is answered.
    Tls,
    /// Anything.
    Tcp,
}

/// What is to be done with a connection of which so much is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is HTTP.
    Http,
    /// It is passed through.
    Raw(Raw),
    /// It is not clear yet.
    Wait,
}

/// No more bytes are needed for a decision.
pub const ENOUGH: usize = PREFACE.len();
/// How long to wait for them. A client that has said nothing by then waits for the server to speak, and that wakes.
pub const PATIENCE: Duration = Duration::from_millis(200);
/// The same for a connection that somebody has asked for: it is most likely there to see that it arrives, and is closed
/// in less than this.
pub const PATIENCE_WITH_PROBES: Duration = Duration::from_secs(1);

/// What an HTTP/2 client sends first.
pub(crate) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The longest method that is registered has 17 letters.
const LONGEST_METHOD: usize = 17;
/// The type of a record with a handshake in it, and of the handshake's first message.
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;

/// How well bytes fit to something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    No,
    /// It can still become that.
    Possible,
    /// It can still become that, and looks very much like it.
    Likely,
    Yes,
}

impl Raw {
    /// All there are.
    pub const ALL: [Self; 2] = [Self::Tls, Self::Tcp];

    /// In logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tls => "tls",
            Self::Tcp => "tcp",
        }
    }
}

/// Decides. `said` is what the client has said so far, of which the first [`ENOUGH`] bytes count; `is_over`: the time is up,
/// or the client will say no more.
pub fn decide(spoken: Spoken, said: &[u8], is_over: bool) -> Decision {
    match spoken {
        Spoken::Http => Decision::Http,
        // Nobody waits for a server that never speaks first: however long the silence, it wakes nobody.
        Spoken::Tls if said.is_empty() => Decision::Wait,
        Spoken::Tls => Decision::Raw(Raw::Tls),
        Spoken::Tcp if said.is_empty() && !is_over => Decision::Wait,
        Spoken::Tcp => Decision::Raw(Raw::Tcp),
        Spoken::Unknown => sniff(&said[..said.len().min(ENOUGH)], is_over),
    }
}

fn sniff(said: &[u8], is_over: bool) -> Decision {
    let http = http1(said).max(http2(said));
    let tls = client_hello(said);
    match (http, tls) {
        (Fit::Yes, _) => Decision::Http,
        (_, Fit::Yes) => Decision::Raw(Raw::Tls),
        (Fit::Likely, _) if is_over => Decision::Http,
        (Fit::No, Fit::No) => Decision::Raw(Raw::Tcp),
        _ if is_over => Decision::Raw(Raw::Tcp),
        _ => Decision::Wait,
    }
}

fn http2(said: &[u8]) -> Fit {
    if said == PREFACE {
        Fit::Yes
    } else if PREFACE.starts_with(said) {
        Fit::Possible
    } else {
        Fit::No
    }
}

/// A line `GET /path HTTP/1.1`, as far as [`ENOUGH`] bytes show it. Redis' `GET key` and the like are none.
fn http1(said: &[u8]) -> Fit {
    let is_letter = |byte: &u8| byte.is_ascii_uppercase() || matches!(byte, b'-' | b'_');
    let method = said.iter().take_while(|byte| is_letter(byte)).count();
    if method > LONGEST_METHOD {
        return Fit::No;
    }
    let (method, rest) = said.split_at(method);
    let Some((blank, target)) = rest.split_first() else {
        return Fit::Possible;
    };
    if method.is_empty() || *blank != b' ' {
        return Fit::No;
    }
    let fit = target_fit(method, target);
    if fit != Fit::Yes {
        return fit;
    }
    let Some(end) = target.iter().position(|byte| *byte == b'\n') else {
        // All that was asked for is there, and is the beginning of a line.
        let is_all = said.len() >= ENOUGH;
        return if is_all { Fit::Yes } else { Fit::Likely };
    };
    let line = &target[..end];
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let is_one = [&b" HTTP/1.1"[..], b" HTTP/1.0"];
    if is_one.iter().any(|version| line.ends_with(version)) {
        Fit::Yes
    } else {
        Fit::No
    }
}

/// Whether this begins as a request's target does.
fn target_fit(method: &[u8], target: &[u8]) -> Fit {
    const ABSOLUTE: [&[u8]; 2] = [b"http://", b"https://"];
    let Some(first) = target.first() else {
        return Fit::Possible;
    };
    if *first == b'/' || (*first == b'*' && method != b"PRI") || method == b"CONNECT" {
        return Fit::Yes;
    }
    let begins = |scheme: &&[u8]| {
        let length = scheme.len().min(target.len());
        target[..length].eq_ignore_ascii_case(&scheme[..length])
    };
    match ABSOLUTE.iter().find(|scheme| begins(scheme)) {
        Some(scheme) if target.len() >= scheme.len() => Fit::Yes,
        // As much of it as can be seen.
        Some(_) if method.len() + 1 + target.len() >= ENOUGH => Fit::Yes,
        Some(_) => Fit::Possible,
        None => Fit::No,
    }
}

/// A record of TLS: its type, the version 3.x, its length, and the first message in it.
fn client_hello(said: &[u8]) -> Fit {
    // The least that a ClientHello takes, and the most that fits into a record.
    let is_length = |high: u8, low: u8| (40..=16_384).contains(&u16::from_be_bytes([high, low]));
    let fits = match *said {
        [] => true,
        [kind] => kind == HANDSHAKE,
        [kind, major] => kind == HANDSHAKE && major == 3,
        [kind, major, minor] | [kind, major, minor, _] => {
            kind == HANDSHAKE && major == 3 && minor <= 4
        }
        [kind, major, minor, high, low] => {
            kind == HANDSHAKE && major == 3 && minor <= 4 && is_length(high, low)
        }
        [kind, major, minor, high, low, message, ..] => {
            let is_hello = message == CLIENT_HELLO;
            let fits = kind == HANDSHAKE && major == 3 && minor <= 4;
            return if fits && is_hello && is_length(high, low) {
                Fit::Yes
            } else {
                Fit::No
            };
        }
    };
    if fits { Fit::Possible } else { Fit::No }
}
