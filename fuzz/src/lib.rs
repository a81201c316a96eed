//! A request's head as text, so that what a fuzzer begins with and what it finds can be read.
//!
//! `GET /a?b HTTP/1.1`, then lines `name: value` up to an empty one or the end. With `HTTP/2.0` an address with a host stands
//! for `:authority`. It takes more than hyper does, which has its own idea of what may stand in a line.

use http::{HeaderName, HeaderValue, Method, Request, Uri, Version, request};

/// The head at the beginning of these bytes, if there is one. Lines that are no header are passed over.
pub fn head(bytes: &[u8]) -> Option<request::Parts> {
    let mut lines = bytes.split(|byte| *byte == b'\n').map(without_return);
    let mut words = lines.next()?.split(|byte| *byte == b' ');
    let (method, address, version) = (words.next()?, words.next()?, words.next()?);
    if words.next().is_some() {
        return None;
    }
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(method).ok()?;
    *request.uri_mut() = Uri::try_from(address).ok()?;
    *request.version_mut() = match version {
        b"HTTP/1.0" => Version::HTTP_10,
        b"HTTP/1.1" => Version::HTTP_11,
        b"HTTP/2.0" => Version::HTTP_2,
        _ => return None,
    };
    let is_host_alone = request.uri().authority().is_some() && request.uri().scheme().is_none();
    if request.version() == Version::HTTP_2 && is_host_alone {
        // Only CONNECT has that there, and it is refused before.
        return None;
    }
    for line in lines.take_while(|line| !line.is_empty()) {
        if let Some((name, value)) = header(line)
            && request.headers_mut().try_append(name, value).is_err()
        {
            return None;
        }
    }
    Some(request.into_parts().0)
}

/// The same written again: `head` reads it as the same.
pub fn written(head: &request::Parts) -> Vec<u8> {
    let line = format!("{} {} {:?}\n", head.method, head.uri, head.version);
    let mut text = line.into_bytes();
    for (name, value) in &head.headers {
        text.extend(name.as_str().bytes().chain(*b": "));
        text.extend(value.as_bytes().iter().chain(b"\n"));
    }
    text
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn header(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let name = HeaderName::from_bytes(&line[..colon]).ok()?;
    let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?;
    Some((name, value))
}
