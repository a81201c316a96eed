//! The CEL rules that several fields share, each with the sentence a user reads when it fails.
//!
//! A schema `pattern` would answer with the regular expression; a rule answers with what would be
//! right. Every rule first guards what it cannot evaluate: a CEL error is reported as such, without
//! our sentence. What one field alone needs stands beside that field, in `resource.rs`.
//!
//! The API server estimates what a rule may cost from the length of what it reads, so every text with
//! a rule in a list has a `maxLength`, chosen far above what anybody writes.

use kube::core::{Message, Rule};

use crate::dns::{DNS_LABEL_PATTERN, DNS_SUBDOMAIN_PATTERN};
use crate::form::decimal::{LENIENT_DECIMAL_PATTERN, NOT_FINITE_PATTERN, POSITIVE_DECIMAL_PATTERN};
use crate::form::header::HEADER_NAME_PATTERN;

/// A duration as CEL may evaluate it: Go's grammar without a minus, with digits bounded so that
/// whatever fits into [`DURATION_MAX_LENGTH`] stays below the 292 years of an int64 of nanoseconds.
/// The longest is `999999h999999h99999h`, 239 years.
const DURATION: &str = "^[+]?(0|(([0-9]{1,6}([.][0-9]{0,9})?|[.][0-9]{1,9})(h|m)|([0-9]{1,9}([.][0-9]{0,9})?|[.][0-9]{1,9})(s|ms|us|µs|μs|ns))+)$";

/// Longest duration that is accepted, in characters: the `maxLength` beside every duration rule.
pub(crate) const DURATION_MAX_LENGTH: u32 = 20;

/// Longest decimal of a `TrafficSchedule` that is accepted, in characters: room for every digit of a
/// number that somebody printed exactly.
pub(crate) const LENIENT_DECIMAL_MAX_LENGTH: u32 = 128;

/// Longest cron expression that is accepted, in characters.
pub(crate) const CRON_MAX_LENGTH: u32 = 512;

/// Longest address that is accepted, in characters.
pub(crate) const URL_MAX_LENGTH: u32 = 2048;

/// Longest time that is accepted, in characters.
pub(crate) const TIME_MAX_LENGTH: u32 = 64;

const HTTP_URL: &str =
    r"^(?i:https?)://([^/?#\s@]+@)?(\[[0-9A-Fa-f:.]+\]|[^/?#\s@:\[\]]+)(:[0-9]{1,5})?(/[^?#\s]*)?$";
const HTTP_URL_MESSAGE: &str = "must be an address such as http://prometheus.monitoring:9090";

/// `self` matches a regular expression.
pub(crate) fn matches(regex: &str, message: &str) -> Rule {
    Rule::new(format!("self.matches({})", quote(regex))).message(message)
}

/// `self` is a name as Services have: one DNS label.
pub(crate) fn service_name() -> Rule {
    matches(
        DNS_LABEL_PATTERN,
        "must be the name of a Service: lower-case letters, digits and '-', beginning and ending with a letter or digit",
    )
}

/// `self` is a name as most objects have: a DNS subdomain.
pub(crate) fn object_name() -> Rule {
    matches(
        DNS_SUBDOMAIN_PATTERN,
        "must be the name of an object: lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit",
    )
}

/// `self` is written as a duration.
pub(crate) fn duration() -> Rule {
    matches(
        DURATION,
        "must be a duration such as 90s, 5m or 1h30m (units h, m, s, ms, us, ns; a day is 24h)",
    )
}

/// `self`, where it is written as a duration, lies between two others.
pub(crate) fn duration_between(least: &str, most: &str) -> Rule {
    Rule::new(format!(
        "!self.matches({}) || (duration(self) >= duration('{least}') && duration(self) <= duration('{most}'))",
        quote(DURATION)
    ))
    .message(Message::Message(format!("must be from {least} to {most}")))
}

/// Of two durations of one object, `shorter` is not longer than `longer`.
pub(crate) fn duration_order(shorter: &str, longer: &str, message: &str) -> Rule {
    let q = quote(DURATION);
    Rule::new(format!(
        "!has(self.{shorter}) || !has(self.{longer}) || !self.{shorter}.matches({q}) || !self.{longer}.matches({q}) || duration(self.{shorter}) <= duration(self.{longer})"
    ))
    .message(message)
    .field_path(format!(".{longer}"))
}

