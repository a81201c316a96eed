//! Any rules and any head of a request: the same rule answers as by a slow and obvious reading of the contract.
//!
//! Rules are written in lines, each with a word before it, and each rule ends with its status: `method GET`, `path /a`,
//! `path= /a`, `path~ ^/a`, `header= name: value`, `header~ name: value`, `query= name=value`, `query~ name=value`, `is 200`.
//! An empty line ends them, and what follows is a request.
#![no_main]

use http::{StatusCode, header::HOST, request};
use libfuzzer_sys::fuzz_target;
use percent_encoding::percent_decode;
use regex::bytes::RegexBuilder;
use weir_api::hold::{
    FixedResponse, HeaderMatch, Method, PathMatch, PathMatchType, ProbeResponse, QueryParamMatch,
    ValueMatchType,
};
use weir_hold::probe::ProbeRules;

/// More rules and longer texts show nothing new, and expressions take their time.
const MOST_RULES: usize = 6;
const LONGEST: usize = 200;

fuzz_target!(|text: &[u8]| {
    let Some(end) = text.windows(2).position(|two| two == b"\n\n") else {
        return;
    };
    let Ok(rules) = std::str::from_utf8(&text[..end]) else {
        return;
    };
    let rules = rules_of(rules);
    let Some(head) = weir_fuzz::head(&text[end + 2..]) else {
        return;
    };
    let (compiled, problems) = ProbeRules::compile(&rules);
    // One by one, as the sentences do not say it to programs.
    let is_usable = |rule: &ProbeResponse| {
        let (alone, problems) = ProbeRules::compile(std::slice::from_ref(rule));
        assert_eq!(alone.is_empty(), problems.len() == 1);
        !alone.is_empty()
    };
    let usable: Vec<&ProbeResponse> = rules.iter().filter(|rule| is_usable(rule)).collect();
    assert_eq!(usable.len() + problems.len(), rules.len());
    assert_eq!(compiled.is_empty(), usable.is_empty());

    let answer = compiled.answer(&head.method, &head.uri, &head.headers);
    let rule = usable.into_iter().find(|rule| matches(rule, &head));
    assert_eq!(answer.map(|answer| answer.status), rule.map(status));
    if let (Some(answer), Some(rule)) = (answer, rule) {
        let is_empty = answer.status == StatusCode::NO_CONTENT;
        let body = if is_empty { "" } else { &rule.response.body };
        assert_eq!(answer.body, body);
    }
});

fn status(rule: &ProbeResponse) -> StatusCode {
    StatusCode::from_u16(rule.response.status).expect("a rule that can be used")
}

fn matches(rule: &ProbeResponse, head: &request::Parts) -> bool {
    let ProbeResponse {
        path,
        headers,
        query_params,
        method,
        ..
    } = rule;
    let is_method = method.is_none_or(|method| {
        let name = format!("{method:?}").to_uppercase();
        name == head.method.as_str()
    });
    let is_path = path
        .as_ref()
        .is_none_or(|path| path_matches(path, head.uri.path()));
    let mut headers = headers.iter();
    let mut parameters = query_params.iter();
    is_method
        && is_path
        && headers.all(|HeaderMatch { name, type_, value }| {
            let has = |given: &[u8]| value_matches(*type_, value, given);
            let named = head
                .headers
                .iter()
                .filter(|(it, _)| it.as_str().eq_ignore_ascii_case(name));
            let is_host = name.eq_ignore_ascii_case("host") && !head.headers.contains_key(HOST);
            let authority = head.uri.authority().filter(|_| is_host);
            named.into_iter().any(|(_, given)| has(given.as_bytes()))
                || authority.is_some_and(|authority| has(authority.as_str().as_bytes()))
        })
        && parameters.all(|QueryParamMatch { name, type_, value }| {
            let query = head.uri.query().unwrap_or("");
            query
                .split('&')
                .filter(|part| !part.is_empty())
                .any(|part| {
                    let cut = part.find('=').unwrap_or(part.len());
                    let given = part.get(cut + 1..).unwrap_or("");
                    decoded(&part[..cut]) == name.as_bytes()
                        && value_matches(*type_, value, &decoded(given))
                })
        })
}

