//! What is tried with curl.

use std::{env, path::PathBuf};

use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use super::{Case, Pace, Protocol, Size, pattern, sum};

/// Less than a case may take, so that curl itself says how far it came.
pub(super) const MOST_SECONDS: &str = "110";

/// A run of curl, for one case.
struct Curl {
    arguments: Vec<String>,
    directory: TempDir,
}

/// What it got.
struct Got {
    /// Of each answer: its status, the version of HTTP, and how many connections were made for it.
    answers: Vec<String>,
    heads: String,
    bodies: Vec<Vec<u8>>,
}

/// Whether there is a curl that knows HTTP/2. If not, that is said loudly, and in CI it is a failure.
pub(super) async fn is_there() -> bool {
    let version = Command::new("curl").arg("--version").output().await;
    let is_there =
        version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("HTTP2"));
    if !is_there {
        let message =
            "curl with HTTP/2 is not installed: the rows of the matrix that need it are LEFT OUT";
        assert_ne!(env::var("CI").as_deref(), Ok("true"), "{message}");
        eprintln!("{message}");
    }
    is_there
}

impl Curl {
    fn new(case: &Case) -> Self {
        let mut arguments = vec!["-sS".to_owned(), "--max-time".into(), MOST_SECONDS.into()];
        if case.pace != Pace::Quick {
            let rate = match case.size {
                Size::Small => "2k",
                Size::Large => "5M",
            };
            arguments.extend(["--limit-rate".into(), rate.into()]);
        }
        Self {
            arguments,
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn with(mut self, arguments: &[&str]) -> Self {
        self.arguments
            .extend(arguments.iter().map(ToString::to_string));
        self
    }

    fn sending(self, body: &[u8]) -> Self {
        let path = self.file("sent");
        std::fs::write(&path, body).unwrap();
        let file = format!("@{}", path.display());
        self.with(&["--data-binary", &file])
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Asks for these paths one after another, on one connection if it can.
    async fn ask(self, case: &Case, paths: &[&str]) -> Got {
        let mut command = Command::new("curl");
        command.args(&self.arguments).kill_on_drop(true);
        command.args(["-w", "%{http_code} %{http_version} %{num_connects}\n"]);
        command.arg("-D").arg(self.file("heads"));
        for (number, path) in paths.iter().enumerate() {
            command.arg("-o").arg(self.file(&number.to_string()));
            command.arg(case.way.url(path));
        }
        let output = command.output().await.unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{case}: {errors}");
        let bodies = (0..paths.len())
            .map(|number| std::fs::read(self.file(&number.to_string())).unwrap_or_default());
        Got {
            answers: String::from_utf8_lossy(&output.stdout)
                .lines()
                .map(ToOwned::to_owned)
                .collect(),
            heads: std::fs::read_to_string(self.file("heads")).unwrap(),
            bodies: bodies.collect(),
        }
    }
}

/// Three, on one connection that is kept.
pub(super) async fn get(case: &Case) {
    let path = format!("/bytes/{}", case.size.bytes());
    let got = Curl::new(case).ask(case, &[&path, "/bytes/7", &path]).await;
    assert_eq!(
        got.answers,
        ["200 1.1 1", "200 1.1 0", "200 1.1 0"],
        "{case}"
    );
    let expected = sum(&pattern(case.size.bytes()));
    assert_eq!(sum(&got.bodies[0]), expected, "{case}");
    assert_eq!(got.bodies[1], pattern(7), "{case}");
    assert_eq!(sum(&got.bodies[2]), expected, "{case}");
}

/// One only: curl 7.88 fails with a second on the same connection, whoever the server is.
pub(super) async fn get_http2(case: &Case) {
    let path = format!("/bytes/{}", case.size.bytes());
    let curl = Curl::new(case).with(&["--http2-prior-knowledge"]);
    let got = curl.ask(case, &[&path]).await;
    assert_eq!(got.answers, ["200 2 1"], "{case}");
    assert_eq!(
        sum(&got.bodies[0]),
        sum(&pattern(case.size.bytes())),
        "{case}"
    );
}

/// To where it comes back, or, if only the sending is to be slow, to where it is counted.
pub(super) async fn post(case: &Case, arguments: &[&str]) {
    let body = pattern(case.size.bytes());
    let path = if case.pace == Pace::SlowWriter {
        "/upload"
    } else {
        "/mirror"
    };
    let curl = Curl::new(case).with(arguments).sending(&body);
    let got = curl.ask(case, &[path]).await;
    let version = if case.protocol == Protocol::Http2Post {
        "2"
    } else {
        "1.1"
    };
    assert_eq!(got.answers, [format!("200 {version} 1")], "{case}");
    let (length, hash) = if case.pace == Pace::SlowWriter {
        let told: Value = serde_json::from_slice(&got.bodies[0]).unwrap();
        let length = told["bytes"].as_u64().unwrap();
        (
            usize::try_from(length).unwrap(),
            told["sha256"].as_str().unwrap().to_owned(),
        )
    } else {
        sum(&got.bodies[0])
    };
    assert_eq!((length, hash), sum(&body), "{case}");
    let continued = got.heads.contains("HTTP/1.1 100 Continue");
    assert_eq!(
        continued,
        case.protocol == Protocol::Expect,
        "{case}: {}",
        got.heads
    );
}

pub(super) async fn head(case: &Case) {
    let length = case.size.bytes();
    let curl = Curl::new(case).with(&["--head"]);
    let got = curl
        .ask(case, &[&format!("/bytes/{length}"), "/bytes/7"])
        .await;
    assert_eq!(got.answers, ["200 1.1 1", "200 1.1 0"], "{case}");
    // curl writes the head where the body would be.
    let head = String::from_utf8_lossy(&got.bodies[0]).to_ascii_lowercase();
    assert!(
        head.contains(&format!("content-length: {length}\r\n")),
        "{case}: {head}"
    );
}

pub(super) async fn trailers(case: &Case) {
    let path = format!("/chunked/{}", case.size.bytes());
    let got = Curl::new(case)
        .with(&["-H", "TE: trailers"])
        .ask(case, &[&path])
        .await;
    assert_eq!(got.answers, ["200 1.1 1"], "{case}");
    let (length, hash) = sum(&pattern(case.size.bytes()));
    assert_eq!(sum(&got.bodies[0]), (length, hash.clone()), "{case}");
    let last = got.heads.trim_end().lines().last().unwrap();
    assert!(
        last.starts_with("x-") && last.ends_with(&format!(": {hash}")),
        "{case}: {}",
        got.heads
    );
}

pub(super) async fn events(case: &Case) {
    let (count, pause) = match case.size {
        Size::Small => (10, "0.02"),
        Size::Large => (2000, "0"),
    };
    let path = format!("/stream?events={count}&seconds={pause}");
    let got = Curl::new(case).with(&["-N"]).ask(case, &[&path]).await;
    assert_eq!(got.answers, ["200 1.1 1"], "{case}");
    let event = |number| format!("id: {number}\nevent: tick\ndata: {number} of {count}\n\n");
    let expected: String = (0..count).map(event).collect();
    assert_eq!(sum(&got.bodies[0]), sum(expected.as_bytes()), "{case}");
}
