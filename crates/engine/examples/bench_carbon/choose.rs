//! Whether the settings of the outlook would be chosen again: each candidate is played on every trace, the best one is chosen on
//! some traces and judged on others that had no say. `docs/steer-theory.md` has these tables.

use std::fmt::Write;

use weir_carbon::outlook::OutlookSettings;

use crate::cells::{self, Cell, Score};

const GRIDS: [&str; 3] = ["gb", "de", "fr"];
const TRACES: [&str; 6] = [
    "gb-2022", "gb-2023", "de-2022", "de-2023", "fr-2022", "fr-2023",
];
const WINDOWS: [&str; 3] = ["168h", "720h", "trace"];

/// A setting that could have been, and how it fared in every cell.
struct Candidate {
    name: String,
    is_default: bool,
    scores: Vec<Score>,
}

/// Who may choose, and who judges.
struct Split<'a> {
    chosen_on: String,
    judged_on: String,
    chooses: Box<dyn Fn(&Cell) -> bool + 'a>,
    judges: Box<dyn Fn(&Cell) -> bool + 'a>,
}

pub(crate) fn tables() -> String {
    let mut text = String::new();
    let outlook = outlook();
    let _ = writeln!(
        text,
        "Mean share of the fair optimum in percent, 2022 / 2023; perfect forecasts, no history\n\n{}",
        by_year(&outlook)
    );
    let _ = writeln!(text, "{}", held_out(&outlook, &splits()));
    let trust = trust();
    let _ = writeln!(
        text,
        "Trust: mean share in percent, by forecast; no history\n\n{}",
        by_forecast(&trust)
    );
    // The forecasts that were really published are those of one grid: it judges what the others chose.
    let mut splits = splits();
    splits.retain(|split| split.chosen_on != "all but gb");
    for split in &mut splits {
        let judges = std::mem::replace(&mut split.judges, Box::new(|_| false));
        split.judges = Box::new(move |cell| judges(cell) && cell.forecast != "vintages");
        let chooses = std::mem::replace(&mut split.chooses, Box::new(|_| false));
        split.chooses = Box::new(move |cell| chooses(cell) && cell.forecast != "vintages");
    }
    for forecast in ["vintages", "others"] {
        splits.push(Split {
            chosen_on: "all but gb".to_owned(),
            judged_on: format!("gb, {forecast}"),
            chooses: Box::new(|cell| !cell.trace.starts_with("gb")),
            judges: Box::new(move |cell| {
                cell.trace.starts_with("gb")
                    && (cell.forecast == "vintages") == (forecast == "vintages")
            }),
        });
    }
    let _ = writeln!(text, "{}", held_out(&trust, &splits));
    text
}

/// How many days futures are made of, and how long a level lasts.
fn outlook() -> Vec<Candidate> {
    let default = OutlookSettings::default();
    let mut settings = Vec::new();
    for trailing_days in [28, 42, 60, 90] {
        for persistence in [0.5, 0.6, 0.7] {
            let name = format!("{trailing_days}, {persistence}");
            settings.push((
                name,
                OutlookSettings {
                    trailing_days,
                    persistence,
                    ..default
                },
            ));
        }
    }
    candidates(settings, &cells_of(&["perfect"]))
}

/// How long past errors of forecasts count, if they do.
fn trust() -> Vec<Candidate> {
    let with = |trust_days: Option<usize>| OutlookSettings {
        trust_days,
        ..OutlookSettings::default()
    };
    let mut settings = vec![("none".to_owned(), with(None))];
    settings.extend([30, 60, 120].map(|days| (days.to_string(), with(Some(days)))));
    let mut cells = cells_of(&["persistence", "climatology"]);
    cells.extend(cells_of(&["vintages"]));
    candidates(settings, &cells)
}

fn cells_of(forecasts: &[&'static str]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for window in WINDOWS {
        for trace in TRACES {
            for forecast in forecasts {
                for target in [0.05, 0.15] {
                    for camel in [false, true] {
                        // Published forecasts are there for this trace alone.
                        if *forecast != "vintages" || trace == "gb-2023" {
                            cells.push(Cell {
                                trace,
                                history: None,
                                forecast,
                                window,
                                target,
                                camel,
                            });
                        }
                    }
                }
            }
        }
    }
    cells
}

