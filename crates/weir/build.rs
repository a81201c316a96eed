//! Puts the commit into `weir --version`. Without git, or outside a clone, there is none.

use std::path::Path;
use std::process::Command;

fn main() {
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).map(|commit| {
        let changed = git(&["status", "--porcelain", "--untracked-files=no"])
            .is_some_and(|changes| !changes.is_empty());
        format!("{commit}{}", if changed { "-dirty" } else { "" })
    });
    println!(
        "cargo::rustc-env=WEIR_COMMIT={}",
        commit.as_deref().unwrap_or("unknown commit")
    );

    // HEAD changes with a checkout, logs/HEAD with a commit; naming a path that is not there would
    // make cargo run this at every build.
    println!("cargo::rerun-if-changed=build.rs");
    let git_dir = git(&["rev-parse", "--absolute-git-dir"]);
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git_dir.as_ref().map(|dir| Path::new(dir).join(name))
            && path.exists()
        {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
