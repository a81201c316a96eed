//! Whole runs: the built-in traces, what is refused, and what the output promises.

use weir_carbon::policy::NAMES;
use weir_carbon::unit::ErrorRate;
use weir_engine::simulate::demand::{Demand, PER_HOUR};
use weir_engine::simulate::output::{csv, json, lines, table};
use weir_engine::simulate::{
    BudgetWindow, Forecast, Keep, Played, Request, SimulateError, Source, parse, play, prepare,
    report,
};

fn request(trace: &str) -> Request {
    Request {
        trace: builtin(trace),
        history: None,
        forecast: Forecast::Perfect,
        flavours: parse::flavours("100:1.0,50:0.6,30:0.3").expect("flavours"),
        target: ErrorRate::from_fraction(0.1).expect("a target"),
        window: BudgetWindow::Seconds(7 * 86_400),
        demand: Demand::Camel(PER_HOUR),
        policies: Vec::new(),
        seed: 1,
        keep: Keep::default(),
    }
}

fn builtin(name: &str) -> Source {
    Source {
        name: name.to_owned(),
        content: None,
    }
}

fn played(request: Request) -> Vec<Played> {
    let prepared = prepare(&request).expect("a game");
    play(vec![(prepared, request)], &|_, _| {})
}

#[test]
fn the_built_in_week_is_played_by_all_policies() {
    let mut week = request("gb-week");
    week.forecast = Forecast::Vintages(None);
    let runs = played(week);
    let lines = lines(&runs);
    let names: Vec<&str> = lines.iter().map(|line| line.policy).collect();
    assert_eq!(names, NAMES);
    for line in &lines {
        assert_eq!(line.budget_violations, 0, "{line:?}");
        assert!(line.max_running_error <= 0.1, "{line:?}");
        assert_eq!(line.slots, 336);
        assert!(line.share_of_optimum.expect("a share") <= 1.0, "{line:?}");
    }
    let [optimal, mix, ..] = &lines[..] else {
        panic!("{lines:?}");
    };
    assert!(optimal.gain_over_constant_mix > mix.gain_over_constant_mix);
    assert!(table(&runs).contains("optimal"));
    assert_eq!(csv(&runs).lines().count(), 1 + NAMES.len());
}

#[test]
fn the_json_is_a_contract() {
    let mut day = request("gb-day");
    day.policies = vec!["optimal".to_owned()];
    let text = json(&played(day)).expect("JSON");
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for key in [
        "policy",
        "saved_percent",
        "share_of_optimum",
        "share_of_free_optimum",
        "gain_over_constant_mix",
        "mean_error",
        "max_running_error",
        "budget_violations",
        "slots",
        "emitted_g",
        "baseline_g",
        "optimum_g",
    ] {
        assert!(!value[0][key].is_null(), "{key} is missing in {text}");
    }
}

#[test]
fn a_target_of_zero_saves_nothing_and_has_no_share() {
    let mut day = request("gb-day");
    day.target = ErrorRate::from_millionths(0);
    for line in lines(&played(day)) {
        assert!(line.saved_percent.abs() < 1e-9, "{line:?}");
        assert_eq!(line.share_of_optimum, None);
    }
}

#[test]
fn what_cannot_be_played_says_what_to_do() {
    let said = |request: &Request| match prepare(request) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it was played"),
    };
    let mut bad = request("gb-day");
    bad.policies = vec!["best".to_owned()];
    assert!(said(&bad).contains("credit-greedy"));
    let mut bad = request("de-2023");
    bad.forecast = Forecast::Vintages(None);
    assert!(said(&bad).contains("--forecast vintages FILE"));
    let mut bad = request("de-2022");
    bad.history = Some(builtin("de-2023"));
    assert!(matches!(prepare(&bad), Err(SimulateError::HistoryIsLater)));
    bad.history = Some(builtin("gb-2022"));
    assert!(said(&bad).contains("same slots"));
    let mut bad = request("gb-day");
    bad.window = BudgetWindow::Seconds(60);
    assert!(said(&bad).contains("1h"));
    assert!(said(&request("gb-1999")).contains("gb-1999"));
    bad = request("gb-day");
    bad.demand = Demand::File("d".to_owned(), "utc,n\n1999-01-01T00:00Z,5\n".to_owned());
    assert!(said(&bad).contains("no request within"));
}

#[test]
fn the_report_is_one_file_that_needs_nothing_else() {
    let mut week = request("gb-week");
    week.keep.series = true;
    let page = report::html(&played(week));
    for part in [
        "<svg",
        "prefers-color-scheme:dark",
        "optimal",
        "<title>Carbon intensity",
        "target",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for outside in ["http", "<script", "src=", "href=", "NaN", "inf "] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.len() < 500_000, "{}", page.len());
}

#[test]
fn the_originals_break_the_budget_and_say_so_and_decisions_have_reasons() {
    let mut week = request("gb-week");
    week.policies = vec!["optimal".to_owned(), "original-round-robin".to_owned()];
    week.keep.changes = true;
    let runs = played(week);
    let lines = lines(&runs);
    let [optimal, original] = &lines[..] else {
        panic!("{lines:?}");
    };
    assert!(optimal.guarded && optimal.budget_violations == 0);
    assert!(optimal.why.is_some() && optimal.shadow_price.is_some());
    assert!(optimal.decisions.len() > 1, "{:?}", optimal.decisions);
    assert!(!original.guarded && original.budget_violations > 10_000);
    assert!(original.max_running_error > 0.39, "{original:?}");
    let text = table(&runs);
    assert!(text.contains("BUDGET BROKEN at") && text.contains("with no budget kept"));
}
