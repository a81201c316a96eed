//! Exporters behind TLS that want a token, as kube-prometheus has them: a real server with a certificate for a Service's
//! name, on loopback.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    },
};
use weir_operator::{
    settings::exporters::{ExporterSettings, Tls, Where},
    traffic_watch::exporters::{Answer, Exporters, ScrapeError, SetUpError},
};

use super::COUNTERS;

const NAME: &str = "node-exporter.monitoring.svc";

/// A server, and the files that somebody who asks it needs.
struct Secure {
    address: SocketAddr,
    directory: TempDir,
}

impl Secure {
    async fn start() -> Self {
        weir_role::tls::install_provider();
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate().unwrap();
        let authority_certificate = authority.self_signed(&authority_key).unwrap();
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![NAME.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();

        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("ca.crt"), authority_certificate.pem()).unwrap();
        std::fs::write(directory.path().join("token"), "right\n").unwrap();

        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // One that is not trusted is left by whoever asked.
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    continue;
                };
                let mut request = vec![0; 4096];
                let count = stream.read(&mut request).await.unwrap_or_default();
                let request = String::from_utf8_lossy(&request[..count]).to_lowercase();
                let answer = if request.contains("\r\nauthorization: bearer right\r\n") {
                    let length = COUNTERS.len();
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{COUNTERS}")
                } else {
                    "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n".to_owned()
                };
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        });
        Self { address, directory }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn exporters(&self, server_name: Option<&str>, token: Option<&Path>) -> Exporters {
        let settings = ExporterSettings {
            place: Where::Nodes(self.address.port()),
            tls: Some(Tls {
                ca: Some(self.file("ca.crt")),
                server_name: server_name.map(str::to_owned),
            }),
            token: token.map(Path::to_owned),
        };
        Exporters::new(&settings).unwrap()
    }

    async fn ask(&self, exporters: &Exporters) -> Result<Answer, ScrapeError> {
        exporters.ask(Some(self.address), false).await
    }
}

#[tokio::test]
async fn an_exporter_behind_tls_answers_to_the_token_in_a_file() {
    let server = Secure::start().await;
    let token = server.file("token");
    let exporters = server.exporters(Some(NAME), Some(&token));
    let answer = server.ask(&exporters).await.unwrap();
    assert_eq!(answer.scrape.interfaces["eth0"].transmit, Some(7));

    let without = server.exporters(Some(NAME), None);
    let refused = server.ask(&without).await.unwrap_err();
    assert!(
        matches!(refused, ScrapeError::Status(status) if status == 401),
        "{refused}"
    );
    std::fs::remove_file(&token).unwrap();
    let gone = server.exporters(Some(NAME), Some(&token));
    assert_eq!(server.ask(&gone).await.unwrap_err().reason(), "token");
    std::fs::write(&token, "two\nlines\n").unwrap();
    let odd = server.exporters(Some(NAME), Some(&token));
    assert_eq!(server.ask(&odd).await.unwrap_err().reason(), "token");
}

#[tokio::test]
async fn whoever_cannot_show_the_right_certificate_gets_no_token() {
    let server = Secure::start().await;
    let token = server.file("token");
    for name in [Some("another.monitoring.svc"), None] {
        let exporters = server.exporters(name, Some(&token));
        let error = server.ask(&exporters).await.unwrap_err();
        assert_eq!(error.reason(), "unreachable", "{name:?}");
    }
    // Somebody else's authority.
    let other = Secure::start().await;
    let exporters = other.exporters(Some(NAME), Some(&token));
    let error = server.ask(&exporters).await.unwrap_err();
    assert_eq!(error.reason(), "unreachable");
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named_at_start() {
    let server = Secure::start().await;
    let with_ca = |ca: PathBuf| {
        Exporters::new(&ExporterSettings {
            place: Where::Nodes(1),
            tls: Some(Tls {
                ca: Some(ca),
                server_name: None,
            }),
            token: None,
        })
    };
    let missing = with_ca(server.file("none")).unwrap_err();
    assert!(missing.to_string().contains("none"), "{missing}");
    let no_certificate = with_ca(server.file("token")).unwrap_err();
    assert!(matches!(no_certificate, SetUpError::Ca { .. }));
}
