//! Where a scenario happens: a cluster of its own, our images on each of its nodes, and what `weir manifests` prints installed
//! in it. Each scenario says which cluster and which part of Weir.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use weir_lab::{
    cache::Cache,
    cluster::{Cluster, Options},
    image::program,
};

use crate::{
    kube,
    program::{LAB_APP, Program, WEIR},
};

/// The product.
const WEIR_IMAGE: &str = "localhost/weir:dev";
/// Servers, clients, and who sends for its own sake.
pub(crate) const APP_IMAGE: &str = "localhost/lab-app:dev";
/// Where Weir is installed.
pub(crate) const NAMESPACE: &str = "weir";
const PATIENCE: Duration = Duration::from_mins(3);

/// The cluster, with our images in it.
pub(crate) struct Site {
    pub(crate) cluster: Cluster,
    /// The lab's server and load generator, as a program of this machine.
    pub(crate) lab_app: PathBuf,
    weir: PathBuf,
    cache: Cache,
    name: String,
    was_up: bool,
}

impl Site {
    /// Builds the programs, takes the cluster or starts it, and brings the images onto it.
    pub(crate) fn take(options: &Options, is_dev: bool) -> Result<Self> {
        let build = |program: Program| {
            if is_dev {
                program.build_for_tests()
            } else {
                program.build()
            }
        };
        let (weir, lab_app) = (build(WEIR)?, build(LAB_APP)?);
        let cache = Cache::of_environment()?;
        let was_up = Cluster::open(&cache, &options.name)?.is_some();
        let cluster = crate::cluster::take(&cache, options)?;
        let site = Self {
            cluster,
            lab_app,
            weir,
            cache,
            name: options.name.clone(),
            was_up,
        };
        site.load(WEIR_IMAGE, &site.weir)?;
        site.load(APP_IMAGE, &site.lab_app)?;
        Ok(site)
    }

    /// Brings a program onto each node, as an image of this name.
    pub(crate) fn load(&self, tag: &str, program: &Path) -> Result<()> {
        println!("  loading {tag} …");
        let gathered = program::gather(tag, program, &[])?;
        let file = tempfile(tag);
        fs::write(&file, gathered.image.pack()?.tar)
            .with_context(|| format!("cannot write {}", file.display()))?;
        let loaded = self.cluster.load(&file);
        // It is of no use any more, whatever came of it.
        let _ = fs::remove_file(&file);
        Ok(loaded?)
    }

    /// What `weir manifests` prints for this part of Weir.
    pub(crate) fn printed(&self, part: &str, arguments: &[&str]) -> Result<Value> {
        println!("  installing what `weir manifests --only {part}` prints …");
        let mut command = Command::new(&self.weir);
        command.args(["manifests", "--only", part, "--format", "json"]);
        command.args(["--image", WEIR_IMAGE]).args(arguments);
        let output = command.output();
        let output = output.with_context(|| format!("cannot run {}", self.weir.display()))?;
        if !output.status.success() {
            bail!(
                "weir manifests: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        serde_json::from_slice(&output.stdout).context("weir manifests wrote no JSON")
    }

    /// Applies it, and has what ran before run anew: a tag that stays the same does not.
    pub(crate) fn install(&self, objects: &Value) -> Result<()> {
        self.cluster.apply(&objects.to_string())?;
        if self.was_up {
            kube::run(
                &self.cluster,
                &["-n", NAMESPACE, "rollout", "restart", "deployment"],
            )?;
        }
        Ok(())
    }

    /// Waits until all pods of one of Weir's Deployments are ready.
    pub(crate) fn rolled_out(&self, deployment: &str) -> Result<()> {
        kube::rolled_out(&self.cluster, NAMESPACE, deployment, PATIENCE)
    }

    /// Where its programs and images are kept.
    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Takes the cluster down, unless it was there before.
    pub(crate) fn leave(&self) -> Result<()> {
        if !self.was_up {
            Cluster::down(&self.cache, &self.name)?;
        }
        Ok(())
    }

    pub(crate) fn say_how_to_look(&self) {
        let name = &self.name;
        println!("\nThe cluster is left as it is for you to look at:");
        println!("  cargo xtask cluster --name {name} kubectl get pods -A");
        println!("  cargo xtask cluster --name {name} down");
    }
}

fn tempfile(tag: &str) -> PathBuf {
    let name = tag.replace(['/', ':'], "-");
    std::env::temp_dir().join(format!("weir-e2e-{}-{name}.tar", std::process::id()))
}
