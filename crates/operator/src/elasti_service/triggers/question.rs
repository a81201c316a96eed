//! What there is to ask: a trigger as it stands in the spec → the two questions behind it.
//!
//! Pure. Questions that are equal are the same question, whoever asks: the neighbours count on it.

use std::{fmt, sync::Arc, time::Duration};

use http::{HeaderName, HeaderValue, Uri, header::AUTHORIZATION};
use thiserror::Error;
use weir_api::{
    form::threshold::{ThresholdError, parse_threshold},
    hold::{Trigger, TriggerMetadata, TriggerType, defaults, names::environment},
};

use super::{Secret, address::Address};

/// The most triggers of one object that are asked; what has more is not for people.
const MOST_TRIGGERS: usize = 64;
/// How much of a query is repeated in a sentence.
const SHOWN: usize = 200;

/// What triggers that leave something out are asked with.
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    /// The server of triggers that name none; there may be a password in it.
    pub address: Option<Secret>,
    /// The Authorization header of triggers that give none.
    pub authorization: Option<Secret>,
}

/// One query to one server.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Question {
    /// Where queries go: the address with the path of the API.
    pub endpoint: Uri,
    /// The address without credentials, for people, and to tell servers apart.
    pub server: Arc<str>,
    /// Headers to send.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The query.
    pub query: String,
}

/// What one trigger comes down to.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// Idle if the value is below the threshold, and Prometheus was up for the whole cooldown.
    Prometheus {
        /// The trigger's query.
        value: Arc<Question>,
        /// The value below which the workload is idle.
        threshold: f64,
        /// Whether Prometheus was up: 1 if it was.
        uptime: Arc<Question>,
    },
    /// It cannot be asked, for this reason.
    Refused(String),
}

/// Why a trigger cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Nobody says that resolvers see all.
    #[error(
        "a resolver trigger needs metadata.behindResolver: true, which says that all clients come through the resolvers"
    )]
    NotBehindResolver,
    /// More than anybody writes by hand.
    #[error("{0} triggers are too many; use at most {MOST_TRIGGERS}")]
    TooMany(usize),
    /// No query.
    #[error("a prometheus trigger needs metadata.query")]
    NoQuery,
    /// No threshold.
    #[error(
        "a prometheus trigger needs metadata.threshold, the value below which the workload is idle"
    )]
    NoThreshold,
    /// A threshold with which nothing can be compared.
    #[error(transparent)]
    Threshold(#[from] ThresholdError),
    /// A key that would be used, were it not of another type.
    #[error("metadata.{0} holds something of another type than it should")]
    WrongType(&'static str),
    /// No server.
    #[error(
        "no Prometheus server is named; set metadata.serverAddress, or {} for all triggers",
        environment::PROMETHEUS_SERVER_ADDRESS
    )]
    NoAddress,
    /// An address that is none. It is not repeated, as it may hold a password.
    #[error(
        "the address of the Prometheus server must be one such as http://prometheus.monitoring:9090"
    )]
    BadAddress,
    /// The name of a header.
    #[error("{0:?} in metadata.headers is not the name of a header")]
    HeaderName(String),
    /// The value of a header. It is not repeated, as it may be a password.
    #[error("the value of the header {0:?} cannot be sent; use printable characters on one line")]
    HeaderValue(String),
    /// The same of the default.
    #[error(
        "the default Authorization header cannot be sent; see {}",
        environment::PROMETHEUS_AUTHORIZATION_HEADER
    )]
    DefaultAuthorization,
}

