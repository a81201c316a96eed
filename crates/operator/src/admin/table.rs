//! The table of services at `/crd-cache`, in the form that the peers' resolvers read.
//!
//! ```json
//! {"services": {"<namespace>/<service>": {"name": "<ElastiService>", "spec": {…}, "status": {…}}}}
//! ```

use serde_json::{Map, Value, json};
use weir_api::hold::ElastiService;

/// The table of these. Of several with one Service the last one stands: give only those that hold it.
pub fn table<'a>(all: impl IntoIterator<Item = &'a ElastiService>) -> Value {
    let services: Map<String, Value> = all
        .into_iter()
        .map(|object| {
            let meta = &object.metadata;
            let namespace = meta.namespace.as_deref().unwrap_or_default();
            let key = format!("{namespace}/{}", object.spec.service);
            let entry = json!({
                "name": meta.name.as_deref().unwrap_or_default(),
                "spec": object.spec,
                "status": object.status,
            });
            (key, entry)
        })
        .collect();
    json!({ "services": services })
}
