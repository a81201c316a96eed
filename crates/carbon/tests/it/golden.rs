//! The older policies, the ledger and the throttle against vectors of the original; see
//! `tests/golden/README.md`.

use serde_json::Value;
use weir_carbon::credit::Credit;
use weir_carbon::policy::global::Memory;
use weir_carbon::policy::legacy::{LegacyFlavour, LegacyForecast, LegacyWeights};
use weir_carbon::policy::{baseline, credit_greedy, forecast_aware, global};
use weir_carbon::throttle::{ThrottleSettings, credits_ratio, replica_ceiling, throttle};

pub(crate) fn read(name: &str) -> Value {
    let path = format!("{}/tests/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).expect("the file")).expect("JSON")
}

pub(crate) fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

pub(crate) fn flavours(case: &Value) -> Vec<LegacyFlavour> {
    let one = |f: &Value| LegacyFlavour {
        precision: number(&f[0]),
        cost: number(&f[1]),
        enabled: f[2] == 1,
    };
    list(&case["f"]).iter().map(one).collect()
}

fn credit(case: &Value) -> Credit {
    let [min, max, balance] = [0, 1, 2].map(|i| number(&case["l"][i]));
    Credit::new(0.15, min, max, 0.33, 300).with_balance(balance)
}

/// Runs a policy over all its cases; `skip` says which cases are wrong on purpose.
fn judge(
    name: &str,
    skip: impl Fn(&[LegacyFlavour]) -> bool,
    mut policy: impl FnMut(&Value, &[LegacyFlavour], Option<&LegacyForecast<'_>>) -> LegacyWeights,
) -> usize {
    let all = read("policies");
    let mut judged = 0;
    for (n, case) in list(&all[name]).iter().enumerate() {
        let flavours = flavours(case);
        let slots: Vec<Option<f64>> = match &case["c"] {
            Value::Array(c) => list(&c[4]).iter().map(Value::as_f64).collect(),
            _ => Vec::new(),
        };
        let forecast = case.get("c").map(|c| LegacyForecast {
            now: c[0].as_f64(),
            next: c[1].as_f64(),
            demand_now: c[2].as_f64(),
            demand_next: c[3].as_f64(),
            slots: &slots,
        });
        let got = policy(case, &flavours, forecast.as_ref());
        let Value::Array(want) = &case["w"] else {
            assert!(got.is_empty(), "{name} {n}: nothing is enabled");
            continue;
        };
        if skip(&flavours) {
            continue;
        }
        judged += 1;
        assert_eq!(got.len(), want.len(), "{name} {n}");
        for ((i, weight), want) in got.iter().zip(want) {
            assert_eq!(Some(*i as u64), want[0].as_u64(), "{name} {n}");
            assert!(
                (weight - number(&want[1])).abs() < 1e-9,
                "{name} {n}: {got:?} is not {:?}; {case}",
                case["w"]
            );
        }
    }
    judged
}

#[test]
fn credit_greedy_is_the_original() {
    let judged = judge(
        "credit-greedy",
        |_| false,
        |case, flavours, forecast| credit_greedy::weigh(&credit(case), flavours, forecast),
    );
    assert!(judged > 350, "{judged}");
}

#[test]
fn forecast_aware_is_the_original_but_for_disabled_flavours() {
    // The original gives weight to a disabled best flavour; here a disabled flavour never gets any.
    let best_is_disabled = |flavours: &[LegacyFlavour]| {
        let best = |of: &dyn Fn(&&LegacyFlavour) -> bool| {
            let precisions = flavours.iter().filter(of).map(|f| f.precision);
            precisions.fold(-1.0, f64::max)
        };
        best(&|f| !f.enabled) >= best(&|f| f.enabled)
    };
    let judged = judge(
        "forecast-aware",
        best_is_disabled,
        |case, flavours, forecast| forecast_aware::weigh(&credit(case), flavours, forecast),
    );
    assert!(judged > 300, "{judged}");
}

#[test]
fn forecast_aware_global_is_the_original() {
    let judged = judge(
        "forecast-aware-global",
        |_| false,
        |case, flavours, forecast| {
            let mut memory = Memory {
                carbon: number(&case["st"][0]),
                evaluations: u32::try_from(case["st"][1].as_u64().expect("a count"))
                    .expect("small"),
            };
            let weights = global::weigh(&mut memory, &credit(case), flavours, forecast);
            if let Some(after) = case.get("after") {
                assert!(
                    (memory.carbon - number(&after[0])).abs() < 1e-6,
                    "{case} {memory:?}"
                );
                assert_eq!(Some(u64::from(memory.evaluations)), after[1].as_u64());
            }
            weights
        },
    );
    assert!(judged > 350, "{judged}");
}

#[test]
fn the_baselines_are_the_original() {
    judge("p100", |_| false, |_, flavours, _| baseline::p100(flavours));
    judge(
        "round-robin",
        |_| false,
        |_, flavours, _| baseline::round_robin(flavours),
    );
    judge(
        "random",
        |_| false,
        |case, flavours, _| {
            let mut draws = list(&case["draws"]).iter().map(number);
            baseline::random(flavours, &mut || draws.next().expect("a draw per flavour"))
        },
    );
}

#[test]
fn the_ledger_is_the_original() {
    for sequence in list(&read("ledger")) {
        let field = |name: &str| number(&sequence[name]);
        let window = usize::try_from(sequence["win"].as_u64().expect("a count")).expect("small");
        let mut credit = Credit::new(
            field("te"),
            field("min"),
            field("max"),
            field("sens"),
            window,
        );
        for (i, precision) in list(&sequence["p"]).iter().enumerate() {
            if sequence["resetBefore"].as_u64() == Some(i as u64) {
                credit.reset();
            }
            credit.update(number(precision));
            assert!(
                (credit.balance() - number(&sequence["b"][i])).abs() < 1e-12,
                "{i} {} {sequence}",
                credit.balance()
            );
            assert!((credit.velocity() - number(&sequence["v"][i])).abs() < 1e-12);
        }
    }
}

#[test]
fn the_throttle_is_the_original_within_its_promises() {
    for case in list(&read("throttle")) {
        let input = &case["in"];
        let field = |name: &str| number(&input[name]);
        let settings = ThrottleSettings {
            min: field("throttleMin"),
            floor: field("floor"),
            ceiling: field("ceiling"),
            ..ThrottleSettings::default()
        };
        let slots: Vec<Option<f64>> = list(&input["s"]).iter().map(Value::as_f64).collect();
        let ratio = credits_ratio(field("balance"), field("creditMin"), field("creditMax"));
        let (now, next) = (input["now"].as_f64(), input["next"].as_f64());
        let got = throttle(&settings, ratio, now, next, &slots);
        for (value, name) in [
            (got.factor, "throttle"),
            (got.credits_ratio, "creditsRatio"),
            (got.intensity_ratio, "intensityRatio"),
        ] {
            let want = number(&case["out"][name]);
            assert!((value - want).abs() < 1e-12, "{name} {value} {case}");
        }
        for (component, want) in case["out"]["ceilings"].as_object().expect("a map") {
            let bounds = &input["bounds"][component];
            let bound = |name: &str| {
                bounds[name]
                    .as_i64()
                    .map(|b| i32::try_from(b).expect("small"))
            };
            let (min, max) = (bound("min").unwrap_or(0), bound("max").expect("a max"));
            let want = i32::try_from(want.as_i64().expect("a count")).expect("small");
            // Other than the original, a component that may run keeps one replica.
            let want = if max >= 1 { want.max(1) } else { want };
            assert_eq!(
                replica_ceiling(got.factor, min, max),
                want,
                "{component} {case}"
            );
        }
    }
}