fn candidates(settings: Vec<(String, OutlookSettings)>, cells: &[Cell]) -> Vec<Candidate> {
    let play = |(name, settings): (String, OutlookSettings)| Candidate {
        name,
        is_default: settings == OutlookSettings::default(),
        scores: cells::play(cells, settings),
    };
    settings.into_iter().map(play).collect()
}

impl Candidate {
    /// Mean share in percent over these cells; each window counts the same.
    fn share(&self, which: &dyn Fn(&Cell) -> bool) -> f64 {
        let of = self.scores.iter().filter(|score| which(&score.cell));
        let shares: Vec<f64> = of.map(Score::share).collect();
        shares.iter().sum::<f64>() / shares.len() as f64 * 100.0
    }

    fn name(&self) -> String {
        if self.is_default {
            format!("**{}**", self.name)
        } else {
            self.name.clone()
        }
    }
}

/// A year chooses for the other, and all grids but one for that one.
fn splits() -> Vec<Split<'static>> {
    let mut splits = Vec::new();
    for (chosen_on, judged_on) in [("2022", "2023"), ("2023", "2022")] {
        splits.push(Split {
            chosen_on: chosen_on.to_owned(),
            judged_on: judged_on.to_owned(),
            chooses: Box::new(move |cell| cell.trace.ends_with(chosen_on)),
            judges: Box::new(move |cell| cell.trace.ends_with(judged_on)),
        });
    }
    for grid in GRIDS {
        splits.push(Split {
            chosen_on: format!("all but {grid}"),
            judged_on: grid.to_owned(),
            chooses: Box::new(move |cell| !cell.trace.starts_with(grid)),
            judges: Box::new(move |cell| cell.trace.starts_with(grid)),
        });
    }
    splits
}

fn by_year(candidates: &[Candidate]) -> String {
    let mut text = String::from("| trailing days, persistence |");
    for window in WINDOWS {
        let _ = write!(text, " {window} |");
    }
    text += "\n|---|---|---|---|\n";
    for candidate in candidates {
        let _ = write!(text, "| {} |", candidate.name());
        for window in WINDOWS {
            let share = |year: &str| {
                candidate.share(&|cell| cell.window == window && cell.trace.ends_with(year))
            };
            let _ = write!(text, " {:.2} / {:.2} |", share("2022"), share("2023"));
        }
        text.push('\n');
    }
    text
}

fn by_forecast(candidates: &[Candidate]) -> String {
    let mut text = String::from(
        "| memory, days | persistence | climatology | published (gb) |\n|---|---|---|---|\n",
    );
    for candidate in candidates {
        let _ = write!(text, "| {} |", candidate.name());
        for forecast in ["persistence", "climatology", "vintages"] {
            let share = candidate.share(&|cell| cell.forecast == forecast);
            let _ = write!(text, " {share:.2} |");
        }
        text.push('\n');
    }
    text
}

fn held_out(candidates: &[Candidate], splits: &[Split<'_>]) -> String {
    let mut text = String::from(
        "| chosen on | judged on | chosen | it has there | the default has | the best there |\n|---|---|---|---|---|---|\n",
    );
    let best = |which: &dyn Fn(&Cell) -> bool| {
        let by_share = |a: &&Candidate, b: &&Candidate| a.share(which).total_cmp(&b.share(which));
        candidates.iter().max_by(by_share).expect("a candidate")
    };
    let default = candidates.iter().find(|c| c.is_default);
    let default = default.expect("the default is a candidate");
    for split in splits {
        let (chosen, best) = (best(&split.chooses), best(&split.judges));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.2} | {:.2} | {:.2} ({}) |",
            split.chosen_on,
            split.judged_on,
            chosen.name,
            chosen.share(&split.judges),
            default.share(&split.judges),
            best.share(&split.judges),
            best.name,
        );
    }
    text
}
