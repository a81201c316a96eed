//! Services with addresses of two families: a slice for each of them, made, repaired and removed together. What stands in for
//! the resolvers answers at this machine's own addresses.

use std::{
    fs,
    net::{IpAddr, Ipv6Addr},
};

use axum::{Json, Router, routing::get};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use weir_api::hold::{
    ElastiService,
    names::{
        AddressFamily, SERVICE_NAME_LABEL, SLICE_MANAGED_BY, SLICE_MANAGED_BY_LABEL, resolver_slice,
    },
};
use weir_lab::Namespace;
use weir_role::internal_port;

use super::{
    PATIENCE,
    controller::{Operator, condition, deployment, elasti_service, has_phase, until},
    resolvers::own_address,
};

/// An IPv6 address of this machine that others could use, as Linux lists them: an EndpointSlice may lead to nothing else.
fn own_v6() -> Option<IpAddr> {
    let list = fs::read_to_string("/proc/net/if_inet6").ok()?;
    let mut lines = list
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines.find_map(|fields| match fields[..] {
        // Of the scope that is neither a machine's nor a link's.
        [address, _, _, "00", ..] => {
            let bits = u128::from_str_radix(address, 16).ok()?;
            Some(Ipv6Addr::from_bits(bits).into())
        }
        _ => None,
    })
}

/// A resolver's internal port on all addresses, which knows these Services without a port of their own.
async fn resolver(namespace: &Namespace) -> String {
    let listener = match TcpListener::bind("[::]:0").await {
        Ok(listener) => listener,
        Err(_) => TcpListener::bind("0.0.0.0:0").await.expect("a port"),
    };
    let port = listener.local_addr().expect("an address").port();
    let name = namespace.name();
    let held = |service: &str| json!({"namespace": name, "service": service, "ports": []});
    let known = json!({
        "generation": 1, "synced": true, "draining": false, "count": 2,
        "services": [held("web"), held("plain")],
    });
    let router = Router::new().route("/crd-cache-status", get(async || Json(known)));
    tokio::spawn(internal_port::serve(
        listener,
        router,
        std::future::pending(),
    ));
    port.to_string()
}

/// As the EndpointSlice controller lists the resolvers: a slice for each family.
async fn place(namespace: &Namespace, address: IpAddr) {
    let family = AddressFamily::of(address);
    let slice: EndpointSlice = serde_json::from_value(json!({
        "metadata": {
            "name": format!("resolvers-{}", family.as_str().to_lowercase()),
            "labels": {SERVICE_NAME_LABEL: "weir-resolver", SLICE_MANAGED_BY_LABEL: "test"},
        },
        "addressType": family.as_str(),
        "endpoints": [{
            "addresses": [address.to_string()], "conditions": {"ready": true, "serving": true},
        }],
        "ports": [{"name": "http", "port": 8012}],
    }))
    .unwrap();
    let slices: Api<EndpointSlice> = namespace.api();
    slices.create(&PostParams::default(), &slice).await.unwrap();
}

async fn make(namespace: &Namespace, name: &str, policy: &str) {
    let params = PostParams::default();
    let service: Service = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "ipFamilyPolicy": policy, "selector": {"app": name},
            "ports": [{"name": "http", "port": 80, "targetPort": 8080}],
        },
    }))
    .unwrap();
    let made = namespace.api().create(&params, &service).await;
    made.expect("the API server gives addresses of both families, see lab::control_plane");
    let target = deployment(name, 0);
    namespace.api().create(&params, &target).await.unwrap();
    let object = elasti_service(name, name);
    namespace.api().create(&params, &object).await.unwrap();
}

