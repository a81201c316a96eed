//! What tests call: [`cluster`], the cluster that they run in.
//!
//! The addresses of a cluster exist in its network namespaces alone, and a process cannot be moved into one with all its
//! threads. So tests do not start a cluster: they are started in one, by `cargo xtask test --cluster` or
//! `cargo xtask cluster exec cargo test --offline …`, and find it by what that sets in the environment.

#![allow(clippy::panic, reason = "for tests, which end by panicking")]

use std::{ops::Deref, path::Path};

use kube::Client;

use crate::{Namespace, api_server, cluster::Cluster};

/// The cluster around a test. It is a [`Cluster`], too, for [`crate::fault`] and all else that blocks.
#[derive(Clone)]
pub struct TestCluster {
    cluster: Cluster,
    client: Client,
}

/// The cluster that this process runs in.
pub async fn cluster() -> TestCluster {
    let around_us = Cluster::around_us(&api_server::cache());
    let cluster = around_us.unwrap_or_else(|error| panic!("no cluster: {error}"));
    let Some(cluster) = cluster.filter(|cluster| cluster.network().is_here()) else {
        panic!(
            "this test must run inside a cluster's network: run `cargo xtask test --cluster`, or \
             `cargo xtask cluster up` and then `cargo xtask cluster exec cargo test --offline …`"
        );
    };
    TestCluster {
        client: api_server::client(&cluster.kubeconfig()).await,
        cluster,
    }
}

impl TestCluster {
    /// A client as cluster-admin. It belongs to the runtime that [`cluster`] was called on.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// A client for another kubeconfig, such as [`crate::fault::FaultyApi::kubeconfig`].
    pub async fn client_of(&self, kubeconfig: &Path) -> Client {
        api_server::client(kubeconfig).await
    }

    /// A new namespace, called `<prefix>-<random>`, in which pods can be created.
    ///
    /// It is there for good: what a failed test leaves can be looked at while the cluster is up.
    pub async fn namespace(&self, prefix: &str) -> Namespace {
        let namespace = Namespace::create(self.client(), prefix).await;
        namespace.has_service_account().await;
        namespace
    }
}

impl Deref for TestCluster {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}
