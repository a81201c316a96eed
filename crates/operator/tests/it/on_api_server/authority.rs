//! Tokens of real ServiceAccounts, looked at by a real API server.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use kube::{
    Api, Client, Config,
    api::{DeleteParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use serde_json::json;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinSet,
};
use tokio_rustls::TlsConnector;
use weir_lab::Namespace;
use weir_operator::admin::{Authority, MetricsOn, secure};

use crate::{
    admin::{internal, state},
    http::{Answer, ask, ask_on},
};

const WAKE: &str = "POST /informer/incoming-request";
const SIGNAL: &str = r#"{"count":1,"svc":"web","namespace":"shop"}"#;

/// A ServiceAccount, and a token of its own.
async fn account(namespace: &Namespace, name: &str) -> String {
    let accounts: Api<ServiceAccount> = namespace.api();
    let mut account = ServiceAccount::default();
    account.metadata.name = Some(name.to_owned());
    let post = PostParams::default();
    accounts.create(&post, &account).await.unwrap();
    let request = TokenRequest {
        spec: TokenRequestSpec::default(),
        ..TokenRequest::default()
    };
    let answer = accounts.create_token_request(name, &post, &request).await;
    answer.unwrap().status.unwrap().token
}

#[tokio::test]
async fn only_the_resolvers_account_may_wake() {
    let namespace = weir_lab::api_server().await.namespace("wake").await;
    let resolver = account(&namespace, "weir-resolver").await;
    let other = account(&namespace, "other").await;
    let authority = Authority::new(namespace.client(), namespace.name(), "weir-resolver");
    let (state, controller, _sync) = state(authority);
    let (port, server) = internal(state, MetricsOn::InternalPort).await;
    for (token, status) in [
        (Some(resolver.as_str()), 200),
        // From memory.
        (Some(&resolver), 200),
        (Some(&other), 403),
        (Some(&other), 403),
        (Some("made-up"), 401),
        (None, 401),
    ] {
        let answer = judged(port, token).await;
        assert_eq!(answer.status, status, "{answer:?}");
    }
    assert_eq!(controller.asked.lock().unwrap().len(), 2);
    server.abort();
}

/// The answer to a wake. While the API server is too slow to say who it is, that is tried again, as a resolver does.
async fn judged(port: u16, token: Option<&str>) -> Answer {
    weir_lab::eventually(super::PATIENCE, "judged", || async {
        match ask(port, WAKE, token, SIGNAL).await {
            answer if answer.status == 503 => Err(format!("{answer:?}")),
            answer => Ok(answer),
        }
    })
    .await
}

/// A way to the API server that can be cut.
async fn relay(to: String) -> (u16, oneshot::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (cut, mut is_cut) = oneshot::channel();
    tokio::spawn(async move {
        let mut open = JoinSet::new();
        loop {
            tokio::select! {
                _ = &mut is_cut => return,
                accepted = listener.accept() => {
                    let (mut here, _) = accepted.unwrap();
                    let mut there = TcpStream::connect(&to).await.unwrap();
                    open.spawn(async move {
                        let _ = copy_bidirectional(&mut here, &mut there).await;
                    });
                }
            }
        }
    });
    (port, cut)
}

