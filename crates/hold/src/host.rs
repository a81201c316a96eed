//! What names a target on the resolver's shared port: the header that ingresses set, the request's own address, or Host.
//!
//! `[http://]svc.ns[.svc[.<cluster domain>]][:port][/any path]`. Clients choose this text, so everything that is not of
//! this form is refused; whether there is such a service is for others to say.

use std::borrow::Cow;

use http::{HeaderName, header::HOST, request};
use thiserror::Error;
use weir_api::dns::{DNS_LABEL_MAX_LENGTH, DNS_SUBDOMAIN_MAX_LENGTH};

/// The longest value that is looked at: a whole host name, a port, and a path of usual length.
const MAX_LENGTH: usize = 4096;

/// The Service that a header names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostTarget<'a> {
    /// Its namespace.
    pub namespace: Cow<'a, str>,
    /// Its name.
    pub service: Cow<'a, str>,
    /// The number of its port; none: its first.
    pub port: Option<u16>,
}

/// Why a header names no Service. What the client sent is not repeated: it may be anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HostError {
    /// Nothing at all.
    #[error("the host is empty; name the service as service.namespace.svc")]
    Empty,
    /// Bytes that are no text.
    #[error("the header that names the target is not plain text")]
    NotText,
    /// More than any host name and path.
    #[error("the host is too long; name the service as service.namespace.svc")]
    TooLong,
    /// `https://` or something stranger.
    #[error("the host begins with a scheme other than http or https; leave it out")]
    Scheme,
    /// `user@host`.
    #[error("the host has a user name in it; leave it out")]
    UserInfo,
    /// No port, 0, or more than 65535.
    #[error("the port in the host is not a number from 1 to 65535")]
    Port,
    /// `svc` alone.
    #[error("the host has no namespace; name the service as service.namespace.svc")]
    NoNamespace,
    /// An address instead of a name.
    #[error("the host is an IP address; name the service as service.namespace.svc")]
    Address,
    /// A part that is no DNS label.
    #[error(
        "the host is not a name of letters, digits, `-` and `.`; name the service as service.namespace.svc"
    )]
    Name,
    /// Something else than `svc` and the cluster's domain after the namespace.
    #[error(
        "the host is not in this cluster's domain; name the service as service.namespace.svc, with the cluster's domain or without any"
    )]
    Domain,
}

/// Reads what a request names: in `header`, if there is one and the request has it, else in its own address, else in Host.
pub fn named_by<'a>(
    head: &'a request::Parts,
    header: Option<&HeaderName>,
    cluster_domain: &str,
) -> Result<HostTarget<'a>, HostError> {
    let agreed = header.and_then(|name| head.headers.get(name));
    let value = match (agreed, head.uri.authority()) {
        (Some(agreed), _) => Some(agreed),
        (None, Some(authority)) => return parse(authority.as_str(), cluster_domain),
        (None, None) => head.headers.get(HOST),
    };
    let text = value.map_or(Ok(""), |value| value.to_str());
    parse(text.map_err(|_| HostError::NotText)?, cluster_domain)
}

/// Reads a header's value; nothing is allocated where it is in lower case already.
pub fn parse<'a>(value: &'a str, cluster_domain: &str) -> Result<HostTarget<'a>, HostError> {
    let value = value.trim_matches([' ', '\t']);
    if value.is_empty() {
        return Err(HostError::Empty);
    }
    if value.len() > MAX_LENGTH {
        return Err(HostError::TooLong);
    }
    let value = without_scheme(value)?;
    let authority = value.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(HostError::UserInfo);
    }
    if authority.starts_with('[') {
        return Err(HostError::Address);
    }
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(number(port)?)),
        None => (authority, None),
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.is_empty() {
        return Err(HostError::Empty);
    }
    if host.len() > DNS_SUBDOMAIN_MAX_LENGTH {
        return Err(HostError::TooLong);
    }
    if !host.split('.').all(is_label) {
        return Err(HostError::Name);
    }
    let (service, rest) = host.split_once('.').ok_or(HostError::NoNamespace)?;
    let (namespace, domain) = match rest.split_once('.') {
        Some((namespace, domain)) => (namespace, Some(domain)),
        None => (rest, None),
    };
    if looks_like_address(host) {
        return Err(HostError::Address);
    }
    if !domain.is_none_or(|domain| is_cluster_domain(domain, cluster_domain)) {
        return Err(HostError::Domain);
    }
    Ok(HostTarget {
        namespace: lower(namespace),
        service: lower(service),
        port,
    })
}

