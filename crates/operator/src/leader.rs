//! Leader election: one process at a time keeps objects and puts targets to sleep.
//!
//! The leader holds a Lease and renews it. [`evaluate`] decides, from what was seen and when; `candidate` waits for the
//! Lease, `holder` keeps it, `lease` is the object, `trouble` says what to do when it cannot be reached. Who loses the Lease ends: [`lead`] returns an error, and the process with it, so
//! that nothing half done goes on beside the next leader.
//!
//! Clocks of two machines are never compared. A Lease is held for as long as it changes, by the clock of who looks. Only a
//! pod's own earlier process is not waited for: a leader ends when the API server is away for longer than its deadline, and
//! when that is back nobody would lead for as long as a Lease lasts.

mod candidate;
pub mod evaluate;
mod holder;
mod lease;
mod trouble;

use std::{
    future::Future,
    hash::{BuildHasher, Hasher, RandomState},
    pin::pin,
    time::Duration,
};

use candidate::{Candidate, Look};
use evaluate::RANDOM_PART;
use holder::Holder;
use kube::Client;
use thiserror::Error;
use tokio::{sync::watch, time::sleep};

/// The API server has so long to answer one request.
const REQUEST: Duration = Duration::from_secs(5);

/// Which Lease, and who wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderSettings {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Who this process is; no other has the same.
    pub identity: String,
    /// Of two processes with this one's name the earlier has ended: it is a pod's. Then its Lease is taken at once.
    pub follows_itself: bool,
    /// Namespaces in which the peers' operator may hold a Lease of its own, for which this one waits.
    pub peer_namespaces: Vec<String>,
    /// How long things take.
    pub timing: Timing,
}

/// How long things take. The deadline is shorter than the Lease lasts: the leader ends before another one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// A Lease that was not renewed for so long may be taken.
    pub lease: Duration,
    /// From one look or renewal to the next.
    pub renew: Duration,
    /// A leader that has not renewed for so long is silent: what cannot wait for the end of the Lease is done by others.
    pub silence: Duration,
    /// A leader that could not renew for so long ends.
    pub deadline: Duration,
}

/// Who leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// Somebody else, or nobody yet.
    Follower {
        /// Who holds the Lease.
        leader: Option<String>,
        /// They have not been heard of for a while.
        is_silent: bool,
    },
    /// This process.
    Leader,
}

/// Why this process must end.
#[derive(Debug, Error)]
pub enum LeaderError {
    /// Another process leads, or may lead soon.
    #[error("this process no longer leads ({0}); it ends, and starts again as a follower")]
    Lost(&'static str),
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(15),
            renew: Duration::from_secs(1),
            silence: Duration::from_secs(3),
            deadline: Duration::from_secs(10),
        }
    }
}

impl Leadership {
    /// Whether it is this process.
    pub fn is_leader(&self) -> bool {
        matches!(self, Self::Leader)
    }

    /// Whether it is somebody who has not been heard of for a while.
    pub fn is_silent(&self) -> bool {
        matches!(
            self,
            Self::Follower {
                is_silent: true,
                ..
            }
        )
    }
}

impl LeaderSettings {
    /// The Lease of this name. `process` is what a person calls this process; it is told apart from an earlier one of
    /// the same name by a random part.
    pub fn new(namespace: &str, name: &str, process: &str) -> Self {
        let random = RandomState::new().build_hasher().finish();
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: format!("{process}{RANDOM_PART}{random:016x}"),
            follows_itself: false,
            peer_namespaces: vec![namespace.to_owned()],
            timing: Timing::default(),
        }
    }

    /// For a process in a pod, of the pod's name.
    #[must_use]
    pub fn in_a_pod(mut self, is_so: bool) -> Self {
        self.follows_itself = is_so;
        self
    }

    /// Waits for the peers' operator in these namespaces as well.
    #[must_use]
    pub fn with_peers_in(mut self, namespaces: &[String]) -> Self {
        let given = namespaces.iter().filter(|namespace| !namespace.is_empty());
        self.peer_namespaces.extend(given.cloned());
        self.peer_namespaces.sort_unstable();
        self.peer_namespaces.dedup();
        self
    }
}

/// Takes the Lease, keeps it, and gives it back at `stop`. What has only a leader to do must have ended by then.
///
/// Returns when it was told to stop, or with an error when the Lease is lost: then the process must end.
pub async fn lead(
    client: Client,
    settings: &LeaderSettings,
    tell: watch::Sender<Leadership>,
    stop: impl Future<Output = ()>,
) -> Result<(), LeaderError> {
    let mut stop = pin!(stop);
    let mut candidate = Candidate::new(client.clone(), settings);
    let held = loop {
        // A look is never cut off: a write that is under way would leave the Lease in our name.
        let look = candidate.look().await;
        let pause = match look {
            Look::Taken(held) => break held,
            Look::Wait(pause) => pause,
        };
        follow(&tell, candidate.leader(), candidate.is_silent());
        tokio::select! {
            () = &mut stop => return Ok(()),
            () = sleep(pause) => {}
        }
    };
    let LeaderSettings { name, identity, .. } = settings;
    tracing::info!(lease = %name, %identity, "this process leads");
    tell.send_replace(Leadership::Leader);
    let mut holder = Holder::new(client, settings, *held);
    let lost = tokio::select! {
        () = stop => None,
        error = holder.hold() => Some(error),
    };
    // First nobody leads here, then another process may.
    follow(&tell, None, false);
    if let Some(error) = lost {
        return Err(error);
    }
    holder.give_back().await;
    Ok(())
}

/// Told only when it is news.
fn follow(tell: &watch::Sender<Leadership>, leader: Option<&str>, is_silent: bool) {
    let now = Leadership::Follower {
        leader: leader.map(str::to_owned),
        is_silent,
    };
    let before = tell.borrow().clone();
    if now == before {
        return;
    }
    let was = |of: &Leadership| match of {
        Leadership::Follower { leader, .. } => leader.clone(),
        Leadership::Leader => None,
    };
    match leader {
        Some(leader) if is_silent => {
            tracing::warn!(%leader, "the process that leads is not heard of");
        }
        Some(leader) if was(&before).as_deref() != Some(leader) => {
            tracing::info!(%leader, "another process leads");
        }
        Some(leader) => tracing::info!(%leader, "the process that leads is heard of again"),
        None => {}
    }
    tell.send_replace(now);
}
