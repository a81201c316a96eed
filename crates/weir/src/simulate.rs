//! `weir simulate`: what was typed, as a request to the engine's simulator; and its figures on standard output.

use std::fs;
use std::io;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use thiserror::Error;
use weir_carbon::flavour::Flavours;
use weir_carbon::policy::{NAMES, ORIGINALS};
use weir_carbon::unit::ErrorRate;
use weir_engine::simulate::demand::{Demand, PER_HOUR};
use weir_engine::simulate::{
    BudgetWindow, Forecast, Keep, Request, SimulateError, Source, builtin, output as figures,
    parse, play, prepare,
};

use crate::output::{self, OutputError};

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  weir simulate                                  a real day and week of Great Britain, all policies
  weir simulate --trace de-2023 --history de-2022
  weir simulate --trace gb-2023 --forecast vintages --target-error 0.05 --format json
  weir simulate --trace my-grid.csv --flavours 100:1.0,80:0.4 --demand requests.csv --policy optimal
  weir simulate --trace gb-2023 --report out.html
  weir simulate --trace gb-day --policy optimal --explain

Built-in traces: gb-day, gb-week, gb-2022, gb-2023, de-2022, de-2023, fr-2022, fr-2023.
A file may be CSV (columns are guessed and named in the output), or JSON as the UK Carbon Intensity API and
Electricity Maps give it. Gaps are filled with the same time a day before, and told.")]
pub(crate) struct SimulateArgs {
    /// A CSV or JSON file, or a built-in trace; without it a built-in day and week
    #[arg(long, value_name = "FILE|NAME")]
    trace: Option<String>,

    /// What is known in advance: perfect, vintages FILE, persistence or climatology
    #[arg(long, value_names = ["KIND", "FILE"], num_args = 1..=2)]
    forecast: Option<Vec<String>>,

    /// What was known before the first slot
    #[arg(long, value_name = "FILE|NAME")]
    history: Option<String>,

    /// Precision in percent and energy per request (relative, or in Wh) of each flavour
    #[arg(long, value_name = "LIST", default_value = "100:1.0,50:0.6,30:0.3", value_parser = parse::flavours)]
    flavours: Flavours,

    /// The mean error that is allowed, from 0 to 1
    #[arg(long, value_name = "FRACTION", default_value = "0.1", value_parser = target_error)]
    target_error: ErrorRate,

    /// Over what the budget is kept: 168h, 30d, or `trace` for all of it
    #[arg(long, value_name = "DURATION", default_value = "168h", value_parser = parse::window)]
    budget_window: BudgetWindow,

    /// Requests per slot: constant, camel (two humps a day), or a CSV file with times and counts
    #[arg(long, value_name = "SHAPE|FILE", default_value = "constant")]
    demand: String,

    /// How many requests an hour on average, for constant and camel
    #[arg(long, value_name = "COUNT", default_value_t = PER_HOUR, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    requests_per_hour: u32,

    /// Only this policy; may be given several times
    ///
    /// Without it all that keep the budget; the table also shows the original's policies as the original runs them,
    /// which keep none. They can be named as `original-credit-greedy` and so on.
    #[arg(long, value_name = "NAME")]
    policy: Vec<String>,

    /// Also say why, at each change of a decision
    #[arg(long)]
    explain: bool,

    /// For the policy `random`
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// How to write the figures
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,

    /// Write a report with plots as well: one HTML file that needs nothing else
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Table,
    /// A list with one object per policy
    Json,
    /// One row per policy
    Csv,
}