fn path_matches(rule: &PathMatch, path: &str) -> bool {
    match rule.type_ {
        PathMatchType::Exact => rule.value == path,
        PathMatchType::PathPrefix => {
            let prefix = rule.value.trim_end_matches('/');
            let segments: Vec<&str> = path.split('/').collect();
            prefix.is_empty() || segments.starts_with(&prefix.split('/').collect::<Vec<_>>())
        }
        PathMatchType::RegularExpression => expression_matches(&rule.value, path.as_bytes()),
    }
}

fn value_matches(kind: ValueMatchType, rule: &str, value: &[u8]) -> bool {
    match kind {
        ValueMatchType::Exact => rule.as_bytes() == value,
        ValueMatchType::RegularExpression => expression_matches(rule, value),
    }
}

/// Without limits: what is too large to be compiled is left out before it comes here.
fn expression_matches(rule: &str, text: &[u8]) -> bool {
    let compiled = |unicode| RegexBuilder::new(rule).unicode(unicode).build();
    let expression = compiled(false).or_else(|_| compiled(true));
    expression.expect("a rule that can be used").is_match(text)
}

fn decoded(text: &str) -> Vec<u8> {
    let spaces = text.replace('+', " ");
    percent_decode(spaces.as_bytes()).collect()
}

fn rules_of(text: &str) -> Vec<ProbeResponse> {
    let nothing = || ProbeResponse {
        path: None,
        headers: Vec::new(),
        query_params: Vec::new(),
        method: None,
        response: FixedResponse {
            status: 0,
            body: String::new(),
        },
    };
    let (mut rules, mut rule) = (Vec::new(), nothing());
    for line in text.lines().filter(|line| line.len() <= LONGEST) {
        let Some((word, rest)) = line.split_once(' ') else {
            continue;
        };
        let path = |type_| {
            Some(PathMatch {
                type_,
                value: rest.to_owned(),
            })
        };
        let kind = if word.ends_with('~') {
            ValueMatchType::RegularExpression
        } else {
            ValueMatchType::Exact
        };
        match word {
            "method" => rule.method = method(rest).or(rule.method),
            "path" => rule.path = path(PathMatchType::PathPrefix),
            "path=" => rule.path = path(PathMatchType::Exact),
            "path~" => rule.path = path(PathMatchType::RegularExpression),
            "header=" | "header~" => {
                let (name, value) = rest.split_once(": ").unwrap_or((rest, ""));
                let (name, value) = (name.to_owned(), value.to_owned());
                rule.headers.push(HeaderMatch {
                    name,
                    type_: kind,
                    value,
                });
            }
            "query=" | "query~" => {
                let (name, value) = rest.split_once('=').unwrap_or((rest, ""));
                let (name, value) = (name.to_owned(), value.to_owned());
                rule.query_params.push(QueryParamMatch {
                    name,
                    type_: kind,
                    value,
                });
            }
            "is" => {
                // The first three letters, so that each status has a body of its own.
                let number = rest.get(..3).and_then(|number| number.parse().ok());
                rule.response.status = number.unwrap_or(0);
                rule.response.body = format!("{} {rest}", rules.len());
                rules.push(std::mem::replace(&mut rule, nothing()));
            }
            _ => {}
        }
        if rules.len() == MOST_RULES {
            break;
        }
    }
    rules
}

fn method(text: &str) -> Option<Method> {
    Some(match text {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "CONNECT" => Method::Connect,
        "OPTIONS" => Method::Options,
        "TRACE" => Method::Trace,
        "PATCH" => Method::Patch,
        _ => return None,
    })
}
