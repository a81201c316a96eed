//! Whether a node's containerd takes the kubelet's calls. It opens its socket before that, and a kubelet that comes in
//! between gives up for good: elsewhere systemd starts it again, here nobody does.
//!
//! The question is the one that a kubelet begins with, `RuntimeService/Version`, said by hand: nothing else here needs a
//! gRPC client.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

const PATIENCE: Duration = Duration::from_secs(5);
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const METHOD: &[u8] = b"/runtime.v1.RuntimeService/Version";
/// An empty message: not compressed, and of no length.
const MESSAGE: [u8; 5] = [0; 5];

/// Kinds of frames, as RFC 9113 numbers them.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
/// Flags of frames.
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Asks who listens there.
pub(super) fn answers(socket: &Path) -> io::Result<bool> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(&question())?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let [a, b, c, kind, flags, ..] = head;
        let length = u32::from_be_bytes([0, a, b, c]);
        io::copy(&mut (&stream).take(length.into()), &mut io::sink())?;
        match kind {
            // An answer without a message is an error.
            HEADERS => return Ok(flags & END_STREAM == 0),
            RST_STREAM | GOAWAY => return Ok(false),
            _ => {}
        }
    }
}

fn question() -> Vec<u8> {
    // POST and http are in HPACK's table; so are the names of the next three, but not their values.
    let mut headers = vec![0x83, 0x86];
    let named: [(&[u8], &[u8]); 3] = [
        (&[0x04], METHOD),
        (&[0x01], b"localhost"),
        (&[0x0f, 0x10], b"application/grpc"),
    ];
    for (name, value) in named {
        headers.extend(name);
        headers.extend(text(value));
    }
    headers.push(0);
    headers.extend(text(b"te"));
    headers.extend(text(b"trailers"));
    [
        PREFACE.to_vec(),
        frame(SETTINGS, 0, 0, &[]),
        frame(HEADERS, END_HEADERS, 1, &headers),
        frame(DATA, END_STREAM, 1, &MESSAGE),
    ]
    .concat()
}

/// With its length before it. All here are short.
fn text(text: &[u8]) -> Vec<u8> {
    let length = u8::try_from(text.len()).unwrap_or(0);
    [&[length], text].concat()
}

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap_or(0);
    let head = [0, 0, length, kind, flags, 0, 0, 0, stream];
    [&head, payload].concat()
}

#[cfg(test)]
mod tests {
    use std::{os::unix::net::UnixListener, thread};

    use super::*;

    /// What is made of this answer.
    fn asked(answer: Vec<u8>) -> io::Result<bool> {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut heard = vec![0; question().len()];
            stream.read_exact(&mut heard).unwrap();
            assert_eq!(heard, question());
            stream.write_all(&answer).unwrap();
        });
        let said = answers(&socket);
        server.join().unwrap();
        said
    }

    #[test]
    fn an_answer_with_a_message_is_one() {
        let settings = frame(SETTINGS, 0, 0, &[0; 6]);
        let headers = frame(HEADERS, END_HEADERS, 1, &[0x88]);
        assert!(asked([settings, headers].concat()).unwrap());
    }

    #[test]
    fn an_error_is_none() {
        let settings = frame(SETTINGS, 0, 0, &[]);
        let error = frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0x88]);
        assert!(!asked([settings.clone(), error].concat()).unwrap());
        assert!(!asked([settings, frame(GOAWAY, 0, 0, &[0; 8])].concat()).unwrap());
    }

    #[test]
    fn one_that_goes_away_or_is_not_there_is_told() {
        assert!(asked(frame(SETTINGS, 0, 0, &[])).is_err());
        assert!(answers(Path::new("/none/there")).is_err());
    }
}
