//! What the schema of an `ElastiService` cannot see: regular expressions, thresholds, time zones,
//! and what an older schema let in.

use jiff::tz::TimeZoneDatabase;
use regex::Regex;

use super::probe::{PathMatchType, ProbeResponse, ValueMatchType};
use super::resource::ElastiService;
use super::trigger::{Trigger, TriggerMetadata, TriggerType};
use crate::finding::{Finding, Findings};
use crate::form::cron::Cron;
use crate::form::go_duration::GoDuration;
use crate::form::header::is_header_name;
use crate::form::threshold::{ThresholdError, parse_rate, parse_threshold};

impl ElastiService {
    /// Everything that is wrong with it. Nothing found means that a controller may act upon it.
    pub fn validate(&self) -> Vec<Finding> {
        let mut findings = Findings::default();
        for (index, trigger) in self.spec.triggers.iter().enumerate() {
            validate_trigger(
                trigger,
                &format!("spec.triggers[{index}].metadata"),
                &mut findings,
            );
        }
        if let Some(period) = &self.spec.enabled_period {
            validate_cron(
                &period.schedule,
                "spec.enabledPeriod.schedule",
                &mut findings,
            );
            validate_duration(
                &period.duration,
                "spec.enabledPeriod.duration",
                &mut findings,
            );
        }
        for (index, rule) in self.spec.probe_response.iter().enumerate() {
            validate_probe(rule, &format!("spec.probeResponse[{index}]"), &mut findings);
        }
        findings.into_vec()
    }
}

fn validate_trigger(trigger: &Trigger, at: &str, findings: &mut Findings) {
    let TriggerMetadata {
        query,
        server_address,
        threshold,
        uptime_filter,
        headers,
        schedule,
        duration,
        time_zone,
        behind_resolver,
        unknown,
    } = &trigger.metadata;

    match trigger.type_ {
        TriggerType::Prometheus => {
            if query.as_deref().unwrap_or_default().is_empty() {
                findings.refuse(
                    format!("{at}.query"),
                    "MissingQuery",
                    "a prometheus trigger needs a query",
                );
            }
            match threshold {
                None => findings.refuse(
                    format!("{at}.threshold"),
                    "MissingThreshold",
                    "a prometheus trigger needs a threshold: the value below which the workload counts as idle",
                ),
                Some(value) => validate_threshold(parse_threshold(value), at, findings),
            }
            for name in headers.keys().filter(|name| !is_header_name(name)) {
                findings.refuse(
                    format!("{at}.headers"),
                    "InvalidHeader",
                    format!("{name:?} is not the name of a header"),
                );
            }
        }
        TriggerType::Network => {
            if let Some(value) = threshold {
                validate_threshold(parse_rate(value), at, findings);
            }
        }
        TriggerType::Schedule => validate_window(&trigger.metadata, at, findings),
        TriggerType::Resolver => {
            if !trigger.stays_behind_resolvers() {
                findings.refuse(
                    format!("{at}.behindResolver"),
                    "NotBehindResolver",
                    "a resolver trigger needs true here: it says that all clients come through the resolvers",
                );
            }
        }
    }

    let set = [
        ("query", query.is_some()),
        ("serverAddress", server_address.is_some()),
        ("threshold", threshold.is_some()),
        ("uptimeFilter", uptime_filter.is_some()),
        ("headers", !headers.is_empty()),
        ("schedule", schedule.is_some()),
        ("duration", duration.is_some()),
        ("timeZone", time_zone.is_some()),
        ("behindResolver", behind_resolver.is_some()),
    ];
    let used = used_keys(trigger.type_);
    let idle = set
        .iter()
        .filter(|(key, set)| *set && !used.contains(key))
        .map(|(key, _)| *key);
    for key in idle.chain(unknown.keys().map(String::as_str)) {
        let field = format!("{at}.{key}");
        if used.contains(&key) {
            findings.refuse(
                field,
                "WrongType",
                "holds something of another type than it should",
            );
        } else {
            let message = format!(
                "is not used by this type of trigger, which knows {}",
                used.join(", ")
            );
            findings.adjust(field, "UnusedTriggerKey", message);
        }
    }
}

