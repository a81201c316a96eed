//! Any text as the name of a target: it is taken exactly if one plain expression matches it, and names what that says; and
//! however a name that was taken is written, it names the same.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use regex::Regex;
use weir_api::dns::check_dns_label;
use weir_hold::host::{HostTarget, parse};

/// The form, but for the cluster's domain and the lengths.
static FORM: LazyLock<Regex> = LazyLock::new(|| {
    let label = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
    let form = format!(
        r"^(?i-u:(?:https?://)?(?<host>(?<service>{label})\.(?<namespace>{label})(?<domain>(?:\.{label})*))\.?(?::(?<port>[0-9]+))?)(?s:[/?\x23].*)?$"
    );
    Regex::new(&form).expect("an expression")
});

fuzz_target!(|text: &str| {
    // The first line is the cluster's domain.
    let (domain, text) = text.split_once('\n').unwrap_or(("cluster.local", text));
    let target = parse(text, domain);
    assert_eq!(
        target.as_ref().ok(),
        plainly(text, domain).as_ref(),
        "{target:?}"
    );
    let Ok(HostTarget {
        namespace,
        service,
        port,
    }) = target
    else {
        return;
    };
    assert_eq!(
        (check_dns_label(&service), check_dns_label(&namespace)),
        (Ok(()), Ok(()))
    );
    assert_ne!(port, Some(0));
    let number = port.map(|port| format!(":{port}")).unwrap_or_default();
    for domain in ["", ".", ".svc", ".SVC."] {
        for (scheme, path) in [("", ""), ("http://", "/"), ("HTTPS://", "?a:b@c://d")] {
            let written = format!("{scheme}{service}.{namespace}{domain}{number}{path}");
            let again = parse(&written, "cluster.local");
            assert_eq!(
                again
                    .as_ref()
                    .map(|it| (&it.service, &it.namespace, it.port)),
                Ok((&service, &namespace, port)),
                "{written}"
            );
        }
    }
});

/// The slow and obvious way.
fn plainly(text: &str, cluster_domain: &str) -> Option<HostTarget<'static>> {
    let text = text.trim_matches([' ', '\t']);
    let parts = FORM.captures(text).filter(|_| text.len() <= 4096)?;
    let cluster_domain = cluster_domain.trim_matches('.').to_ascii_lowercase();
    let domains = ["", ".svc", &format!(".svc.{cluster_domain}")];
    let host = parts["host"].to_ascii_lowercase();
    let domain = parts["domain"].to_ascii_lowercase();
    if host.len() > 253 || !domains.contains(&&*domain) {
        return None;
    }
    let port = match parts.name("port") {
        Some(number) => Some(number.as_str().parse().ok().filter(|port| *port != 0)?),
        None => None,
    };
    Some(HostTarget {
        namespace: parts["namespace"].to_ascii_lowercase().into(),
        service: parts["service"].to_ascii_lowercase().into(),
        port,
    })
}
