//! Headers in, headers out.

use http::Request;
use proptest::prelude::*;

use super::*;
use crate::hold::Owner;

fn name() -> BackendName {
    BackendName {
        display: "default/echo".into(),
        via: HeaderValue::from_static("1.1 echo.default.weir"),
        host: HeaderValue::from_static("echo.default"),
        owner: Owner(1),
    }
}

fn forwarded(request: request::Builder) -> request::Parts {
    let (mut head, ()) = request.body(()).unwrap().into_parts();
    let upgrade = wants_upgrade(&head);
    prepare_request(
        &mut head,
        &HeaderValue::from_static("192.0.2.7"),
        &name(),
        upgrade,
    );
    head
}

fn value<'a>(head: &'a request::Parts, name: &str) -> Option<&'a str> {
    let mut all = head.headers.get_all(name).iter();
    let first = all.next()?.to_str().ok();
    assert!(all.next().is_none(), "{name} twice");
    first
}

#[test]
fn forwarding_headers_are_added_and_lists_go_on() {
    let head = forwarded(Request::get("/a?b").header("host", "shop.example"));
    assert_eq!(value(&head, "host"), Some("shop.example"));
    assert_eq!(value(&head, "x-forwarded-host"), Some("shop.example"));
    assert_eq!(value(&head, "x-forwarded-for"), Some("192.0.2.7"));
    assert_eq!(value(&head, "x-forwarded-proto"), Some("http"));
    assert_eq!(value(&head, "via"), Some("1.1 echo.default.weir"));

    let head = forwarded(
        Request::get("/")
            .header("host", "a")
            .header("x-forwarded-for", "198.51.100.1")
            .header("x-forwarded-for", "198.51.100.2, 198.51.100.3")
            .header("x-forwarded-proto", "https")
            .header("x-forwarded-host", "forged")
            .header("via", "1.0 proxy"),
    );
    assert_eq!(
        value(&head, "x-forwarded-for"),
        Some("198.51.100.1, 198.51.100.2, 198.51.100.3, 192.0.2.7")
    );
    assert_eq!(value(&head, "x-forwarded-proto"), Some("https"));
    assert_eq!(value(&head, "x-forwarded-host"), Some("a"));
    assert_eq!(
        value(&head, "via"),
        Some("1.0 proxy, 1.1 echo.default.weir")
    );
}

#[test]
fn hop_by_hop_headers_end_here_also_those_that_connection_names() {
    let head = forwarded(
        Request::post("/")
            .header("host", "a")
            .header("connection", "close, X-Secret")
            .header("connection", "keep-alive, x-other, host")
            .header("x-secret", "1")
            .header("x-other", "2")
            .header("keep-alive", "timeout=5")
            .header("proxy-connection", "close")
            .header("proxy-authorization", "Basic x")
            .header("transfer-encoding", "chunked")
            .header("te", "gzip, trailers")
            .header("trailer", "x-sum")
            .header("upgrade", "h2c")
            .header("http2-settings", "AAMAAABkAAQAAP__")
            .header("expect", "100-continue")
            .header("x-kept", "yes"),
    );
    for gone in [
        "connection",
        "x-secret",
        "x-other",
        "keep-alive",
        "proxy-connection",
        "proxy-authorization",
        "transfer-encoding",
        "upgrade",
        "http2-settings",
        "expect",
    ] {
        assert_eq!(value(&head, gone), None, "{gone}");
    }
    assert_eq!(value(&head, "te"), Some("trailers"));
    assert_eq!(value(&head, "trailer"), Some("x-sum"));
    assert_eq!(value(&head, "x-kept"), Some("yes"));
    assert_eq!(value(&head, "host"), Some("a"));
}

#[test]
fn an_upgrade_passes_but_not_to_http2() {
    let websocket = |protocol: &str| {
        forwarded(
            Request::get("/")
                .header("host", "a")
                .header("connection", "keep-alive, Upgrade")
                .header("upgrade", protocol),
        )
    };
    let head = websocket("websocket");
    assert_eq!(value(&head, "upgrade"), Some("websocket"));
    assert_eq!(value(&head, "connection"), Some("upgrade"));
    let head = websocket("h2c");
    assert_eq!(value(&head, "upgrade"), None);
    assert_eq!(value(&head, "connection"), None);
}

#[test]
fn an_absolute_address_becomes_a_path_and_its_host_wins() {
    let head = forwarded(Request::get("http://real.example:81/p?q").header("host", "other"));
    assert_eq!(head.uri, "/p?q");
    assert_eq!(value(&head, "host"), Some("real.example:81"));
    assert_eq!(value(&head, "x-forwarded-host"), Some("real.example:81"));
}

