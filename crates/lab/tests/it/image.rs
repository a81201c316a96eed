//! Images of real programs: the same input gives the same image, and what is in it runs, alone.

use std::{fs, path::Path, process::Command};

use serde_json::Value;
use weir_lab::image::{self, program};

/// A program that is surely there: this crate's own.
const PROGRAM: &str = env!("CARGO_BIN_EXE_lab-hold");

fn packed() -> image::Packed {
    let gathered = program::gather("localhost/lab:test", Path::new(PROGRAM), &["x"]).unwrap();
    gathered.image.pack().unwrap()
}

/// Unpacks an archive with the machine's own tar, which knows nothing of ours.
fn untar(archive: &Path, into: &Path) {
    fs::create_dir_all(into).unwrap();
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(archive).arg("-C").arg(into);
    assert!(tar.status().unwrap().success());
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The file of a digest in an image layout; it must be what the digest says.
fn blob(layout: &Path, descriptor: &Value) -> std::path::PathBuf {
    let digest = descriptor["digest"].as_str().unwrap();
    let path = layout.join("blobs").join(digest.replace(':', "/"));
    let bytes = fs::read(&path).unwrap();
    assert_eq!(image::digest(&bytes), digest);
    assert_eq!(descriptor["size"], bytes.len());
    path
}

#[test]
fn a_second_program_comes_with_what_it_needs_and_the_first_does_not() {
    let gathered = program::gather("localhost/lab:test", Path::new(PROGRAM), &[]).unwrap();
    let mut image = gathered.image;
    let before = image.files.clone();
    let shell = fs::canonicalize("/bin/sh").unwrap();
    program::add(&mut image, &shell).unwrap();
    let inside = format!("/{}", shell.file_name().unwrap().to_str().unwrap());
    assert!(!before.contains_key(&inside) && image.files.contains_key(&inside));
    assert!(before.iter().all(|(path, node)| image.files[path] == *node));
    let missing = program::add(&mut image, Path::new("/none/there")).unwrap_err();
    assert_eq!(missing.to_string(), "cannot read /none/there");
}

#[test]
fn two_images_of_the_same_program_are_the_same() {
    assert_eq!(packed(), packed());
}

#[test]
fn the_layout_is_what_the_standard_asks_for() {
    let home = tempfile::tempdir().unwrap();
    let packed = packed();
    fs::write(home.path().join("image.tar"), &packed.tar).unwrap();
    let layout = home.path().join("layout");
    untar(&home.path().join("image.tar"), &layout);

    assert_eq!(
        json(&layout.join("oci-layout"))["imageLayoutVersion"],
        "1.0.0"
    );
    let index = json(&layout.join("index.json"));
    let described = &index["manifests"][0];
    assert_eq!(described["digest"], packed.digest);
    let name = &described["annotations"]["io.containerd.image.name"];
    assert_eq!(name, "localhost/lab:test");
    let manifest = json(&blob(&layout, described));
    let config = json(&blob(&layout, &manifest["config"]));
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Entrypoint"][0], "/lab-hold");
    let layer = fs::read(blob(&layout, &manifest["layers"][0])).unwrap();
    assert_eq!(config["rootfs"]["diff_ids"][0], image::digest(&layer));

    let for_docker = &json(&layout.join("manifest.json"))[0];
    assert_eq!(for_docker["RepoTags"][0], "localhost/lab:test");
    for path in [&for_docker["Config"], &for_docker["Layers"][0]] {
        assert!(layout.join(path.as_str().unwrap()).is_file());
    }
}

#[test]
fn what_is_in_the_image_runs_without_anything_else() {
    if !rustix::process::geteuid().is_root() {
        println!("\n*** SKIPPED: only root can change the root directory\n");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("image.tar"), packed().tar).unwrap();
    let layout = home.path().join("layout");
    untar(&home.path().join("image.tar"), &layout);
    let manifest = json(&blob(
        &layout,
        &json(&layout.join("index.json"))["manifests"][0],
    ));
    let root = home.path().join("root");
    untar(&blob(&layout, &manifest["layers"][0]), &root);
    assert!(!root.join("bin").exists(), "there is a shell in it");

    // As the user of the image, who must be able to read and run it all.
    let mut chroot = Command::new("chroot");
    let output = chroot
        .arg("--userspec=65532:65532")
        .arg(&root)
        .arg("/lab-hold")
        .output();
    let output = output.unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("usage: lab-hold"), "{output:?}");
}
