//! What `cargo xtask test --cluster` runs, since it installs what is needed first: here Prometheus,
//! each test with one of its own that scrapes itself.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{RootCertStore, pki_types::CertificateDer};
use serde_json::{Value, json};
use tempfile::TempDir;
use weir_hold::facts::Triggers;
use weir_operator::elasti_service::triggers::{TriggerSettings, Verdict, client::Client};

use crate::triggers::asker::Asker;

const PATIENCE: Duration = Duration::from_mins(1);
/// Prometheus must have been up for so long. It looks at each second.
const COOLDOWN: Duration = Duration::from_secs(3);

/// A Prometheus that ends with the test.
struct Prometheus {
    child: Child,
    address: String,
    _directory: TempDir,
}

impl Prometheus {
    /// Starts one, with these keys if it is to speak HTTPS, and waits until it listens.
    fn start(keys: Option<&CertifiedKey<rcgen::KeyPair>>) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let port = weir_lab::ports::free();
        let scheme = if keys.is_some() { "https" } else { "http" };
        let mut command = Command::new("prometheus");
        let file = write(
            directory.path(),
            "prometheus.yml",
            &configuration(port, scheme),
        );
        command.args([
            format!("--config.file={file}"),
            format!(
                "--storage.tsdb.path={}",
                directory.path().join("data").display()
            ),
            format!("--web.listen-address=127.0.0.1:{port}"),
            "--log.level=warn".to_owned(),
        ]);
        if let Some(keys) = keys {
            let files = json!({
                "cert_file": write(directory.path(), "tls.crt", &keys.cert.pem()),
                "key_file": write(directory.path(), "tls.key", &keys.signing_key.serialize_pem()),
            });
            let web = json!({"tls_server_config": files}).to_string();
            let file = write(directory.path(), "web.yml", &web);
            command.arg(format!("--web.config.file={file}"));
        }
        let child = command
            .stdin(Stdio::null())
            .spawn()
            .expect("prometheus runs; `apt-get install prometheus` installs it");
        let mut prometheus = Self {
            child,
            address: format!("{scheme}://localhost:{port}"),
            _directory: directory,
        };
        prometheus.wait_until_it_listens(port);
        prometheus
    }

    fn wait_until_it_listens(&mut self, port: u16) {
        let began = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = self.child.try_wait().expect("its state");
            assert!(ended.is_none(), "prometheus ended: {ended:?}");
            assert!(began.elapsed() < PATIENCE, "prometheus does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.stop();
    }
}

fn write(directory: &Path, name: &str, text: &str) -> String {
    let file = directory.join(name);
    fs::write(&file, text).expect("a file");
    file.to_string_lossy().into_owned()
}

/// JSON, which is YAML as well.
fn configuration(port: u16, scheme: &str) -> String {
    json!({
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "scrape_configs": [{
            "job_name": "itself",
            "scheme": scheme,
            "tls_config": {"insecure_skip_verify": true},
            "static_configs": [{"targets": [format!("127.0.0.1:{port}")]}],
        }],
    })
    .to_string()
}

fn ask(client: Client, address: &str) -> Asker {
    let settings = TriggerSettings {
        polling_interval: Duration::from_millis(300),
        default_address: Some(address.to_owned()),
        default_authorization: None,
    };
    let mut asker = Asker::start(client, settings);
    asker.cooldown = COOLDOWN;
    asker
}

fn trigger(query: &str) -> Value {
    json!({"query": query, "threshold": 1, "uptimeFilter": "job=\"itself\""})
}

fn idle(verdict: &Verdict) -> bool {
    verdict.triggers == Triggers::Idle
}

#[tokio::test]
async fn a_real_prometheus_says_who_is_idle() {
    let mut prometheus = Prometheus::start(None);
    let mut asker = ask(Client::new(), &prometheus.address);
    let why = |verdict: &Verdict| verdict.why.clone().unwrap_or_default();

    // It was not up ten minutes ago, so nobody who wants as much is idle.
    asker.cooldown = Duration::from_mins(10);
    asker.set("patient", &[trigger("vector(0)")]);
    let not_up = |verdict: &Verdict| why(verdict).contains("was not up for the whole cooldown");
    let patient = asker.until("patient", not_up).await;
    assert_eq!(patient.triggers, Triggers::Unknown);
    asker.cooldown = COOLDOWN;
    asker.set("idle", &[trigger("vector(0)")]);
    asker.until("idle", idle).await;
    // A scalar is a number as well, and so is what was measured.
    for (name, query) in [
        ("scalar", "scalar(vector(0.5))"),
        (
            "measured",
            "sum(rate(prometheus_http_requests_total{handler=\"/none\"}[1m])) or vector(0)",
        ),
    ] {
        asker.set(name, &[trigger(query)]);
        asker.until(name, idle).await;
    }

    for (name, query, triggers, part) in [
        (
            "busy",
            "sum(up{job=\"itself\"})",
            Triggers::Busy,
            "is not below 1",
        ),
        (
            "minus",
            "vector(-1)",
            Triggers::Busy,
            "is -1, which is never idle",
        ),
        (
            "empty",
            "nothing_of_this_name",
            Triggers::Unknown,
            "the result is empty",
        ),
        (
            "several",
            "prometheus_http_requests_total",
            Triggers::Unknown,
            "series where one is needed",
        ),
        (
            "nan",
            "vector(0) / 0",
            Triggers::Unknown,
            "the result is NaN",
        ),
        (
            "infinite",
            "vector(1) / 0",
            Triggers::Unknown,
            "the result is +Inf",
        ),
        (
            "range",
            "up[1m]",
            Triggers::Unknown,
            "the result is not a number",
        ),
        (
            "wrong",
            "sum(",
            Triggers::Unknown,
            "Prometheus answers 400 Bad Request: ",
        ),
    ] {
        asker.set(name, &[trigger(query)]);
        let verdict = asker
            .until(name, |verdict| why(verdict).contains(part))
            .await;
        assert_eq!(verdict.triggers, triggers, "{name}");
    }

    // A filter that finds nothing vouches for nothing.
    asker.set("unfound", &[json!({"query": "vector(0)", "threshold": 1})]);
    let verdict = asker
        .until("unfound", |verdict| {
            why(verdict).contains("does not find it")
        })
        .await;
    assert_eq!(verdict.triggers, Triggers::Unknown);

    prometheus.stop();
    let verdict = asker
        .until("idle", |verdict| why(verdict).contains("cannot be reached"))
        .await;
    assert_eq!(verdict.triggers, Triggers::Unknown);
}

#[tokio::test]
async fn https_is_spoken_with_those_whom_we_trust() {
    let keys = generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let prometheus = Prometheus::start(Some(&keys));
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from(keys.cert.der().to_vec());
    roots.add(certificate).expect("a root");

    let mut trusting = ask(Client::trusting(roots), &prometheus.address);
    trusting.set("a", &[trigger("vector(0)")]);
    trusting.until("a", idle).await;

    let mut wary = ask(
        Client::trusting(RootCertStore::empty()),
        &prometheus.address,
    );
    wary.set("a", &[trigger("vector(0)")]);
    let refused = |verdict: &Verdict| {
        let why = verdict.why.as_deref().unwrap_or_default();
        why.contains("cannot be reached (invalid peer certificate: UnknownIssuer)")
    };
    assert_eq!(wary.until("a", refused).await.triggers, Triggers::Unknown);
}