#[test]
fn who_names_no_host_gets_the_services() {
    let head = forwarded(Request::get("/").version(Version::HTTP_10));
    assert_eq!(value(&head, "host"), Some("echo.default"));
    assert_eq!(head.version, Version::HTTP_11);
}

#[test]
fn http2_keeps_its_authority_or_gets_one() {
    let head = forwarded(Request::get("http://shop.example/x").version(Version::HTTP_2));
    assert_eq!(head.uri, "http://shop.example/x");
    assert_eq!(value(&head, "x-forwarded-host"), Some("shop.example"));
    let head = forwarded(
        Request::get("/x")
            .version(Version::HTTP_2)
            .header("host", "a.example"),
    );
    assert_eq!(head.uri, "http://a.example/x");
    let head = forwarded(Request::get("/x").version(Version::HTTP_2));
    assert_eq!(head.uri, "http://echo.default/x");
}

#[test]
fn a_host_that_http2_cannot_say_is_refused() {
    let refused = |version: Version, host: &str| {
        let request = Request::get("/x").version(version).header("host", host);
        let answer = ambiguous(&request.body(()).unwrap().into_parts().0)?;
        Some((answer.status, answer.reason))
    };
    for host in [
        "",
        "a b",
        "http://a.example/",
        "a/b",
        "[::1",
        "name:word@a.example",
        "http://a/b@a.example",
    ] {
        let bad = Some((StatusCode::BAD_REQUEST, "bad_host"));
        assert_eq!(refused(Version::HTTP_2, host), bad, "{host}");
        // There it is passed on as it is.
        assert_eq!(refused(Version::HTTP_11, host), None, "{host}");
    }
    assert_eq!(refused(Version::HTTP_2, "a.example:80"), None);
    let login = Request::get("http://name:word@a.example/x").version(Version::HTTP_2);
    let login = ambiguous(&login.body(()).unwrap().into_parts().0);
    assert_eq!(login.map(|answer| answer.reason), Some("bad_host"));
}

#[test]
fn trailers_are_wanted_on_whichever_line_it_says_so() {
    for lines in [
        &["trailers"][..],
        &["gzip", "Trailers"],
        &["deflate, trailers", "gzip"],
    ] {
        let mut request = Request::get("/").header("host", "a");
        for line in lines {
            request = request.header("te", *line);
        }
        assert_eq!(
            value(&forwarded(request), "te"),
            Some("trailers"),
            "{lines:?}"
        );
    }
}

#[test]
fn a_loop_is_found_but_not_in_one_pass() {
    let with = |values: &[&'static str]| {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(VIA, HeaderValue::from_static(value));
        }
        is_loop(&headers, &name())
    };
    assert!(!with(&[]));
    assert!(!with(&["1.1 echo.default.weir"]));
    assert!(!with(&["1.1 echo.default.weir, 1.1 other.default.weir"]));
    assert!(with(&[
        "1.1 echo.default.weir, 1.1 x,1.1 echo.default.weir"
    ]));
    assert!(with(&["1.1 echo.default.weir", "1.1 echo.default.weir"]));
}

proptest! {
    /// Whatever a client names or sends, what is sent on has no hop-by-hop header, and passing twice is the same.
    #[test]
    fn nothing_hop_by_hop_ever_passes(
        named in proptest::collection::vec("[a-zA-Z-]{0,12}", 0..6),
        headers in proptest::collection::vec(("[a-z][a-z-]{0,11}", "[ -~]{0,20}"), 0..12),
    ) {
        let mut request = Request::get("/").header("connection", named.join(","));
        for (name, value) in &headers {
            request = request.header(name, value);
        }
        let head = forwarded(request);
        for name in ["keep-alive", "transfer-encoding", "proxy-connection", "http2-settings", "expect"] {
            prop_assert!(!head.headers.contains_key(name));
        }
        prop_assert!(head.headers.get("connection").is_none_or(|value| value == "upgrade"));
        for name in named.iter().filter(|name| !name.is_empty()) {
            let ours = ["host", "te", "via", "upgrade", "connection"];
            if !ours.contains(&name.to_lowercase().as_str()) && !name.to_lowercase().starts_with("x-forwarded") {
                prop_assert!(!head.headers.contains_key(name.as_str()), "{}", name);
            }
        }
    }
}