/// Our slices of this Service: name, family and where they lead to.
async fn slices(namespace: &Namespace, service: &str) -> Vec<(String, String, Vec<String>)> {
    let slices: Api<EndpointSlice> = namespace.api();
    let label =
        format!("{SERVICE_NAME_LABEL}={service},{SLICE_MANAGED_BY_LABEL}={SLICE_MANAGED_BY}");
    let found = slices.list(&ListParams::default().labels(&label)).await;
    let all = found.unwrap().items.into_iter();
    let mut all: Vec<_> = all
        .map(|slice| {
            let addresses = slice.endpoints.iter().flat_map(|it| it.addresses.clone());
            let name = slice.metadata.name.clone().unwrap_or_default();
            (name, slice.address_type.clone(), addresses.collect())
        })
        .collect();
    all.sort();
    all
}

async fn leads_to(namespace: &Namespace, service: &str, addresses: &[IpAddr]) {
    let expected: Vec<_> = addresses
        .iter()
        .map(|address| {
            let family = AddressFamily::of(*address);
            let name = resolver_slice(service, family);
            (name, family.as_str().to_owned(), vec![address.to_string()])
        })
        .collect();
    let what = format!("{service} leads to {addresses:?}");
    namespace
        .eventually(PATIENCE, &what, async || {
            let found = slices(namespace, service).await;
            if found == expected {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        })
        .await;
}

async fn patch(namespace: &Namespace, spec: &Value) {
    let services: Api<Service> = namespace.api();
    let patch = Patch::Merge(json!({"spec": spec}));
    let patched = services.patch("web", &PatchParams::default(), &patch).await;
    patched.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn both_slices_are_made_repaired_and_removed_together() {
    let server = weir_lab::api_server().await;
    let namespace = server.namespace("dual").await;
    let port = resolver(&namespace).await;
    let flags = ["--resolver-port", &port, "--per-service-ports=false"];
    let operator = Operator::start_with(&server, &namespace, &flags).await;
    let v4 = own_address();
    place(&namespace, v4).await;
    make(&namespace, "plain", "SingleStack").await;
    make(&namespace, "web", "RequireDualStack").await;
    leads_to(&namespace, "plain", &[v4]).await;

    // Half of its clients would find nobody.
    until(&namespace, "web", "a family is missed", |object| {
        has_phase(object)
            && matches!(condition(object, "ServiceCannotBeHeld"), Some(("True", why)) if why.contains("IPv6"))
            && matches!(condition(object, "Ready"), Some(("False", why)) if why.contains("IPv6"))
    })
    .await;
    assert_eq!(slices(&namespace, "web").await, []);
    let Some(v6) = own_v6() else {
        eprintln!("no IPv6 address on this machine: only what is without one was seen");
        operator.stop().await;
        return;
    };
    place(&namespace, v6).await;
    leads_to(&namespace, "web", &[v4, v6]).await;
    until(&namespace, "web", "it is held", |object| {
        matches!(condition(object, "ServiceCannotBeHeld"), Some(("False", _)))
            && matches!(condition(object, "Ready"), Some(("True", _)))
    })
    .await;
    leads_to(&namespace, "plain", &[v4]).await;

    let all: Api<EndpointSlice> = namespace.api();
    let delete = DeleteParams::default();
    for family in AddressFamily::ALL {
        let name = resolver_slice("web", family);
        all.delete(&name, &delete).await.unwrap();
        leads_to(&namespace, "web", &[v4, v6]).await;
    }

    // A slice cannot change its family, so one of them goes, and comes again.
    patch(
        &namespace,
        &json!({"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"]}),
    )
    .await;
    leads_to(&namespace, "web", &[v4]).await;
    patch(&namespace, &json!({"ipFamilyPolicy": "PreferDualStack"})).await;
    leads_to(&namespace, "web", &[v4, v6]).await;

    let objects: Api<ElastiService> = namespace.api();
    objects.delete("web", &delete).await.unwrap();
    namespace
        .eventually(PATIENCE, "nothing is left", async || {
            let object = objects.get_opt("web").await.unwrap();
            let slices = slices(&namespace, "web").await;
            let is_so = object.is_none() && slices.is_empty();
            is_so
                .then_some(())
                .ok_or_else(|| format!("{object:?} {slices:?}"))
        })
        .await;
    operator.stop().await;
}
