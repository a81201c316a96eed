//! `weir simulate`: what would I have saved? Reads traces ([`table`], [`builtin`]), plays all policies
//! in parallel, and writes the figures ([`output`], [`report`]). The command line is `crates/weir`'s; the game itself is
//! `weir_carbon::simulate`.

pub mod builtin;
pub mod demand;
pub mod output;
pub mod parse;
pub mod report;
pub mod table;

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use thiserror::Error;
use weir_carbon::budget::Windows;
use weir_carbon::flavour::Flavours;
use weir_carbon::forecast::{Forecaster, Vintages};
use weir_carbon::policy::{self, NAMES, ORIGINALS};
pub use weir_carbon::simulate::Keep;
use weir_carbon::simulate::{self as game, Outcome, Setup, Yardsticks};
use weir_carbon::trace::Trace;
use weir_carbon::unit::ErrorRate;

use self::demand::{Demand, DemandError};
use self::table::TableError;

/// Where a trace comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// A built-in name, or a file's.
    pub name: String,
    /// The file's content; none for a built-in name.
    pub content: Option<String>,
}

/// What is known in advance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forecast {
    /// 48 hours exactly.
    Perfect,
    /// Published forecasts; without content the built-in ones of the trace.
    Vintages(Option<Source>),
    /// As a day ago.
    Persistence,
    /// The mean of the time of day.
    Climatology,
}

/// Over what the budget is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetWindow {
    /// Tumbling windows of so many seconds.
    Seconds(i64),
    /// The whole trace is one window.
    WholeTrace,
}

/// One trace to be played.
#[derive(Clone, Debug)]
pub struct Request {
    /// The grid.
    pub trace: Source,
    /// What was known before its first slot.
    pub history: Option<Source>,
    /// What is known in advance.
    pub forecast: Forecast,
    /// What there is to choose from.
    pub flavours: Flavours,
    /// The mean error that is allowed.
    pub target: ErrorRate,
    /// Over which window.
    pub window: BudgetWindow,
    /// How many requests come when.
    pub demand: Demand,
    /// Which policies; when empty, all that keep the budget.
    pub policies: Vec<String>,
    /// For `random`.
    pub seed: u64,
    /// Keep what happened slot by slot, and each change of a decision.
    pub keep: Keep,
}

/// A trace with all that a game needs, and what had to be said while reading it.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The trace's name.
    pub name: String,
    /// In a word, for people.
    pub forecast: &'static str,
    /// The grid.
    pub trace: Trace,
    /// Requests per slot.
    pub demand: Vec<u64>,
    /// What to say to the user: columns guessed, gaps filled, rows left out.
    pub notes: Vec<String>,
    history: Vec<f64>,
    vintages: Option<Vintages>,
    forecaster: Forecast,
    flavours: Flavours,
    target: ErrorRate,
    windows: Windows,
}

/// A played game.
#[derive(Clone, Debug)]
pub struct Played {
    /// What was played.
    pub prepared: Prepared,
    /// What policies are measured against.
    pub sticks: Yardsticks,
    /// One per policy, in the order asked for.
    pub outcomes: Vec<Outcome>,
}

