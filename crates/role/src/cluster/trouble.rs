//! A watch that fails is said once, with what to do, and once more when it is over; not at every attempt.

use kube::{Resource, runtime::watcher};
use weir_api::hold::names::GROUP;

use super::ObjectId;

/// What is wrong with one watch.
pub(super) struct Trouble {
    plural: String,
    group: String,
    scope: String,
    /// A cluster may do without the kind.
    is_optional: bool,
    said: Option<String>,
}

impl Trouble {
    pub(super) fn of<K: Resource<DynamicType = ()>>(
        namespace: Option<&str>,
        is_optional: bool,
    ) -> Self {
        Self {
            plural: K::plural(&()).into_owned(),
            group: K::group(&()).into_owned(),
            scope: match namespace {
                Some(namespace) => format!("the namespace {namespace}"),
                None => "all namespaces".to_owned(),
            },
            is_optional,
            said: None,
        }
    }

    /// The watch failed; it will be tried again. Says whether that is news.
    pub(super) fn is_here(&mut self, error: &watcher::Error) -> bool {
        // The API server ends watches whose start is too old. It is asked for a new list, and that is all.
        if let watcher::Error::WatchError(status) = error
            && status.code == 410
        {
            return false;
        }
        let message = self.message(code_of(error));
        if self.said.as_deref() == Some(message.as_str()) {
            return false;
        }
        if self.is_optional && is_absent(error) {
            tracing::info!("{message}");
        } else {
            tracing::warn!(%error, "{message}");
        }
        self.said = Some(message);
        true
    }

    /// The watch works.
    pub(super) fn is_over(&mut self) {
        if self.said.take().is_some() {
            tracing::info!("{} in {} are watched again", self.plural, self.scope);
        }
    }

    /// An object cannot be read.
    pub(super) fn unreadable(&self, id: &ObjectId, error: &str) {
        let (plural, namespace, name) = (&self.plural, &id.namespace, &id.name);
        tracing::warn!(
            %namespace, %name, error,
            "one of the {plural} cannot be read and is left as it was known; correct it"
        );
    }

    fn message(&self, code: Option<u16>) -> String {
        let Self {
            plural,
            group,
            scope,
            is_optional,
            said: _,
        } = self;
        match code {
            Some(404) if group == GROUP => format!(
                "{plural}.{group} are not installed; install them with `weir crds | kubectl apply -f -`; trying again until then"
            ),
            Some(404) if *is_optional => format!(
                "{plural}.{group} are not installed, and not needed unless an object names one; looked for again now and then"
            ),
            Some(401) => format!(
                "{plural} in {scope} cannot be watched, since the cluster does not know us; check the ServiceAccount or the kubeconfig; trying again"
            ),
            Some(403) => format!(
                "{plural} in {scope} may not be watched; allow this ServiceAccount get, list and watch on {plural} of the group {group:?}; trying again"
            ),
            _ => format!("{plural} in {scope} cannot be watched at the moment; trying again"),
        }
    }
}

/// Whether the kind itself is not there.
pub(super) fn is_absent(error: &watcher::Error) -> bool {
    code_of(error) == Some(404)
}

fn code_of(error: &watcher::Error) -> Option<u16> {
    match error {
        watcher::Error::WatchError(status) => Some(status.code),
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => match error {
            kube::Error::Api(status) => Some(status.code),
            _ => None,
        },
        watcher::Error::NoResourceVersion => None,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Service;
    use weir_api::hold::ElastiService;

    use super::*;

    #[test]
    fn a_message_says_what_to_do() {
        let ours = Trouble::of::<ElastiService>(None, false);
        assert!(
            ours.message(Some(404))
                .contains("weir crds | kubectl apply -f -")
        );
        let services = Trouble::of::<Service>(Some("shop"), false);
        assert!(!services.message(Some(404)).contains("crds"));
        let forbidden = services.message(Some(403));
        assert!(forbidden.contains("get, list and watch") && forbidden.contains("shop"));
        assert!(services.message(None).contains("trying again"));
    }
}
