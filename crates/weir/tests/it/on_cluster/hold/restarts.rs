//! The operator that leads ends in the middle of it, and the next one finishes what was begun.

use super::{bed::Bed, client, echo::Echo, objects::Kind, triggers};

/// The pod that leads.
async fn leader(bed: &Bed) -> String {
    let lease = bed.weir.get(Kind::Lease, "weir-operator").await;
    let holder = lease["spec"]["holderIdentity"].as_str();
    // What follows tells processes of one pod apart.
    let pod = holder.and_then(|holder| holder.split('_').next());
    pod.expect("somebody leads").to_owned()
}

/// Waits until it is not this one: the kubelet may take a while to end it.
async fn another_leads(bed: &Bed, dead: &str) {
    bed.until("another one leads", || async {
        let leader = leader(bed).await;
        if leader != dead && !leader.is_empty() {
            Ok(())
        } else {
            Err(leader)
        }
    })
    .await;
}

/// Ends the leader, which cannot give the lease back.
async fn kill_the_leader(bed: &Bed) -> String {
    let leader = leader(bed).await;
    bed.kill(&leader);
    leader
}

#[tokio::test(flavor = "multi_thread")]
async fn the_leader_ends_while_it_drains_and_the_next_one_finishes() {
    let bed = Bed::new("drain").await;
    let echo = Echo::new("echo");
    bed.serve(&echo).await;
    let idle = triggers::with_query(&echo, "vector(0)");
    bed.apply_elasti(&echo, &idle).await;
    bed.is_in_phase(&echo, "Draining").await;
    let dead = kill_the_leader(&bed).await;
    bed.falls_asleep(&echo).await;
    assert_eq!(bed.replicas(&echo).await, 0);
    let answer = client::get(bed.address(&echo).await, "/echo").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    another_leads(&bed, &dead).await;
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_leader_ends_while_it_wakes_and_the_next_one_finishes() {
    let bed = Bed::new("wake").await;
    let mut echo = Echo::new("echo");
    echo.arguments = vec!["--start-delay", "3s"];
    bed.at_zero(&echo).await;
    let answer = tokio::spawn(client::get(bed.address(&echo).await, "/echo"));
    bed.is_in_phase(&echo, "Waking").await;
    let dead = kill_the_leader(&bed).await;
    let answer = answer.await.expect("an answer");
    assert_eq!(answer.status, 200, "{answer:?}");
    bed.is_in(&echo, "serve").await;
    bed.is_out_of_the_path(&echo).await;
    another_leads(&bed, &dead).await;
    bed.end().await;
}
