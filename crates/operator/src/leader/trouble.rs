//! A Lease that cannot be read or written is said once, with what to do, and once more when it is over.

/// What is wrong with a Lease.
pub(super) struct Trouble {
    namespace: String,
    name: String,
    said: Option<String>,
}

impl Trouble {
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            said: None,
        }
    }

    /// A request failed, or was not answered; it will be tried again.
    pub(super) fn is_here(&mut self, error: Option<&kube::Error>) {
        let code = match error {
            Some(kube::Error::Api(status)) => Some(status.code),
            _ => None,
        };
        let message = self.message(code);
        if self.said.as_deref() != Some(message.as_str()) {
            if let Some(error) = error {
                tracing::warn!(%error, "{message}");
            } else {
                tracing::warn!("{message}");
            }
            self.said = Some(message);
        }
    }

    /// It works.
    pub(super) fn is_over(&mut self) {
        if self.said.take().is_some() {
            tracing::info!(
                "the Lease {} in {} is there again",
                self.name,
                self.namespace
            );
        }
    }

    fn message(&self, code: Option<u16>) -> String {
        let Self {
            namespace,
            name,
            said: _,
        } = self;
        match code {
            Some(403) => format!(
                "the Lease {name} in {namespace} may not be used; allow this ServiceAccount get, create and update on leases of the group \"coordination.k8s.io\"; trying again"
            ),
            Some(404) => format!(
                "the Lease {name} cannot be made, since there is no namespace {namespace}; see --operator-namespace; trying again"
            ),
            _ => format!(
                "the Lease {name} in {namespace} cannot be reached at the moment; trying again"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_what_to_do() {
        let trouble = Trouble::new("weir", "lease");
        assert!(
            trouble
                .message(Some(403))
                .contains("get, create and update")
        );
        assert!(trouble.message(Some(404)).contains("--operator-namespace"));
        assert!(trouble.message(None).contains("trying again"));
    }
}
