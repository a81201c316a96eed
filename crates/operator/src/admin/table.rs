//! The table of services at `/crd-cache`, in the form that the peers' resolvers read.
//!
//! ```json
//! {"services": {"<namespace>/<service>": {"name": "<ElastiService>", "spec": {…}, "status": {…}}}}
//! ```
//!
//! Anybody who reaches the port reads it, so triggers are left out: they may name credentials, and no resolver needs them.

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
            let mut entry = json!({
                "name": meta.name.as_deref().unwrap_or_default(),
                "spec": object.spec,
                "status": object.status,
            });
            if let Some(spec) = entry.get_mut("spec").and_then(Value::as_object_mut) {
                spec.remove("triggers");
            }
            (key, entry)
        })
        .collect();
    json!({ "services": services })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_what_the_peers_read_and_no_credentials() {
        let object: ElastiService = serde_json::from_value(json!({
            "metadata": {"namespace": "shop", "name": "web-elasti"},
            "spec": {
                "service": "web",
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "triggers": [{"type": "prometheus", "metadata": {
                    "query": "up", "threshold": 1, "headers": {"Authorization": "Bearer secret"},
                }}],
            },
            "status": {"mode": "proxy"},
        }))
        .unwrap();
        let table = table([&object]);
        let entry = &table["services"]["shop/web"];
        assert_eq!(entry["name"], "web-elasti");
        assert_eq!(entry["spec"]["service"], "web");
        assert_eq!(entry["status"]["mode"], "proxy");
        assert!(!table.to_string().contains("secret"));
    }
}
