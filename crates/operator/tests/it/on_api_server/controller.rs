//! The whole operator on a real API server: what it makes, what it leaves alone, and what it leaves behind. Without nodes
//! nothing sleeps or wakes here; that is tested in a cluster.

use std::collections::{BTreeMap, BTreeSet};

use clap::Parser;
use futures_util::{StreamExt, stream};
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, ReplicaSet},
        core::v1::Service,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::{sync::oneshot, task::JoinHandle, time::timeout};
use weir_api::{
    crd,
    hold::{ElastiService, Phase, names::private_service},
};
use weir_lab::{ApiServer, Namespace, api_server};
use weir_operator::{
    role::{self, RoleError},
    settings::{OperatorArgs, Settings},
};

use super::PATIENCE;

/// An operator for one namespace.
pub(super) struct Operator {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), RoleError>>,
}

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: OperatorArgs,
}

impl Operator {
    async fn start(server: &ApiServer, namespace: &Namespace) -> Self {
        Self::start_with(server, namespace, &[]).await
    }

    pub(super) async fn start_with(
        server: &ApiServer,
        namespace: &Namespace,
        flags: &[&str],
    ) -> Self {
        install(server).await;
        let kubeconfig = server.kubeconfig().to_str().unwrap();
        let name = namespace.name();
        let line = [
            "operator",
            "--kubeconfig",
            kubeconfig,
            "--watch-namespace",
            name,
            "--operator-namespace",
            name,
            "--resolver-namespace",
            name,
            // There are no resolvers here.
            "--fail-open-after=1h",
            // Nor will a pod ever be ready, for which a deletion waits as long as requests are held.
            "--hold-timeout=1s",
            "--internal-port=0",
            "--health-probe-bind-address=0",
        ];
        let line = line.iter().chain(flags);
        let args = Line::try_parse_from(line).unwrap().args;
        let settings = Settings::new(args, &|_| None).unwrap();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(role::run_until(settings, async {
            let _ = stopped.await;
        }));
        Self { stop, task }
    }

    pub(super) async fn stop(self) {
        self.stop.send(()).unwrap();
        let ended = timeout(PATIENCE, self.task).await;
        ended.expect("it ends when it is told").unwrap().unwrap();
    }
}

async fn install(server: &ApiServer) {
    let api: Api<CustomResourceDefinition> = Api::all(server.client());
    let definition = crd::Kind::ElastiService.crd();
    let params = PatchParams::apply("test").force();
    let name = definition.name_any();
    let applied = api.patch(&name, &params, &Patch::Apply(&definition)).await;
    applied.unwrap();
    // A new server takes the definition before it serves the objects.
    let objects: Api<ElastiService> = Api::all(server.client());
    let nothing = ListParams::default().limit(1);
    weir_lab::eventually(PATIENCE, "ElastiServices are served", async || {
        objects.list(&nothing).await.map(drop)
    })
    .await;
}

fn service(name: &str, port: u16) -> Service {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": port, "targetPort": 8080}]},
    }))
    .unwrap()
}

pub(super) fn deployment(name: &str, replicas: i32) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "app", "image": "none"}]},
            },
        },
    }))
    .unwrap()
}

pub(super) fn elasti_service(name: &str, service: &str) -> ElastiService {
    serde_json::from_value(json!({
        "apiVersion": "elasti.truefoundry.com/v1alpha1",
        "kind": "ElastiService",
        "metadata": {"name": name},
        "spec": {
            "service": service,
            "minTargetReplicas": 1,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": service},
        },
    }))
    .unwrap()
}

pub(super) async fn make(namespace: &Namespace, name: &str, replicas: i32) {
    let params = PostParams::default();
    namespace
        .api()
        .create(&params, &service(name, 80))
        .await
        .unwrap();
    namespace
        .api()
        .create(&params, &deployment(name, replicas))
        .await
        .unwrap();
    namespace
        .api()
        .create(&params, &elasti_service(name, name))
        .await
        .unwrap();
}

/// Found at zero, and so held.
async fn make_asleep(namespace: &Namespace, name: &str) {
    make(namespace, name, 0).await;
    until(namespace, name, "asleep", |object| {
        object.status.as_ref().and_then(|status| status.phase) == Some(Phase::Asleep)
    })
    .await;
}

