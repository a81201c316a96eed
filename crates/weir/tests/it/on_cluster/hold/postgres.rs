//! A database that sleeps: Debian's PostgreSQL in a pod, its data on a volume, and `psql` as its clients have it.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::Output,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{process::Command, time::timeout};
use weir_lab::{
    TestCluster,
    cluster::{containerd, layout::Node, packages},
    image::{Image, Node as File, program},
};

use super::{
    bed::{Bed, PATIENCE},
    echo::Echo,
    objects::Kind,
};

const IMAGE: &str = "localhost/postgres:hold-test";
const PORT: u16 = 5432;
/// PostgreSQL does not run as root, and makes its data only for somebody who has a name.
const NOBODY: u32 = 65534;
const PASSWORD: &str = "for-this-test-alone";
/// The image and the pod are here alone.
const NODE: Node = Node(1);
/// So many clients come at once.
const CLIENTS: usize = 10;

/// The database, and what is there of it while it sleeps.
struct Postgres {
    echo: Echo,
    programs: PathBuf,
    volume: TempDir,
}

impl Postgres {
    /// With empty data, and its image on a node.
    async fn new(cluster: &TestCluster) -> Self {
        let programs = packages::postgres_programs();
        let postgres = Self {
            echo: Echo::new("postgres"),
            programs: programs.expect("`cargo xtask test --cluster` installs PostgreSQL"),
            volume: tempfile::tempdir().expect("a directory"),
        };
        postgres.make_data().await;
        let file = postgres.volume.path().join("image.tar");
        let image = image(&postgres.programs).pack().expect("a tar");
        fs::write(&file, image.tar).expect("written");
        containerd::import(cluster.layout(), NODE, &file).expect("the node takes it");
        fs::remove_file(file).expect("it is on the node");
        postgres
    }

    fn data(&self) -> PathBuf {
        self.volume.path().join("data")
    }

    async fn make_data(&self) {
        let directory = self.volume.path();
        chown(directory, Some(NOBODY), Some(NOBODY)).expect("it is nobody's");
        let word = directory.join("password");
        fs::write(&word, PASSWORD).expect("written");
        let mut initdb = Command::new(self.programs.join("initdb"));
        initdb.uid(NOBODY).gid(NOBODY).current_dir(directory);
        // The one time zone that needs no files.
        initdb.env("TZ", "GMT").arg("--pgdata").arg(self.data());
        initdb.args([
            "--username=weir",
            "--locale=C",
            "--encoding=UTF8",
            "--no-sync",
        ]);
        initdb.args(["--auth=scram-sha-256", "--pwfile"]).arg(word);
        let output = timeout(PATIENCE, initdb.output()).await.expect("in time");
        let output = output.expect("initdb runs");
        assert!(output.status.success(), "{output:?}");
        // Not from this machine alone.
        let clients = self.data().join("pg_hba.conf");
        let mut text = fs::read_to_string(&clients).expect("who may connect");
        text.push_str("host all all all scram-sha-256\n");
        fs::write(clients, text).expect("written");
    }

