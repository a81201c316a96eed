//! What the fuzzer begins with is read as it should be, so that the seeds stay good ones.

use std::{fs, path::Path};

use weir_place::exposition::{ExpositionError, Scrape, read};

fn seed(name: &str) -> Result<Scrape, ExpositionError> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/exposition");
    let body = fs::read(directory.join(name)).expect("a seed");
    read(&body)
}

fn names(scrape: &Scrape) -> Vec<&str> {
    scrape.interfaces.keys().map(String::as_str).collect()
}

#[test]
fn every_seed_is_read_as_it_should_be() {
    let scrape = seed("node_exporter.prom").expect("an answer");
    assert_eq!(names(&scrape), ["eth0", "lo", "veth1a2b"]);
    let scrape = seed("odd_labels.prom").expect("an answer");
    assert_eq!(
        names(&scrape),
        ["größe", "spaces", "we\"ird\\, {name} # \n"]
    );
    assert_eq!(scrape.interfaces["spaces"].transmit, Some(750));
    let scrape = seed("open_metrics.prom").expect("an answer");
    assert_eq!(scrape.interfaces["eth0"].receive, Some(8));
    let scrape = seed("bad_values.prom").expect("an answer");
    assert_eq!(names(&scrape), ["eth4", "eth5"]);
    assert_eq!(scrape.interfaces["eth5"].transmit, None, "contradicted");
    assert_eq!(scrape.bad_lines, 8);
    let scrape = seed("cut_off.prom").expect("an answer");
    assert_eq!(names(&scrape), ["eth0"]);
    assert_eq!(seed("page.html"), Err(ExpositionError::WebPage));
}
