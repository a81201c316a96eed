//! What tests call: [`api_server`] and [`fresh_api_server`].
//!
//! These panic with a message that says what to do: a test has nothing better to do with a failure here. The
//! work is done by [`crate::server`], which knows no async and is run beside the test's runtime.

#![allow(clippy::panic, reason = "for tests, which end by panicking")]

use std::{
    env,
    error::Error,
    fs::File,
    iter,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, OnceLock},
};

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use crate::{
    Namespace,
    cache::Cache,
    server::{self, Server},
    tools::Programs,
    users,
};

/// Names a server to use instead of our own; `cargo xtask test` sets it for all tests that it runs.
const KUBECONFIG: &str = "WEIR_LAB_KUBECONFIG";

/// A real Kubernetes API server with etcd and the controller manager; without scheduler and nodes.
#[derive(Clone)]
pub struct ApiServer {
    client: Client,
    kubeconfig: PathBuf,
    kubectl: PathBuf,
    /// The server runs at least as long as this.
    _server: Option<Arc<Server>>,
}

/// The server that all tests on this machine share; it is started if need be.
///
/// It ends when the last process that uses it has ended. If `WEIR_LAB_KUBECONFIG` is set, that server is
/// used and nothing is started.
pub async fn api_server() -> ApiServer {
    static SHARED: OnceLock<Result<Arc<Server>, String>> = OnceLock::new();
    let cache = cache();
    if let Some(kubeconfig) = env::var_os(KUBECONFIG).filter(|path| !path.is_empty()) {
        let kubeconfig = PathBuf::from(kubeconfig);
        use_for_good(&kubeconfig);
        return connect(kubeconfig, &cache, None).await;
    }
    let server = beside(move || {
        let take = || {
            Server::shared(&cache)
                .map(Arc::new)
                .map_err(|e| e.to_string())
        };
        (SHARED.get_or_init(take).clone(), cache)
    });
    match server.await {
        (Ok(server), cache) => connect(server.kubeconfig(), &cache, Some(server)).await,
        (Err(error), _) => panic!("no API server: {error}"),
    }
}

/// A server of the test's own, for tests that change cluster-wide things such as CRDs.
///
/// It ends soon after the last clone of the value is dropped; nobody has to wait for that.
pub async fn fresh_api_server() -> ApiServer {
    let cache = cache();
    match beside(move || (Server::fresh(&cache).map(Arc::new), cache)).await {
        (Ok(server), cache) => connect(server.kubeconfig(), &cache, Some(server)).await,
        (Err(error), _) => panic!("no API server: {}", with_causes(&error)),
    }
}

impl ApiServer {
    /// A client as cluster-admin. It belongs to the runtime that [`api_server`] was called on.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// A new namespace, called `<prefix>-<random>`.
    ///
    /// It is there for good: what a failed test leaves can be looked at while the server runs, and goes
    /// with it. Nothing in it is waited for; see [`Namespace::has_service_account`].
    pub async fn namespace(&self, prefix: &str) -> Namespace {
        Namespace::create(self.client(), prefix).await
    }

    /// The kubeconfig of cluster-admin.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// kubectl as cluster-admin, ready for `.args([…])`.
    pub fn kubectl(&self) -> Command {
        server::kubectl(&self.kubectl, &self.kubeconfig)
    }
}

/// Becomes a user of the server until this process ends, if it is one of the lab's: should whoever started
/// it be killed, it must not go from under this test.
fn use_for_good(kubeconfig: &Path) {
    static USER: OnceLock<Option<File>> = OnceLock::new();
    USER.get_or_init(|| {
        let state_directory = kubeconfig.parent()?;
        let is_ours = users::lock_file(state_directory).is_file();
        is_ours.then(|| users::join(state_directory).ok()).flatten()
    });
}

fn with_causes(error: &dyn Error) -> String {
    let causes = iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |told, cause| format!("{told}: {cause}"))
}

pub(crate) fn cache() -> Cache {
    Cache::of_environment().unwrap_or_else(|error| panic!("{error}"))
}

async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| panic!("starting the API server failed: {error}"))
}

async fn connect(kubeconfig: PathBuf, cache: &Cache, server: Option<Arc<Server>>) -> ApiServer {
    ApiServer {
        client: client(&kubeconfig).await,
        kubeconfig,
        kubectl: Programs::of(cache).kubectl,
        _server: server,
    }
}

/// A new client each time: the connections of one belong to a runtime, and each test has its own.
pub(crate) async fn client(kubeconfig: &Path) -> Client {
    // Fails if one is installed already, which is as good.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let read = Kubeconfig::read_from(kubeconfig)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", kubeconfig.display()));
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    let mut config =
        config.unwrap_or_else(|error| panic!("cannot use {}: {error}", kubeconfig.display()));
    // Taken from the environment, where it is meant for the way out of this machine.
    config.proxy_url = None;
    Client::try_from(config)
        .unwrap_or_else(|error| panic!("no client for {}: {error}", kubeconfig.display()))
}