/// `self` is a plain decimal without a sign: ours, so strict.
pub(crate) fn strict_decimal() -> Rule {
    matches(
        POSITIVE_DECIMAL_PATTERN,
        "must be a decimal number such as \"60\", \"0.5\" or \"1.5e-03\"",
    )
}

/// `self`, where it is written as a decimal, is above zero.
pub(crate) fn positive_decimal() -> Rule {
    // A plain decimal above zero has a digit above zero before its exponent; asking for that digit
    // needs no conversion, so an exponent that overflows a double does no harm here.
    Rule::new(format!(
        "!self.matches({}) || self.matches('^[0.]*[1-9]')",
        quote(POSITIVE_DECIMAL_PATTERN)
    ))
    .message("must be above 0")
}

/// `self` is not one of the spellings of "no number". What is no number at all is accepted: the
/// original falls back to its default, and so do we, with a condition.
pub(crate) fn finite() -> Rule {
    Rule::new(format!("!self.matches({})", quote(NOT_FINITE_PATTERN)))
        .message("must be a finite number such as \"0.15\"")
}

/// Of two lenient decimals of one object, `least` is not above `most`.
pub(crate) fn decimal_order(least: &str, most: &str) -> Rule {
    // CEL has no double for an exponent of three digits; what is left out here, `validate()` sees.
    let comparable = LENIENT_DECIMAL_PATTERN.replace(r"[0-9]+)?\s*$", r"[0-9]{1,2})?\s*$");
    let q = quote(&comparable);
    Rule::new(format!(
        "!has(self.{least}) || !has(self.{most}) || !self.{least}.matches({q}) || !self.{most}.matches({q}) || double(self.{least}.trim()) <= double(self.{most}.trim())"
    ))
    .message(Message::Message(format!("{least} must not be above {most}")))
    .field_path(format!(".{least}"))
}

/// `self` is an address that begins with `http://` or `https://` and to which a path can be added.
pub(crate) fn http_url() -> Rule {
    matches(HTTP_URL, HTTP_URL_MESSAGE)
}

/// The same, or nothing: to the older operator an empty address is none.
pub(crate) fn http_url_or_nothing() -> Rule {
    Rule::new(format!("self == '' || self.matches({})", quote(HTTP_URL))).message(HTTP_URL_MESSAGE)
}

/// `self` is the name of an HTTP header.
pub(crate) fn header_name() -> Rule {
    matches(
        HEADER_NAME_PATTERN,
        "must be the name of a header such as User-Agent: letters, digits and !#$%&'*+-.^_`|~",
    )
}

/// `self` is written as a time. Whether there is such a day is for `validate()` to say.
pub(crate) fn time() -> Rule {
    matches(
        "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$",
        "must be a time such as 2026-01-31T12:30:00Z",
    )
}

/// `self` is five cron fields, each number within its field's range, with an optional time zone.
/// Reversed ranges and unknown zones are left to `validate()`.
pub(crate) fn cron() -> Rule {
    matches(
        &cron_regex(),
        "must be five cron fields (minute hour day month weekday) such as \"0 20 * * MON-FRI\", with an optional CRON_TZ=Zone before them; weekdays are 0 (Sunday) to 6, @daily and the like are not understood",
    )
}

fn cron_regex() -> String {
    const MINUTE: &str = "[0-5]?[0-9]";
    const HOUR: &str = "([01]?[0-9]|2[0-3])";
    const DAY: &str = "(0?[1-9]|[12][0-9]|3[01])";
    const MONTH: &str = "(0?[1-9]|1[0-2]|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))";
    const WEEKDAY: &str = "(0?[0-6]|(?i:sun|mon|tue|wed|thu|fri|sat))";
    let field = |value: &str| {
        let item = format!("([*?]|{value}(-{value})?)(/0*[1-9][0-9]*)?");
        // As in the peers' parser, an item of a list may be empty.
        format!("{item}(,({item})?)*")
    };
    format!(
        r"^\s*((CRON_)?TZ=[A-Za-z0-9_+/-]+\s+)?{}\s+{}\s+{}\s+{}\s+{}\s*$",
        field(MINUTE),
        field(HOUR),
        field(DAY),
        field(MONTH),
        field(WEEKDAY)
    )
}

/// A CEL raw string. Our expressions hold no double quote.
pub(crate) fn quote(regex: &str) -> String {
    debug_assert!(
        !regex.contains('"'),
        "a raw string cannot hold its quote: {regex}"
    );
    format!("r\"{regex}\"")
}
