//! Kubernetes objects on standard output, as `kubectl apply -f -` takes them.

use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;

use crate::output::{self, OutputError};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Several documents
    Yaml,
    /// One List
    Json,
}

pub(crate) fn print<T: Serialize>(objects: &[T], format: Format) -> Result<(), OutputError> {
    let mut text = String::new();
    match format {
        Format::Yaml => {
            for object in objects {
                // By way of JSON values, which is what the API server will see.
                let value = serde_json::to_value(object)?;
                text.push_str("---\n");
                text.push_str(&serde_saphyr::to_string(&value)?);
            }
        }
        Format::Json => {
            let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
            text = serde_json::to_string_pretty(&list)?;
            text.push('\n');
        }
    }
    output::print(text.as_bytes())
}
