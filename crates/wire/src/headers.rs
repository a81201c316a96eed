//! What becomes of headers on the way: hop-by-hop ones end here, forwarding ones are added, all others pass unchanged.

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version,
    header::{
        CONNECTION, EXPECT, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING,
        UPGRADE, VIA,
    },
    request, response,
    uri::{Authority, PathAndQuery},
};

use crate::{answer::Answer, backend::BackendName};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const HTTP: HeaderValue = HeaderValue::from_static("http");

/// Besides `Connection`, those that it names, and `TE`, which is kept in part.
const HOP_BY_HOP: [HeaderName; 7] = [
    KEEP_ALIVE,
    PROXY_CONNECTION,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TRANSFER_ENCODING,
    UPGRADE,
    HTTP2_SETTINGS,
];

/// So often may a request pass through the same backend before it is a loop. A service may call itself, and a proxy
/// within it may keep the header; but not again and again.
const PASSES: usize = 2;

/// Whether a request has been sent to this backend too often already.
pub fn is_loop(headers: &HeaderMap, backend: &BackendName) -> bool {
    let ours = backend.via.as_bytes();
    let entries = headers
        .get_all(VIA)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    entries.filter(|entry| entry.trim_ascii() == ours).count() >= PASSES
}

/// The bytes of a head, roughly.
pub(crate) fn length_of(head: &request::Parts) -> usize {
    let line = head.method.as_str().len() + head.uri.path().len();
    length_of_all(&head.headers) + line + head.uri.query().map_or(0, str::len)
}

/// How long these are, as HTTP/1.1 writes them.
pub(crate) fn length_of_all(headers: &HeaderMap) -> usize {
    let headers = headers.iter();
    headers
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum()
}

/// What to answer to a head that is longer than it may be. hyper has a limit as well, but of its buffer, which may
/// grow past it in one read.
pub(crate) fn too_long(head: &request::Parts, most: usize) -> Option<Answer> {
    (length_of(head) > most).then(|| {
        let message =
            format!("the request's headers are longer than the {most} bytes that are taken here");
        Answer::new(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "head_too_long",
            message,
        )
    })
}

/// What to answer to a head that others would understand in another way than we do, or that cannot be sent on as it is
/// (RFC 9112, 3.2 and 6.1; RFC 9113, 8.3.1).
pub fn ambiguous(head: &request::Parts) -> Option<Answer> {
    let mut hosts = head.headers.get_all(HOST).iter();
    let host = hosts.next();
    let contradicts = match (head.version, head.uri.authority(), host) {
        (Version::HTTP_2, Some(authority), Some(host)) => !host
            .as_bytes()
            .eq_ignore_ascii_case(authority.as_str().as_bytes()),
        _ => false,
    };
    if contradicts || hosts.next().is_some() {
        let message = "the request names more than one host";
        return Some(Answer::new(
            StatusCode::BAD_REQUEST,
            "several_hosts",
            message,
        ));
    }
    // Only a host can be an `:authority`, and without one the request could not be sent.
    let is_host = match (head.uri.authority(), host) {
        (Some(authority), _) => !authority.as_str().contains('@'),
        (None, Some(host)) => authority_in(host).is_some(),
        (None, None) => true,
    };
    if head.version == Version::HTTP_2 && !is_host {
        let message = "the host that the request names is no host name or address";
        return Some(Answer::new(StatusCode::BAD_REQUEST, "bad_host", message));
    }
    let mut codings = head.headers.get_all(TRANSFER_ENCODING).iter();
    if codings.any(|coding| {
        !coding
            .as_bytes()
            .trim_ascii()
            .eq_ignore_ascii_case(b"chunked")
    }) {
        let message = "the only transfer coding that is understood here is `chunked`";
        return Some(Answer::new(
            StatusCode::NOT_IMPLEMENTED,
            "transfer_coding",
            message,
        ));
    }
    None
}

/// Makes the head of a request ready to be sent to an endpoint.
pub fn prepare_request(
    head: &mut request::Parts,
    client: &HeaderValue,
    backend: &BackendName,
    is_upgrade: bool,
) {
    let host = authority_of(head);
    let headers = &mut head.headers;
    let upgrade = if is_upgrade {
        headers.remove(UPGRADE)
    } else {
        None
    };
    strip_hop_by_hop(headers);
    // Whoever reads the body answers this: we do, by reading it.
    headers.remove(EXPECT);
    if let Some(upgrade) = upgrade {
        headers.insert(UPGRADE, upgrade);
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    }
    append(headers, FORWARDED_FOR, client);
    append(headers, VIA, &backend.via);
    if !headers.contains_key(FORWARDED_PROTO) {
        headers.insert(FORWARDED_PROTO, HTTP);
    }
    if let Some(host) = &host {
        headers.insert(FORWARDED_HOST, host.clone());
    }
    if head.version == Version::HTTP_2 {
        // There it is `:authority`, made from the address. One without it is given by `Host`.
        if head.uri.authority().is_none() {
            let host = host.as_ref().unwrap_or(&backend.host);
            head.uri = with_authority(&head.uri, host);
        }
    } else {
        head.version = Version::HTTP_11;
        if head.uri.authority().is_some() {
            // `GET http://host/path`: what the endpoint gets is `GET /path`, and that host.
            if let Some(host) = host {
                headers.insert(HOST, host);
            }
            head.uri = origin_form(&head.uri, &head.method);
        } else if !headers.contains_key(HOST) {
            headers.insert(HOST, backend.host.clone());
        }
    }
}