/// A server, as a trigger names it.
struct Server {
    endpoint: Uri,
    shown: Arc<str>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// What all the triggers of an object come down to.
pub fn asks(triggers: &[Trigger], cooldown: Duration, defaults: &Defaults) -> Vec<Ask> {
    if triggers.len() > MOST_TRIGGERS {
        return vec![Ask::Refused(Refusal::TooMany(triggers.len()).to_string())];
    }
    let ask = |trigger| {
        let ask = ask(trigger, cooldown, defaults)?;
        Some(ask.unwrap_or_else(|refusal| Ask::Refused(refusal.to_string())))
    };
    triggers.iter().filter_map(ask).collect()
}

/// None if no such question is to be asked: a schedule goes by the clock alone, kubelets are asked by `network`, and
/// resolvers by `usage`.
fn ask(trigger: &Trigger, cooldown: Duration, defaults: &Defaults) -> Option<Result<Ask, Refusal>> {
    match trigger.type_ {
        TriggerType::Prometheus => Some(prometheus(&trigger.metadata, cooldown, defaults)),
        TriggerType::Network | TriggerType::Schedule => None,
        TriggerType::Resolver if trigger.stays_behind_resolvers() => None,
        TriggerType::Resolver => Some(Err(Refusal::NotBehindResolver)),
    }
}

fn prometheus(
    metadata: &TriggerMetadata,
    cooldown: Duration,
    defaults: &Defaults,
) -> Result<Ask, Refusal> {
    // A filter or a header that is left out by mistake must not pass for one that nobody wanted.
    for key in ["query", "serverAddress", "uptimeFilter", "headers"] {
        if metadata
            .unknown
            .get(key)
            .is_some_and(|value| !value.is_null())
        {
            return Err(Refusal::WrongType(key));
        }
    }
    let query = given(metadata.query.as_deref()).ok_or(Refusal::NoQuery)?;
    let threshold = metadata.threshold.as_ref().ok_or(Refusal::NoThreshold)?;
    let threshold = parse_threshold(threshold)?;
    let server = server(metadata, defaults)?;
    let filter = given(metadata.uptime_filter.as_deref());
    let filter = filter.unwrap_or(defaults::PROMETHEUS_UPTIME_FILTER);
    Ok(Ask::Prometheus {
        value: Arc::new(server.question(query.to_owned())),
        threshold,
        uptime: Arc::new(server.question(uptime_query(filter, cooldown))),
    })
}

/// Whether a server that this filter finds was up for the whole cooldown: 1 if it was.
fn uptime_query(filter: &str, cooldown: Duration) -> String {
    let seconds = cooldown.as_secs().max(1);
    format!("min_over_time((max(up{{{filter}}}) or vector(0))[{seconds}s:])")
}

/// To the older operator an empty text is none.
fn given(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.trim().is_empty())
}

fn server(metadata: &TriggerMetadata, defaults: &Defaults) -> Result<Server, Refusal> {
    let address = given(metadata.server_address.as_deref())
        .or_else(|| given(defaults.address.as_ref().map(Secret::reveal)))
        .ok_or(Refusal::NoAddress)?;
    let address = Address::read(address.trim()).ok_or(Refusal::BadAddress)?;

    let mut headers = Vec::with_capacity(metadata.headers.len() + 1);
    for (name, value) in &metadata.headers {
        let parsed = HeaderName::try_from(name).map_err(|_| Refusal::HeaderName(name.clone()))?;
        let value = secret_value(value).ok_or_else(|| Refusal::HeaderValue(name.clone()))?;
        headers.push((parsed, value));
    }
    if headers.iter().all(|(name, _)| name != AUTHORIZATION) {
        let of_address = address.basic.as_deref();
        let of_address = of_address.map(|basic| secret_value(basic).ok_or(Refusal::BadAddress));
        let of_defaults = || {
            let default = defaults.authorization.as_ref()?;
            Some(secret_value(default.reveal()).ok_or(Refusal::DefaultAuthorization))
        };
        if let Some(value) = of_address.or_else(of_defaults).transpose()? {
            headers.push((AUTHORIZATION, value));
        }
    }
    Ok(Server {
        endpoint: address.endpoint,
        shown: address.shown.into(),
        headers,
    })
}

impl Server {
    fn question(&self, query: String) -> Question {
        Question {
            endpoint: self.endpoint.clone(),
            server: Arc::clone(&self.shown),
            headers: self.headers.clone(),
            query,
        }
    }
}

