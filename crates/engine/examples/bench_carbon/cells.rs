//! The grid of settings, played on all processors.

use std::fmt::Write;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use weir_carbon::outlook::OutlookSettings;
use weir_carbon::policy::optimal::Optimal;
use weir_carbon::simulate::{Keep, measure, run};
use weir_carbon::unit::ErrorRate;
use weir_engine::simulate::demand::{Demand, PER_HOUR};
use weir_engine::simulate::{Forecast, Request, Source, parse, prepare};

/// One setting.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) trace: &'static str,
    pub(crate) history: Option<&'static str>,
    pub(crate) forecast: &'static str,
    pub(crate) window: &'static str,
    pub(crate) target: f64,
    pub(crate) camel: bool,
}

/// How `optimal` fared in it; saved in the same unit.
#[derive(Clone, Debug)]
pub(crate) struct Score {
    pub(crate) cell: Cell,
    pub(crate) saved: f64,
    pub(crate) mix: f64,
    fair: f64,
    free: f64,
    baseline: f64,
    pub(crate) violations: u64,
}

const GRIDS: [(&str, Option<&str>, &str); 11] = [
    ("gb-2022", None, "perfect"),
    ("gb-2023", None, "perfect"),
    ("de-2022", None, "perfect"),
    ("de-2023", None, "perfect"),
    ("fr-2022", None, "perfect"),
    ("fr-2023", None, "perfect"),
    ("gb-2023", Some("gb-2022"), "perfect"),
    ("de-2023", Some("de-2022"), "perfect"),
    ("fr-2023", Some("fr-2022"), "perfect"),
    ("gb-2023", None, "vintages"),
    ("gb-2023", Some("gb-2022"), "vintages"),
];

impl Cell {
    /// All of them, or with two targets only.
    pub(crate) fn grid(is_quick: bool) -> Vec<Self> {
        let targets: &[f64] = if is_quick {
            &[0.05, 0.15]
        } else {
            &[0.02, 0.05, 0.10, 0.15, 0.25]
        };
        let mut cells = Vec::new();
        for window in ["168h", "720h", "trace"] {
            for (trace, history, forecast) in GRIDS {
                for target in targets {
                    for camel in [false, true] {
                        cells.push(Self {
                            trace,
                            history,
                            forecast,
                            window,
                            target: *target,
                            camel,
                        });
                    }
                }
            }
        }
        cells
    }

    fn request(&self) -> Request {
        let source = |name: &str| Source {
            name: name.to_owned(),
            content: None,
        };
        Request {
            trace: source(self.trace),
            history: self.history.map(source),
            forecast: match self.forecast {
                "vintages" => Forecast::Vintages(None),
                "persistence" => Forecast::Persistence,
                "climatology" => Forecast::Climatology,
                _ => Forecast::Perfect,
            },
            flavours: parse::flavours("100:1.0,50:0.6,30:0.3").expect("flavours"),
            target: ErrorRate::from_fraction(self.target).expect("a target"),
            window: parse::window(self.window).expect("a window"),
            demand: if self.camel {
                Demand::Camel(PER_HOUR)
            } else {
                Demand::Constant(PER_HOUR)
            },
            policies: Vec::new(),
            seed: 1,
            keep: Keep::default(),
        }
    }

    fn play(&self, settings: OutlookSettings) -> Score {
        let prepared = prepare(&self.request()).expect("a game");
        let sticks = measure(&prepared.setup());
        let mut policy = Optimal::new(settings);
        let outcome = run(&prepared.setup(), &mut policy, Keep::default());
        Score {
            cell: self.clone(),
            saved: sticks.baseline - outcome.emitted,
            mix: sticks.constant_mix,
            fair: sticks.fair,
            free: sticks.free,
            baseline: sticks.baseline,
            violations: outcome.budget_violations,
        }
    }
}

impl Score {
    /// Of the fair optimum.
    pub(crate) fn share(&self) -> f64 {
        self.saved / self.fair
    }
}

/// Plays them all with these settings.
pub(crate) fn play(cells: &[Cell], settings: OutlookSettings) -> Vec<Score> {
    let next = AtomicUsize::new(0);
    let scores = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(cell) = cells.get(i) else { break };
                    let score = cell.play(settings);
                    scores.lock().expect("no panic").push((i, score));
                }
            });
        }
    });
    let mut scores = scores.into_inner().expect("no panic");
    scores.sort_by_key(|(i, _)| *i);
    scores.into_iter().map(|(_, score)| score).collect()
}

/// One row per trace, window and history: the mean over targets and demands, and the worst cell.
pub(crate) fn table(scores: &[Score]) -> String {
    let mut text = format!(
        "{:<7} {:<9} {:<9} {:<9} {:>7} {:>8} {:>8} {:>8} {:>9} {:>10}\n",
        "window",
        "trace",
        "history",
        "forecast",
        "saved",
        "of fair",
        "worst",
        "of free",
        "over mix",
        "violations"
    );
    let key = |s: &Score| (s.cell.window, s.cell.trace, s.cell.history, s.cell.forecast);
    for group in scores.chunk_by(|a, b| key(a) == key(b)) {
        let Some(first) = group.first() else { continue };
        let mean = |of: &dyn Fn(&Score) -> f64| {
            group.iter().map(of).sum::<f64>() / group.len() as f64 * 100.0
        };
        let worst = group.iter().map(Score::share).fold(f64::INFINITY, f64::min) * 100.0;
        let _ = writeln!(
            text,
            "{:<7} {:<9} {:<9} {:<9} {:>6.2}% {:>7.2}% {:>7.2}% {:>7.2}% {:>8.2}% {:>10}",
            first.cell.window,
            first.cell.trace,
            first.cell.history.unwrap_or("-"),
            first.cell.forecast,
            mean(&|s| s.saved / s.baseline),
            mean(&Score::share),
            worst,
            mean(&|s| s.saved / s.free),
            mean(&|s| s.saved / s.mix - 1.0),
            group.iter().map(|s| s.violations).sum::<u64>(),
        );
    }
    text
}
