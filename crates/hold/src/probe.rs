//! Answers that are given while no endpoint is ready, without waking (`probeResponse`).
//!
//! [`ProbeRules::compile`] turns the rules of an object into something that can be asked for each request; the resolver calls
//! it when objects change, and asks on the way of requests. How a query is taken apart is in [`query`].

mod query;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, Method, StatusCode, Uri,
    header::{HOST, InvalidHeaderName},
};
use regex::bytes::{Regex, RegexBuilder};
use thiserror::Error;
use weir_api::hold::{
    FixedResponse, HeaderMatch, Method as RuleMethod, PathMatch, PathMatchType, ProbeResponse,
    QueryParamMatch, ValueMatchType,
};

/// The most memory that one compiled expression may take, and again its cache. Rules are written by tenants, and
/// there may be a thousand expressions in one object.
const REGEX_SIZE_LIMIT: usize = 512 * 1024;

/// The rules of one service, in their order; the first that matches wins.
#[derive(Clone, Debug, Default)]
pub struct ProbeRules {
    rules: Vec<Rule>,
    /// What the rules were made from: compiled expressions cannot be compared.
    source: Vec<ProbeResponse>,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeAnswer {
    /// The status.
    pub status: StatusCode,
    /// The body; empty with 204. Whoever answers leaves it away for HEAD.
    pub body: Bytes,
}

#[derive(Clone, Debug)]
struct Rule {
    method: Option<Method>,
    path: PathRule,
    headers: Vec<(HeaderName, ValueRule)>,
    query: Vec<(Box<[u8]>, ValueRule)>,
    answer: ProbeAnswer,
}

#[derive(Clone, Debug)]
enum PathRule {
    Any,
    Exact(Box<str>),
    /// Without a slash at its end.
    Prefix(Box<str>),
    Regex(Regex),
}

#[derive(Clone, Debug)]
enum ValueRule {
    Exact(Box<[u8]>),
    Regex(Regex),
}

#[derive(Debug, Error)]
enum RuleError {
    #[error("`{0}` cannot be used as a regular expression in RE2's form")]
    Regex(String),
    #[error("`{0}` as a regular expression takes too much memory; write a simpler one")]
    RegexSize(String),
    #[error("`{0}` is not the name of a header")]
    HeaderName(String, #[source] InvalidHeaderName),
    #[error("{0} is not a status")]
    Status(u16),
}

impl ProbeRules {
    /// The rules that can be used, and a sentence about each that cannot.
    ///
    /// A rule is left out whole: without its broken part it would match more than was meant.
    pub fn compile(source: &[ProbeResponse]) -> (Self, Vec<String>) {
        let mut rules = Vec::new();
        let mut problems = Vec::new();
        for (index, response) in source.iter().enumerate() {
            match Rule::compile(response) {
                Ok(rule) => rules.push(rule),
                Err(error) => problems.push(format!(
                    "probeResponse[{index}] is left out: {error}; correct it and apply the object again"
                )),
            }
        }
        let source = source.to_vec();
        (Self { rules, source }, problems)
    }

    /// Whether there is nothing to ask.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether these are the rules that `compile` would make of this, so that it need not.
    pub fn is_from(&self, source: &[ProbeResponse]) -> bool {
        self.source == source
    }

    /// The answer of the first rule that matches.
    pub fn answer(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<&ProbeAnswer> {
        self.rules
            .iter()
            .find(|rule| rule.matches(method, uri, headers))
            .map(|rule| &rule.answer)
    }
}

impl PartialEq for ProbeRules {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Rule {
    fn compile(response: &ProbeResponse) -> Result<Self, RuleError> {
        let ProbeResponse {
            path,
            headers,
            query_params,
            method,
            response,
        } = response;
        Ok(Self {
            method: method.map(method_of),
            path: path.as_ref().map_or(Ok(PathRule::Any), PathRule::compile)?,
            headers: headers.iter().map(header).collect::<Result<_, _>>()?,
            query: query_params
                .iter()
                .map(parameter)
                .collect::<Result<_, _>>()?,
            answer: answer(response)?,
        })
    }