#[derive(Debug, Error)]
pub(crate) enum SimulateCommandError {
    #[error("`{0}` cannot be read")]
    File(String, #[source] io::Error),
    #[error("the report `{0}` cannot be written")]
    Report(String, #[source] io::Error),
    #[error(
        "`{0}` is no kind of forecast; there are perfect, vintages [FILE], persistence, climatology"
    )]
    Forecast(String),
    #[error("the forecast `{0}` takes no file; only vintages does")]
    ForecastFile(String),
    #[error(transparent)]
    Simulate(#[from] SimulateError),
    #[error(transparent)]
    Output(#[from] OutputError),
}

pub(crate) fn run(args: &SimulateArgs) -> Result<(), SimulateCommandError> {
    let mut games = Vec::new();
    for request in requests(args)? {
        games.push((prepare(&request)?, request));
    }
    let slots: usize = games
        .iter()
        .map(|(game, _)| game.trace.values().len())
        .sum();
    // Not worth a bar below a month or so.
    let bar = if slots > 2_000 {
        ProgressBar::new(0)
    } else {
        ProgressBar::hidden()
    };
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} policies, {elapsed}") {
        bar.set_style(style);
    }
    let runs = play(games, &|done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    let text = match args.format {
        Format::Table => figures::table(&runs),
        Format::Json => figures::json(&runs).map_err(OutputError::from)?,
        Format::Csv => figures::csv(&runs),
    };
    if args.format != Format::Table {
        for note in runs.iter().flat_map(|run| &run.prepared.notes) {
            eprintln!("weir: note: {note}");
        }
    }
    if let Some(file) = &args.report {
        fs::write(file, weir_engine::simulate::report::html(&runs))
            .map_err(|error| SimulateCommandError::Report(file.display().to_string(), error))?;
    }
    Ok(output::print(text.as_bytes())?)
}

fn requests(args: &SimulateArgs) -> Result<Vec<Request>, SimulateCommandError> {
    let SimulateArgs {
        trace,
        forecast,
        history,
        flavours,
        target_error,
        budget_window,
        demand,
        requests_per_hour,
        policy,
        explain,
        seed,
        format,
        report,
    } = args;
    let mut policies = policy.clone();
    // Programs get what keeps the budget unless they ask for more; people want to see the difference.
    if policies.is_empty() && *format == Format::Table {
        policies.extend(NAMES.iter().chain(&ORIGINALS).map(ToString::to_string));
    }
    let typed = forecast.as_deref().map(forecast_of).transpose()?;
    let (traces, default) = match trace {
        Some(trace) => (vec![trace.as_str()], Forecast::Perfect),
        None => (vec!["gb-day", "gb-week"], Forecast::Vintages(None)),
    };
    let demand = match demand.as_str() {
        "constant" => Demand::Constant(*requests_per_hour),
        "camel" => Demand::Camel(*requests_per_hour),
        file => Demand::File(file.to_owned(), read(file)?),
    };
    let mut requests = Vec::new();
    for trace in traces {
        requests.push(Request {
            trace: source(trace)?,
            history: history.as_deref().map(source).transpose()?,
            forecast: typed.clone().unwrap_or_else(|| default.clone()),
            flavours: flavours.clone(),
            target: *target_error,
            window: *budget_window,
            demand: demand.clone(),
            policies: policies.clone(),
            seed: *seed,
            keep: Keep {
                series: report.is_some(),
                changes: *explain,
            },
        });
    }
    Ok(requests)
}

fn forecast_of(typed: &[String]) -> Result<Forecast, SimulateCommandError> {
    let (kind, file) = match typed {
        [kind] => (kind, None),
        [kind, file] => (kind, Some(file)),
        _ => return Err(SimulateCommandError::Forecast(typed.join(" "))),
    };
    let forecast = match (kind.as_str(), file) {
        ("vintages", file) => Forecast::Vintages(file.map(|file| source(file)).transpose()?),
        ("perfect", None) => Forecast::Perfect,
        ("persistence", None) => Forecast::Persistence,
        ("climatology", None) => Forecast::Climatology,
        ("perfect" | "persistence" | "climatology", Some(_)) => {
            return Err(SimulateCommandError::ForecastFile(kind.clone()));
        }
        _ => return Err(SimulateCommandError::Forecast(kind.clone())),
    };
    Ok(forecast)
}

/// A built-in name stays a name, anything else is a file to be read.
fn source(name: &str) -> Result<Source, SimulateCommandError> {
    let is_builtin = builtin::TRACES.iter().any(|(builtin, _)| *builtin == name);
    let looks_like_a_file = name.contains(['.', '/']) || fs::exists(name).unwrap_or(false);
    let content = if !is_builtin && looks_like_a_file {
        Some(read(name)?)
    } else {
        None
    };
    Ok(Source {
        name: name.to_owned(),
        content,
    })
}

fn read(file: &str) -> Result<String, SimulateCommandError> {
    fs::read_to_string(file).map_err(|error| SimulateCommandError::File(file.to_owned(), error))
}

fn target_error(text: &str) -> Result<ErrorRate, String> {
    let fraction: f64 = text
        .parse()
        .map_err(|_| format!("`{text}` is not a number"))?;
    ErrorRate::from_fraction(fraction).map_err(|error| error.to_string())
}
