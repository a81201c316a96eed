//! Reading what is stored, whatever it is.
//!
//! A status may have been written by another operator, or by hand, under a schema that checked less
//! than the type holds. One such value must not make the whole object unreadable: it counts as absent.
//! Specs need this only where an older schema let anything in; the rest is checked at admission.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The value, or none if it is not of its type.
pub(crate) fn option<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}

/// The items that are of their type.
pub(crate) fn list<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let items: Option<Vec<Value>> = option(from)?;
    let known = items.into_iter().flatten().map(serde_json::from_value);
    Ok(known.filter_map(Result::ok).collect())
}
