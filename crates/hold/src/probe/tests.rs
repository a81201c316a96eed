//! Rules against requests: the contract as a table, and that nothing panics.

use proptest::prelude::*;

use super::*;

fn rules(yaml: &str) -> ProbeRules {
    let source: Vec<ProbeResponse> = serde_saphyr::from_str(yaml).unwrap();
    let (rules, problems) = ProbeRules::compile(&source);
    assert_eq!(problems, Vec::<String>::new());
    rules
}

fn request(line: &str, headers: &[(&str, &str)]) -> (Method, Uri, HeaderMap) {
    let (method, uri) = line.split_once(' ').unwrap();
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name: HeaderName = name.parse().unwrap();
        map.append(name, value.parse().unwrap());
    }
    (method.parse().unwrap(), uri.parse().unwrap(), map)
}

fn status(rules: &ProbeRules, line: &str, headers: &[(&str, &str)]) -> u16 {
    let (method, uri, headers) = request(line, headers);
    rules
        .answer(&method, &uri, &headers)
        .map_or(0, |answer| answer.status.as_u16())
}

/// A rule, a request with its headers, and whether they match.
const TABLE: &str = r"
# no path, no method: everything
                                                        | GET /                | | yes
                                                        | DELETE /a?b          | | yes
                                                        | OPTIONS *            | | yes
# prefixes match whole segments
path: {value: /health}                                  | GET /health          | | yes
path: {value: /health}                                  | GET /health/         | | yes
path: {value: /health}                                  | GET /health/a        | | yes
path: {value: /health}                                  | GET /healthy         | | no
path: {value: /health}                                  | GET /                | | no
path: {value: /health/}                                 | GET /health          | | yes
path: {value: /health/}                                 | GET /healthy         | | no
path: {value: /}                                        | GET /anything        | | yes
path: {}                                                | GET /anything        | | yes
path: {type: Exact, value: /ready}                      | GET /ready?x=1       | | yes
path: {type: Exact, value: /ready}                      | GET /ready/          | | no
# expressions are not anchored
path: {type: RegularExpression, value: 'h.a[lL]'}       | GET /x/heal          | | yes
path: {type: RegularExpression, value: '^/heal$'}       | GET /x/heal          | | no
path: {type: RegularExpression, value: '^/\w+/\p{Lu}'}  | GET /x/Y             | | yes
method: GET                                             | GET /                | | yes
method: GET                                             | HEAD /               | | no
method: PATCH                                           | PATCH /              | | yes
# headers: any case of the name, one of several values is enough
headers: [{name: X-Probe, value: 'yes'}]                | GET /                | | no
headers: [{name: X-Probe, value: 'yes'}]                | GET /                | x-probe=yes | yes
headers: [{name: X-Probe, value: 'yes'}]                | GET /                | x-probe=Yes | no
headers: [{name: X-Probe, value: 'yes'}]                | GET /                | x-probe=no x-probe=yes | yes
headers: [{name: a, value: '1'}, {name: b, value: '2'}] | GET /                | a=1 | no
headers: [{name: a, value: '1'}, {name: b, value: '2'}] | GET /                | a=1 b=2 | yes
headers: [{name: user-agent, type: RegularExpression, value: '^ELB-'}] | GET / | user-agent=ELB-Health/2.0 | yes
headers: [{name: host, value: a.b}]                     | GET http://a.b/      | | yes
headers: [{name: host, value: a.b}]                     | GET http://a.b/      | host=c.d | no
# parameters are decoded
queryParams: [{name: probe, value: '1'}]                | GET /?probe=1        | | yes
queryParams: [{name: probe, value: '1'}]                | GET /?probe=2&probe=1 | | yes
queryParams: [{name: probe, value: '1'}]                | GET /?probe=11       | | no
queryParams: [{name: probe, value: '1'}]                | GET /                | | no
queryParams: [{name: probe, value: ''}]                 | GET /?probe          | | yes
queryParams: [{name: probe, value: ''}]                 | GET /?other          | | no
queryParams: [{name: a b, value: c/d e}]                | GET /?a+b=c%2Fd%20e  | | yes
queryParams: [{name: a, type: RegularExpression, value: '[0-9]{3}'}] | GET /?a=x1234 | | yes
# all parts at once
method: GET, path: {value: /a}, headers: [{name: b, value: c}] | GET /a        | b=c | yes
method: GET, path: {value: /a}, headers: [{name: b, value: c}] | GET /b        | b=c | no
";

