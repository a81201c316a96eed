//! Any bytes as an exporter's answer: an answer or a refusal, never a panic; and what is taken is sane, bounded, and read
//! the same when written again, and in pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_place::exposition::{INTERFACES_LIMIT, NAME_LIMIT, Reader, read};

fuzz_target!(|bytes: &[u8]| {
    let whole = read(bytes);
    // Pieces of a length that the bytes themselves choose.
    let length = bytes.first().map_or(1, |byte| usize::from(*byte) + 1);
    let mut reader = Reader::default();
    let fed = bytes.chunks(length).try_for_each(|piece| reader.feed(piece));
    assert_eq!(fed.and_then(|()| reader.finish()), whole);
    let Ok(scrape) = whole else { return };
    assert!(!scrape.interfaces.is_empty() && scrape.interfaces.len() <= INTERFACES_LIMIT);
    let mut body = String::new();
    for (name, counters) in &scrape.interfaces {
        assert!(!name.is_empty() && name.len() <= NAME_LIMIT);
        assert!(counters.speed.is_none_or(f64::is_finite));
        let name = name
            .replace('\\', r"\\")
            .replace('"', "\\\"")
            .replace('\n', r"\n");
        let mut line = |series: &str, value: Option<String>| {
            if let Some(value) = value {
                body.push_str(&format!("{series}{{device=\"{name}\"}} {value}\n"));
            }
        };
        // As floats, which is how exporters write them: above 2^53 not every whole number is one.
        let float = |value: u64| format!("{:?}", value as f64);
        line(
            "node_network_transmit_bytes_total",
            counters.transmit.map(float),
        );
        line(
            "node_network_receive_bytes_total",
            counters.receive.map(float),
        );
        line(
            "node_network_speed_bytes",
            counters.speed.map(|speed| format!("{speed:?}")),
        );
    }
    let again = read(body.as_bytes()).expect("what was taken is taken again");
    assert_eq!((again.bad_lines, again.left_out), (0, 0));
    for (name, counters) in &again.interfaces {
        assert_eq!(scrape.interfaces.get(name), Some(counters));
    }
});
