//! Any text as a trace, as demand and as vintages: an answer or a refusal, never a panic; and a trace that is taken is sane.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_carbon::unit::MOST_INTENSE;
use weir_engine::simulate::Source;
use weir_engine::simulate::demand::Demand;
use weir_engine::simulate::table::{read, read_vintages};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let source = Source {
        name: "file".to_owned(),
        content: Some(text.clone()),
    };
    if let Ok(read) = read(&source) {
        let values = read.trace.values();
        assert!(!values.is_empty() && read.trace.slot_seconds() > 0);
        assert!(values.iter().all(|v| (0.0..=MOST_INTENSE).contains(v)));
        let _ = Demand::File("file".to_owned(), text).of(&read.trace);
    }
    let _ = read_vintages(&source, 1_800);
});
