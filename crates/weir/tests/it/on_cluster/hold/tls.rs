//! TLS that Weir passes through: the client knows the server's certificate and nobody else's, so whatever it reads was said by the
//! server alone.

use std::{net::SocketAddr, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs::default_provider,
    pki_types::{CertificateDer, ServerName},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, split},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;

use super::{
    bed::{Bed, PATIENCE},
    echo::Echo,
    objects::Kind,
};

const NAME: &str = "shop.example.com";
/// Where the lab's server speaks TLS.
const PORT: u16 = 8443;
/// One is known to speak TLS by its name; what is spoken on the other is seen by its first bytes.
const PORTS: [(&str, u16); 2] = [("tls", 443), ("shop", 8443)];
/// So many clients come at once.
const CLIENTS: usize = 10;

/// The server, with a certificate of its own.
struct Server {
    echo: Echo,
    certificate: rcgen::CertifiedKey<rcgen::KeyPair>,
}

impl Server {
    fn new() -> Self {
        let certificate = rcgen::generate_simple_self_signed([NAME.to_owned()]);
        Self {
            echo: Echo::new("shop"),
            certificate: certificate.expect("a certificate"),
        }
    }

    /// Only the pod has the key.
    fn secret(&self) -> Value {
        json!({"type": "kubernetes.io/tls", "stringData": {
            "tls.crt": self.certificate.cert.pem(),
            "tls.key": self.certificate.signing_key.serialize_pem(),
        }})
    }

    fn workload(&self) -> Value {
        let mut workload = self.echo.workload();
        let pod = workload.pointer_mut("/spec/template/spec").expect("a pod");
        pod["volumes"] = json!([{"name": "tls", "secret": {"secretName": self.echo.name}}]);
        let container = &mut pod["containers"][0];
        container["args"] = json!(["tls"]);
        container["volumeMounts"] = json!([{"name": "tls", "mountPath": "/tls"}]);
        container["readinessProbe"] = json!({"tcpSocket": {"port": PORT}, "periodSeconds": 1});
        workload
    }

    fn service(&self) -> Value {
        let port = |(name, port)| json!({"name": name, "port": port, "targetPort": PORT});
        json!({"spec": {"selector": {"app": self.echo.name}, "ports": PORTS.map(port)}})
    }

    /// Who trusts this server alone.
    fn client(&self) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        let certificate = CertificateDer::from(self.certificate.cert.der().to_vec());
        roots.add(certificate).expect("a root");
        let client = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        TlsConnector::from(Arc::new(client))
    }
}

/// The handshake is with the server itself, which has heard its name; and all comes back.
async fn is_served(client: &TlsConnector, address: SocketAddr, sent: &[u8]) {
    let talk = async {
        let stream = TcpStream::connect(address).await.expect("a connection");
        let name = ServerName::try_from(NAME).expect("a name");
        let stream = client.connect(name, stream).await.expect("a handshake");
        let (mut read, mut write) = split(stream);
        let writes = async {
            write.write_all(sent).await.expect("sent");
            write.shutdown().await.expect("no more is sent");
        };
        let mut received = Vec::new();
        let (end, ()) = tokio::join!(read.read_to_end(&mut received), writes);
        end.expect("an end in order");
        received
    };
    let received = timeout(PATIENCE, talk).await.expect("in time");
    let expected = [NAME.as_bytes(), b"\r\n", sent].concat();
    assert!(
        received == expected,
        "{} of {}",
        received.len(),
        expected.len()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_at_zero_is_with_the_server_and_nobody_else() {
    let bed = Bed::new("tls").await;
    let server = Server::new();
    let echo = &server.echo;
    bed.objects
        .apply(Kind::Secret, echo.name, &server.secret())
        .await;
    bed.objects
        .apply(Kind::Service, echo.name, &server.service())
        .await;
    bed.objects
        .apply(echo.kind, echo.name, &server.workload())
        .await;
    bed.has_a_pod(echo).await;
    bed.is_led_to(echo).await;
    bed.apply_elasti(echo, &echo.elasti()).await;
    bed.is_in(echo, "serve").await;
    let address = bed.address(echo).await.ip();
    let client = server.client();
    for by_weir in [false, true] {
        if by_weir {
            bed.is_put_to_sleep(echo).await;
        } else {
            bed.put_to_zero(echo).await;
        }
        let clients = (0..CLIENTS).map(|number| {
            let client = client.clone();
            let (_, port) = PORTS[number % PORTS.len()];
            let sent = vec![b'a'; 100_000 + number];
            async move { is_served(&client, SocketAddr::new(address, port), &sent).await }
        });
        futures_util::future::join_all(clients).await;
        assert_eq!(bed.replicas(echo).await, 1);
        bed.is_in(echo, "serve").await;
    }
    bed.end().await;
}
