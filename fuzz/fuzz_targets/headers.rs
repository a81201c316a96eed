//! Any head of a request: what is sent on is what a plain reading of RFC 9110, 7.6, makes of it. Nothing that is hop-by-hop or
//! named in Connection survives, what is ours is there once, all else is unchanged, and a loop is seen.
#![no_main]

use std::collections::{BTreeMap, BTreeSet};

use http::{HeaderMap, HeaderValue, Response, Version, request};
use libfuzzer_sys::fuzz_target;
use weir_fuzz::{head, written};
use weir_wire::{
    backend::BackendName,
    headers::{ambiguous, is_loop, prepare_request, prepare_response, wants_upgrade},
    hold::Owner,
};

const CLIENT: &str = "192.0.2.7";
const VIA: &str = "1.1 web.shop.weir";
const OWN_HOST: &str = "web.shop";
/// Those that end here always; `te` and `upgrade` do in part.
const HOP_BY_HOP: [&str; 7] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "transfer-encoding",
    "http2-settings",
];

/// Values by name, in their order.
type Headers = BTreeMap<String, Vec<Vec<u8>>>;

fuzz_target!(|bytes: &[u8]| {
    let Some(head) = head(bytes) else { return };
    let mut response = Response::new(());
    *response.headers_mut() = head.headers.clone();
    let (mut answer, ()) = response.into_parts();
    prepare_response(&mut answer, true);
    assert_eq!(
        answer.headers, head.headers,
        "an upgrade is the client's own business"
    );
    prepare_response(&mut answer, false);
    assert_eq!(all(&answer.headers), end_to_end(&head.headers));

    if ambiguous(&head).is_some() {
        return;
    }
    let backend = backend();
    let client = HeaderValue::from_static(CLIENT);
    let is_upgrade = wants_upgrade(&head);
    let mut sent = head.clone();
    prepare_request(&mut sent, &client, &backend, is_upgrade);
    assert_eq!(
        all(&sent.headers),
        expected(&head, is_upgrade),
        "{}",
        text(&sent)
    );
    assert!(ambiguous(&sent).is_none(), "{}", text(&sent));
    let said = sent.uri.authority().map(|authority| authority.as_str());
    if head.version == Version::HTTP_2 {
        assert_eq!(sent.version, Version::HTTP_2);
        assert!(sent.uri.scheme().is_some(), "{}", text(&sent));
        let host = named(&head).unwrap_or_else(|| OWN_HOST.to_owned());
        assert_eq!(said, Some(&*host), "{}", text(&sent));
    } else {
        assert_eq!(sent.version, Version::HTTP_11);
        assert!(
            sent.uri.scheme().is_none() && said.is_none(),
            "{}",
            text(&sent)
        );
    }
    assert_eq!(sent.uri.query(), head.uri.query());

    // It comes back, and goes through here once more.
    let again = wants_upgrade(&sent);
    assert_eq!(
        again, is_upgrade,
        "what is asked for on is what was asked for"
    );
    prepare_request(&mut sent, &client, &backend, again);
    assert!(is_loop(&sent.headers, &backend), "{}", text(&sent));
});

fn backend() -> BackendName {
    BackendName {
        display: "shop/web:80".into(),
        via: HeaderValue::from_static(VIA),
        host: HeaderValue::from_static(OWN_HOST),
        owner: Owner(1),
    }
}

/// What a request should have in the end.
fn expected(head: &request::Parts, is_upgrade: bool) -> Headers {
    let mut headers = end_to_end(&head.headers);
    headers.remove("expect");
    if is_upgrade {
        let protocol = head.headers["upgrade"].as_bytes().to_vec();
        headers.insert("upgrade".to_owned(), vec![protocol]);
        headers.insert("connection".to_owned(), vec![b"upgrade".to_vec()]);
    }
    for (name, ours) in [("x-forwarded-for", CLIENT), ("via", VIA)] {
        let mut list = headers.remove(name).unwrap_or_default();
        list.push(ours.as_bytes().to_vec());
        headers.insert(name.to_owned(), vec![list.join(&b", "[..])]);
    }
    let proto = headers.entry("x-forwarded-proto".to_owned());
    proto.or_insert_with(|| vec![b"http".to_vec()]);

    let host = named(head).map(String::into_bytes).or_else(|| {
        let host = head.headers.get("host");
        host.map(|host| host.as_bytes().to_vec())
    });
    if let Some(host) = &host {
        headers.insert("x-forwarded-host".to_owned(), vec![host.clone()]);
    }
    if head.version != Version::HTTP_2 {
        let host = host.unwrap_or_else(|| OWN_HOST.as_bytes().to_vec());
        headers.insert("host".to_owned(), vec![host]);
    }
    headers
}

/// The host that the client asks for, if it can be said in text: that of the address, if it has one.
fn named(head: &request::Parts) -> Option<String> {
    match head.uri.authority() {
        Some(authority) => Some(without_login(authority.as_str()).to_owned()),
        None => Some(head.headers.get("host")?.to_str().ok()?.to_owned()),
    }
}

fn without_login(host: &str) -> &str {
    host.rsplit('@').next().unwrap_or(host)
}

/// All but those that are for the next hop alone.
fn end_to_end(headers: &HeaderMap) -> Headers {
    let items = |name: &str| -> BTreeSet<Vec<u8>> {
        let values = headers.get_all(name).iter();
        let items = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        items
            .map(|item| item.trim_ascii().to_ascii_lowercase())
            .collect()
    };
    let named = items("connection");
    let mut kept = all(headers);
    kept.retain(|name, _| {
        let is_named = named.contains(name.as_bytes()) && name != "host";
        !is_named && !HOP_BY_HOP.contains(&&**name) && name != "upgrade" && name != "te"
    });
    if items("te").contains(&b"trailers"[..]) {
        kept.insert("te".to_owned(), vec![b"trailers".to_vec()]);
    }
    kept
}

fn all(headers: &HeaderMap) -> Headers {
    let mut all = Headers::new();
    for (name, value) in headers {
        let values = all.entry(name.as_str().to_owned()).or_default();
        values.push(value.as_bytes().to_vec());
    }
    all
}

fn text(head: &request::Parts) -> String {
    String::from_utf8_lossy(&written(head)).into_owned()
}
