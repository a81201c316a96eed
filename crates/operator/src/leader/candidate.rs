//! One that waits for the Lease: looks at it, and at the peers' own, until it may be taken.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, api::PostParams};
use tokio::time::{Instant, timeout};
use weir_api::hold::names::PEER_LEASE;

use super::{
    LeaderSettings, REQUEST,
    evaluate::{Sight, Verdict, evaluate, is_predecessor},
    lease,
    trouble::Trouble,
};

/// It waits.
pub(super) struct Candidate<'a> {
    client: Client,
    settings: &'a LeaderSettings,
    leases: Api<Lease>,
    sight: Sight,
    /// Leases of the peers that may still be held, by namespace. One that is not is never asked for again: nobody
    /// starts an old operator after the new one.
    peers: BTreeMap<String, Sight>,
    waits_for: Option<String>,
    is_silent: bool,
    began: Instant,
    trouble: Trouble,
}

/// The Lease, once it is ours.
pub(super) struct Held {
    /// As the API server has it.
    pub(super) lease: Lease,
    /// When the write that made it ours was sent.
    pub(super) sent: Instant,
}

/// What a look came to.
pub(super) enum Look {
    /// It is ours now.
    Taken(Box<Held>),
    /// It is not; look again after this.
    Wait(Duration),
}

impl<'a> Candidate<'a> {
    pub(super) fn new(client: Client, settings: &'a LeaderSettings) -> Self {
        let peers = settings.peer_namespaces.iter();
        Self {
            leases: Api::namespaced(client.clone(), &settings.namespace),
            client,
            settings,
            sight: Sight::default(),
            peers: peers
                .map(|namespace| (namespace.clone(), Sight::default()))
                .collect(),
            waits_for: None,
            is_silent: false,
            began: Instant::now(),
            trouble: Trouble::new(&settings.namespace, &settings.name),
        }
    }

    /// Who holds the Lease, as far as is known.
    pub(super) fn leader(&self) -> Option<&str> {
        self.sight.holder()
    }

    /// Whether who holds it had not been heard of for a while at the last look.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// Looks once, and takes it if it may.
    pub(super) async fn look(&mut self) -> Look {
        let pause = self.settings.timing.renew;
        let Some(found) = self.find().await else {
            return Look::Wait(pause);
        };
        let now = self.began.elapsed();
        self.sight.look(found.as_ref().map(lease::record), now);
        let LeaderSettings {
            identity, timing, ..
        } = self.settings;
        self.is_silent = self.sight.is_silent(identity, now, timing.silence);
        let peers = self.peers_are_gone().await;
        let now = self.began.elapsed();
        match evaluate(&self.sight, &self.settings.identity, now) {
            Verdict::Held(left) if !self.follows_itself() => Look::Wait(pause.min(left)),
            _ if peers => self.take(found).await,
            _ => Look::Wait(pause),
        }
    }

    fn follows_itself(&self) -> bool {
        let LeaderSettings {
            identity,
            follows_itself,
            ..
        } = self.settings;
        let holder = self.sight.holder();
        *follows_itself && holder.is_some_and(|holder| is_predecessor(holder, identity))
    }

    async fn take(&mut self, found: Option<Lease>) -> Look {
        let LeaderSettings {
            namespace,
            name,
            identity,
            timing,
            follows_itself: _,
            peer_namespaces: _,
        } = self.settings;
        let parameters = PostParams::default();
        let sent = Instant::now();
        let written = if let Some(lease) = found {
            let ours = lease::taken(lease, identity, timing.lease);
            timeout(REQUEST, self.leases.replace(name, &parameters, &ours)).await
        } else {
            let ours = lease::new(namespace, name, identity, timing.lease);
            timeout(REQUEST, self.leases.create(&parameters, &ours)).await
        };
        match written {
            Ok(Ok(lease)) => {
                self.trouble.is_over();
                Look::Taken(Box::new(Held { lease, sent }))
            }
            // Somebody was faster; the next look says who.
            Ok(Err(kube::Error::Api(status))) if status.code == 409 => Look::Wait(Duration::ZERO),
            Ok(Err(error)) => {
                self.trouble.is_here(Some(&error));
                Look::Wait(timing.renew)
            }
            Err(_) => {
                self.trouble.is_here(None);
                Look::Wait(timing.renew)
            }
        }
    }

    /// Looks at those that may still be there. What cannot be read because nobody allowed it does not hold us up for
    /// ever; what cannot be read now does, for now.
    async fn peers_are_gone(&mut self) -> bool {
        let mut waits_for = None;
        let mut gone = Vec::new();
        let mut unknown = false;
        for (namespace, sight) in &mut self.peers {
            let leases: Api<Lease> = Api::namespaced(self.client.clone(), namespace);
            match timeout(REQUEST, leases.get_opt(PEER_LEASE)).await {
                Ok(Ok(found)) => {
                    let now = self.began.elapsed();
                    sight.look(found.as_ref().map(lease::record), now);
                    match evaluate(sight, &self.settings.identity, now) {
                        Verdict::Held(_) => {
                            let holder = sight.holder().unwrap_or_default();
                            waits_for = Some(format!("{holder} in {namespace}"));
                        }
                        Verdict::Free | Verdict::Ours => gone.push(namespace.clone()),
                    }
                }
                Ok(Err(kube::Error::Api(status))) if status.code == 403 => {
                    tracing::warn!(
                        %namespace,
                        "the Lease {PEER_LEASE} may not be read, so an older operator there would go unseen; allow this ServiceAccount to get it"
                    );
                    gone.push(namespace.clone());
                }
                Ok(Err(error)) => {
                    self.trouble.is_here(Some(&error));
                    unknown = true;
                }
                Err(_) => {
                    self.trouble.is_here(None);
                    unknown = true;
                }
            }
        }
        for namespace in gone {
            self.peers.remove(&namespace);
        }
        if let Some(holder) = &waits_for
            && self.waits_for.is_none()
        {
            tracing::info!(
                %holder,
                "an operator of KubeElasti still holds its Lease {PEER_LEASE}; waiting until it has ended"
            );
        }
        if waits_for.is_some() {
            self.waits_for = waits_for;
            return false;
        }
        !unknown
    }

    /// The Lease, if there is one; none: it cannot be known now.
    #[allow(
        clippy::option_option,
        reason = "not known is not the same as not there"
    )]
    async fn find(&mut self) -> Option<Option<Lease>> {
        match timeout(REQUEST, self.leases.get_opt(&self.settings.name)).await {
            Ok(Ok(found)) => {
                self.trouble.is_over();
                Some(found)
            }
            Ok(Err(error)) => {
                self.trouble.is_here(Some(&error));
                None
            }
            Err(_) => {
                self.trouble.is_here(None);
                None
            }
        }
    }
}
