//! The tables: objects that must be refused, each with the field and the sentence the user reads,
//! and objects that must be accepted, each with what `validate()` says of it.

mod accepted;
mod elasti_service;
mod traffic_schedule;
mod traffic_watch;

use serde_json::{Value, json};
use weir_api::crd::Kind;

use crate::constraint::By;
use crate::edit;

pub(crate) use accepted::accepted;

/// An object that is wrong in one way.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) kind: Kind,
    /// The field whose schema refuses it, as the schema's walk names it.
    pub(crate) at: String,
    /// What refuses it there.
    pub(crate) by: By,
    /// What is different from the base.
    edits: Vec<(String, Value)>,
    /// The field that the API server names.
    pub(crate) field: String,
    /// What it says of it.
    pub(crate) message: String,
}

impl Refused {
    pub(crate) fn object(&self) -> Value {
        edited(self.kind, &self.edits)
    }

    /// Whether it is the status that is wrong, which is written through a subresource.
    pub(crate) fn is_status(&self) -> bool {
        self.at.starts_with("status")
    }
}

/// All refused objects.
pub(crate) fn refused() -> Vec<Refused> {
    [
        elasti_service::refused(),
        traffic_schedule::refused(),
        traffic_watch::refused(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The least that a kind needs.
pub(crate) fn base(kind: Kind) -> Value {
    match kind {
        Kind::ElastiService => json!({
            "apiVersion": "elasti.truefoundry.com/v1alpha1",
            "kind": "ElastiService",
            "metadata": {"name": "base"},
            "spec": {
                "service": "httpbin",
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "httpbin"},
            },
        }),
        Kind::TrafficSchedule => json!({
            "apiVersion": "scheduling.carbonrouter.io/v1alpha1",
            "kind": "TrafficSchedule",
            "metadata": {"name": "base"},
        }),
        Kind::TrafficWatch => json!({
            "apiVersion": "traffic.example.com/v1alpha1",
            "kind": "TrafficWatch",
            "metadata": {"name": "base"},
            "spec": {
                "maxBandwidthPercent": "60",
                "deployment": {
                    "selector": {"matchLabels": {"app": "web"}},
                    "template": {
                        "metadata": {"labels": {"app": "web"}, "annotations": {"kept": "yes"}},
                        "spec": {"containers": [{"name": "web", "image": "web:1"}]},
                    },
                },
            },
        }),
    }
}

pub(crate) fn edited(kind: Kind, edits: &[(String, Value)]) -> Value {
    let mut object = base(kind);
    for (pointer, value) in edits {
        edit::set(&mut object, pointer, value.clone());
    }
    object
}

/// A table under construction.
struct Table {
    kind: Kind,
    rows: Vec<Refused>,
}

impl Table {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            rows: Vec::new(),
        }
    }

    /// `at` refuses, by a keyword, what the edits make of the base.
    fn keyword(&mut self, at: &str, keyword: &'static str, edits: &[(&str, Value)], message: &str) {
        self.row(at, By::Keyword(keyword), edits, &field_of(at), message);
    }

    /// `at` refuses by a rule whose message is `message`; the API server names `at` itself.
    fn rule(&mut self, at: &str, edits: &[(&str, Value)], message: &str) {
        self.row(
            at,
            By::Rule(message.to_owned()),
            edits,
            &field_of(at),
            message,
        );
    }

    /// The same for a rule that names another field.
    fn rule_about(&mut self, at: &str, field: &str, edits: &[(&str, Value)], message: &str) {
        self.row(at, By::Rule(message.to_owned()), edits, field, message);
    }

    /// `at` refuses what lacks each of `names`; `whole` makes an object that has them all.
    fn required(&mut self, at: &str, names: &[&str], whole: &[(&str, Value)]) {
        for name in names {
            let pointer = format!("{}/{name}", pointer_of(at));
            let mut edits = whole.to_vec();
            edits.push((&pointer, Value::Null));
            let field = format!("{}.{name}", field_of(at));
            let field = field.trim_start_matches('.');
            self.row(
                at,
                By::Required((*name).to_owned()),
                &edits,
                field,
                "Required value",
            );
        }
    }

    /// A text of at most `max` characters, each `letter` allowed by its rules.
    fn max_length(&mut self, at: &str, letter: &str, max: usize, also: &[(&str, Value)]) {
        let pointer = pointer_of(at);
        let mut edits = also.to_vec();
        edits.push((&pointer, Value::from(letter.repeat(max + 1))));
        self.keyword(
            at,
            "maxLength",
            &edits,
            &format!("may not be more than {max} "),
        );
    }

    /// A 32-bit integer of at least `min`.
    fn int32(&mut self, at: &str, min: i64, also: &[(&str, Value)]) {
        self.minimum(at, min, also);
        self.maximum(at, i64::from(i32::MAX), also);
    }

    /// An integer of at least `min`.
    fn minimum(&mut self, at: &str, min: i64, also: &[(&str, Value)]) {
        let pointer = pointer_of(at);
        let mut edits = also.to_vec();
        edits.push((&pointer, Value::from(min - 1)));
        let message = format!("should be greater than or equal to {min}");
        self.keyword(at, "minimum", &edits, &message);
    }

    /// An integer of at most `max`.
    fn maximum(&mut self, at: &str, max: i64, also: &[(&str, Value)]) {
        let pointer = pointer_of(at);
        let mut edits = also.to_vec();
        edits.push((&pointer, Value::from(max + 1)));
        let message = format!("should be less than or equal to {max}");
        self.keyword(at, "maximum", &edits, &message);
    }

    /// A word from a list.
    fn enumeration(&mut self, at: &str, wrong: Value, also: &[(&str, Value)], supported: &str) {
        let pointer = pointer_of(at);
        let mut edits = also.to_vec();
        edits.push((&pointer, wrong));
        self.keyword(
            at,
            "enum",
            &edits,
            &format!("supported values: {supported}"),
        );
    }

    /// A list of at most `max` items.
    fn max_items(&mut self, at: &str, item: &Value, max: usize, also: &[(&str, Value)]) {
        let pointer = pointer_of(at);
        let mut edits = also.to_vec();
        edits.push((&pointer, vec![item.clone(); max + 1].into()));
        self.keyword(
            at,
            "maxItems",
            &edits,
            &format!("must have at most {max} items"),
        );
    }

    /// The name of an object: a DNS subdomain.
    fn object_name(&mut self, at: &str, also: &[(&str, Value)]) {
        self.max_length(at, "a", 253, also);
        self.texts(
            at,
            &["", "Capital", "-dash", "dot.", "under_score"],
            also,
            "must be the name of an object: lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit",
        );
    }

    /// The name of a Service: a DNS label.
    fn service_name(&mut self, at: &str, also: &[(&str, Value)]) {
        self.max_length(at, "a", 63, also);
        self.texts(
            at,
            &["", "Capital", "-dash", "with.dot", "under_score"],
            also,
            "must be the name of a Service: lower-case letters, digits and '-', beginning and ending with a letter or digit",
        );
    }

    /// A duration in Go's form; eleven of `unit` are one that is only too long to write.
    fn duration(&mut self, at: &str, unit: &str, also: &[(&str, Value)]) {
        let pointer = pointer_of(at);
        let mut edits = also.to_vec();
        edits.push((&pointer, unit.repeat(11).into()));
        self.keyword(at, "maxLength", &edits, "may not be more than 20 ");
        self.texts(
            at,
            &["", "soon", "5", "-5m", "1d", "1h 30m", "5 m", "1e3s"],
            also,
            "must be a duration such as 90s, 5m or 1h30m (units h, m, s, ms, us, ns; a day is 24h)",
        );
    }

    /// A time in cron's form.
    fn cron(&mut self, at: &str, also: &[(&str, Value)]) {
        let pointer = pointer_of(at);
        let mut edits = also.to_vec();
        edits.push((&pointer, format!("0{} * * * *", ",0".repeat(260)).into()));
        self.keyword(at, "maxLength", &edits, "may not be more than 512 ");
        self.texts(
            at,
            &[
                "",
                "@daily",
                "* * * *",
                "* * * * * *",
                "60 * * * *",
                "* 24 * * *",
                "* * 0 * *",
                "* * 32 * *",
                "* * * 13 *",
                "* * * * 7",
                "*/0 * * * *",
                "* * * * FUNDAY",
                "CRON_TZ= * * * * *",
                "a b c d e",
            ],
            also,
            "must be five cron fields (minute hour day month weekday) such as \"0 20 * * MON-FRI\", with an optional CRON_TZ=Zone before them; weekdays are 0 (Sunday) to 6, @daily and the like are not understood",
        );
    }

    /// A decimal in our strict form.
    fn strict_decimal(&mut self, at: &str, also: &[(&str, Value)]) {
        let pointer = pointer_of(at);
        let mut edits = also.to_vec();
        edits.push((&pointer, format!("0.{}", "1".repeat(31)).into()));
        self.keyword(at, "maxLength", &edits, "may not be more than 32 ");
        self.texts(
            at,
            &[
                "", "sixty", "-1", "+1", "1.", ".5", "1e", "NaN", "Inf", "0x1p3", "1e1000", "60%",
            ],
            also,
            "must be a decimal number such as \"60\", \"0.5\" or \"1.5e-03\"",
        );
    }

    /// An address.
    fn http_url(&mut self, at: &str, also: &[(&str, Value)]) {
        let pointer = pointer_of(at);
        let mut edits = also.to_vec();
        edits.push((&pointer, format!("http://{}", "a".repeat(2048)).into()));
        self.keyword(at, "maxLength", &edits, "may not be more than 2048 ");
        self.texts(
            at,
            &[
                "prometheus:9090",
                "ftp://somewhere",
                "http://",
                "http://:9090",
                "http://a?x=1",
                "http://a#b",
                "http://a b",
            ],
            also,
            "must be an address such as http://prometheus.monitoring:9090",
        );
    }

    /// A time.
    fn time(&mut self, at: &str, also: &[(&str, Value)]) {
        let pointer = pointer_of(at);
        let mut edits = also.to_vec();
        let long = format!("2026-01-01T00:00:00.{}Z", "1".repeat(50));
        edits.push((&pointer, long.into()));
        self.keyword(at, "maxLength", &edits, "may not be more than 64 ");
        self.texts(
            at,
            &[
                "",
                "now",
                "2026-01-01",
                "2026-01-01T00:00:00",
                "2026-01-01 00:00:00Z",
                "1767225600",
            ],
            also,
            "must be a time such as 2026-01-31T12:30:00Z",
        );
    }

    /// Texts that a rule refuses.
    fn texts(&mut self, at: &str, wrong: &[&str], also: &[(&str, Value)], message: &str) {
        let pointer = pointer_of(at);
        for text in wrong {
            let mut edits = also.to_vec();
            edits.push((&pointer, Value::from(*text)));
            self.rule(at, &edits, message);
        }
    }

    /// The conditions that every status has.
    fn conditions(&mut self) {
        let condition = json!({
            "type": "Ready",
            "status": "True",
            "reason": "AsItShould",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let edits = [("/status/conditions", json!([condition]))];
        let names = ["lastTransitionTime", "message", "reason", "status", "type"];
        self.required("status.conditions[]", &names, &edits);
        self.row(
            "status.conditions",
            By::Unique,
            &[("/status/conditions", json!([condition, condition]))],
            "status.conditions[1]",
            "Duplicate value",
        );
    }

    fn row(&mut self, at: &str, by: By, edits: &[(&str, Value)], field: &str, message: &str) {
        self.rows.push(Refused {
            kind: self.kind,
            at: at.to_owned(),
            by,
            edits: edits
                .iter()
                .map(|(pointer, value)| ((*pointer).to_owned(), value.clone()))
                .collect(),
            field: field.to_owned(),
            message: message.to_owned(),
        });
    }
}

/// The pointer to the first field that a walk's name stands for: `spec.triggers[].type` is
/// `/spec/triggers/0/type`.
fn pointer_of(at: &str) -> String {
    if at.is_empty() {
        return String::new();
    }
    format!("/{}", at.replace("[]", ".0").replace('.', "/"))
}

/// The same as the API server writes it: `spec.triggers[0].type`.
fn field_of(at: &str) -> String {
    at.replace("[]", "[0]")
}
