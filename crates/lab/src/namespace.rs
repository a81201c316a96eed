//! A namespace of a test's own on the shared server, so that tests do not see each other.
//!
//! Made by [`crate::ApiServer::namespace`].

#![allow(clippy::panic, reason = "for tests, which end by panicking")]

use std::{
    fmt::Display,
    time::{Duration, Instant},
};

use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::{Namespace as Object, ServiceAccount},
};
use kube::{Api, Client, Resource, api::PostParams};

use crate::{eventually::try_eventually, random::random_suffix, story};

/// How long the controller manager may take to make a service account; usual is 0.1 s.
const PATIENCE: Duration = Duration::from_mins(2);

/// A namespace with a unique name. It is not deleted: it goes with the server.
#[derive(Clone)]
pub struct Namespace {
    name: String,
    client: Client,
}

impl Namespace {
    pub(crate) async fn create(client: Client, prefix: &str) -> Self {
        let name = format!("{prefix}-{}", random_suffix());
        let mut object = Object::default();
        object.metadata.name = Some(name.clone());
        let created = Api::all(client.clone())
            .create(&PostParams::default(), &object)
            .await;
        if let Err(error) = created {
            panic!("cannot create the namespace {name}: {error}");
        }
        Self { name, client }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A client as cluster-admin.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The objects of one kind in this namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client(), &self.name)
    }

    /// As [`crate::eventually()`]; a failure also tells the namespace's Events and its pods' logs.
    pub async fn eventually<T, E, F>(
        &self,
        patience: Duration,
        what: &str,
        look: impl FnMut() -> F,
    ) -> T
    where
        E: Display,
        F: Future<Output = Result<T, E>>,
    {
        match try_eventually(patience, look).await {
            Ok(found) => found,
            Err(last) => {
                let story = story::of(self).await;
                panic!("not so after {patience:?}: {what}; {last}\n{story}")
            }
        }
    }

    /// Waits for the service account `default`, without which a pod cannot be created here.
    ///
    /// For tests that create pods themselves; controllers of Kubernetes try again on their own.
    pub async fn has_service_account(&self) {
        let accounts: Api<ServiceAccount> = self.api();
        let deadline = Instant::now() + PATIENCE;
        while !matches!(accounts.get_opt("default").await, Ok(Some(_))) {
            assert!(
                Instant::now() < deadline,
                "the controller manager made no service account in {}",
                self.name,
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
