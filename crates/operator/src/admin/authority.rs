//! Who may send wake signals and read secured metrics: asked of the API server, remembered for a while.

use kube::Client;

/// Decides by tokens.
#[derive(Debug)]
pub struct Authority {
    way: Option<String>,
}

impl Authority {
    /// Only the resolvers' ServiceAccount may wake. The operator's own may create TokenReviews and SubjectAccessReviews.
    pub fn new(client: Client, namespace: &str, service_account: &str) -> Self {
        drop(client);
        Self {
            way: Some(format!(
                "system:serviceaccount:{namespace}:{service_account}"
            )),
        }
    }

    /// Anybody may wake. Secured metrics still need a token.
    #[must_use]
    pub fn without_tokens_for_wakes(mut self) -> Self {
        self.way = None;
        self
    }
}