fn secret_value(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// As much of a text as fits into a sentence, on one line.
pub fn shown(text: &str) -> String {
    let mut short = String::new();
    for (at, character) in text.chars().enumerate() {
        if at == SHOWN {
            short.push('…');
            break;
        }
        short.push(if character.is_control() {
            ' '
        } else {
            character
        });
    }
    short
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` at {}", shown(&self.query), self.server)
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    const COOLDOWN: Duration = Duration::from_mins(15);

    fn trigger(metadata: Value) -> Trigger {
        let mut trigger = json!({"type": "prometheus"});
        trigger["metadata"] = metadata;
        serde_json::from_value(trigger).unwrap()
    }

    fn one(trigger: &Trigger, defaults: &Defaults) -> Ask {
        let mut asks = asks(std::slice::from_ref(trigger), COOLDOWN, defaults);
        assert_eq!(asks.len(), 1);
        asks.remove(0)
    }

    fn asked(metadata: Value, defaults: &Defaults) -> (Question, f64, Question) {
        match one(&trigger(metadata), defaults) {
            Ask::Prometheus {
                value,
                threshold,
                uptime,
            } => ((*value).clone(), threshold, (*uptime).clone()),
            Ask::Refused(why) => panic!("{why}"),
        }
    }

    fn sent(question: &Question) -> BTreeMap<&str, &str> {
        let headers = question.headers.iter();
        headers
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect()
    }

    fn company() -> Defaults {
        Defaults {
            address: Some(Secret::new("https://metrics.example/prom/")),
            authorization: Some(Secret::new("Bearer default")),
        }
    }

    #[test]
    fn what_is_left_out_comes_from_the_defaults() {
        let (value, threshold, uptime) =
            asked(json!({"query": "q", "threshold": "0.5"}), &company());
        assert_eq!(value.query, "q");
        assert!((threshold - 0.5).abs() < f64::EPSILON);
        assert_eq!(
            uptime.query,
            r#"min_over_time((max(up{container="prometheus"}) or vector(0))[900s:])"#
        );
        for question in [&value, &uptime] {
            assert_eq!(
                question.endpoint,
                "https://metrics.example/prom/api/v1/query"
            );
            assert_eq!(&*question.server, "https://metrics.example/prom");
            assert_eq!(
                sent(question),
                BTreeMap::from([("authorization", "Bearer default")])
            );
        }
    }

    #[test]
    fn what_is_given_wins() {
        let given = json!({
            "query": "q",
            "threshold": 3,
            "serverAddress": "http://own:9090",
            "uptimeFilter": r#"job="p""#,
            "headers": {"AUTHORIZATION": "Basic own", "X-Scope-OrgID": "7"},
        });
        let (value, _, uptime) = asked(given, &company());
        assert_eq!(value.endpoint, "http://own:9090/api/v1/query");
        assert_eq!(
            uptime.query,
            r#"min_over_time((max(up{job="p"}) or vector(0))[900s:])"#
        );
        let headers = BTreeMap::from([("authorization", "Basic own"), ("x-scope-orgid", "7")]);
        assert_eq!(sent(&value), headers);
        assert_eq!(sent(&uptime), headers);
    }

    #[test]
    fn an_empty_text_is_none() {
        let empty = json!({"query": "q", "threshold": 1, "serverAddress": "", "uptimeFilter": " "});
        let (value, _, uptime) = asked(empty, &company());
        assert_eq!(&*value.server, "https://metrics.example/prom");
        assert!(uptime.query.contains(r#"container="prometheus""#));
    }

    #[test]
    fn a_password_in_the_address_is_sent_and_not_shown() {
        let address = json!({"query": "q", "threshold": 1, "serverAddress": "http://me:s%C3%A9cret@own:9090"});
        let (value, _, _) = asked(address, &company());
        assert_eq!(value.endpoint, "http://own:9090/api/v1/query");
        assert_eq!(sent(&value)["authorization"], "Basic bWU6c8OpY3JldA==");
        let shown = format!("{value} {value:?} {:?} {:?}", value.headers, company());
        for secret in ["s%C3", "sécret", "bWU6", "Bearer", "metrics.example"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }

    #[test]
    fn what_cannot_be_asked_says_what_to_do() {
        let type_ = |name: &str| serde_json::from_value(json!({"type": name})).unwrap();
        let ok = |more: Value| {
            let mut metadata = json!({"query": "q", "threshold": 1, "serverAddress": "http://own"});
            let fields = metadata.as_object_mut().unwrap();
            fields.extend(more.as_object().unwrap().clone());
            trigger(metadata)
        };
        for (trigger, why) in [
            (
                type_("resolver"),
                "a resolver trigger needs metadata.behindResolver: true, which says that all clients come through the resolvers",
            ),
            (
                trigger(json!({})),
                "a prometheus trigger needs metadata.query",
            ),
            (
                trigger(json!({"query": "q"})),
                "a prometheus trigger needs metadata.threshold, the value below which the workload is idle",
            ),
            (
                ok(json!({"threshold": "few"})),
                "the threshold `few` is not a decimal number, such as 0.5",
            ),
            (
                trigger(json!({"query": "q", "threshold": 1})),
                "no Prometheus server is named; set metadata.serverAddress, or \
                 PROMETHEUS_TRIGGER_SERVER_ADDRESS for all triggers",
            ),
            (
                ok(json!({"serverAddress": "ftp://me:secret@own"})),
                "the address of the Prometheus server must be one such as http://prometheus.monitoring:9090",
            ),
            (
                ok(json!({"headers": {"a b": "c"}})),
                "\"a b\" in metadata.headers is not the name of a header",
            ),
            (
                ok(json!({"headers": {"token": "sec\nret"}})),
                "the value of the header \"token\" cannot be sent; use printable characters on one line",
            ),
            (
                ok(json!({"uptimeFilter": 7})),
                "metadata.uptimeFilter holds something of another type than it should",
            ),
            (
                ok(json!({"headers": ["a"]})),
                "metadata.headers holds something of another type than it should",
            ),
        ] {
            let ask = one(&trigger, &Defaults::default());
            assert_eq!(ask, Ask::Refused(why.to_owned()));
        }
        let defaults = Defaults {
            authorization: Some(Secret::new("sec\nret")),
            ..Defaults::default()
        };
        let Ask::Refused(why) = one(&ok(json!({})), &defaults) else {
            panic!("it was taken");
        };
        assert_eq!(
            why,
            "the default Authorization header cannot be sent; see PROMETHEUS_TRIGGER_AUTHORIZATION_HEADER"
        );
    }

    #[test]
    fn thousands_of_triggers_are_not_asked() {
        let many = vec![trigger(json!({"query": "q"})); 65];
        let asks = asks(&many, COOLDOWN, &Defaults::default());
        let why = "65 triggers are too many; use at most 64".to_owned();
        assert_eq!(asks, [Ask::Refused(why)]);
    }

    #[test]
    fn a_sentence_holds_but_one_short_line() {
        let text = format!("a\nb\u{1b}{}", "é".repeat(1000));
        let shown = shown(&text);
        assert!(shown.starts_with("a b é") && shown.ends_with("é…"));
        assert_eq!(shown.chars().count(), SHOWN + 1);
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic_and_the_same_is_the_same(
            address in "(https?://)?[a-z@:/?#%0-9\\[\\].]{0,20}|\\PC{0,20}",
            query in "\\PC{0,20}",
            name in "\\PC{0,6}",
            header in "\\PC{0,6}",
        ) {
            let trigger = trigger(json!({
                "query": query, "threshold": 1, "serverAddress": address, "headers": {name: header},
            }));
            let first = one(&trigger, &company());
            prop_assert_eq!(&one(&trigger, &company()), &first);
            if let Ask::Prometheus { value, .. } = first {
                prop_assert!(matches!(value.endpoint.scheme_str(), Some("http" | "https")));
                prop_assert!(value.endpoint.host().is_some_and(|host| !host.is_empty()));
                let authority = value.endpoint.authority();
                prop_assert!(authority.is_some_and(|authority| !authority.as_str().contains('@')));
            }
        }
    }
}