    fn workload(&self) -> Value {
        let labels = json!({"app": self.echo.name});
        let ready = [
            "/pg_isready",
            "-q",
            "-h",
            "127.0.0.1",
            "-U",
            "weir",
            "-d",
            "postgres",
        ];
        let settings = [
            "listen_addresses=*",
            "unix_socket_directories=",
            "fsync=off",
        ];
        let settings = settings.iter().flat_map(|it| ["-c", it]);
        let arguments: Vec<&str> = ["-D", "/data"].into_iter().chain(settings).collect();
        json!({"spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "terminationGracePeriodSeconds": 20,
                    "securityContext": {"runAsUser": NOBODY, "runAsGroup": NOBODY},
                    "nodeSelector": {"kubernetes.io/hostname": NODE.name()},
                    "containers": [{
                        "name": "postgres",
                        "image": IMAGE,
                        "imagePullPolicy": "Never",
                        "args": arguments,
                        "readinessProbe": {"exec": {"command": ready}, "periodSeconds": 1},
                        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    }],
                    "volumes": [{"name": "data", "hostPath": {"path": self.data()}}],
                },
            },
        }})
    }

    fn service(&self) -> Value {
        json!({"spec": {
            "selector": {"app": self.echo.name},
            "ports": [{"name": "postgres", "port": PORT, "targetPort": PORT}],
        }})
    }

    /// What the client has to say to this, which must be no error.
    async fn says(&self, address: SocketAddr, statement: &str) -> String {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args([
            "-X",
            "-A",
            "-t",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-U",
            "weir",
        ]);
        psql.args([
            "-h",
            &address.ip().to_string(),
            "-p",
            &address.port().to_string(),
        ]);
        psql.args(["-d", "postgres", "-c", statement]);
        psql.env("PGPASSWORD", PASSWORD).kill_on_drop(true);
        let output = timeout(PATIENCE, psql.output()).await.expect("in time");
        let Output {
            status,
            stdout,
            stderr,
        } = output.expect("psql runs");
        let said = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "{statement}: {status}: {said}");
        String::from_utf8_lossy(&stdout).trim().to_owned()
    }
}

/// The server and what asks whether it is ready, with what they read beside libraries; no shell, and none of what makes data.
fn image(programs: &Path) -> Image {
    let gathered = program::gather(IMAGE, &programs.join("postgres"), &[]);
    let mut image = gathered.expect("an image").image;
    // It finds what belongs to it from where it lies.
    let place = programs.join("postgres").to_string_lossy().into_owned();
    let program = image.files.remove("/postgres").expect("the program");
    image.files.insert(place.clone(), program);
    image.entrypoint = vec![place];
    program::add(&mut image, &programs.join("pg_isready")).expect("another program");
    let version = programs.parent().expect("a version's directory");
    let number = version.file_name().expect("a version").to_string_lossy();
    let zones = format!("/usr/share/postgresql/{number}/timezonesets/Default");
    let bytes = fs::read(&zones).expect("names of time zones");
    image.files.insert(zones, File::File { mode: 0o644, bytes });
    // It does not start where that is not there.
    let libraries = version.join("lib").to_string_lossy().into_owned();
    image
        .files
        .insert(libraries, File::Directory { mode: 0o755 });
    image
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_is_woken_by_its_clients_and_has_what_they_wrote() {
    let bed = Bed::new("postgres").await;
    let postgres = Postgres::new(&bed.cluster).await;
    let echo = &postgres.echo;
    let objects = &bed.objects;
    objects
        .apply(Kind::Service, echo.name, &postgres.service())
        .await;
    objects
        .apply(echo.kind, echo.name, &postgres.workload())
        .await;
    bed.has_a_pod(echo).await;
    bed.is_led_to(echo).await;
    bed.apply_elasti(echo, &echo.elasti()).await;
    bed.is_in(echo, "serve").await;
    let address = bed.address(echo).await;
    let create = "create table visits (client int, said text)";
    postgres.says(address, create).await;

    for (sleep, by_weir) in [false, true].into_iter().enumerate() {
        if by_weir {
            bed.is_put_to_sleep(echo).await;
        } else {
            bed.put_to_zero(echo).await;
        }
        let clients = (0..CLIENTS).map(|client| {
            let word = "x".repeat(10_000);
            let insert = format!("insert into visits values ({client}, '{word}')");
            let postgres = &postgres;
            async move { postgres.says(address, &insert).await }
        });
        futures_util::future::join_all(clients).await;
        assert_eq!(bed.replicas(echo).await, 1);
        bed.is_in(echo, "serve").await;
        let sum = "select count(*), sum(length(said)) from visits";
        let visits = CLIENTS * (sleep + 1);
        let expected = format!("{visits}|{}", visits * 10_000);
        assert_eq!(postgres.says(address, sum).await, expected);
    }
    let rows = "select repeat('y', 1023) from generate_series(1, 4096)";
    assert_eq!(postgres.says(address, rows).await.len(), (4 << 20) - 1);
    bed.end().await;
}