/// Why there is nothing to show.
#[derive(Debug, Error)]
pub enum SimulateError {
    /// A trace that cannot be read.
    #[error("the trace `{0}` cannot be used")]
    Trace(String, #[source] TableError),
    /// A history that cannot be read.
    #[error("the history `{0}` cannot be used")]
    History(String, #[source] TableError),
    /// Slots of different length.
    #[error(
        "the history has slots of {history} s and the trace of {trace} s; give both with the same slots"
    )]
    HistorySlots {
        /// Of the history.
        history: i64,
        /// Of the trace.
        trace: i64,
    },
    /// It must come before.
    #[error("the history begins after the trace; it must hold what was known before it")]
    HistoryIsLater,
    /// Published forecasts that cannot be read.
    #[error("the vintages `{0}` cannot be used")]
    Vintages(String, #[source] TableError),
    /// None built in.
    #[error("there are no built-in vintages for `{0}`; name a file: --forecast vintages FILE")]
    NoVintages(String),
    /// No such policy.
    #[error(
        "there is no policy `{name}`; there are {}, and to compare with {}",
        NAMES.join(", "),
        ORIGINALS.join(", ")
    )]
    Policy {
        /// As it was typed.
        name: String,
    },
    /// Demand that cannot be read.
    #[error(transparent)]
    Demand(#[from] DemandError),
    /// A window without sense.
    #[error(transparent)]
    Window(#[from] weir_carbon::budget::window::LengthError),
}

/// Reads all that the game needs.
pub fn prepare(request: &Request) -> Result<Prepared, SimulateError> {
    let mut notes = Vec::new();
    let name = request.trace.name.clone();
    let read = table::read(&request.trace).map_err(|e| SimulateError::Trace(name.clone(), e))?;
    notes.extend(read.notes);
    let trace = read.trace;
    let mut history = read.before;
    if let Some(source) = &request.history {
        let older = table::read(source)
            .map_err(|e| SimulateError::History(source.name.clone(), e))?
            .trace;
        history = until(&older, &trace)?;
    }
    let mut vintages = None;
    let forecast = match &request.forecast {
        Forecast::Perfect => "perfect",
        Forecast::Persistence => "persistence",
        Forecast::Climatology => "climatology",
        Forecast::Vintages(source) => {
            let source = source.clone().or_else(|| builtin::vintages_of(&name));
            let source = source.ok_or_else(|| SimulateError::NoVintages(name.clone()))?;
            let read = table::read_vintages(&source, trace.slot_seconds());
            vintages = Some(read.map_err(|e| SimulateError::Vintages(source.name.clone(), e))?);
            "vintages"
        }
    };
    let windows = match request.window {
        BudgetWindow::Seconds(seconds) => Windows::new(seconds)?,
        BudgetWindow::WholeTrace => {
            Windows::starting_at(trace.start(), trace.end() - trace.start())
        }
    };
    let (demand, said) = request.demand.of(&trace)?;
    notes.extend(said);
    if let Some(unknown) = request
        .policies
        .iter()
        .find(|p| !NAMES.iter().chain(&ORIGINALS).any(|name| name == p))
    {
        return Err(SimulateError::Policy {
            name: unknown.clone(),
        });
    }
    Ok(Prepared {
        name,
        forecast,
        trace,
        demand,
        notes,
        history,
        vintages,
        forecaster: request.forecast.clone(),
        flavours: request.flavours.clone(),
        target: request.target,
        windows,
    })
}

/// Plays all policies of all games, as many at once as there are processors. `progress` hears how many
/// of how many are done.
pub fn play(
    games: Vec<(Prepared, Request)>,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Vec<Played> {
    let mut jobs = Vec::new();
    for (g, (_, request)) in games.iter().enumerate() {
        let names: Vec<&str> = if request.policies.is_empty() {
            NAMES.to_vec()
        } else {
            request.policies.iter().map(String::as_str).collect()
        };
        jobs.extend(names.into_iter().map(|name| (g, name.to_owned())));
    }
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results = Mutex::new(Vec::new());
    let workers = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..workers.min(jobs.len()) {
            scope.spawn(|| {
                while let Some((g, name)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let Some((prepared, request)) = games.get(*g) else {
                        continue;
                    };
                    let Some(mut policy) = policy::by_name(name, request.seed) else {
                        continue;
                    };
                    let outcome = game::run(&prepared.setup(), policy.as_mut(), request.keep);
                    if let Ok(mut results) = results.lock() {
                        results.push((*g, outcome));
                    }
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_default();
    let order = |name: &str| jobs.iter().position(|(_, job)| job == name);
    let played = games.into_iter().enumerate().map(|(g, (prepared, _))| {
        let mine = results.iter().filter(|(of, _)| *of == g);
        let mut outcomes: Vec<Outcome> = mine.map(|(_, outcome)| outcome.clone()).collect();
        outcomes.sort_by_key(|outcome| order(outcome.policy));
        let sticks = game::measure(&prepared.setup());
        Played {
            prepared,
            sticks,
            outcomes,
        }
    });
    played.collect()
}

impl Prepared {
    /// The game of the pure core.
    pub fn setup(&self) -> Setup<'_> {
        let forecaster = match (&self.forecaster, &self.vintages) {
            (Forecast::Vintages(_), Some(vintages)) => Forecaster::Vintages(vintages),
            (Forecast::Persistence, _) => Forecaster::Persistence,
            (Forecast::Climatology, _) => Forecaster::Climatology,
            _ => Forecaster::Perfect,
        };
        Setup {
            trace: &self.trace,
            history: &self.history,
            forecaster,
            demand: &self.demand,
            flavours: &self.flavours,
            target: self.target,
            windows: self.windows,
        }
    }
}

/// The history's slots up to the first one of the trace; a gap between them stays unknown.
fn until(older: &Trace, trace: &Trace) -> Result<Vec<f64>, SimulateError> {
    let slot = trace.slot_seconds();
    if older.slot_seconds() != slot {
        return Err(SimulateError::HistorySlots {
            history: older.slot_seconds(),
            trace: slot,
        });
    }
    let before = (trace.start() - older.start()).div_euclid(slot);
    let before = usize::try_from(before).map_err(|_| SimulateError::HistoryIsLater)?;
    // A gap of more than ten years is as good as no history.
    if before > older.values().len() + usize::try_from(10 * 366 * 86_400 / slot).unwrap_or(0) {
        return Ok(Vec::new());
    }
    let mut values: Vec<f64> = older.values().iter().copied().take(before).collect();
    values.resize(before, f64::NAN);
    Ok(values)
}
