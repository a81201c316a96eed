//! The leader's side: renews the Lease, notices that it is lost, gives it back.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, api::PostParams};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::{LeaderError, LeaderSettings, REQUEST, candidate::Held, lease, trouble::Trouble};

/// After a write that failed.
const PAUSE: Duration = Duration::from_millis(500);
/// Giving back is a courtesy: the Lease runs out by itself.
const GIVE_BACK: Duration = Duration::from_secs(3);

/// It leads.
pub(super) struct Holder<'a> {
    settings: &'a LeaderSettings,
    leases: Api<Lease>,
    held: Held,
    trouble: Trouble,
}

/// What a write came to.
enum Write {
    Done,
    Again,
    Stolen,
}

impl<'a> Holder<'a> {
    pub(super) fn new(client: Client, settings: &'a LeaderSettings, held: Held) -> Self {
        Self {
            leases: Api::namespaced(client, &settings.namespace),
            settings,
            held,
            trouble: Trouble::new(&settings.namespace, &settings.name),
        }
    }

    /// Renews for ever; returns when it is lost.
    pub(super) async fn hold(&mut self) -> LeaderError {
        loop {
            let due = self.held.sent + self.settings.timing.renew;
            sleep_until(due).await;
            let end = self.held.sent + self.settings.timing.deadline;
            match timeout_at(end, self.renew()).await {
                Ok(true) => {}
                Ok(false) => return LeaderError::Lost("another process holds the Lease"),
                Err(_) => return LeaderError::Lost("the Lease could not be renewed in time"),
            }
        }
    }

    /// Tries until it succeeds; false: the Lease is another's.
    async fn renew(&mut self) -> bool {
        loop {
            match self.write().await {
                Write::Done => {
                    self.trouble.is_over();
                    return true;
                }
                Write::Stolen => return false,
                Write::Again => sleep(PAUSE).await,
            }
        }
    }

    async fn write(&mut self) -> Write {
        let LeaderSettings {
            name,
            identity,
            timing,
            ..
        } = self.settings;
        let ours = lease::taken(self.held.lease.clone(), identity, timing.lease);
        let parameters = PostParams::default();
        let sent = Instant::now();
        match timeout(REQUEST, self.leases.replace(name, &parameters, &ours)).await {
            Ok(Ok(lease)) => {
                self.held = Held { lease, sent };
                Write::Done
            }
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => {
                self.look_again().await
            }
            Ok(Err(error)) => {
                self.trouble.is_here(Some(&error));
                Write::Again
            }
            Err(_) => {
                self.trouble.is_here(None);
                Write::Again
            }
        }
    }

    /// Somebody else wrote it: in our name, which is no harm, or in theirs. Or they deleted it: then it is ours until the
    /// deadline, and made again.
    async fn look_again(&mut self) -> Write {
        let LeaderSettings {
            namespace,
            name,
            identity,
            timing,
            ..
        } = self.settings;
        let sent = Instant::now();
        let found = match timeout(REQUEST, self.leases.get_opt(name)).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => {
                self.trouble.is_here(Some(&error));
                return Write::Again;
            }
            Err(_) => {
                self.trouble.is_here(None);
                return Write::Again;
            }
        };
        let Some(lease) = found else {
            let new = lease::new(namespace, name, identity, timing.lease);
            let parameters = PostParams::default();
            return match timeout(REQUEST, self.leases.create(&parameters, &new)).await {
                Ok(Ok(lease)) => {
                    self.held = Held { lease, sent };
                    Write::Done
                }
                _ => Write::Again,
            };
        };
        if lease::record(&lease).holder.as_deref() != Some(identity) {
            return Write::Stolen;
        }
        self.held.lease = lease;
        Write::Again
    }

    /// Gives the Lease back, so that the next leader need not wait until it runs out.
    pub(super) async fn give_back(self) {
        let name = &self.settings.name;
        let give = async {
            loop {
                let lease = self.leases.get(name).await?;
                if lease::record(&lease).holder.as_deref() != Some(&self.settings.identity) {
                    return Ok(());
                }
                let free = lease::given_back(lease);
                match self
                    .leases
                    .replace(name, &PostParams::default(), &free)
                    .await
                {
                    // A renewal that was under way when we were told to stop.
                    Err(kube::Error::Api(status)) if status.code == 409 => {}
                    other => return other.map(drop),
                }
            }
        };
        match timeout(GIVE_BACK, give).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "the Lease cannot be given back; the next leader waits until it runs out");
            }
            Err(_) => {
                tracing::warn!(
                    "the Lease cannot be given back in time; the next leader waits until it runs out"
                );
            }
        }
    }
}
