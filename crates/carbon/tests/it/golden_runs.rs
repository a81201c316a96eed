//! Whole evaluations of the original, one after the other on one instance: policy, ledger, throttle and rounding together; and
//! what is published beside them. See `tests/golden/README.md`.

use serde_json::Value;
use weir_carbon::credit::Credit;
use weir_carbon::policy::global::Memory;
use weir_carbon::policy::legacy::{LegacyFlavour, LegacyForecast, LegacyWeights};
use weir_carbon::policy::{baseline, credit_greedy, forecast_aware, global};
use weir_carbon::throttle::{
    ThrottleSettings, credits_ratio, in_flight_limit, in_flight_target, replica_ceiling, throttle,
    valid_for,
};
use weir_carbon::weights::Weights;

use super::golden::{flavours, list, number, read};

fn near(got: f64, want: &Value, what: &str) {
    assert!(
        (got - number(want)).abs() < 1e-9,
        "{what}: {got}, not {want}"
    );
}

fn slots(step: &Value) -> Vec<Option<f64>> {
    list(&step["c"][4]).iter().map(Value::as_f64).collect()
}

fn forecast<'a>(step: &Value, slots: &'a [Option<f64>]) -> LegacyForecast<'a> {
    let [now, next, demand_now, demand_next] = [0, 1, 2, 3].map(|i| step["c"][i].as_f64());
    LegacyForecast {
        now,
        next,
        demand_now,
        demand_next,
        slots,
    }
}

fn mean_precision(weights: &LegacyWeights, flavours: &[LegacyFlavour]) -> f64 {
    weights
        .iter()
        .map(|(i, w)| w * flavours[*i].precision)
        .sum()
}

fn small(value: &Value) -> usize {
    usize::try_from(value.as_u64().expect("a count")).expect("small")
}

#[test]
fn sequences_of_forecast_aware_global_are_the_original() {
    let all = read("runs");
    for (n, sequence) in list(&all["sequences"]).iter().enumerate() {
        let flavours = flavours(sequence);
        let [min, max, balance] = [0, 1, 2].map(|i| number(&sequence["l"][i]));
        let (target, sensitivity) = (number(&sequence["te"]), number(&sequence["sens"]));
        let mut credit = Credit::new(target, min, max, sensitivity, small(&sequence["win"]))
            .with_balance(balance);
        let mut memory = Memory::default();
        for (k, step) in list(&sequence["steps"]).iter().enumerate() {
            let what = format!("sequence {n}, step {k}");
            let slots = slots(step);
            let weights = global::weigh(
                &mut memory,
                &credit,
                &flavours,
                Some(&forecast(step, &slots)),
            );
            for ((i, weight), want) in weights.iter().zip(list(&step["w"])) {
                assert_eq!(Some(*i as u64), want[0].as_u64(), "{what}");
                near(*weight, &want[1], &what);
            }
            let average = mean_precision(&weights, &flavours);
            near(average, &step["avg"], &what);
            credit.update(average);
            near(credit.balance(), &step["bal"], &what);
            assert!(
                (memory.carbon - number(&step["st"][0])).abs() < 1e-6,
                "{what}"
            );
            assert_eq!(Some(u64::from(memory.evaluations)), step["st"][1].as_u64());
        }
    }
}

