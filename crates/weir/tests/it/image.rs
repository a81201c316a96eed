//! `weir` as an image: with nothing else around it, as another user, and with no shell, it still runs.

use std::{fs, path::Path, process::Command};

use weir_lab::image::program;

#[test]
fn the_program_runs_on_what_its_image_holds() {
    if !fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0) {
        println!("\n*** SKIPPED: only root can change the root directory\n");
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let weir = Path::new(env!("CARGO_BIN_EXE_weir"));
    let gathered = program::gather("localhost/weir:test", weir, &[]).expect("an image");
    let packed = gathered.image.pack().expect("a tar");
    let archive = home.path().join("image.tar");
    fs::write(&archive, packed.tar).expect("written");

    let layout = home.path().join("layout");
    unpack(&archive, &layout);
    let manifest = fs::read(layout.join("manifest.json")).expect("a manifest");
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).expect("JSON");
    let layer = manifest[0]["Layers"][0].as_str().expect("a layer");
    let root = home.path().join("root");
    unpack(&layout.join(layer), &root);

    let mut chroot = Command::new("chroot");
    chroot.arg("--userspec=65532:65532").arg(&root);
    let output = chroot
        .args(["/weir", "--version"])
        .output()
        .expect("chroot");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        super::output_of(&["--version"])
    );
    let mut shell = Command::new("chroot");
    let shell = shell.arg(&root).args(["/bin/sh", "-c", "true"]).output();
    assert!(!shell.expect("chroot").status.success(), "there is a shell");
}

/// With the machine's own tar, which knows nothing of ours.
fn unpack(archive: &Path, into: &Path) {
    fs::create_dir_all(into).expect("a directory");
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(archive).arg("-C").arg(into);
    assert!(tar.status().expect("tar").success());
}