    fn matches(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
        self.method.as_ref().is_none_or(|wanted| wanted == method)
            && self.path.matches(uri.path())
            && self
                .headers
                .iter()
                .all(|(name, rule)| header_matches(name, rule, uri, headers))
            && self.query.iter().all(|(name, rule)| {
                query::parameters(uri.query().unwrap_or_default())
                    .any(|(key, value)| *key == **name && rule.matches(&value))
            })
    }
}

impl PathRule {
    fn compile(path: &PathMatch) -> Result<Self, RuleError> {
        let PathMatch { type_, value } = path;
        Ok(match type_ {
            PathMatchType::Exact => Self::Exact(value.as_str().into()),
            PathMatchType::PathPrefix => match value.trim_end_matches('/') {
                "" => Self::Any,
                prefix => Self::Prefix(prefix.into()),
            },
            PathMatchType::RegularExpression => Self::Regex(regex(value)?),
        })
    }

    fn matches(&self, path: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(exact) => **exact == *path,
            Self::Prefix(prefix) => path
                .strip_prefix(&**prefix)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
            Self::Regex(regex) => regex.is_match(path.as_bytes()),
        }
    }
}

impl ValueRule {
    fn compile(type_: ValueMatchType, value: &str) -> Result<Self, RuleError> {
        Ok(match type_ {
            ValueMatchType::Exact => Self::Exact(value.as_bytes().into()),
            ValueMatchType::RegularExpression => Self::Regex(regex(value)?),
        })
    }

    fn matches(&self, value: &[u8]) -> bool {
        match self {
            Self::Exact(exact) => **exact == *value,
            Self::Regex(regex) => regex.is_match(value),
        }
    }
}

fn header_matches(name: &HeaderName, rule: &ValueRule, uri: &Uri, headers: &HeaderMap) -> bool {
    if headers
        .get_all(name)
        .iter()
        .any(|value| rule.matches(value.as_bytes()))
    {
        return true;
    }
    // HTTP/2 has no Host: its place is in the address.
    *name == HOST
        && !headers.contains_key(HOST)
        && uri
            .authority()
            .is_some_and(|authority| rule.matches(authority.as_str().as_bytes()))
}

fn header(header: &HeaderMatch) -> Result<(HeaderName, ValueRule), RuleError> {
    let HeaderMatch { name, type_, value } = header;
    let parsed = HeaderName::from_bytes(name.as_bytes())
        .map_err(|error| RuleError::HeaderName(name.clone(), error))?;
    Ok((parsed, ValueRule::compile(*type_, value)?))
}

fn parameter(parameter: &QueryParamMatch) -> Result<(Box<[u8]>, ValueRule), RuleError> {
    let QueryParamMatch { name, type_, value } = parameter;
    Ok((name.as_bytes().into(), ValueRule::compile(*type_, value)?))
}

fn answer(response: &FixedResponse) -> Result<ProbeAnswer, RuleError> {
    let FixedResponse { status, body } = response;
    let status = StatusCode::from_u16(*status).map_err(|_| RuleError::Status(*status))?;
    let body = if status == StatusCode::NO_CONTENT {
        Bytes::new()
    } else {
        Bytes::copy_from_slice(body.as_bytes())
    };
    Ok(ProbeAnswer { status, body })
}

/// `\w`, `\d` and `\s` are ASCII in RE2, and much smaller so; only what speaks of Unicode by name is compiled with it.
fn regex(text: &str) -> Result<Regex, RuleError> {
    let compile = |unicode| {
        RegexBuilder::new(text)
            .unicode(unicode)
            .size_limit(REGEX_SIZE_LIMIT)
            .dfa_size_limit(REGEX_SIZE_LIMIT)
            .build()
    };
    let compiled = match compile(false) {
        Err(regex::Error::Syntax(_)) => compile(true),
        other => other,
    };
    compiled.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => RuleError::RegexSize(text.to_owned()),
        _ => RuleError::Regex(text.to_owned()),
    })
}

fn method_of(method: RuleMethod) -> Method {
    match method {
        RuleMethod::Get => Method::GET,
        RuleMethod::Head => Method::HEAD,
        RuleMethod::Post => Method::POST,
        RuleMethod::Put => Method::PUT,
        RuleMethod::Delete => Method::DELETE,
        RuleMethod::Connect => Method::CONNECT,
        RuleMethod::Options => Method::OPTIONS,
        RuleMethod::Trace => Method::TRACE,
        RuleMethod::Patch => Method::PATCH,
    }
}
