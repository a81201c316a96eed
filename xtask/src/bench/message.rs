//! Enough of HTTP/1.1 to see that a message is whole, and what is in it.

/// A whole message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// Of an answer; 0 for a request.
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// How long a body is.
enum Framing {
    Length(usize),
    Chunked,
    Unsaid,
}

/// The message, once it is whole. Without a word on its length it has no body.
pub(super) fn whole(received: &[u8]) -> Option<Message> {
    let (status, framing, rest) = head(received)?;
    let body = match framing {
        Framing::Length(length) => rest.get(..length)?.to_vec(),
        Framing::Chunked => chunks(rest)?,
        Framing::Unsaid => Vec::new(),
    };
    Some(Message { status, body })
}

/// The message, if the connection ended after this.
pub(super) fn until_the_end(received: &[u8]) -> Option<Message> {
    match head(received)? {
        (status, Framing::Unsaid, rest) => Some(Message {
            status,
            body: rest.to_vec(),
        }),
        _ => whole(received),
    }
}

fn head(received: &[u8]) -> Option<(u16, Framing, &[u8])> {
    let end = received.windows(4).position(|four| four == b"\r\n\r\n")?;
    let text = std::str::from_utf8(&received[..end]).ok()?;
    let mut lines = text.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.").and_then(|rest| {
        let status = rest.get(2..5)?;
        status.parse().ok()
    });
    let mut framing = Framing::Unsaid;
    for line in lines {
        let (name, value) = line.split_once(':')?;
        if name.eq_ignore_ascii_case("content-length") {
            framing = Framing::Length(value.trim().parse().ok()?);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            framing = Framing::Chunked;
        }
    }
    Some((status.unwrap_or(0), framing, &received[end + 4..]))
}

fn chunks(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let size = std::str::from_utf8(&rest[..end]).ok()?;
        let size = usize::from_str_radix(size.split(';').next()?.trim(), 16).ok()?;
        let data = &rest[end + 2..];
        if size == 0 {
            // Trailers, if any, and an empty line.
            let is_whole = data.starts_with(b"\r\n") || data.windows(4).any(|it| it == b"\r\n\r\n");
            return is_whole.then_some(body);
        }
        body.extend_from_slice(data.get(..size)?);
        rest = data.get(size + 2..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(status: u16, body: &str) -> Message {
        Message {
            status,
            body: body.into(),
        }
    }

    #[test]
    fn a_message_is_whole_at_its_last_byte_and_not_before() {
        for (text, expected) in [
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
                message(200, "abc"),
            ),
            (
                "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n",
                message(503, ""),
            ),
            (
                "POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nab",
                message(0, "ab"),
            ),
            (
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1;x\r\nc\r\n0\r\n\r\n",
                message(200, "abc"),
            ),
            (
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nt: 1\r\n\r\n",
                message(200, "ab"),
            ),
            ("GET /a HTTP/1.1\r\nhost: a\r\n\r\n", message(0, "")),
        ] {
            assert_eq!(whole(text.as_bytes()), Some(expected), "{text:?}");
            let less = &text.as_bytes()[..text.len() - 1];
            assert_eq!(whole(less), None, "all but the last of {text:?}");
        }
    }

    #[test]
    fn a_body_may_end_with_its_connection() {
        let text = b"HTTP/1.0 200 OK\r\nserver: x\r\n\r\nabc";
        assert_eq!(until_the_end(text), Some(message(200, "abc")));
        assert_eq!(until_the_end(b"HTTP/1.0 200"), None);
    }
}
