//! What the original operator left in the cluster: its exporter, which nobody asks any more and which counts the interfaces
//! of its own pods. It is not ours to delete, so a condition names it with the command that does.

use std::{collections::BTreeSet, fmt::Debug, time::Duration};

use k8s_openapi::api::{apps::v1::DaemonSet, core::v1::Service};
use kube::{Api, Client, Resource, ResourceExt, api::ListParams};
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use weir_api::place::names::{ConditionType, ORIGINAL_NODE_EXPORTER};
use weir_place::{condition::Said, moment::Moment};

/// It is looked for this often: whoever deletes it wants to see the condition go.
const INTERVAL: Duration = Duration::from_mins(5);
const PATIENCE: Duration = Duration::from_secs(10);

/// What is known of it.
#[derive(Clone, Debug, Default)]
pub struct LeftOver {
    looked: Option<Moment>,
    said: Option<Said>,
}

impl LeftOver {
    /// What the condition says, if anything is left.
    pub const fn said(&self) -> Option<&Said> {
        self.said.as_ref()
    }

    /// Looks again, if it is time. Whoever may not look, or gets no answer, is told nothing.
    pub async fn look(&mut self, client: &Client, now: Moment) {
        let is_fresh = |looked: Moment| now.since(looked) < INTERVAL;
        if self.looked.is_some_and(is_fresh) {
            return;
        }
        self.looked = Some(now);
        let found = async {
            let mut namespaces = namespaces_of::<DaemonSet>(client).await?;
            namespaces.extend(namespaces_of::<Service>(client).await?);
            Ok::<_, kube::Error>(namespaces)
        };
        match timeout(PATIENCE, found).await {
            Ok(Ok(namespaces)) => self.said = said(&namespaces),
            Ok(Err(error)) => tracing::debug!(%error, "cannot look for the original's exporter"),
            Err(_) => tracing::debug!("no answer when looking for the original's exporter"),
        }
    }
}

async fn namespaces_of<K>(client: &Client) -> kube::Result<BTreeSet<String>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let api: Api<K> = Api::all(client.clone());
    let params = ListParams::default().fields(&format!("metadata.name={ORIGINAL_NODE_EXPORTER}"));
    let found = api.list_metadata(&params).await?;
    Ok(found.iter().filter_map(ResourceExt::namespace).collect())
}

/// One of them is named; when it is gone, the next is.
fn said(namespaces: &BTreeSet<String>) -> Option<Said> {
    let namespace = namespaces.first()?;
    Some(Said {
        type_: ConditionType::Alone,
        holds: false,
        reason: "OriginalExporter",
        message: format!(
            "the original operator's exporter is still there, and nobody asks it: kubectl delete daemonset,service {ORIGINAL_NODE_EXPORTER} --namespace {namespace} --ignore-not-found"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_named_with_the_command_that_deletes_it() {
        assert_eq!(said(&BTreeSet::new()), None);
        let found = said(&BTreeSet::from(["b".to_owned(), "a".to_owned()])).unwrap();
        assert!(!found.holds);
        let command =
            "kubectl delete daemonset,service traffic-operator-node-exporter --namespace a";
        assert!(found.message.contains(command), "{}", found.message);
    }
}
