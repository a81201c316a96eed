//! Prometheus' text format 0.0.4: families of samples, each with its help and its type.

use std::{
    fmt::{self, Display, Write},
    time::Duration,
};

use super::histogram::Histogram;

/// What is served as `/metrics`.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A label and its value.
pub type Label<'a> = (&'a str, &'a str);

/// What a family is.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// How often something took how long.
    Histogram,
}

/// The text as it grows.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
}

/// One family, open for samples.
#[derive(Debug)]
pub struct Family<'a> {
    text: &'a mut String,
    name: &'a str,
}

impl Exposition {
    /// Begins a family; it is shown even when it has no samples yet, so that dashboards find it.
    pub fn family<'a>(&'a mut self, name: &'a str, kind: Kind, help: &str) -> Family<'a> {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        put(
            &mut self.text,
            format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"),
        );
        Family {
            text: &mut self.text,
            name,
        }
    }

    /// The whole text.
    pub fn finish(self) -> String {
        self.text
    }
}

impl Family<'_> {
    /// One sample.
    pub fn sample(&mut self, labels: &[Label<'_>], value: impl Display) {
        self.line("", labels, None, value);
    }

    /// The samples of a histogram.
    pub fn histogram<const N: usize>(
        &mut self,
        labels: &[Label<'_>],
        bounds: &[f64; N],
        histogram: &Histogram<N>,
    ) {
        for (bound, count) in bounds.iter().zip(histogram.cumulative()) {
            self.line("_bucket", labels, Some(&bound.to_string()), count);
        }
        let count = histogram.count();
        self.line("_bucket", labels, Some("+Inf"), count);
        self.line("_sum", labels, None, Seconds(histogram.sum()));
        self.line("_count", labels, None, count);
    }

    fn line(&mut self, suffix: &str, labels: &[Label<'_>], le: Option<&str>, value: impl Display) {
        put(self.text, format_args!("{}{suffix}", self.name));
        let mut between = '{';
        for (name, value) in labels.iter().copied().chain(le.map(|le| ("le", le))) {
            put(
                self.text,
                format_args!("{between}{name}=\"{}\"", Escaped(value)),
            );
            between = ',';
        }
        if between == ',' {
            self.text.push('}');
        }
        put(self.text, format_args!(" {value}\n"));
    }
}

struct Seconds(Duration);

impl Display for Seconds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_secs_f64().fmt(formatter)
    }
}

struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '\\' => formatter.write_str("\\\\")?,
                '"' => formatter.write_str("\\\"")?,
                '\n' => formatter.write_str("\\n")?,
                other => formatter.write_char(other)?,
            }
        }
        Ok(())
    }
}

fn put(text: &mut String, arguments: fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = text.write_fmt(arguments);
}