pub(super) async fn until(
    namespace: &Namespace,
    name: &str,
    what: &str,
    is_so: impl Fn(&ElastiService) -> bool,
) {
    let api: Api<ElastiService> = namespace.api();
    namespace
        .eventually(PATIENCE, what, async || {
            let object = api.get(name).await.map_err(|error| error.to_string())?;
            let seen = || serde_json::to_string(&object.status).unwrap_or_default();
            is_so(&object).then_some(()).ok_or_else(seen)
        })
        .await;
}

pub(super) fn condition<'a>(object: &'a ElastiService, kind: &str) -> Option<(&'a str, &'a str)> {
    let mut conditions = object.status.as_ref()?.conditions.iter();
    let found = conditions.find(|condition| condition.type_ == kind)?;
    Some((&found.status, &found.message))
}

pub(super) fn has_phase(object: &ElastiService) -> bool {
    object
        .status
        .as_ref()
        .is_some_and(|status| status.phase.is_some())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_private_service_follows_and_nothing_is_left() {
    let server = api_server().await;
    let namespace = server.namespace("follow").await;
    let operator = Operator::start(&server, &namespace).await;
    make(&namespace, "web", 0).await;
    until(&namespace, "web", "asleep", |object| {
        let status = object.status.as_ref();
        status.is_some_and(|status| status.phase == Some(Phase::Asleep) && status.ports.len() == 1)
    })
    .await;
    let services: Api<Service> = namespace.api();
    let private = private_service("web");
    let made = services.get(&private).await.unwrap();
    assert_eq!(
        made.spec.as_ref().unwrap().selector,
        service("web", 80).spec.unwrap().selector
    );

    let patch = json!({"spec": {"selector": {"app": "other"}, "ports": [{"name": "http", "port": 81, "targetPort": 9090}]}});
    let patched = services
        .patch("web", &PatchParams::default(), &Patch::Merge(patch))
        .await;
    patched.unwrap();
    namespace
        .eventually(PATIENCE, "the private Service follows", async || {
            let spec = services.get(&private).await.unwrap().spec.unwrap();
            let ports = spec.ports.unwrap_or_default();
            let follows = spec.selector == Some(BTreeMap::from([("app".into(), "other".into())]))
                && ports.len() == 1
                && ports[0].port == 81;
            follows.then_some(()).ok_or("not yet")
        })
        .await;

    let objects: Api<ElastiService> = namespace.api();
    objects
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    namespace
        .eventually(PATIENCE, "nothing is left", async || {
            let object = objects.get_opt("web").await.unwrap();
            let private = services.get_opt(&private).await.unwrap();
            (object.is_none() && private.is_none())
                .then_some(())
                .ok_or_else(|| format!("{object:?} {private:?}"))
        })
        .await;
    let target: Deployment = namespace.api().get("web").await.unwrap();
    assert_eq!(
        target.spec.unwrap().replicas,
        Some(1),
        "a target that slept is woken"
    );
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_held_is_said() {
    let server = api_server().await;
    let namespace = server.namespace("refused").await;
    let operator = Operator::start(&server, &namespace).await;
    let params = PostParams::default();
    let mut headless = service("headless", 80);
    headless.spec.as_mut().unwrap().cluster_ip = Some("None".to_owned());
    namespace.api().create(&params, &headless).await.unwrap();
    namespace
        .api()
        .create(&params, &deployment("headless", 1))
        .await
        .unwrap();
    namespace
        .api()
        .create(&params, &elasti_service("headless", "headless"))
        .await
        .unwrap();
    let objects: Api<ElastiService> = namespace.api();
    until(&namespace, "headless", "headless is refused", |object| {
        matches!(condition(object, "ServiceCannotBeHeld"), Some(("True", message)) if message.contains("headless"))
            && matches!(condition(object, "Ready"), Some(("False", _)))
    })
    .await;
    // The Service may be there first or the object; the second object for one Service is refused.
    make(&namespace, "web", 1).await;
    until(&namespace, "web", "the first holds it", has_phase).await;
    objects
        .create(&params, &elasti_service("web-again", "web"))
        .await
        .unwrap();
    until(&namespace, "web-again", "the second is refused", |object| {
        matches!(condition(object, "ServiceHeldByAnother"), Some(("True", message)) if message.contains("web"))
    })
    .await;
    objects
        .create(&params, &elasti_service("early", "early"))
        .await
        .unwrap();
    until(&namespace, "early", "the Service is missed", |object| {
        matches!(condition(object, "Ready"), Some(("False", message)) if message.contains("does not exist"))
    })
    .await;
    namespace
        .api()
        .create(&params, &deployment("early", 1))
        .await
        .unwrap();
    namespace
        .api()
        .create(&params, &service("early", 80))
        .await
        .unwrap();
    until(
        &namespace,
        "early",
        "it is held when all is there",
        has_phase,
    )
    .await;
    operator.stop().await;
}

/// An operator for one namespace has no right to ask kubelets, which tell of all.
#[tokio::test(flavor = "multi_thread")]
async fn a_network_trigger_that_cannot_be_used_is_told_and_nothing_else_is() {
    let server = api_server().await;
    let namespace = server.namespace("kubelets").await;
    let operator = Operator::start(&server, &namespace).await;
    make(&namespace, "web", 0).await;
    let objects: Api<ElastiService> = namespace.api();
    for (triggers, is_told) in [(json!([{"type": "network"}]), true), (json!([]), false)] {
        let patch = Patch::Merge(json!({"spec": {"triggers": triggers}}));
        let patched = objects.patch("web", &PatchParams::default(), &patch).await;
        patched.unwrap();
        until(&namespace, "web", "told", |object| {
            let told = condition(object, "TriggerNotUsable");
            told.is_some_and(|(status, message)| {
                (status == "True") == is_told && (!is_told || message.contains("--watch-namespace"))
            })
        })
        .await;
        let object = objects.get("web").await.unwrap();
        assert_ne!(
            condition(&object, "TriggerFailing").map(|it| it.0),
            Some("True")
        );
    }
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_leaves_nothing_behind() {
    let server = api_server().await;
    let namespace = server.namespace("edit").await;
    let operator = Operator::start(&server, &namespace).await;
    make_asleep(&namespace, "web").await;
    let params = PostParams::default();
    // With another port, so that the ports of the status are written anew as well.
    let mut shop = service("shop", 8000);
    shop.spec.as_mut().unwrap().ports.as_mut().unwrap()[0].name = Some("web".to_owned());
    namespace.api().create(&params, &shop).await.unwrap();
    namespace
        .api()
        .create(&params, &deployment("shop", 1))
        .await
        .unwrap();
    let objects: Api<ElastiService> = namespace.api();
    let edit = json!({"spec": {
        "service": "shop",
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"},
    }});
    let edited = objects
        .patch("web", &PatchParams::default(), &Patch::Merge(edit))
        .await;
    edited.unwrap();
    let services: Api<Service> = namespace.api();
    let deployments: Api<Deployment> = namespace.api();
    namespace
        .eventually(
            PATIENCE,
            "the former target is awake, the former private Service gone",
            async || {
                let former = deployments.get("web").await.unwrap().spec.unwrap().replicas;
                let old = services.get_opt(&private_service("web")).await.unwrap();
                let new = services.get_opt(&private_service("shop")).await.unwrap();
                let is_so = former == Some(1) && old.is_none() && new.is_some();
                is_so
                    .then_some(())
                    .ok_or_else(|| format!("{former:?} {} {}", old.is_some(), new.is_some()))
            },
        )
        .await;
    until(
        &namespace,
        "web",
        "the status is about the new one",
        |object| {
            let status = object.status.as_ref().unwrap();
            status.service.as_deref() == Some("shop")
                && status.target.as_deref() == Some("Deployment/shop")
                && status.ports.iter().any(|port| port.name == "web")
                && status.observed_generation == object.metadata.generation
        },
    )
    .await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_former_target_of_the_same_service_is_woken_and_the_service_goes_on_being_held() {
    let server = api_server().await;
    let namespace = server.namespace("retarget").await;
    let operator = Operator::start(&server, &namespace).await;
    make_asleep(&namespace, "web").await;
    let deployments: Api<Deployment> = namespace.api();
    let next = deployment("next", 0);
    deployments
        .create(&PostParams::default(), &next)
        .await
        .unwrap();
    let objects: Api<ElastiService> = namespace.api();
    let edit = json!({"spec": {"scaleTargetRef": {"name": "next"}}});
    let edited = objects
        .patch("web", &PatchParams::default(), &Patch::Merge(edit))
        .await;
    edited.unwrap();
    until(
        &namespace,
        "web",
        "the status is about the new one",
        |object| {
            let status = object.status.as_ref().unwrap();
            status.target.as_deref() == Some("Deployment/next")
                && status.phase == Some(Phase::Asleep)
                && status.observed_generation == object.metadata.generation
        },
    )
    .await;
    for (name, replicas) in [("web", 1), ("next", 0)] {
        let spec = deployments.get(name).await.unwrap().spec.unwrap();
        assert_eq!(spec.replicas, Some(replicas), "{name}");
    }
    operator.stop().await;
}

/// Of an object neither labels nor the copy of its spec are kept; they must not be lost with the next status.
#[tokio::test(flavor = "multi_thread")]
async fn labels_and_what_kubectl_noted_stay_at_an_object_whose_status_is_written() {
    let server = api_server().await;
    let namespace = server.namespace("noted").await;
    let operator = Operator::start(&server, &namespace).await;
    let mut object = elasti_service("web", "web");
    let noted = "kubectl.kubernetes.io/last-applied-configuration";
    object.metadata.annotations = Some(BTreeMap::from([(noted.to_owned(), "{}".to_owned())]));
    object.metadata.labels = Some(BTreeMap::from([("team".to_owned(), "shop".to_owned())]));
    let params = PostParams::default();
    let services = namespace.api();
    services.create(&params, &service("web", 80)).await.unwrap();
    let deployments = namespace.api();
    let target = deployment("web", 0);
    deployments.create(&params, &target).await.unwrap();
    let objects: Api<ElastiService> = namespace.api();
    objects.create(&params, &object).await.unwrap();
    until(&namespace, "web", "asleep, and as it was", |object| {
        let status = object.status.as_ref();
        status.is_some_and(|status| status.phase == Some(Phase::Asleep))
            && object.annotations().contains_key(noted)
            && object.labels().contains_key("team")
    })
    .await;
    operator.stop().await;
}

/// Enough to show it; `WEIR_TEST_SERVICES=1000` shows it with as many as the contract has.
fn many() -> usize {
    let wanted = std::env::var("WEIR_TEST_SERVICES");
    wanted.map_or(100, |wanted| {
        wanted.parse().expect("WEIR_TEST_SERVICES is a number")
    })
}

/// Versions of all that the operator writes.
async fn versions(namespace: &Namespace) -> Value {
    let objects: Api<ElastiService> = namespace.api();
    let services: Api<Service> = namespace.api();
    let deployments: Api<Deployment> = namespace.api();
    let all = ListParams::default();
    let objects = objects.list(&all).await.unwrap();
    let services = services.list(&all).await.unwrap();
    let deployments = deployments.list(&all).await.unwrap();
    let of = |name: String, version: Option<String>| (name, version);
    let objects: BTreeMap<_, _> = objects
        .iter()
        .map(|it| of(it.name_any(), it.resource_version()))
        .collect();
    let services: BTreeMap<_, _> = services
        .iter()
        .map(|it| of(it.name_any(), it.resource_version()))
        .collect();
    // Their own controller writes their status: what is ours is the spec.
    let deployments: BTreeMap<_, _> = deployments
        .iter()
        .map(|it| (it.name_any(), it.metadata.generation))
        .collect();
    json!([objects, services, deployments])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_with_many_in_place_writes_nothing() {
    let many = many();
    let server = api_server().await;
    let namespace = server.namespace("many").await;
    let operator = Operator::start(&server, &namespace).await;
    stream::iter(0..many)
        .for_each_concurrent(16, async |number| {
            make(&namespace, &format!("web-{number}"), 0).await;
        })
        .await;
    let objects: Api<ElastiService> = namespace.api();
    let settled = async || {
        let all = objects.list(&ListParams::default()).await.unwrap();
        let settled = all.iter().filter(|object| {
            object.status.as_ref().and_then(|status| status.phase) == Some(Phase::Asleep)
        });
        match settled.count() {
            some if some == many => Ok(()),
            some => Err(some),
        }
    };
    namespace
        .eventually(PATIENCE, "all are settled", settled)
        .await;
    operator.stop().await;

    let before = versions(&namespace).await;
    let operator = Operator::start(&server, &namespace).await;
    // One more, and then a deletion: both are looked at after all others, which were there first.
    make(&namespace, "last", 0).await;
    until(&namespace, "last", "the last is settled", |object| {
        object.status.as_ref().and_then(|status| status.phase) == Some(Phase::Asleep)
    })
    .await;
    objects
        .delete("last", &DeleteParams::default())
        .await
        .unwrap();
    namespace
        .eventually(PATIENCE, "the last is gone", async || {
            let last = objects.get_opt("last").await.unwrap();
            last.map_or(Ok(()), |_| Err("it is there"))
        })
        .await;
    let services: Api<Service> = namespace.api();
    let deployments: Api<Deployment> = namespace.api();
    services
        .delete("last", &DeleteParams::default())
        .await
        .unwrap();
    deployments
        .delete("last", &DeleteParams::default())
        .await
        .unwrap();
    operator.stop().await;
    let after = versions(&namespace).await;
    let written = written(&before, &after);
    assert!(written.is_empty(), "{}", written.join("\n"));
}

/// What has another version than before, or is not there in one of both.
fn written(before: &Value, after: &Value) -> Vec<String> {
    let kinds = [before, after].map(|all| all.as_array().into_iter().flatten());
    let [before, after] = kinds;
    let mut written = Vec::new();
    for (kind, (before, after)) in ["ElastiService", "Service", "Deployment"]
        .iter()
        .zip(before.zip(after))
    {
        let names = [before, after].map(|all| all.as_object().into_iter().flatten());
        let names: BTreeSet<&String> = names.into_iter().flatten().map(|(name, _)| name).collect();
        for name in names
            .into_iter()
            .filter(|name| before[*name] != after[*name])
        {
            written.push(format!(
                "{kind} {name}: {} became {}",
                before[name], after[name]
            ));
        }
    }
    written
}

/// A kind that is not watched is asked for at each look; here it is never scaled by anybody but us.
#[tokio::test(flavor = "multi_thread")]
async fn a_target_of_another_kind_is_read_and_woken() {
    let server = api_server().await;
    let namespace = server.namespace("other-kind").await;
    let operator = Operator::start(&server, &namespace).await;
    let params = PostParams::default();
    let mut object = elasti_service("web", "web");
    object.spec.scale_target_ref.kind = "ReplicaSet".to_owned();
    let replicas: ReplicaSet = serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": serde_json::to_value(deployment("web", 0).spec.unwrap()).unwrap(),
    }))
    .unwrap();
    let sets: Api<ReplicaSet> = namespace.api();
    sets.create(&params, &replicas).await.unwrap();
    let services = namespace.api();
    services.create(&params, &service("web", 80)).await.unwrap();
    let objects: Api<ElastiService> = namespace.api();
    objects.create(&params, &object).await.unwrap();
    until(&namespace, "web", "asleep", |object| {
        let status = object.status.as_ref();
        status.is_some_and(|status| {
            status.phase == Some(Phase::Asleep)
                && status.target.as_deref() == Some("apps/v1/ReplicaSet/web")
        })
    })
    .await;

    // What does not exist is said.
    let mut none = elasti_service("none", "web");
    none.spec.scale_target_ref.api_version = "example.com/v1".to_owned();
    none.spec.scale_target_ref.kind = "Widget".to_owned();
    none.spec.service = "other".to_owned();
    let other = service("other", 80);
    services.create(&params, &other).await.unwrap();
    objects.create(&params, &none).await.unwrap();
    until(&namespace, "none", "its kind is not there", |object| {
        condition(object, "Ready").is_some_and(|(status, why)| {
            status == "False" && why.contains("Widget of example.com/v1")
        })
    })
    .await;

    objects
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    namespace
        .eventually(PATIENCE, "it is woken", async || {
            let found = sets.get("web").await.unwrap().spec.unwrap().replicas;
            (found == Some(1)).then_some(()).ok_or(format!("{found:?}"))
        })
        .await;
    operator.stop().await;
}
