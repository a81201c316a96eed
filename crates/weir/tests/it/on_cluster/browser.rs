//! The simulator's report in a real browser, which `cargo xtask test --cluster` installs first. There is no way out to the
//! network, so that a page which asks for anything shows it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::output_of;

/// Looks at a page; what the browser printed, and what it logged.
fn browse(page: &Path, arguments: &[&str]) -> (Vec<u8>, String) {
    let profile = tempfile::tempdir().expect("a directory");
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
        ])
        .args(["--disable-dev-shm-usage", "--enable-logging=stderr"])
        .args(["--window-size=1000,2600", "--hide-scrollbars"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(arguments)
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("chromium runs; `apt-get install chromium` installs it");
    let log = String::from_utf8_lossy(&stderr).into_owned();
    assert!(status.success(), "{log}");
    (stdout, log)
}

fn report(directory: &Path) -> std::path::PathBuf {
    let page = directory.join("report.html");
    let file = page.to_str().expect("text");
    output_of(&["simulate", "--trace", "gb-week", "--report", file]);
    page
}

#[test]
fn the_report_shows_in_a_browser_and_asks_for_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let page = report(directory.path());
    let net_log = directory.path().join("net.json");
    let log_to = format!("--log-net-log={}", net_log.display());
    let (document, log) = browse(&page, &["--dump-dom", &log_to]);
    let document = String::from_utf8(document).expect("text");
    assert!(!log.contains("CONSOLE"), "the page complains: {log}");
    // What the browser made of it, not what was written: figures with a title each, and a name at each line.
    assert_eq!(document.matches("<figure>").count(), 5, "{document}");
    assert_eq!(document.matches("</svg>").count(), 5);
    for part in [
        "What steering would have saved",
        "gb-week",
        ">optimal</text>",
        ">target</text>",
        "but the budget is broken",
    ] {
        assert!(document.contains(part), "{part} is missing in {document}");
    }
    let asked = fs::read_to_string(net_log).expect("the log of the network");
    assert!(asked.contains("\"constants\""), "no log was written");
    // The browser asks for things of its own; what a page asks for names it as the initiator.
    let page_asks = |line: &&str| {
        line.contains("\"initiator\":\"file") || line.contains("\"initiator\":\"null\"")
    };
    let asked: Vec<&str> = asked
        .lines()
        .filter(|line| line.contains("\"url\":\"http"))
        .filter(page_asks)
        .collect();
    assert!(asked.is_empty(), "the page asks for {asked:?}");
}

#[test]
fn the_report_is_drawn_light_and_dark() {
    let directory = tempfile::tempdir().expect("a directory");
    let page = report(directory.path());
    let mut pictures = Vec::new();
    for (name, arguments) in [
        ("light", vec![]),
        (
            "dark",
            vec![
                "--force-dark-mode",
                "--blink-settings=preferredColorScheme=0",
            ],
        ),
    ] {
        let picture = directory.path().join(format!("{name}.png"));
        let to = format!("--screenshot={}", picture.display());
        browse(&page, &[&arguments[..], &[&to]].concat());
        let picture = fs::read(picture).expect("a picture");
        assert!(
            picture.starts_with(b"\x89PNG") && picture.len() > 20_000,
            "{name}: {}",
            picture.len()
        );
        pictures.push(picture);
    }
    assert_ne!(pictures[0], pictures[1], "dark looks like light");
}
