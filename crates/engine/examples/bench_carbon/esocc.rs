//! The days of the ESOCC 2025 experiment: a cap on the error of each day, with the published forecast of that day.

use std::collections::BTreeMap;
use std::fmt::Write;

use weir_carbon::budget::Windows;
use weir_carbon::flavour::{Flavour, Flavours};
use weir_carbon::forecast::{Capture, Forecaster, Vintages};
use weir_carbon::policy::by_name;
use weir_carbon::simulate::{Keep, Setup, measure, run};
use weir_carbon::trace::Trace;
use weir_carbon::unit::{ErrorRate, Precision};
use weir_engine::simulate::builtin;

use crate::figures::Figures;

/// Half-hours of one day: intensity, its forecast, requests.
type Day = Vec<(f64, f32, u64)>;

pub(crate) fn table(figures: &mut Figures) -> String {
    // Elapsed times and errors of the experiment's three strategies; time stands for energy.
    let strategies = [
        (1.0, 100.209_1),
        (0.955_248, 66.294_8),
        (0.865_733, 35.286_1),
    ];
    let flavours = strategies.map(|(precision, cost)| {
        Flavour::new(
            Precision::from_fraction(precision).expect("a precision"),
            cost,
        )
    });
    let flavours = Flavours::new(flavours.to_vec()).expect("a set");
    let mut text =
        String::from("ESOCC days: saved (share of the fair optimum), cap kept on every day\n");
    let mut broken = 0;
    for demand in ["stable", "camel"] {
        for cap in [0.01, 0.02, 0.04, 0.08] {
            let (mut saved, mut baseline, mut fair, mut worst) = (0.0, 0.0, 0.0, 0.0_f64);
            for day in days(demand).values() {
                let trace = Trace::new(0, 1_800, day.iter().map(|slot| slot.0).collect());
                let trace = trace.expect("a day");
                let vintages = Vintages::new(
                    1_800,
                    vec![Capture {
                        at: 0,
                        values: day.iter().map(|slot| slot.1).collect(),
                    }],
                );
                let requests: Vec<u64> = day.iter().map(|slot| slot.2).collect();
                let setup = Setup {
                    trace: &trace,
                    history: &[],
                    forecaster: Forecaster::Vintages(&vintages),
                    demand: &requests,
                    flavours: &flavours,
                    target: ErrorRate::from_fraction(cap).expect("a cap"),
                    windows: Windows::starting_at(0, 86_400),
                };
                let sticks = measure(&setup);
                let mut policy = by_name("optimal", 1).expect("the policy");
                let outcome = run(&setup, policy.as_mut(), Keep::default());
                saved += sticks.baseline - outcome.emitted;
                baseline += sticks.baseline;
                fair += sticks.fair;
                worst = worst.max(outcome.max_running_error);
                broken += outcome.budget_violations;
            }
            let _ = writeln!(
                text,
                "  {demand:<7} cap {:>2.0} %: {:>5.2} % ({:.1} %), worst error of any day {:.4}",
                cap * 100.0,
                saved / baseline * 100.0,
                saved / fair * 100.0,
                worst,
            );
        }
    }
    figures.at_most("carbon.esocc.violations", broken as f64, "requests", 0.0);
    text
}

fn days(demand: &str) -> BTreeMap<String, Day> {
    let mut days: BTreeMap<String, Day> = BTreeMap::new();
    for line in builtin::esocc_days().expect("the days").lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        if let [day, kind, _, actual, forecast, requests, _] = cells[..]
            && kind == demand
        {
            days.entry(day.to_owned()).or_default().push((
                actual.parse().expect("a number"),
                forecast.parse().expect("a number"),
                requests.parse::<f64>().expect("a number") as u64,
            ));
        }
    }
    days
}
