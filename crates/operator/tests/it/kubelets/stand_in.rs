//! A kubelet on loopback: a real TLS server with a certificate of its own, which says what it is told to say. Its clock goes on
//! by 15 seconds with each question, as far as real ones let pass between two looks at a pod's counters.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use jiff::Timestamp;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    },
};

use super::PATIENCE;

const STEP_SECONDS: u64 = 15;

/// Who signs for kubelets, with the files that somebody who asks them needs.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    directory: TempDir,
}

/// A kubelet.
pub(super) struct StandIn {
    pub(super) address: SocketAddr,
    state: Arc<Mutex<State>>,
    asked: watch::Receiver<usize>,
    task: JoinHandle<()>,
}

/// What it says.
#[derive(Clone, Copy, Debug)]
pub(super) enum Says {
    /// A summary.
    Pods,
    /// Another status.
    Status(&'static str),
    /// These bytes, and then it closes the connection.
    Raw(&'static str),
    /// This, with status 200.
    Body(&'static str),
    /// Spaces for ever.
    Endless,
    /// Nothing for ever.
    Nothing,
    /// A space now and then.
    Drip,
}

struct State {
    says: Says,
    token: &'static str,
    pod: &'static str,
    asked: Vec<String>,
    /// By its clock.
    second: u64,
    bytes: u64,
    /// Each second.
    sends: u64,
}

impl Authority {
    pub(super) fn new() -> Self {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = authority.self_signed(&key).unwrap();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("ca.crt"), certificate.pem()).unwrap();
        std::fs::write(directory.path().join("token"), "right\n").unwrap();
        Self {
            issuer: Issuer::new(authority, key),
            directory,
        }
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

impl StandIn {
    /// One with a certificate for this address, wherever it is.
    pub(super) async fn start(authority: &Authority, name: &str) -> Self {
        weir_role::tls::install_provider();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &authority.issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State {
            says: Says::Pods,
            token: "right",
            pod: "uid-a",
            asked: Vec::new(),
            second: 0,
            bytes: 1000,
            sends: 100,
        }));
        let (tell, asked) = watch::channel(0);
        let served = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serve = serve(stream, acceptor.clone(), Arc::clone(&served), tell.clone());
                tokio::spawn(serve);
            }
        });
        Self {
            address,
            state,
            asked,
            task,
        }
    }

    pub(super) fn says(&self, says: Says) {
        self.state.lock().unwrap().says = says;
    }

    /// The token that it takes.
    pub(super) fn wants(&self, token: &'static str) {
        self.state.lock().unwrap().token = token;
    }

    pub(super) fn calls_its_pod(&self, uid: &'static str) {
        self.state.lock().unwrap().pod = uid;
    }

    /// The pod sends so much each second from now on.
    pub(super) fn sends(&self, bytes: u64) {
        self.state.lock().unwrap().sends = bytes;
    }

    /// The requests that came, in small letters.
    pub(super) fn asked(&self) -> Vec<String> {
        self.state.lock().unwrap().asked.clone()
    }

    pub(super) async fn until_asked(&self, times: usize) {
        let mut asked = self.asked.clone();
        let so_often = asked.wait_for(|asked| *asked >= times);
        timeout(PATIENCE, so_often).await.expect("in time").unwrap();
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl State {
    /// As a kubelet has it, and on.
    fn summary(&mut self) -> String {
        self.second += STEP_SECONDS;
        self.bytes += self.sends * STEP_SECONDS;
        let time = |second: u64| {
            let second = 1_700_000_000 + i64::try_from(second).unwrap();
            Timestamp::from_second(second).unwrap().to_string()
        };
        let eth0 = json!({
            "name": "eth0", "rxErrors": 0, "txErrors": 0,
            "rxBytes": 1000, "txBytes": self.bytes,
        });
        let mut network = eth0.clone();
        network["time"] = time(self.second).into();
        network["interfaces"] = json!([eth0]);
        let summary = json!({
            "node": {"nodeName": "n1", "startTime": time(0), "network": network},
            "pods": [
                {
                    "podRef": {"name": "a", "namespace": "shop", "uid": self.pod},
                    "startTime": "2023-01-01T00:00:00Z",
                    "containers": [{"name": "web", "startTime": time(0), "rootfs": {}, "logs": {}}],
                    "cpu": {"time": time(self.second), "usageNanoCores": 7},
                    "network": network,
                    "volume": [],
                    "ephemeral-storage": {"usedBytes": 4096},
                },
                {"podRef": {"name": "z", "namespace": "shop", "uid": "uid-z"}, "startTime": time(0)},
            ],
        });
        serde_json::to_string_pretty(&summary).unwrap()
    }
}

async fn serve(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    state: Arc<Mutex<State>>,
    tell: watch::Sender<usize>,
) {
    // One that is not trusted is left by whoever asked.
    let Ok(mut stream) = acceptor.accept(stream).await else {
        return;
    };
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut request).await.unwrap_or_default() == 0 {
            return;
        }
    }
    let request = String::from_utf8_lossy(&request).to_lowercase();
    let (says, is_known) = {
        let mut state = state.lock().unwrap();
        let wanted = format!("\r\nauthorization: bearer {}\r\n", state.token);
        let is_known = request.contains(&wanted);
        state.asked.push(request);
        (state.says, is_known)
    };
    tell.send_modify(|asked| *asked += 1);
    let _ = match says {
        _ if !is_known => status(&mut stream, "401 Unauthorized").await,
        Says::Pods => {
            let summary = state.lock().unwrap().summary();
            whole(&mut stream, &summary).await
        }
        Says::Status(line) => status(&mut stream, line).await,
        Says::Raw(bytes) => stream.write_all(bytes.as_bytes()).await,
        Says::Body(body) => whole(&mut stream, body).await,
        Says::Endless => trickle(&mut stream, &vec![b' '; 64 * 1024], Duration::ZERO).await,
        Says::Nothing => std::future::pending().await,
        Says::Drip => trickle(&mut stream, b" ", Duration::from_millis(100)).await,
    };
    let _ = stream.shutdown().await;
}

async fn status(stream: &mut (impl AsyncWrite + Unpin), line: &str) -> std::io::Result<()> {
    let answer = format!("HTTP/1.1 {line}\r\ncontent-length: 0\r\n\r\n");
    stream.write_all(answer.as_bytes()).await
}

async fn whole(stream: &mut (impl AsyncWrite + Unpin), body: &str) -> std::io::Result<()> {
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await
}

/// Until whoever asked has had enough.
async fn trickle(
    stream: &mut (impl AsyncWrite + Unpin),
    piece: &[u8],
    pause: Duration,
) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    loop {
        stream.write_all(piece).await?;
        sleep(pause).await;
    }
}
