//! Place on a real API server: nodes are objects, their exporters small servers on loopback. Each test has a namespace and
//! nodes of its own, which its operator alone looks at.

mod lab;
mod others;

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{Node, Pod, Taint},
        policy::v1::PodDisruptionBudget,
    },
    apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use weir_api::place::{
    TrafficWatch,
    names::{FIELD_MANAGER, FINALIZER, TAINT_EFFECT, TOLD_REPLICAS_ANNOTATION},
};

use self::lab::Lab;
use super::PATIENCE;

/// A gigabit in bytes per second, which is what every exporter here says.
const GIGABIT: u64 = 125_000_000;

fn key(label: &str) -> String {
    format!("{label}.traffic.example.com/unfit")
}

fn affinity_of(deployment: &Deployment) -> Value {
    let pods = deployment.spec.as_ref().unwrap().template.spec.as_ref();
    serde_json::to_value(&pods.unwrap().affinity).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_node_is_marked_and_nothing_is_left_behind() {
    let lab = Lab::new("place").await;
    let (a, b) = (lab.node("a").await, lab.node("b").await);
    b.refuses_filter();
    // Else it might be measured before anybody has seen what it was at first.
    a.is_silent(true);
    let operator = lab.operator(&[]);
    lab.create("web", &json!({ "clearPercent": "50" })).await;
    lab.until_label(&a, &key("web"), Some("true"), "new nodes are unfit at once")
        .await;
    a.is_silent(false);
    lab.until_label(&a, &key("web"), Some("false"), "until they are measured")
        .await;
    lab.until_label(&b, &key("web"), Some("false"), "one without the filter too")
        .await;
    assert!(b.refusals() <= 1, "it is asked with the filter once");

    // The status has the original's forms.
    let status = lab
        .until("the status says it", async || {
            let object: TrafficWatch = lab.namespace.api().get("web").await.unwrap();
            let status = object.status.unwrap_or_default();
            let is_placed =
                (status.conditions.iter()).any(|it| it.type_ == "Placed" && it.status == "True");
            (status.ready && is_placed)
                .then_some(status.clone())
                .ok_or(format!("{status:?}"))
        })
        .await;
    let of_a = &status.nodes[&a.name];
    assert!(!of_a.unfit && of_a.time > 1_700_000_000);
    assert_eq!(of_a.current_bandwidth_percent, "0e+00");
    assert_eq!(status.summary.unwrap().fit, 2);

    a.send(GIGABIT * 8 / 10);
    lab.until_label(&a, &key("web"), Some("true"), "the full one is unfit")
        .await;
    lab.until_label(&b, &key("web"), Some("false"), "the other one is not")
        .await;
    lab.until_event("NodeUnfit", &a.name).await;

    let watches: Api<TrafficWatch> = lab.namespace.api();
    let deployments: Api<Deployment> = lab.namespace.api();
    watches
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    lab.until("the watch goes, and its Deployment with it", async || {
        let left = watches.get_opt("web").await.unwrap();
        let deployment = deployments.get_opt("web").await.unwrap();
        let is_gone = left.is_none() && deployment.is_none();
        is_gone.then_some(()).ok_or(format!("{left:?}"))
    })
    .await;
    for node in [&a, &b] {
        let labels = lab.read(node).await.labels().clone();
        assert!(!labels.contains_key(&key("web")), "{labels:?}");
    }
    operator.stop().await;
    lab.clean_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deployment_is_the_users_and_its_replicas_are_whoever_scales_it() {
    let lab = Lab::new("place-deployment").await;
    let a = lab.node("a").await;
    let operator = lab.operator(&[]);
    lab.create("web", &json!({})).await;
    // The Deployment: the template whole, the affinity, `replicas` by another manager.
    let deployments: Api<Deployment> = lab.namespace.api();
    let made = lab
        .until("the Deployment is scaled", async || {
            let made = deployments.get_opt("web").await.unwrap().ok_or("none")?;
            let replicas = made.spec.as_ref().unwrap().replicas;
            let told = made.annotations().get(TOLD_REPLICAS_ANNOTATION);
            let is_told = told.is_some_and(|told| told == "3");
            (replicas == Some(3) && is_told)
                .then_some(made)
                .ok_or("not yet")
        })
        .await;
    let expression = json!({ "key": key("web"), "operator": "NotIn", "values": ["true"] });
    let terms = "/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/0";
    assert_eq!(affinity_of(&made).pointer(terms), Some(&expression));
    let template = &made.spec.as_ref().unwrap().template;
    let labels = template.metadata.as_ref().unwrap().labels.as_ref().unwrap();
    assert_eq!(labels["app"], "web", "labels that the selector needs");
    let owner = &made.owner_references()[0];
    assert_eq!(
        (&*owner.kind, owner.controller),
        ("TrafficWatch", Some(true))
    );

    lab.until_label(&a, &key("web"), Some("false"), "the node is judged")
        .await;

    // Somebody scales it; a new leader finds everything as it is, and leaves it.
    let params = PatchParams::default();
    let scaled = json!({ "spec": { "replicas": 5 } });
    deployments
        .patch_scale("web", &params, &Patch::Merge(&scaled))
        .await
        .unwrap();
    operator.stop().await;
    let measured_at = async || {
        let object: TrafficWatch = lab.namespace.api().get("web").await.unwrap();
        let nodes = object.status.unwrap_or_default().nodes;
        nodes.get(&a.name).map(|node| node.time)
    };
    let (before, then) = (lab.ours(&a).await, measured_at().await);
    let operator = lab.operator(&[]);
    lab.until("another process measures", async || {
        let now = measured_at().await;
        (now > then).then_some(()).ok_or(format!("{now:?}"))
    })
    .await;
    let spec = deployments.get("web").await.unwrap().spec.unwrap();
    assert_eq!(spec.replicas, Some(5), "who scaled it is left alone");
    lab.edit("web", &json!({ "deployment": { "replicas": 4 } }))
        .await;
    lab.until("the user's wish is carried out", async || {
        let spec = deployments.get("web").await.unwrap().spec.unwrap();
        let replicas = spec.replicas;
        (replicas == Some(4))
            .then_some(())
            .ok_or(format!("{replicas:?}"))
    })
    .await;
    let after = lab.ours(&a).await;
    assert_eq!(after, before, "labels are found, not written anew");

    operator.stop().await;
    lab.clean_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_scrape_and_one_apply_serve_all_watches() {
    let lab = Lab::new("place-many").await;
    let a = lab.node("a").await;
    // What an older version left, and somebody else's label.
    let labels = json!({ "metadata": { "labels": { key("gone"): "true", "pool": "blue" } } });
    lab.patch(&a, &labels).await;
    a.send(GIGABIT / 2);
    let operator = lab.operator(&["--allow-taints", "--annotate-nodes"]);
    lab.create("one", &json!({})).await;
    lab.create(
        "two",
        &json!({ "action": "taint", "maxBandwidthPercent": "0.001" }),
    )
    .await;
    lab.create("two-again", &json!({ "label": "two" })).await;
    lab.until_label(&a, &key("one"), Some("false"), "half is not full")
        .await;
    lab.until_label(&a, &key("gone"), None, "an orphan goes")
        .await;
    let node = lab.read(&a).await;
    assert_eq!(node.labels()["pool"], "blue");
    lab.until_condition("two-again", "Placed", "LabelTaken", "/two is older")
        .await;
    // The only node stays fit for `two`, since one must; without that it is tainted.
    lab.until_condition("two", "Placed", "KeptFit", &a.name)
        .await;
    lab.edit("two", &json!({ "minFitNodes": 0 })).await;
    lab.until("a taint stands beside the label", async || {
        let node = lab.read(&a).await;
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.clone());
        let ours = |taint: &Taint| taint.key == key("two") && taint.effect == TAINT_EFFECT;
        let has_taint = taints.iter().flatten().any(ours);
        let has_label = node
            .labels()
            .get(&key("two"))
            .is_some_and(|value| value == "true");
        (has_taint && has_label)
            .then_some(())
            .ok_or(format!("{taints:?}"))
    })
    .await;
    lab.until("the load is in the annotation", async || {
        let node = lab.read(&a).await;
        let load = node
            .annotations()
            .get("traffic.example.com/bandwidth-percent")
            .cloned();
        let load: u32 = load.ok_or("none")?.parse().unwrap();
        (45..=55).contains(&load).then_some(()).ok_or("another")
    })
    .await;
    let (rounds, requests) = (a.elapsed().as_secs() / 5 + 2, a.requests());
    assert!(
        requests <= rounds,
        "{requests} requests in {rounds} rounds for 3 watches"
    );

    // The next in line takes the key over when its holder goes.
    let watches: Api<TrafficWatch> = lab.namespace.api();
    watches
        .delete("two", &DeleteParams::default())
        .await
        .unwrap();
    lab.until(
        "the taint goes, the label stays for the other",
        async || {
            let node = lab.read(&a).await;
            let taints = node.spec.as_ref().and_then(|spec| spec.taints.clone());
            let is_left = taints.iter().flatten().any(|taint| taint.key == key("two"));
            let is_gone = watches.get_opt("two").await.unwrap().is_none();
            let is_taken_over = node
                .labels()
                .get(&key("two"))
                .is_some_and(|it| it == "false");
            (!is_left && is_gone && is_taken_over)
                .then_some(())
                .ok_or(format!("{node:?}"))
        },
    )
    .await;
    operator.stop().await;
    lab.clean_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_is_said_and_nothing_is_touched() {
    let lab = Lab::new("place-refused").await;
    let a = lab.node("a").await;
    let operator = lab.operator(&[]);
    let deployments: Api<Deployment> = lab.namespace.api();
    let theirs: Deployment = serde_json::from_value(json!({
        "metadata": { "name": "theirs" },
        "spec": {
            "selector": { "matchLabels": { "app": "theirs" } },
            "template": {
                "metadata": { "labels": { "app": "theirs" } },
                "spec": { "containers": [{ "name": "app", "image": "none" }] },
            },
        },
    }))
    .unwrap();
    let theirs = deployments
        .create(&PostParams::default(), &theirs)
        .await
        .unwrap();
    lab.create("theirs", &json!({})).await;
    lab.until_condition("theirs", "Placed", "DeploymentNotOurs", "left alone")
        .await;

    lab.create("taints", &json!({ "action": "taint" })).await;
    lab.until_condition("taints", "Accepted", "TaintsNotAllowed", "--allow-taints")
        .await;
    lab.create("odd", &json!({ "deployment": {
        "selector": { "matchLabels": { "app": "odd" } },
        "template": { "metadata": { "labels": { "app": "even" } }, "spec": { "containers": [] } },
    }}))
    .await;
    lab.until_condition("odd", "Placed", "DeploymentRefused", "containers")
        .await;

    lab.until_label(
        &a,
        &key("theirs"),
        Some("false"),
        "the node is judged all the same",
    )
    .await;
    let still = deployments.get("theirs").await.unwrap();
    // Kubernetes itself writes its status.
    assert_eq!(
        (still.spec, still.metadata.generation),
        (theirs.spec, theirs.metadata.generation)
    );
    let managers = still.metadata.managed_fields.unwrap_or_default();
    let ours = |entry: &ManagedFieldsEntry| entry.manager.as_deref() == Some(FIELD_MANAGER);
    assert!(!managers.iter().any(ours), "{managers:?}");
    for name in ["taints", "odd"] {
        assert!(deployments.get_opt(name).await.unwrap().is_none(), "{name}");
        let object: TrafficWatch = lab.namespace.api().get(name).await.unwrap();
        assert!(object.finalizers().iter().any(|it| it == FINALIZER));
    }
    let labels: Node = lab.read(&a).await;
    assert!(!labels.labels().contains_key(&key("taints")));
    operator.stop().await;
    lab.clean_up().await;
}

/// Kubernetes makes the Deployment's pods, but here nobody runs them: the test does what scheduler and kubelet do.
async fn run_pods(lab: &Lab, node: &str, count: usize) {
    let pods: Api<Pod> = lab.namespace.api();
    let made = lab
        .until("the pods are made", async || {
            let made = pods.list(&ListParams::default()).await.unwrap().items;
            let found = made.len();
            (found == count).then_some(made).ok_or(format!("{found}"))
        })
        .await;
    for pod in made {
        let name = pod.name_any();
        let target = json!({ "apiVersion": "v1", "kind": "Node", "name": node });
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": { "name": name }, "target": target,
        });
        let params = PostParams::default();
        let bound = pods.create_subresource::<_, Value>("binding", &name, &params, &binding);
        bound.await.unwrap();
        let status = json!({ "status": {
            "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }],
        }});
        let (params, patch) = (PatchParams::default(), Patch::Merge(&status));
        pods.patch_status(&name, &params, &patch).await.unwrap();
    }
}

async fn ending(lab: &Lab) -> usize {
    let pods: Api<Pod> = lab.namespace.api();
    let pods = pods.list(&ListParams::default()).await.unwrap();
    let is_ending = |pod: &&Pod| pod.metadata.deletion_timestamp.is_some();
    pods.iter().filter(is_ending).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_pod_at_a_time_moves_off_a_node_that_stays_full() {
    let lab = Lab::new("place-moves").await;
    lab.namespace.has_service_account().await;
    let (a, _b) = (lab.node("a").await, lab.node("b").await);
    let operator = lab.operator(&[]);
    let rebalance = |mode: &str| json!({ "mode": mode, "after": "1s", "cooldown": "1s" });
    lab.create("web", &json!({ "rebalance": rebalance("dryRun") }))
        .await;
    run_pods(&lab, &a.name, 3).await;
    a.send(GIGABIT * 9 / 10);
    lab.until_event("PodWouldMove", &a.name).await;
    assert_eq!(ending(&lab).await, 0, "it only says so");

    // A budget for disruptions has its say.
    let budgets: Api<PodDisruptionBudget> = lab.namespace.api();
    let budget: PodDisruptionBudget = serde_json::from_value(json!({
        "metadata": { "name": "web" },
        "spec": { "minAvailable": 3, "selector": { "matchLabels": { "app": "web" } } },
    }))
    .unwrap();
    budgets
        .create(&PostParams::default(), &budget)
        .await
        .unwrap();
    lab.edit("web", &json!({ "rebalance": rebalance("evict") }))
        .await;
    lab.until_event("EvictionRefused", "PodDisruptionBudget")
        .await;
    assert_eq!(ending(&lab).await, 0);
    budgets
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    lab.until_event("PodMoved", &a.name).await;
    assert_eq!(ending(&lab).await, 1, "one at a time");
    operator.stop().await;
    lab.clean_up().await;
}

/// One that the original made by updates: what it wrote is ours from then on, and its replicas stay.
#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_of_the_original_is_taken_over() {
    let lab = Lab::new("place-original").await;
    let a = lab.node("a").await;
    let watch = lab.create("web", &json!({})).await;
    let deployments: Api<Deployment> = lab.namespace.api();
    let original: Deployment = serde_json::from_value(json!({
        "metadata": {
            "name": "web",
            "ownerReferences": [{
                "apiVersion": "traffic.example.com/v1alpha1", "kind": "TrafficWatch", "name": "web",
                "uid": watch.uid(), "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "replicas": 7,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web", "old": "yes" } },
                "spec": {
                    "containers": [{ "name": "app", "image": "none" }],
                    "hostNetwork": true,
                },
            },
        },
    }))
    .unwrap();
    let params = PostParams {
        field_manager: Some("manager".to_owned()),
        ..PostParams::default()
    };
    deployments.create(&params, &original).await.unwrap();
    let operator = lab.operator(&[]);
    let kept = lab
        .until("it looks at the label", async || {
            let kept = deployments.get("web").await.unwrap();
            let is_ours = !affinity_of(&kept).is_null();
            is_ours.then_some(kept).ok_or("not yet")
        })
        .await;
    let spec = kept.spec.unwrap();
    assert_eq!(spec.replicas, Some(7), "nobody asked for others");
    assert_eq!(
        spec.template.spec.unwrap().host_network,
        None,
        "what the user does not have goes"
    );
    lab.until_label(&a, &key("web"), Some("false"), "the node is judged")
        .await;

    // A new label: first on the nodes, then in the Deployment, then the old one goes.
    lab.edit("web", &json!({ "label": "shop" })).await;
    lab.until("the Deployment follows", async || {
        let text = affinity_of(&deployments.get("web").await.unwrap()).to_string();
        let is_new = text.contains(&key("shop")) && !text.contains(&key("web"));
        is_new.then_some(()).ok_or(text)
    })
    .await;
    lab.until_label(&a, &key("shop"), Some("false"), "the new label")
        .await;
    lab.until_label(&a, &key("web"), None, "the old label goes")
        .await;
    operator.stop().await;
    lab.clean_up().await;
}