fn without_scheme(value: &str) -> Result<&str, HostError> {
    // A scheme ends before the first slash; `://` further back belongs to a path.
    match value.split_once("://") {
        Some((scheme, rest)) if !scheme.contains(['/', '?', '#']) => {
            let known = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
            if known {
                Ok(rest)
            } else {
                Err(HostError::Scheme)
            }
        }
        _ => Ok(value),
    }
}

fn number(port: &str) -> Result<u16, HostError> {
    // `parse` would take `+80` as well.
    if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(HostError::Port);
    }
    match port.parse() {
        Ok(0) | Err(_) => Err(HostError::Port),
        Ok(port) => Ok(port),
    }
}

fn is_label(label: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = label.as_bytes();
    bytes.len() <= DNS_LABEL_MAX_LENGTH
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

/// No top-level domain is a number, but a namespace may be: only what is a number throughout is an address.
fn looks_like_address(host: &str) -> bool {
    host.bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
        && host.split('.').count() == 4
}

/// `svc`, or `svc.` and the cluster's domain.
fn is_cluster_domain(domain: &str, cluster_domain: &str) -> bool {
    let (svc, rest) = match domain.split_once('.') {
        Some((svc, rest)) => (svc, Some(rest)),
        None => (domain, None),
    };
    let cluster_domain = cluster_domain.trim_matches('.');
    svc.eq_ignore_ascii_case("svc")
        && rest.is_none_or(|rest| rest.eq_ignore_ascii_case(cluster_domain))
}

fn lower(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DOMAIN: &str = "cluster.local";

    #[test]
    fn every_form_of_a_name_is_understood() {
        for (text, port) in [
            ("web.shop", None),
            ("web.shop.", None),
            ("web.shop:80", Some(80)),
            ("web.shop.svc", None),
            ("web.shop.svc:8080", Some(8080)),
            ("web.shop.svc.cluster.local", None),
            ("web.shop.svc.cluster.local.:65535", Some(65535)),
            ("http://web.shop.svc.cluster.local:80/*", Some(80)),
            ("HTTPS://Web.Shop.SVC.Cluster.Local/a/b://c", None),
            ("web.shop.svc.cluster.local:80/a@b", Some(80)),
            ("web.shop?x", None),
            (" web.shop\t", None),
        ] {
            let target = parse(text, DOMAIN).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(
                (&*target.service, &*target.namespace),
                ("web", "shop"),
                "{text}"
            );
            assert_eq!(target.port, port, "{text}");
        }
        assert!(parse("web.shop.svc.corp.example", "corp.example.").is_ok());
        assert!(parse("1.2", DOMAIN).is_ok(), "both are valid names");
    }

    #[test]
    fn everything_else_is_refused() {
        let long = format!("{}.shop", "a".repeat(64));
        let longer = format!("web.shop.svc.{}", "a.".repeat(200));
        let longest = "a".repeat(100_000);
        for (text, error) in [
            ("", HostError::Empty),
            ("  ", HostError::Empty),
            (".", HostError::Empty),
            ("http://", HostError::Empty),
            ("/path", HostError::Empty),
            (":80", HostError::Empty),
            ("web", HostError::NoNamespace),
            ("web.", HostError::NoNamespace),
            ("localhost:8012", HostError::NoNamespace),
            ("10.0.0.1", HostError::Address),
            ("10.0.0.1:80", HostError::Address),
            ("[::1]:80", HostError::Address),
            ("::1", HostError::Port),
            ("web.shop:", HostError::Port),
            ("web.shop:0", HostError::Port),
            ("web.shop:99999", HostError::Port),
            ("web.shop:+80", HostError::Port),
            ("web.shop:80:80", HostError::Port),
            ("web.shop:http", HostError::Port),
            ("a@web.shop", HostError::UserInfo),
            ("http://a:b@web.shop", HostError::UserInfo),
            ("ftp://web.shop", HostError::Scheme),
            ("://web.shop", HostError::Scheme),
            ("http://http://web.shop", HostError::Port),
            ("web..shop", HostError::Name),
            (".web.shop", HostError::Name),
            ("web.shop..", HostError::Name),
            ("..", HostError::Name),
            ("web shop.a", HostError::Name),
            ("web.shop\0", HostError::Name),
            ("web_a.shop", HostError::Name),
            ("-web.shop", HostError::Name),
            ("web-.shop", HostError::Name),
            ("wéb.shop", HostError::Name),
            ("web%2eshop.a", HostError::Name),
            ("web.shop,web.other", HostError::Name),
            ("web.shop\\a", HostError::Name),
            (long.as_str(), HostError::Name),
            (longer.as_str(), HostError::TooLong),
            (longest.as_str(), HostError::TooLong),
            ("web.shop.example", HostError::Domain),
            ("web.shop.svc.example", HostError::Domain),
            ("web.shop.svc.cluster.local.evil", HostError::Domain),
            ("web.shop.pod.cluster.local", HostError::Domain),
        ] {
            assert_eq!(parse(text, DOMAIN), Err(error), "{text:?}");
        }
    }

    #[test]
    fn the_header_that_was_agreed_on_counts_most_and_host_least() {
        let agreed = HeaderName::from_static("x-target");
        let request = |address: &str, headers: &[(&str, &[u8])]| {
            let mut request = http::Request::get(address);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            request.body(()).unwrap().into_parts().0
        };
        for (address, headers, named) in [
            ("/", &[("host", &b"a.x"[..])][..], Ok("a")),
            ("/", &[("host", b"a.x"), ("x-target", b"b.x")], Ok("b")),
            ("http://c.x/", &[("host", b"a.x")], Ok("c")),
            (
                "http://c.x/",
                &[("x-target", b"b.x"), ("host", b"a.x")],
                Ok("b"),
            ),
            ("/", &[], Err(HostError::Empty)),
            // One that says nothing useful is not passed over: whoever set it meant it.
            (
                "/",
                &[("x-target", b""), ("host", b"a.x")],
                Err(HostError::Empty),
            ),
            (
                "/",
                &[("x-target", b"b.\xffx"), ("host", b"a.x")],
                Err(HostError::NotText),
            ),
        ] {
            let head = request(address, headers);
            let target = named_by(&head, Some(&agreed), DOMAIN);
            let service = target.as_ref().map(|it| &*it.service).map_err(|it| *it);
            assert_eq!(service, named, "{address} {headers:?}");
        }
        let head = request("/", &[("host", b"a.x"), ("x-target", b"b.x")]);
        assert_eq!(named_by(&head, None, DOMAIN).unwrap().service, "a");
    }

    /// What the fuzzer begins with stays good for something: the first line is the cluster's domain.
    #[test]
    fn every_seed_is_read_as_it_should_be() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/host");
        let mut seeds: Vec<_> = std::fs::read_dir(directory).unwrap().flatten().collect();
        seeds.sort_by_key(std::fs::DirEntry::file_name);
        let read = seeds.iter().map(|seed| {
            let text = std::fs::read_to_string(seed.path()).unwrap();
            let (domain, text) = text.split_once('\n').unwrap();
            let port = parse(text, domain).map(|target| target.port);
            (seed.file_name().into_string().unwrap(), port)
        });
        let expected = [
            ("address", Err(HostError::Address)),
            ("login", Err(HostError::UserInfo)),
            ("long", Ok(None)),
            ("other_domain", Ok(Some(80))),
            ("short", Ok(None)),
            ("too_long", Err(HostError::Name)),
            ("two_schemes", Err(HostError::Port)),
            ("whole", Ok(Some(8080))),
            ("zeros", Ok(Some(80))),
        ];
        let expected = expected.map(|(name, port)| (name.to_owned(), port));
        assert_eq!(read.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn lower_case_is_borrowed() {
        let target = parse("http://web.shop.svc:80/x", DOMAIN).unwrap();
        assert!(matches!(target.service, Cow::Borrowed(_)));
        assert!(matches!(target.namespace, Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn anything_gives_an_answer_and_never_a_bad_name(text in ".{0,80}") {
            if let Ok(target) = parse(&text, DOMAIN) {
                for name in [&target.service, &target.namespace] {
                    prop_assert_eq!(weir_api::dns::check_dns_label(name), Ok(()));
                }
                prop_assert_ne!(target.port, Some(0));
            }
        }

        #[test]
        fn what_is_written_is_read(
            service in "[a-z]([a-z0-9-]{0,20}[a-z0-9])?",
            namespace in "[a-z]([a-z0-9-]{0,20}[a-z0-9])?",
            port in proptest::option::of(1..=u16::MAX),
            scheme in prop_oneof![Just(""), Just("http://"), Just("HTTPS://")],
            domain in prop_oneof![Just(""), Just(".svc"), Just(".svc.cluster.local"), Just(".svc.cluster.local.")],
            path in prop_oneof![Just(""), Just("/"), Just("/a:b@c/*")],
            upper in any::<bool>(),
        ) {
            let number = port.map(|port| format!(":{port}")).unwrap_or_default();
            let mut text = format!("{scheme}{service}.{namespace}{domain}{number}{path}");
            if upper {
                text = text.to_ascii_uppercase();
            }
            let target = parse(&text, DOMAIN);
            let expected = HostTarget { namespace: namespace.into(), service: service.into(), port };
            prop_assert_eq!(target, Ok(expected));
        }
    }
}
