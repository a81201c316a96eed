//! `cargo xtask image`: a program as an OCI image, without Docker. The work is done by [`weir_lab::image`].

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use weir_lab::image::program::{self, Gathered};

use crate::{
    cli::ImageOf,
    program::{LAB_APP, Program, WEIR},
    repository,
};

/// What the image of the product may have at most.
const GOAL_MIB: f64 = 25.0;

struct Plan {
    program: Program,
    arguments: &'static [&'static str],
    tag: &'static str,
    output: &'static str,
}

fn plan(of: ImageOf) -> Plan {
    match of {
        ImageOf::Weir => Plan {
            program: WEIR,
            arguments: &[],
            tag: "localhost/weir:dev",
            output: "target/weir-image.tar",
        },
        ImageOf::App => Plan {
            program: LAB_APP,
            arguments: &[],
            tag: "localhost/lab-app:dev",
            output: "target/lab-app-image.tar",
        },
        // A pod's sandbox is run without arguments, so they are in the image.
        ImageOf::Pause => Plan {
            program: LAB_APP,
            arguments: &["pause"],
            tag: "localhost/pause:dev",
            output: "target/pause-image.tar",
        },
    }
}

pub(crate) fn run(
    of: ImageOf,
    tag: Option<String>,
    output: Option<PathBuf>,
    program: Option<PathBuf>,
) -> Result<ExitCode> {
    let plan = plan(of);
    let tag = tag.unwrap_or_else(|| plan.tag.to_owned());
    let output = output.unwrap_or_else(|| repository::root().join(plan.output));

    let is_ours = program.is_none();
    let program = match program {
        Some(given) => given,
        None => plan.program.build()?,
    };
    let Gathered { image, notes } = program::gather(&tag, &program, plan.arguments)?;
    for note in notes {
        println!("*** NOTE: {note}");
    }
    let packed = image.pack()?;
    if let Some(directory) = output.parent() {
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
    }
    fs::write(&output, &packed.tar)
        .with_context(|| format!("cannot write {}", output.display()))?;

    #[allow(clippy::cast_precision_loss, reason = "for people to read")]
    let size = packed.tar.len() as f64 / f64::from(1 << 20);
    println!("{tag}  {}", output.display());
    println!("  digest {}", packed.digest);
    println!("  size   {size:.1} MiB, not compressed (the goal is below {GOAL_MIB} MiB)");
    println!("  files  {}", image.files.len());
    for path in image.files.keys() {
        println!("         {path}");
    }
    println!("Import it with `ctr --namespace k8s.io images import` or `docker load --input`.");
    if of == ImageOf::Weir && is_ours && size >= GOAL_MIB {
        println!("*** It is larger than the goal.");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