#[test]
fn the_rules_of_the_contract() {
    let rows = TABLE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let &[rule, line, headers, matches] = cells.as_slice() else {
            panic!("not four cells: {row}")
        };
        let comma = if rule.is_empty() { "" } else { "," };
        let yaml = format!("- {{{rule}{comma} response: {{status: 200, body: x}}}}");
        let headers: Vec<(&str, &str)> = headers
            .split_whitespace()
            .filter_map(|header| header.split_once('='))
            .collect();
        let found = status(&rules(&yaml), line, &headers) == 200;
        assert_eq!(found, matches == "yes", "{row}");
    }
}

#[test]
fn the_first_rule_wins_and_204_has_no_body() {
    let rules = rules(
        "
- {path: {value: /a}, response: {status: 204, body: not sent}}
- {path: {value: /a/b}, response: {status: 500, body: never}}
- {response: {status: 404, body: rest}}",
    );
    assert_eq!(status(&rules, "GET /a/b", &[]), 204);
    assert_eq!(status(&rules, "GET /b", &[]), 404);
    let (method, uri, headers) = request("GET /a", &[]);
    let answer = rules.answer(&method, &uri, &headers).unwrap();
    assert!(answer.body.is_empty());
    assert!(ProbeRules::default().is_empty() && !rules.is_empty());
    assert!(
        ProbeRules::default()
            .answer(&method, &uri, &headers)
            .is_none()
    );
}

#[test]
fn a_rule_that_cannot_be_used_is_left_out_whole_and_named() {
    let source: Vec<ProbeResponse> = serde_saphyr::from_str(
        "
- {path: {type: RegularExpression, value: '('}, response: {status: 200, body: a}}
- {headers: [{name: 'a b', value: c}], response: {status: 200, body: a}}
- {queryParams: [{name: a, type: RegularExpression, value: '(((a{100}){100}){100})'}], response: {status: 200, body: a}}
- {response: {status: 99, body: a}}
- {response: {status: 503, body: last}}",
    )
    .unwrap();
    let (rules, problems) = ProbeRules::compile(&source);
    assert_eq!(problems.len(), 4, "{problems:?}");
    for (index, part) in ["`(`", "`a b`", "too much memory", "99 is not"]
        .iter()
        .enumerate()
    {
        let problem = problems[index].as_str();
        assert!(
            problem.contains(part) && problem.contains(&format!("[{index}]")),
            "{problem}"
        );
    }
    assert_eq!(status(&rules, "GET /", &[]), 503);
}

#[test]
fn rules_are_equal_when_they_say_the_same() {
    let yaml = "- {path: {type: RegularExpression, value: a}, response: {status: 200, body: b}}";
    assert_eq!(rules(yaml), rules(yaml));
    assert_ne!(rules(yaml), rules(&yaml.replace("200", "404")));
    assert_ne!(rules(yaml), ProbeRules::default());
}

proptest! {
    /// Whatever stands in an object and whatever a client sends, nothing panics.
    #[test]
    fn nothing_panics(pattern in ".{0,40}", path in "[ -~]{0,40}", value in any::<Vec<u8>>(), status in any::<u16>()) {
        let matching = |value: &str| QueryParamMatch {
            name: value.to_owned(),
            type_: ValueMatchType::RegularExpression,
            value: value.to_owned(),
        };
        let source = [ProbeResponse {
            path: Some(PathMatch { type_: PathMatchType::RegularExpression, value: pattern.clone() }),
            headers: vec![HeaderMatch {
                name: pattern.clone(),
                type_: ValueMatchType::RegularExpression,
                value: pattern.clone(),
            }],
            query_params: vec![matching(&pattern)],
            method: None,
            response: FixedResponse { status, body: String::new() },
        }];
        let (rules, problems) = ProbeRules::compile(&source);
        prop_assert_eq!(rules.is_empty(), !problems.is_empty());
        let mut headers = HeaderMap::new();
        if let Ok(value) = http::HeaderValue::from_bytes(&value) {
            headers.insert("a", value);
        }
        if let Ok(uri) = format!("/{path}").parse::<Uri>() {
            rules.answer(&Method::GET, &uri, &headers);
        }
    }

    /// A prefix matches exactly the paths whose first segments are its segments.
    #[test]
    fn a_prefix_is_compared_by_segments(
        prefix in proptest::collection::vec("[ab]{1,2}", 0..3),
        path in proptest::collection::vec("[ab]{1,2}", 0..4),
    ) {
        let rule = PathRule::compile(&PathMatch {
            type_: PathMatchType::PathPrefix,
            value: format!("/{}", prefix.join("/")),
        }).unwrap();
        let matches = rule.matches(&format!("/{}", path.join("/")));
        prop_assert_eq!(matches, path.starts_with(&prefix));
    }
}
