//! What Prometheus answers to an instant query → one finite number.
//!
//! Pure. What is not exactly one finite number is an error: nobody is put to sleep on a guess.

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::question::shown;

/// Why an answer is not one finite number.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AnswerError {
    /// Not what the API answers.
    #[error("the answer is not one of Prometheus; see whether the address is right")]
    Malformed,
    /// What Prometheus says is wrong.
    #[error("Prometheus says: {0}")]
    Told(String),
    /// Nothing was found.
    #[error("the result is empty; add `or vector(0)` if that means idle")]
    Empty,
    /// Several series were found.
    #[error("the result has {0} series where one is needed; add `sum(…)` around it")]
    Several(usize),
    /// A range, a text or a histogram.
    #[error("the result is not a number; use an instant query that gives one")]
    NotANumber,
    /// NaN or infinite.
    #[error("the result is {0}, which cannot be compared")]
    NotFinite(String),
}

#[derive(Deserialize)]
struct Answer {
    status: String,
    data: Option<Data>,
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    result_type: String,
    result: Value,
}

/// The number in an answer.
pub fn read(body: &[u8]) -> Result<f64, AnswerError> {
    let answer: Answer = serde_json::from_slice(body).map_err(|_| AnswerError::Malformed)?;
    if answer.status != "success" {
        let error = answer.error.ok_or(AnswerError::Malformed)?;
        return Err(AnswerError::Told(shown(&error)));
    }
    let data = answer.data.ok_or(AnswerError::Malformed)?;
    match data.result_type.as_str() {
        "scalar" => sample(&data.result),
        "vector" => match data.result.as_array().map(Vec::as_slice) {
            Some([]) => Err(AnswerError::Empty),
            Some([one]) => sample(one.get("value").ok_or(AnswerError::NotANumber)?),
            Some(several) => Err(AnswerError::Several(several.len())),
            None => Err(AnswerError::Malformed),
        },
        _ => Err(AnswerError::NotANumber),
    }
}

/// What an answer with an error status says, if it is one of Prometheus.
pub fn told(body: &[u8]) -> Option<String> {
    let answer: Answer = serde_json::from_slice(body).ok()?;
    answer.error.map(|error| shown(&error))
}

/// The value of `[time, "value"]`.
fn sample(pair: &Value) -> Result<f64, AnswerError> {
    let text = pair.get(1).and_then(Value::as_str);
    let text = text.ok_or(AnswerError::Malformed)?;
    let number: f64 = text.parse().map_err(|_| AnswerError::Malformed)?;
    if number.is_finite() {
        Ok(number)
    } else {
        Err(AnswerError::NotFinite(shown(text)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn success(type_: &str, result: &Value) -> Vec<u8> {
        let data = json!({"resultType": type_, "result": result});
        serde_json::to_vec(&json!({"status": "success", "data": data})).unwrap()
    }

    fn vector(values: &[&str]) -> Vec<u8> {
        let sample =
            |value: &&str| json!({"metric": {"a": "b"}, "value": [1_700_000_000.5, value]});
        success("vector", &values.iter().map(sample).collect())
    }

    #[test]
    fn one_number_is_one_number() {
        for (text, number) in [("0", 0.0), ("-1", -1.0), ("0.25", 0.25), ("1e+06", 1e6)] {
            assert_eq!(read(&vector(&[text])), Ok(number), "{text}");
            assert_eq!(
                read(&success("scalar", &json!([1, text]))),
                Ok(number),
                "{text}"
            );
        }
    }

    #[test]
    fn anything_else_says_what_to_do() {
        for (body, message) in [
            (
                vector(&[]),
                "the result is empty; add `or vector(0)` if that means idle",
            ),
            (
                vector(&["1", "2", "3"]),
                "the result has 3 series where one is needed; add `sum(…)` around it",
            ),
            (
                vector(&["NaN"]),
                "the result is NaN, which cannot be compared",
            ),
            (
                vector(&["+Inf"]),
                "the result is +Inf, which cannot be compared",
            ),
            (
                vector(&["-Inf"]),
                "the result is -Inf, which cannot be compared",
            ),
            (
                success("matrix", &json!([])),
                "the result is not a number; use an instant query that gives one",
            ),
            (
                success("string", &json!([1, "7"])),
                "the result is not a number; use an instant query that gives one",
            ),
            (
                success("vector", &json!([{"metric": {}, "histogram": [1, {}]}])),
                "the result is not a number; use an instant query that gives one",
            ),
            (
                br#"{"status":"error","errorType":"bad_data","error":"parse error: x"}"#.to_vec(),
                "Prometheus says: parse error: x",
            ),
            (
                b"<html>welcome</html>".to_vec(),
                "the answer is not one of Prometheus; see whether the address is right",
            ),
            (
                br#"{"status":"success"}"#.to_vec(),
                "the answer is not one of Prometheus; see whether the address is right",
            ),
            (
                success("scalar", &json!([1, 7])),
                "the answer is not one of Prometheus; see whether the address is right",
            ),
        ] {
            assert_eq!(read(&body).unwrap_err().to_string(), message);
        }
    }

    proptest! {
        #[test]
        fn a_number_is_read_back(number in any::<f64>()) {
            let read = read(&vector(&[&number.to_string()]));
            if number.is_finite() {
                prop_assert_eq!(read, Ok(number));
            } else {
                prop_assert!(matches!(read, Err(AnswerError::NotFinite(_))));
            }
        }

        #[test]
        fn no_bytes_make_it_panic(body in prop::collection::vec(any::<u8>(), 0..64), at in 0..200_usize) {
            let _ = read(&body);
            let _ = told(&body);
            let mut whole = vector(&["1"]);
            whole.truncate(at);
            let _ = read(&whole);
        }
    }
}
