//! JSON as two providers export it: the UK Carbon Intensity API and Electricity Maps.

use serde_json::Value;

use super::{Row, TableError, columns::moment};

pub(super) fn rows(text: &str) -> Result<(Vec<Row>, Vec<String>), TableError> {
    let json: Value = serde_json::from_str(text)?;
    let list = [&json["data"], &json["history"], &json]
        .into_iter()
        .find_map(Value::as_array)
        .ok_or(TableError::UnknownJson)?;
    let mut rows = Vec::new();
    let mut forecasts = 0_usize;
    for (i, item) in list.iter().enumerate() {
        let time = [&item["from"], &item["datetime"]]
            .into_iter()
            .find_map(Value::as_str)
            .ok_or(TableError::UnknownJson)?;
        let at = moment(time).ok_or_else(|| TableError::Time {
            line: i + 1,
            text: time.to_owned(),
        })?;
        let measured = [&item["intensity"]["actual"], &item["carbonIntensity"]];
        let value = measured.into_iter().find_map(Value::as_f64).or_else(|| {
            forecasts += 1;
            item["intensity"]["forecast"].as_f64()
        });
        rows.push((at, value.unwrap_or(f64::NAN)));
    }
    let mut notes = Vec::new();
    if forecasts > 0 {
        notes.push(format!(
            "{forecasts} slots have no measured value: their forecast is taken"
        ));
    }
    Ok((rows, notes))
}