/// Makes the head of an answer ready to be sent to the client.
pub fn prepare_response(head: &mut response::Parts, is_upgrade: bool) {
    if is_upgrade {
        // 101 is about this very connection: all of its headers are for the client.
        return;
    }
    strip_hop_by_hop(&mut head.headers);
}

/// Whether a request asks to speak something else on its connection, and something that we let pass. `h2c` is not:
/// who wants HTTP/2 without TLS begins with it.
pub fn wants_upgrade(head: &request::Parts) -> bool {
    head.version == Version::HTTP_11
        && head.headers.get(UPGRADE).is_some_and(|value| {
            let mut protocols = value.as_bytes().split(|byte| *byte == b',');
            !protocols.any(|protocol| protocol.trim_ascii().eq_ignore_ascii_case(b"h2c"))
        })
        && names_in_connection(&head.headers).any(|name| name.eq_ignore_ascii_case(b"upgrade"))
}

/// The host that the client asked for.
fn authority_of(head: &request::Parts) -> Option<HeaderValue> {
    match head.uri.authority() {
        Some(authority) => HeaderValue::from_str(without_login(authority.as_str())).ok(),
        None => head.headers.get(HOST).cloned(),
    }
}

/// A Host as addresses have it, if it can be in one. A login cannot: of text with an `@` in it any end could pass for a host.
fn authority_in(host: &HeaderValue) -> Option<Authority> {
    let host = host.to_str().ok().filter(|host| !host.contains('@'))?;
    host.parse().ok()
}

/// `name:word@host` names the host as `host` does.
fn without_login(authority: &str) -> &str {
    authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host)
}

fn strip_hop_by_hop(headers: &mut HeaderMap) {
    // Most messages have none of them: one walk instead of a lookup for each.
    if !headers.keys().any(is_hop_by_hop) {
        return;
    }
    if headers.contains_key(CONNECTION) {
        let named: Vec<HeaderName> = names_in_connection(headers)
            .filter_map(|name| HeaderName::from_bytes(name).ok())
            .collect();
        for name in named {
            // Some would have us drop what others need, by naming it here.
            if name != HOST && name != TE {
                headers.remove(name);
            }
        }
        headers.remove(CONNECTION);
    }
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
    if headers.contains_key(TE) {
        let trailers = items_of(headers, TE).any(|item| item.eq_ignore_ascii_case(b"trailers"));
        headers.remove(TE);
        if trailers {
            headers.insert(TE, HeaderValue::from_static("trailers"));
        }
    }
}

fn is_hop_by_hop(name: &HeaderName) -> bool {
    *name == CONNECTION || *name == TE || HOP_BY_HOP.contains(name)
}

fn names_in_connection(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    items_of(headers, CONNECTION)
}

/// The items of a list that may be spread over several lines.
fn items_of(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &[u8]> {
    headers
        .get_all(name)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
}

/// Adds to the end of a list that may be spread over several lines.
fn append(headers: &mut HeaderMap, name: HeaderName, value: &HeaderValue) {
    if !headers.contains_key(&name) {
        headers.insert(name, value.clone());
        return;
    }
    let mut list = Vec::new();
    for before in headers.get_all(&name) {
        list.extend_from_slice(before.as_bytes());
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(value.as_bytes());
    if let Ok(list) = HeaderValue::from_bytes(&list) {
        headers.insert(name, list);
    }
}

fn origin_form(uri: &Uri, method: &Method) -> Uri {
    let path = uri.path_and_query().cloned();
    let path = path.unwrap_or_else(|| {
        PathAndQuery::from_static(if method == Method::OPTIONS { "*" } else { "/" })
    });
    Uri::from(path)
}

fn with_authority(uri: &Uri, host: &HeaderValue) -> Uri {
    let mut parts = uri.clone().into_parts();
    parts.scheme = Some(http::uri::Scheme::HTTP);
    parts.authority = authority_in(host);
    if parts.path_and_query.is_none() {
        parts.path_and_query = Some(PathAndQuery::from_static("/"));
    }
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}

#[cfg(test)]
mod tests;
