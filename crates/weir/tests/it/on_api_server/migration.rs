//! From KubeElasti to Weir and back, as `docs/migration-kubeelasti.md` says it: its commands are run in their order on a real
//! API server with the old operator's objects, and Weir's own programs take them over.
//!
//! [`guide`] reads the guide, [`older`] has what is there before; `programs` runs what nodes would run.

mod guide;
mod older;

use std::{collections::BTreeMap, net::SocketAddr};

use serde_json::{Value, json};
use weir_api::hold::names::{AddressFamily, private_service, resolver_slice};
use weir_lab::{ApiServer, eventually};

use self::{guide::Guide, older::Held};
use super::{
    PATIENCE, are_served, kubectl,
    programs::{Program, Site, apply, arguments_of, ask, own_address, pods, server},
    said,
};

/// Asleep, asleep with KEDA, awake, and awake with a slice that the old operator had not come to remove.
const SERVICES: [Held; 4] = [
    Held {
        name: "web",
        replicas: 0,
        is_keda: false,
    },
    Held {
        name: "jobs",
        replicas: 0,
        is_keda: true,
    },
    Held {
        name: "api",
        replicas: 1,
        is_keda: false,
    },
    Held {
        name: "late",
        replicas: 1,
        is_keda: false,
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn what_the_older_operator_left_is_taken_over_and_nothing_is_lost() {
    let k8s = weir_lab::fresh_api_server().await;
    let mut guide = Guide::open(&k8s);
    lives(&k8s).await;
    let before = objects(&k8s);

    guide.run("1. Keep the definition");
    the_definition_stays(&k8s).await;

    let (goes, told) = guide.shell(&guide.next().replace(" --force-conflicts", ""));
    assert!(
        !goes && told.contains("conflict"),
        "Helm has its fields: {told}"
    );
    guide.run("2. Put Weir beside it");
    guide.run("2. Put Weir beside it");
    are_served(&k8s).await;
    assert_eq!(objects(&k8s), before, "none is lost, none is another");

    let flag = "--peer-namespace=elasti".to_owned();
    assert!(arguments_of(&k8s, "weir-operator").contains(&flag));
    let site = Site::new(&k8s);
    let operator = site.operator(&k8s);
    operator
        .says("still holds its Lease acf50383.truefoundry.io")
        .await;
    let resolver = site.resolver(&k8s, &operator).await;
    resolver.says("the resolver listens").await;
    untouched(&k8s);

    guide.run("4. Stop the old operator, and leave its resolver");
    untouched(&k8s);
    // Nobody renews it; only that a test need not wait for as long.
    apply(&k8s, "elasti", &older::lease(1));
    taken_over(&k8s, &site, &operator).await;
    guide.run("5. Look");
    assert_eq!(objects(&k8s), before, "none is lost, none is another");

    wakes(&k8s, &site).await;
    guide.run("6. Remove the old release");
    the_release_is_gone(&k8s);
    guide.run("6. Remove the old release");
    // What is asleep is so still.
    let web = get(&k8s, "elastiservice", "web");
    assert_eq!(web["status"]["phase"], "Asleep", "{}", operator.log());
    deletes(&k8s).await;

    goes_back(&k8s, &site, &mut guide).await;
    for program in [&operator, &resolver] {
        assert!(
            program.was_forbidden().is_empty(),
            "{:?}",
            program.was_forbidden()
        );
    }
    guide.is_through();
    the_definition_goes_when_it_is_meant(&k8s);
}

/// The cluster as the old operator has it.
async fn lives(k8s: &ApiServer) {
    for namespace in ["elasti", "shop"] {
        kubectl(k8s, &["create", "namespace", namespace], "");
    }
    for definition in [older::definition(), older::scaled_objects()] {
        let line = ["create", "--field-manager=helm", "-f", "-"];
        kubectl(k8s, &line, &definition.to_string());
    }
    are_served(k8s).await;
    for object in older::release().iter().chain([&older::lease(3600)]) {
        apply(k8s, "elasti", object);
    }
    for held in &SERVICES {
        for object in held.of_user() {
            apply(k8s, "shop", &object);
        }
        let status = held.status().to_string();
        let name = held.name;
        let line = [
            "-n",
            "shop",
            "patch",
            "elastiservice",
            name,
            "--subresource=status",
            "--type=merge",
            "-p",
            &status,
        ];
        kubectl(k8s, &line, "");
        let uid = get(k8s, "elastiservice", name)["metadata"]["uid"].clone();
        apply(k8s, "shop", &held.private(uid.as_str().expect("a UID")));
        if held.replicas == 0 || name == "late" {
            apply(k8s, "shop", &held.slice());
        }
        if held.replicas > 0 {
            apply(k8s, "shop", &pods(name, server()));
        }
    }
}

fn get(k8s: &ApiServer, kind: &str, name: &str) -> Value {
    let line = [
        "-n",
        "shop",
        "get",
        kind,
        name,
        "-o",
        "json",
        "--ignore-not-found",
    ];
    let text = kubectl(k8s, &line, "");
    serde_json::from_str(&text).unwrap_or(Value::Null)
}

/// All ElastiServices, with what makes each the one that it is.
fn objects(k8s: &ApiServer) -> BTreeMap<String, Value> {
    let all = kubectl(k8s, &["get", "elastiservices", "-A", "-o", "json"], "");
    let all: Value = serde_json::from_str(&all).expect("JSON");
    let items = all["items"].as_array().expect("items").iter();
    items
        .map(|it| {
            (
                it["metadata"]["name"].to_string(),
                it["metadata"]["uid"].clone(),
            )
        })
        .collect()
}

/// As Helm would delete it: the API server knows of the policy a moment after it was made.
async fn the_definition_stays(k8s: &ApiServer) {
    let line = ["delete", "crd", "elastiservices.elasti.truefoundry.com"];
    let rehearsed = [&line[..], &["--dry-run=server"]].concat();
    eventually(PATIENCE, "the definition is kept", async || {
        let (goes, told) = said(k8s, &rehearsed, "");
        (!goes).then_some(()).ok_or(told)
    })
    .await;
    let (goes, told) = said(k8s, &line, "");
    assert!(
        !goes && told.contains("every ElastiService would go"),
        "{told}"
    );
    assert_eq!(objects(k8s).len(), SERVICES.len());
}

fn the_definition_goes_when_it_is_meant(k8s: &ApiServer) {
    let crd = "elastiservices.elasti.truefoundry.com";
    kubectl(
        k8s,
        &["annotate", "crd", crd, "helm.sh/resource-policy-"],
        "",
    );
    let (goes, told) = said(k8s, &["delete", "crd", crd, "--dry-run=server"], "");
    assert!(goes, "{told}");
}

/// Nothing was written by ours.
fn untouched(k8s: &ApiServer) {
    for held in &SERVICES {
        let object = get(k8s, "elastiservice", held.name);
        assert_eq!(object["status"]["phase"], Value::Null, "{object}");
        let slice = get(
            k8s,
            "endpointslice",
            &resolver_slice(held.name, AddressFamily::V4),
        );
        if held.replicas == 0 {
            assert_eq!(slice["endpoints"][0]["addresses"][0], older::RESOLVER);
        }
    }
}

/// What slept sleeps on and leads to our resolvers, what was awake answers by itself, and of the older one's objects there is
/// nothing that is not called for.
async fn taken_over(k8s: &ApiServer, site: &Site, operator: &Program) {
    let own = own_address().to_string();
    for held in &SERVICES {
        let name = held.name;
        let slice = resolver_slice(name, AddressFamily::V4);
        let is_asleep = held.replicas == 0;
        let expected = if is_asleep { "Asleep" } else { "Serving" };
        eventually(PATIENCE, &format!("{name} is taken over"), async || {
            let object = get(k8s, "elastiservice", name);
            let slice = get(k8s, "endpointslice", &slice);
            let leads = if is_asleep {
                let port = slice["ports"][0]["port"].as_u64().unwrap_or_default();
                slice["endpoints"][0]["addresses"][0] == *own
                    && slice["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"]
                        == "weir"
                    && object["status"]["ports"][0]["resolverPort"] == port
                    && port >= site.ports.first.into()
            } else {
                slice.is_null()
            };
            let is_so = object["status"]["phase"] == expected && leads;
            is_so
                .then_some(())
                .ok_or_else(|| format!("{object} {slice} {}", operator.log()))
        })
        .await;
        let target = get(k8s, "deployment", name);
        assert_eq!(target["spec"]["replicas"], held.replicas, "{name}");
        follows(k8s, name).await;
    }
    // It is paused as it was: who scales it up by KEDA may do so.
    let scaler = get(k8s, "scaledobject", "jobs");
    let annotations = &scaler["metadata"]["annotations"];
    assert_eq!(
        annotations["autoscaling.keda.sh/paused"], "true",
        "{scaler}"
    );
}

/// The private Service is as the public one is now, ours, and at the address that it had.
async fn follows(k8s: &ApiServer, name: &str) {
    let uid = get(k8s, "elastiservice", name)["metadata"]["uid"].clone();
    eventually(PATIENCE, "the private Service follows", async || {
        let service = get(k8s, "service", &private_service(name));
        let ports = service["spec"]["ports"].as_array().map(Vec::as_slice);
        let is_so = matches!(ports, Some([only]) if only["port"] == 80)
            && service["spec"]["selector"] == json!({"app": name})
            && service["metadata"]["labels"]["elasti.truefoundry.com/elastiservice-uid"] == uid
            && service["metadata"]["ownerReferences"]
                .as_array()
                .map(Vec::len)
                == Some(1);
        is_so.then_some(()).ok_or_else(|| service.to_string())
    })
    .await;
}

/// A request wakes what the older operator put to sleep, its pause goes first, and the slice when a pod is there.
async fn wakes(k8s: &ApiServer, site: &Site) {
    let object = get(k8s, "elastiservice", "jobs");
    let port = object["status"]["ports"][0]["resolverPort"].as_u64();
    let port = port
        .and_then(|port| u16::try_from(port).ok())
        .expect("a port");
    assert!(port >= site.ports.first);
    let answer = ask(SocketAddr::new(own_address(), port));
    eventually(PATIENCE, "jobs is woken", async || {
        let target = get(k8s, "deployment", "jobs");
        let scaler = get(k8s, "scaledobject", "jobs");
        let annotations = &scaler["metadata"]["annotations"];
        let is_so = target["spec"]["replicas"] == 1
            && annotations["autoscaling.keda.sh/paused"].is_null()
            && annotations["autoscaling.keda.sh/paused-replicas"].is_null();
        is_so
            .then_some(())
            .ok_or_else(|| format!("{} {annotations}", target["spec"]["replicas"]))
    })
    .await;
    assert!(!answer.is_finished(), "it is held until a pod is there");
    apply(k8s, "shop", &pods("jobs", server()));
    let answer = tokio::task::spawn_blocking(|| answer.join()).await;
    let answer = answer.expect("a thread").expect("an answer");
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("awake"),
        "{answer}"
    );
    serves(k8s, "jobs").await;
}

/// Pods answer by themselves.
async fn serves(k8s: &ApiServer, name: &str) {
    eventually(PATIENCE, &format!("{name} serves"), async || {
        let object = get(k8s, "elastiservice", name);
        let slice = get(
            k8s,
            "endpointslice",
            &resolver_slice(name, AddressFamily::V4),
        );
        let is_so = object["status"]["phase"] == "Serving" && slice.is_null();
        is_so
            .then_some(())
            .ok_or_else(|| format!("{} {slice}", object["status"]))
    })
    .await;
}

fn the_release_is_gone(k8s: &ApiServer) {
    let kinds = "deployments,services,secrets,leases";
    let left = kubectl(k8s, &["-n", "elasti", "get", kinds, "-o", "name"], "");
    // Its Lease is nobody's, and in nobody's way.
    assert_eq!(
        left.trim(),
        "lease.coordination.k8s.io/acf50383.truefoundry.io"
    );
    let over_all = [
        "get",
        "clusterroles",
        "-l",
        "app.kubernetes.io/instance=elasti",
        "-o",
        "name",
    ];
    assert_eq!(kubectl(k8s, &over_all, "").trim(), "");
    assert_eq!(objects(k8s).len(), SERVICES.len());
}

/// The finalizer that the older one gave is ours to take away: of what is awake, and of what sleeps, which is woken.
async fn deletes(k8s: &ApiServer) {
    for name in ["late", "api"] {
        kubectl(
            k8s,
            &[
                "-n",
                "shop",
                "delete",
                "elastiservice",
                name,
                "--timeout=2m",
            ],
            "",
        );
        eventually(PATIENCE, "nothing of it is left", async || {
            let private = get(k8s, "service", &private_service(name));
            private
                .is_null()
                .then_some(())
                .ok_or_else(|| private.to_string())
        })
        .await;
        assert!(!get(k8s, "service", name).is_null(), "the user's own stays");
    }
}

/// What sleeps is woken first, and then nothing of Weir's is in the way.
async fn goes_back(k8s: &ApiServer, site: &Site, guide: &mut Guide) {
    assert_eq!(get(k8s, "deployment", "web")["spec"]["replicas"], 0);
    // Pods that the Deployment will have, for a moment later: the guide waits for them.
    let ready = pods("web", server());
    let kubectl = site.directory.path().join("ready.json");
    std::fs::write(&kubectl, ready.to_string()).expect("written");
    let shell = format!(
        "(until [ \"$(kubectl -n shop get deployment web -o jsonpath='{{.spec.replicas}}')\" = 1 ]; do :; done; kubectl -n shop apply -f {}) &\n",
        kubectl.display()
    );
    let (succeeded, told) = guide.shell(&format!("{shell}{}\nwait", guide.next()));
    assert!(succeeded, "{told}");
    serves(k8s, "web").await;
    guide.run("Going back");
    let slices = super::kubectl(
        k8s,
        &[
            "get",
            "endpointslices",
            "-A",
            "-l",
            "endpointslice.kubernetes.io/managed-by=weir",
            "-o",
            "name",
        ],
        "",
    );
    assert_eq!(slices.trim(), "", "nothing leads to Weir");
}
