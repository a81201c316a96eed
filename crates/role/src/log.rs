//! The log: its two flags, which every role has, and how it is set up.
//!
//! Everything goes to standard error, so that standard output stays the product of commands such as
//! `weir crds`.

use std::io::{self, IsTerminal};

use clap::{Args, ValueEnum};
use tracing_subscriber::{
    EnvFilter, Layer, Registry, filter::ParseError, fmt, layer::Layered, prelude::*,
    util::TryInitError,
};

/// How to log.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Log")]
pub struct LogArgs {
    /// How to write log lines
    #[arg(
        long,
        global = true,
        env = "WEIR_LOG_FORMAT",
        value_name = "FORMAT",
        default_value = "text"
    )]
    pub log_format: Format,

    /// What to log: a level (error, warn, info, debug, trace, off) or, by module, a list such as
    /// `info,weir_api=debug`
    #[arg(
        long,
        global = true,
        env = "WEIR_LOG",
        value_name = "FILTER",
        default_value = "info",
        value_parser = parse_filter
    )]
    pub log_level: Filter,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One line for people, coloured on a terminal
    Text,
    /// One JSON object a line, for machines
    Json,
}

/// A checked filter expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter(String);

/// Why the log could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Somebody else in this process was first.
    #[error("a log is already set up in this process")]
    AlreadySet(#[from] TryInitError),
    /// The filter was checked when it was parsed, so this is not expected.
    #[error("the log filter cannot be used")]
    Filter(#[from] ParseError),
}

impl LogArgs {
    /// Set up the log of this process. `also` hears all that is logged as well, and may be nobody.
    pub fn init<L>(&self, also: Option<L>) -> Result<(), LogError>
    where
        L: Layer<Layered<EnvFilter, Registry>> + Send + Sync,
    {
        let Self {
            log_format,
            log_level,
        } = self;
        let filter = EnvFilter::try_new(&log_level.0)?;
        let registry = tracing_subscriber::registry().with(filter).with(also);
        match log_format {
            Format::Text => registry
                .with(
                    fmt::layer()
                        .with_writer(io::stderr)
                        // Colours are for people who look at it now, not for what is kept.
                        .with_ansi(io::stderr().is_terminal()),
                )
                .try_init()?,
            Format::Json => registry
                .with(
                    fmt::layer()
                        .json()
                        .flatten_event(true)
                        .with_writer(io::stderr),
                )
                .try_init()?,
        }
        Ok(())
    }
}

/// Check a filter before anything starts. `LOGLEVEL` of older systems is upper-case (`INFO`,
/// `WARNING`), so levels are taken in any case.
fn parse_filter(text: &str) -> Result<Filter, String> {
    let normal = match text.to_ascii_lowercase().as_str() {
        "warning" => "warn".to_owned(),
        "critical" | "fatal" => "error".to_owned(),
        level @ ("error" | "warn" | "info" | "debug" | "trace" | "off") => level.to_owned(),
        _ => text.to_owned(),
    };
    // A single word that is no level would be taken as the name of a module, and silence the rest.
    let names_a_level = normal.split(',').any(|part| {
        let level = part.rsplit('=').next().unwrap_or(part);
        matches!(level, "error" | "warn" | "info" | "debug" | "trace" | "off")
    });
    match EnvFilter::try_new(&normal) {
        Ok(_) if names_a_level => Ok(Filter(normal)),
        _ => Err(
            "use a level (error, warn, info, debug, trace, off) or a list such as `info,weir_api=debug`"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_taken_in_any_case_and_in_older_spellings() {
        for (given, meant) in [
            ("info", "info"),
            ("INFO", "info"),
            ("Warning", "warn"),
            ("CRITICAL", "error"),
            ("info,kube=debug", "info,kube=debug"),
            ("off", "off"),
        ] {
            assert_eq!(parse_filter(given), Ok(Filter(meant.to_owned())), "{given}");
        }
    }

    #[test]
    fn what_is_no_level_is_refused_with_the_levels_there_are() {
        for given in ["", "loud", "weir_api", "info,kube=loud", "=,="] {
            let refusal = parse_filter(given).expect_err(given);
            assert!(
                refusal.contains("error, warn, info, debug, trace, off"),
                "{refusal}"
            );
        }
    }
}