fn used_keys(type_: TriggerType) -> &'static [&'static str] {
    match type_ {
        TriggerType::Prometheus => &[
            "query",
            "serverAddress",
            "threshold",
            "uptimeFilter",
            "headers",
        ],
        TriggerType::Network => &["threshold"],
        TriggerType::Schedule => &["schedule", "duration", "timeZone"],
        TriggerType::Resolver => &["behindResolver"],
    }
}

fn validate_threshold(parsed: Result<f64, ThresholdError>, at: &str, findings: &mut Findings) {
    if let Err(error) = parsed {
        findings.refuse(
            format!("{at}.threshold"),
            "InvalidThreshold",
            error.to_string(),
        );
    }
}

fn validate_window(metadata: &TriggerMetadata, at: &str, findings: &mut Findings) {
    let TriggerMetadata {
        schedule,
        duration,
        time_zone,
        ..
    } = metadata;
    match schedule {
        Some(schedule) => validate_cron(schedule, &format!("{at}.schedule"), findings),
        None => findings.refuse(
            format!("{at}.schedule"),
            "InvalidSchedule",
            "a schedule trigger needs five cron fields that say when each window begins",
        ),
    }
    match duration {
        Some(duration) => validate_duration(duration, &format!("{at}.duration"), findings),
        None => findings.refuse(
            format!("{at}.duration"),
            "InvalidDuration",
            "a schedule trigger needs the length of each window",
        ),
    }
    let has_zone = schedule.as_deref().is_some_and(|text| text.contains("TZ="));
    if time_zone.is_some() && has_zone {
        findings.refuse(
            format!("{at}.timeZone"),
            "TwoTimeZones",
            "give the time zone here or before the cron fields, not in both places",
        );
    }
    if let Some(zone) = time_zone
        && TimeZoneDatabase::bundled().get(zone).is_err()
    {
        findings.refuse(
            format!("{at}.timeZone"),
            "UnknownTimeZone",
            format!("{zone:?} is not in the time zone database; use a name such as Europe/Berlin"),
        );
    }
}

fn validate_cron(text: &str, field: &str, findings: &mut Findings) {
    match Cron::parse(text) {
        Err(error) => findings.refuse(field, "InvalidSchedule", error.to_string()),
        // Any moment will do: a day that does not come within twelve years of it never comes.
        Ok(cron) if cron.next_after(jiff::Timestamp::UNIX_EPOCH).is_none() => {
            findings.refuse(field, "InvalidSchedule", "names a day that never comes");
        }
        Ok(_) => {}
    }
}

fn validate_duration(text: &str, field: &str, findings: &mut Findings) {
    match GoDuration::parse(text) {
        Err(error) => findings.refuse(field, "InvalidDuration", error.to_string()),
        Ok(duration) if duration.as_nanos() <= 0 => {
            findings.refuse(field, "InvalidDuration", "must be above zero");
        }
        Ok(_) => {}
    }
}

fn validate_probe(rule: &ProbeResponse, at: &str, findings: &mut Findings) {
    if let Some(path) = &rule.path
        && path.type_ == PathMatchType::RegularExpression
    {
        validate_regex(&path.value, &format!("{at}.path.value"), findings);
    }
    for (index, header) in rule.headers.iter().enumerate() {
        if header.type_ == ValueMatchType::RegularExpression {
            validate_regex(
                &header.value,
                &format!("{at}.headers[{index}].value"),
                findings,
            );
        }
    }
    for (index, parameter) in rule.query_params.iter().enumerate() {
        if parameter.type_ == ValueMatchType::RegularExpression {
            let field = format!("{at}.queryParams[{index}].value");
            validate_regex(&parameter.value, &field, findings);
        }
    }
}

fn validate_regex(text: &str, field: &str, findings: &mut Findings) {
    if let Err(error) = Regex::new(text) {
        // The crate draws a picture of several lines; its last line says what is wrong.
        let picture = error.to_string();
        let what = picture
            .lines()
            .last()
            .unwrap_or_default()
            .trim_start_matches("error: ");
        findings.refuse(
            field,
            "InvalidRegularExpression",
            format!("cannot be used as a regular expression in RE2's form: {what}"),
        );
    }
}