#[test]
fn whole_evaluations_are_the_original() {
    let all = read("runs");
    let (mut judged, mut left_out) = (0, 0);
    for (n, run) in list(&all["engine"]).iter().enumerate() {
        let flavours = flavours(run);
        let policy = run["policy"].as_str().expect("a name");
        let field = |name: &str| number(&run[name]);
        // The original gives weight to a disabled best flavour; here a disabled flavour never gets any.
        if policy == "forecast-aware" && flavours.iter().any(|f| !f.enabled) {
            left_out += 1;
            continue;
        }
        let (min, max) = (field("creditMin"), field("creditMax"));
        let window = small(&run["window"]);
        let mut credit = Credit::new(field("targetError"), min, max, field("sensitivity"), window);
        let mut memory = Memory::default();
        for (k, step) in list(&run["steps"]).iter().enumerate() {
            let what = format!("run {n} of {policy}, step {k}");
            if let Some(precision) = step["fb"].as_f64() {
                credit.update(precision);
            }
            let slots = slots(step);
            let forecast = forecast(step, &slots);
            let known = Some(&forecast);
            let weights = match policy {
                "credit-greedy" => credit_greedy::weigh(&credit, &flavours, known),
                "forecast-aware" => forecast_aware::weigh(&credit, &flavours, known),
                "forecast-aware-global" => global::weigh(&mut memory, &credit, &flavours, known),
                _ => baseline::p100(&flavours),
            };
            let average = mean_precision(&weights, &flavours);
            credit.update(average);
            let want = &step["o"];
            near(average, &want["avg"], &what);
            near(credit.balance(), &want["credits"]["balance"], &what);
            near(credit.velocity(), &want["credits"]["velocity"], &what);
            let shares: Vec<f64> = weights.iter().map(|w| w.1).collect();
            let published = Weights::nearest(&shares);
            for (((i, _), percent), want) in
                weights.iter().zip(published).zip(list(&want["weights"]))
            {
                assert_eq!(Some(*i as u64), want[0].as_u64(), "{what}");
                assert_eq!(Some(i64::from(percent)), want[1].as_i64(), "{what}");
            }
            let ratio = credits_ratio(credit.balance(), min, max);
            let settings = ThrottleSettings::default();
            let got = throttle(&settings, ratio, forecast.now, forecast.next, &slots);
            let want = &want["processing"];
            near(got.factor, &want["throttle"], &what);
            near(got.credits_ratio, &want["creditsRatio"], &what);
            near(got.intensity_ratio, &want["intensityRatio"], &what);
            for (component, want) in want["ceilings"].as_object().expect("a map") {
                let bound = |name: &str| run["bounds"][component][name].as_i64();
                let bound = |name| bound(name).map(|b| i32::try_from(b).expect("small"));
                let (min, max) = (bound("min").unwrap_or(0), bound("max").expect("a max"));
                // Other than in the original, a component that may run keeps one replica.
                let want = want.as_i64().map(|w| if max >= 1 { w.max(1) } else { w });
                let got = i64::from(replica_ceiling(got.factor, min, max));
                assert_eq!(Some(got), want, "{component}, {what}");
            }
            judged += 1;
        }
    }
    assert!(
        judged >= 180 && left_out <= 6,
        "{judged} judged, {left_out} left out"
    );
}

#[test]
fn rounding_is_the_original() {
    for case in list(&read("runs")["rounding"]) {
        let shares: Vec<f64> = list(&case[0]).iter().map(number).collect();
        let want: Vec<i64> = list(&case[1]).iter().filter_map(Value::as_i64).collect();
        let got: Vec<i64> = Weights::nearest(&shares)
            .into_iter()
            .map(i64::from)
            .collect();
        assert_eq!(got, want, "{case}");
    }
}

#[test]
fn validity_ends_with_the_present_slot() {
    for case in list(&read("runs")["validUntil"]) {
        let ends = list(&case["endsAfterNowS"])
            .iter()
            .filter_map(Value::as_i64);
        let got = valid_for(case["validFor"].as_i64().expect("seconds"), ends);
        assert!(
            (number(&case["validUntilAfterNowS"]) - f64::from(i32::try_from(got).expect("small")))
                .abs()
                < 1e-9,
            "{got} {case}"
        );
    }
}

#[test]
fn the_limit_of_the_consumer_is_the_original() {
    for case in list(&read("runs")["inflight"]) {
        let (input, want) = (&case["in"], &case["out"]);
        let count = |name: &str| u32::try_from(small(&input[name])).expect("small");
        let (per_queue, flavours) = (count("concurrencyPerQueue"), count("flavourCount"));
        let (factor, exponent) = (number(&want["factor"]), number(&input["exponent"]));
        let target = in_flight_target(factor, per_queue, flavours, exponent);
        near(target, &want["target"], &case.to_string());
        let limit = in_flight_limit(factor, per_queue, flavours, exponent, count("minInflight"));
        assert_eq!(Some(u64::from(limit)), want["limit"].as_u64(), "{case}");
    }
}