#[tokio::test]
async fn who_was_allowed_lately_may_wake_while_the_api_server_is_away() {
    let k8s = weir_lab::api_server().await;
    let namespace = k8s.namespace("wake").await;
    let resolver = account(&namespace, "weir-resolver").await;
    let stranger = account(&namespace, "other").await;
    let file = Kubeconfig::read_from(k8s.kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(file, &options)
        .await
        .unwrap();
    let server = &config.cluster_url;
    let to = format!("{}:{}", server.host().unwrap(), server.port_u16().unwrap());
    let (port, cut) = relay(to).await;
    config.cluster_url = format!("https://127.0.0.1:{port}").parse().unwrap();
    let client = Client::try_from(config).unwrap();
    // Nothing is fresh: each signal asks the API server, or would.
    let authority = Authority::new(client, namespace.name(), "weir-resolver")
        .remembering(Duration::ZERO, Duration::from_mins(10));
    let (state, _controller, _sync) = state(authority);
    let (port, server) = internal(state, MetricsOn::InternalPort).await;
    let status = async |token: &str| ask(port, WAKE, Some(token), SIGNAL).await.status;
    assert_eq!(judged(port, Some(&resolver)).await.status, 200);
    assert_eq!(judged(port, Some(&stranger)).await.status, 403);
    cut.send(()).unwrap();
    assert_eq!(status(&resolver).await, 200);
    assert_eq!(status(&stranger).await, 503);
    assert_eq!(status("new").await, 503);
    server.abort();
}

#[tokio::test]
async fn a_deleted_account_is_refused() {
    let namespace = weir_lab::api_server().await.namespace("wake").await;
    let token = account(&namespace, "weir-resolver").await;
    let authority = Authority::new(namespace.client(), namespace.name(), "weir-resolver")
        .remembering(Duration::ZERO, Duration::from_mins(10));
    let (state, _controller, _sync) = state(authority);
    let (port, server) = internal(state, MetricsOn::InternalPort).await;
    assert_eq!(judged(port, Some(&token)).await.status, 200);
    let accounts: Api<ServiceAccount> = namespace.api();
    let delete = DeleteParams::default();
    accounts.delete("weir-resolver", &delete).await.unwrap();
    // The API server itself remembers tokens for some seconds.
    weir_lab::eventually(super::PATIENCE, "refused", || async {
        match ask(port, WAKE, Some(&token), SIGNAL).await.status {
            401 => Ok(()),
            other => Err(other),
        }
    })
    .await;
    server.abort();
}

async fn may_read_metrics(namespace: &Namespace, account: &str) {
    let name = namespace.name();
    let role: ClusterRole = serde_json::from_value(json!({
        "metadata": {"name": name},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    }))
    .unwrap();
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": name}],
    }))
    .unwrap();
    let post = PostParams::default();
    let client = namespace.client();
    Api::all(client.clone()).create(&post, &role).await.unwrap();
    Api::all(client).create(&post, &binding).await.unwrap();
}

async fn ask_with_tls(port: u16, token: Option<&str>) -> Answer {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate))
        .with_no_client_auth();
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let name = ServerName::try_from("weir-operator").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let stream = connector.connect(name, stream).await.unwrap();
    ask_on(stream, "GET /metrics", token, "").await
}

#[tokio::test]
async fn secured_metrics_need_tls_and_a_token_that_may_read_them() {
    let namespace = weir_lab::api_server().await.namespace("metrics").await;
    let reader = account(&namespace, "prometheus").await;
    let other = account(&namespace, "other").await;
    may_read_metrics(&namespace, "prometheus").await;
    let authority = Authority::new(namespace.client(), namespace.name(), "weir-resolver")
        .without_tokens_for_wakes()
        .remembering(Duration::ZERO, Duration::ZERO);
    let (state, _controller, _sync) = state(authority);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(secure::serve(listener, state, async {
        let _ = stopped.await;
    }));
    // Roles are known to the API server a moment after they were written.
    let answer = weir_lab::eventually(super::PATIENCE, "metrics", || async {
        let answer = ask_with_tls(port, Some(&reader)).await;
        if answer.status == 200 {
            Ok(answer)
        } else {
            Err(format!("{answer:?}"))
        }
    })
    .await;
    assert!(answer.body.contains("weir_operator_leader"), "{answer:?}");
    for (token, status) in [(Some(&*other), 403), (Some("made-up"), 401), (None, 401)] {
        let answer = weir_lab::eventually(super::PATIENCE, "judged", || async {
            match ask_with_tls(port, token).await {
                answer if answer.status == 503 => Err(format!("{answer:?}")),
                answer => Ok(answer),
            }
        })
        .await;
        assert_eq!(answer.status, status, "{answer:?}");
    }
    // Without TLS there is nothing to hear, and others are served all the same.
    let mut plain = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut plain, b"GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    weir_lab::eventually(super::PATIENCE, "metrics", || async {
        match ask_with_tls(port, Some(&reader)).await {
            answer if answer.status == 200 => Ok(()),
            answer => Err(format!("{answer:?}")),
        }
    })
    .await;
    stop.send(()).unwrap();
    server.await.unwrap().unwrap();
}

/// As Prometheus with `insecure_skip_verify`.
#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        aws_lc_rs::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}
