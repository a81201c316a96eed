//! Any head of a request: what it names is the same whatever counts less in it says, and the same in what is sent on; so
//! nobody is led to one Service and sends to it what was said to another.
#![no_main]

use http::{HeaderName, HeaderValue, Version, header::HOST};
use libfuzzer_sys::fuzz_target;
use weir_api::dns::check_dns_label;
use weir_fuzz::{head, written};
use weir_hold::host::named_by;
use weir_wire::{
    backend::BackendName,
    headers::{ambiguous, prepare_request, wants_upgrade},
    hold::Owner,
};

const DOMAIN: &str = "cluster.local";
const AGREED: HeaderName = HeaderName::from_static("x-envoy-decorator-operation");

fuzz_target!(|bytes: &[u8]| {
    let Some(head) = head(bytes) else { return };
    let seen = weir_fuzz::head(&written(&head)).expect("it can be written");
    assert_eq!((&seen.uri, &seen.headers), (&head.uri, &head.headers));
    for header in [None, Some(&AGREED)] {
        let target = named_by(&head, header, DOMAIN);
        if let Ok(target) = &target {
            assert_eq!(check_dns_label(&target.service), Ok(()));
            assert_eq!(check_dns_label(&target.namespace), Ok(()));
        }

        // Whatever is said in places that count less.
        let mut other = head.clone();
        let elsewhere = HeaderValue::from_static("elsewhere.nowhere");
        let agreed = header.is_some_and(|name| head.headers.contains_key(name));
        if agreed || head.uri.authority().is_some() {
            other.headers.insert(HOST, elsewhere.clone());
        }
        if header.is_none() {
            other.headers.insert(AGREED, elsewhere);
        }
        if agreed {
            other.uri = "http://elsewhere.nowhere/".parse().expect("an address");
        }
        assert_eq!(named_by(&other, header, DOMAIN), target);
    }

    // What is sent on by the name of its host says the same to whoever gets it, and Host and address agree there.
    let Ok(target) = named_by(&head, None, DOMAIN) else {
        return;
    };
    if ambiguous(&head).is_some() {
        return;
    }
    let mut sent = head.clone();
    let client = HeaderValue::from_static("192.0.2.7");
    prepare_request(&mut sent, &client, &backend(), wants_upgrade(&head));
    assert_eq!(named_by(&sent, None, DOMAIN), Ok(target.clone()));
    assert_eq!(
        sent.uri.authority().is_some(),
        sent.version == Version::HTTP_2
    );
    if sent.version != Version::HTTP_2 || sent.headers.contains_key(HOST) {
        let mut by_host = sent.clone();
        by_host.uri = "/".parse().expect("a path");
        assert_eq!(named_by(&by_host, None, DOMAIN), Ok(target));
    }
});

fn backend() -> BackendName {
    BackendName {
        display: "shop/web:80".into(),
        via: HeaderValue::from_static("1.1 web.shop.weir"),
        host: HeaderValue::from_static("web.shop"),
        owner: Owner(1),
    }
}
