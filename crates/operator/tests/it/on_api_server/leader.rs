//! Candidates for one Lease on a real API server.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::{
    sync::{oneshot, watch},
    task::JoinHandle,
    time::timeout,
};
use weir_api::hold::names::PEER_LEASE;
use weir_lab::Namespace;
use weir_operator::leader::{LeaderError, LeaderSettings, Leadership, Timing, lead};

use super::PATIENCE;

/// For the test that waits for its end. The deadline is longer than a machine stalls, or a leader that lives gives up.
const SHORT: Timing = Timing {
    lease: Duration::from_secs(9),
    renew: RENEW,
    silence: Duration::from_secs(2),
    deadline: Duration::from_secs(8),
};
/// Longer than any test: what happens by then does not happen because the time is up.
const ENDLESS: Timing = Timing {
    lease: Duration::from_hours(2),
    renew: RENEW,
    silence: Duration::from_hours(1),
    deadline: Duration::from_hours(1),
};
const RENEW: Duration = Duration::from_millis(300);

struct Candidate {
    identity: String,
    known: watch::Receiver<Leadership>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), LeaderError>>,
}

impl Candidate {
    fn start(namespace: &Namespace, name: &str) -> Self {
        Self::start_with(namespace, name, ENDLESS)
    }

    fn start_with(namespace: &Namespace, name: &str, timing: Timing) -> Self {
        let mut settings = LeaderSettings::new(namespace.name(), "lease", name);
        settings.timing = timing;
        Self::of(namespace, settings)
    }

    fn of(namespace: &Namespace, settings: LeaderSettings) -> Self {
        let identity = settings.identity.clone();
        let (tell, known) = watch::channel(Leadership::Follower {
            leader: None,
            is_silent: false,
        });
        let (stop, stopped) = oneshot::channel();
        let client = namespace.client();
        let task = tokio::spawn(async move {
            lead(client, &settings, tell, async {
                let _ = stopped.await;
            })
            .await
        });
        Self {
            identity,
            known,
            stop: Some(stop),
            task,
        }
    }

    async fn until(&mut self, what: &str, is_so: impl FnMut(&Leadership) -> bool) {
        let is_so = {
            let seen = timeout(PATIENCE, self.known.wait_for(is_so)).await;
            matches!(seen, Ok(Ok(_)))
        };
        assert!(is_so, "not in time: {what}; {:?}", self.known.borrow());
    }

    async fn leads(&mut self) {
        self.until("leads", Leadership::is_leader).await;
    }

    async fn follows(&mut self, leader: &str) {
        let there = Leadership::Follower {
            leader: Some(leader.to_owned()),
            is_silent: false,
        };
        self.until("follows", |known| *known == there).await;
    }

    /// As a process that is told to end.
    async fn end(mut self) -> Result<(), LeaderError> {
        drop(self.stop.take());
        timeout(PATIENCE, self.task).await.expect("ends").unwrap()
    }
}

async fn holder(leases: &Api<Lease>) -> String {
    let lease = leases.get("lease").await.unwrap();
    lease.spec.unwrap().holder_identity.unwrap_or_default()
}

#[tokio::test]
async fn a_pod_that_is_started_again_leads_at_once() {
    let namespace = weir_lab::api_server().await.namespace("again").await;
    let process = |name: &str| {
        let mut settings = LeaderSettings::new(namespace.name(), "lease", name).in_a_pod(true);
        settings.timing = ENDLESS;
        Candidate::of(&namespace, settings)
    };
    let mut first = process("pod");
    first.leads().await;
    let mut other = process("other");
    other.follows(&first.identity).await;
    first.task.abort();
    let _ = (&mut first.task).await;
    let mut again = process("pod");
    again.leads().await;
    other.follows(&again.identity).await;
    other.end().await.unwrap();
    again.end().await.unwrap();
}

#[tokio::test]
async fn a_killed_leader_is_followed_when_its_lease_has_run_out() {
    let namespace = weir_lab::api_server().await.namespace("lead").await;
    let mut first = Candidate::start_with(&namespace, "first", SHORT);
    first.leads().await;
    let mut second = Candidate::start_with(&namespace, "second", SHORT);
    second.follows(&first.identity).await;
    // The Lease goes on being renewed, so the second one waits longer than one of them lasts.
    let leases: Api<Lease> = namespace.api();
    let renewed = |lease: Lease| lease.spec.unwrap().renew_time.unwrap().0;
    let start = renewed(leases.get("lease").await.unwrap());
    weir_lab::eventually(PATIENCE, "renewed for a while", || async {
        let span = renewed(leases.get("lease").await.unwrap()).duration_since(start);
        if span.unsigned_abs() > SHORT.lease + SHORT.lease / 2 {
            Ok(())
        } else {
            Err(format!("{span:?}"))
        }
    })
    .await;
    assert!(!second.known.borrow().is_leader());

    // Without a word, as a node that lost its power.
    first.task.abort();
    let _ = (&mut first.task).await;
    let last = renewed(leases.get("lease").await.unwrap());
    second
        .until("the first is not heard of", |known| match known {
            Leadership::Follower { leader, is_silent } => *is_silent && leader.is_some(),
            Leadership::Leader => false,
        })
        .await;
    second.leads().await;
    // The second one saw the last renewal some moments later, and waited from then on.
    let waited = Timestamp::now().duration_since(last).unsigned_abs();
    assert!(waited >= SHORT.lease, "after {waited:?}");
    assert_eq!(holder(&leases).await, second.identity);
    let lease = leases.get("lease").await.unwrap();
    assert_eq!(lease.spec.unwrap().lease_transitions, Some(2));
    second.end().await.unwrap();
}

