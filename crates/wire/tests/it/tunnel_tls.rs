//! TLS that is passed through, with a client and a server that really speak it.

use std::sync::Arc;

use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::aws_lc_rs::default_provider,
    pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, split},
    net::TcpStream,
};
use tokio_rustls::{TlsAcceptor, TlsConnector, client::TlsStream};
use weir_wire::{backend::End, sniff::Spoken};

use crate::{
    bed::{Note, Way, in_time, is_so},
    endpoint::Endpoint,
    tunnel::{bed, bytes, connect, reset},
};

const NAME: &str = "shop.example";

/// Who trusts whom.
struct Keys {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl Keys {
    fn new() -> Self {
        let key = rcgen::generate_simple_self_signed([NAME.to_owned()]).unwrap();
        let certificate = CertificateDer::from(key.cert.der().to_vec());
        let private = PrivatePkcs8KeyDer::from(key.signing_key.serialize_der());
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).unwrap();
        let provider = Arc::new(default_provider());
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], private.into())
            .unwrap();
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            server: Arc::new(server),
            client: Arc::new(client),
        }
    }

    /// A server that sends back what it hears.
    async fn echo(&self) -> Endpoint {
        let acceptor = TlsAcceptor::from(Arc::clone(&self.server));
        Endpoint::start(move |stream, _| {
            let acceptor = acceptor.clone();
            async move {
                let stream = acceptor.accept(stream).await.unwrap();
                assert_eq!(stream.get_ref().1.server_name(), Some(NAME));
                let (mut read, mut write) = split(stream);
                let _ = tokio::io::copy(&mut read, &mut write).await;
                let _ = write.shutdown().await;
            }
        })
        .await
    }

    async fn connect(&self, way: &Way) -> TlsStream<TcpStream> {
        let connector = TlsConnector::from(Arc::clone(&self.client));
        let name = ServerName::try_from(NAME).unwrap();
        let stream = connect(way).await;
        in_time("a handshake", connector.connect(name, stream))
            .await
            .unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handshake_waits_for_the_server_and_what_follows_arrives_whole() {
    let keys = Keys::new();
    let echo = keys.echo().await;
    let all = bytes(4 << 20);
    for spoken in [Spoken::Unknown, Spoken::Tls, Spoken::Tcp] {
        let bed = bed(spoken);
        let wakes = async {
            bed.main.waiting(1).await;
            bed.main.backend.set_endpoints(&[echo.address]);
        };
        let (stream, ()) = tokio::join!(keys.connect(&bed.main), wakes);
        let awake = keys.connect(&bed.main).await;
        for stream in [stream, awake] {
            let (mut read, mut write) = split(stream);
            let writes = async {
                write.write_all(&all).await.unwrap();
                write.shutdown().await.unwrap();
            };
            let reads = async {
                let mut back = Vec::new();
                read.read_to_end(&mut back).await.unwrap();
                back
            };
            let ((), back) = in_time("an echo", async { tokio::join!(writes, reads) }).await;
            assert!(back == all, "{spoken:?}");
        }
        bed.main.notes.has(&Note::Carried(End::Done), 2).await;
        assert_eq!(bed.main.notes.count(&Note::Waits(1)), 1, "{spoken:?}");
    }
}

/// Its first message can be told to another server: nothing has been agreed yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handshake_that_breaks_is_begun_again_with_another_server() {
    let keys = Keys::new();
    let echo = keys.echo().await;
    for resets in [true, false] {
        let breaks = Endpoint::start(move |mut stream, _| async move {
            let mut hello = [0; 1000];
            let _ = stream.read(&mut hello).await;
            if resets {
                reset(stream);
            }
        })
        .await;
        let bed = bed(Spoken::Unknown);
        let wakes = async {
            bed.main.waiting(1).await;
            bed.main.backend.set_endpoints(&[breaks.address]);
            is_so("it is tried again", || {
                match bed.main.notes.count(&Note::Retried("broken")) {
                    0 => Err("not yet"),
                    _ => Ok(()),
                }
            })
            .await;
            bed.main.backend.set_endpoints(&[echo.address]);
        };
        let (mut stream, ()) = tokio::join!(keys.connect(&bed.main), wakes);
        stream.write_all(b"word").await.unwrap();
        let mut back = [0; 4];
        let read = in_time("an echo", stream.read_exact(&mut back)).await;
        read.unwrap();
    }
}