#[tokio::test]
async fn a_lease_that_was_given_back_is_taken_at_once() {
    let namespace = weir_lab::api_server().await.namespace("lead").await;
    let leases: Api<Lease> = namespace.api();
    let mut first = Candidate::start(&namespace, "first");
    first.leads().await;
    first.end().await.unwrap();
    assert_eq!(holder(&leases).await, "");
    // Long before the Lease has run out.
    let mut second = Candidate::start(&namespace, "second");
    second.leads().await;
    // A follower that ends leaves the Lease alone.
    let mut third = Candidate::start(&namespace, "third");
    third.follows(&second.identity).await;
    third.end().await.unwrap();
    assert_eq!(holder(&leases).await, second.identity);
    second.end().await.unwrap();
}

#[tokio::test]
async fn a_leader_whose_lease_was_taken_ends() {
    let namespace = weir_lab::api_server().await.namespace("lead").await;
    let leases: Api<Lease> = namespace.api();
    let mut first = Candidate::start(&namespace, "first");
    first.leads().await;
    let thief = json!({"spec": {"holderIdentity": "thief"}});
    leases
        .patch("lease", &PatchParams::default(), &Patch::Merge(&thief))
        .await
        .unwrap();
    first
        .until("no longer leads", |known| !known.is_leader())
        .await;
    let end = timeout(PATIENCE, &mut first.task).await.unwrap().unwrap();
    assert!(matches!(end, Err(LeaderError::Lost(_))), "{end:?}");
    assert_eq!(holder(&leases).await, "thief");
}

#[tokio::test]
async fn a_change_by_somebody_who_leaves_the_holder_alone_is_no_loss() {
    let namespace = weir_lab::api_server().await.namespace("lead").await;
    let leases: Api<Lease> = namespace.api();
    let mut first = Candidate::start(&namespace, "first");
    first.leads().await;
    let label = json!({"metadata": {"labels": {"seen": "yes"}}});
    let patched = leases
        .patch("lease", &PatchParams::default(), &Patch::Merge(&label))
        .await
        .unwrap();
    // Deleted by mistake: made again.
    let renewed_after = |before: Lease| {
        let leases = leases.clone();
        async move {
            weir_lab::eventually(PATIENCE, "renewed", || async {
                let now = leases
                    .get("lease")
                    .await
                    .map_err(|error| error.to_string())?;
                let time = |lease: &Lease| lease.spec.clone().unwrap().renew_time;
                if time(&now) > time(&before) {
                    Ok(now)
                } else {
                    Err("not yet".to_owned())
                }
            })
            .await
        }
    };
    let now = renewed_after(patched).await;
    assert_eq!(now.metadata.labels.as_ref().unwrap()["seen"], "yes");
    leases
        .delete("lease", &DeleteParams::default())
        .await
        .unwrap();
    renewed_after(now).await;
    assert!(first.known.borrow().is_leader());
    first.end().await.unwrap();
}

#[tokio::test]
async fn the_peers_lease_is_waited_for() {
    let namespace = weir_lab::api_server().await.namespace("lead").await;
    let leases: Api<Lease> = namespace.api();
    // Renewed long ago by its own clock; but that clock may be wrong.
    let peer: Lease = serde_json::from_value(json!({
        "metadata": {"name": PEER_LEASE},
        "spec": {
            "holderIdentity": "elasti-operator-1",
            "leaseDurationSeconds": 3600,
            "renewTime": "2020-01-01T00:00:00.000000Z",
        },
    }))
    .unwrap();
    leases.create(&PostParams::default(), &peer).await.unwrap();
    let candidate = Candidate::start(&namespace, "ours");
    // Long enough for several looks; nothing happens that could be waited for.
    let mut known = candidate.known.clone();
    let early = timeout(
        Duration::from_secs(2),
        known.wait_for(Leadership::is_leader),
    )
    .await;
    assert!(early.is_err(), "it leads beside the peers' operator");
    let free = json!({"spec": {"holderIdentity": ""}});
    leases
        .patch(PEER_LEASE, &PatchParams::default(), &Patch::Merge(&free))
        .await
        .unwrap();
    let mut candidate = candidate;
    candidate.leads().await;
    candidate.end().await.unwrap();
}
