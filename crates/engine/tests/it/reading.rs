//! Files as they come: column names, zones, gaps, exports of providers, and nonsense.

use proptest::prelude::*;
use weir_engine::simulate::Source;
use weir_engine::simulate::table::{Read, TableError, read};

fn content(text: &str) -> Result<Read, TableError> {
    read(&Source {
        name: "file".to_owned(),
        content: Some(text.to_owned()),
    })
}

#[test]
fn columns_are_guessed_and_named() {
    let electricity_maps = "Datetime (UTC),Country,Zone name,Zone id,\
        Carbon intensity gCO₂eq/kWh (direct),Carbon intensity gCO₂eq/kWh (Life cycle),Data source\n\
        2023-01-01 00:00:00,Spain,Spain,ES,80.1,120.5,x\n\
        2023-01-01 01:00:00,Spain,Spain,ES,81.0,121.5,x\n";
    let read = content(electricity_maps).expect("a trace");
    assert_eq!(read.trace.values(), [120.5, 121.5]);
    assert_eq!(read.trace.slot_seconds(), 3_600);
    assert!(read.notes[0].contains("Life cycle"), "{:?}", read.notes);
    assert!(read.notes[1].contains("UTC"), "{:?}", read.notes);

    let uk = "Datetime (UTC);Forecast Carbon Intensity (gCO2/kWh);Actual Carbon Intensity (gCO2/kWh);Index\n\
        2023-01-01T00:00Z;70;71;low\n2023-01-01T00:30Z;72;;low\n2023-01-01T01:00Z;74;75;low\n";
    let read = content(uk).expect("a trace");
    assert_eq!(read.trace.values(), [71.0, 71.0, 75.0]);
    assert!(
        read.notes.iter().any(|note| note.contains("1 of 3")),
        "{:?}",
        read.notes
    );

    let bare = "1672531200,100\n1672534800,200\n";
    assert_eq!(content(bare).expect("a trace").trace.start(), 1_672_531_200);
}

#[test]
fn json_of_providers_is_read() {
    let uk = r#"{"data":[{"from":"2023-01-01T00:00Z","to":"2023-01-01T00:30Z","intensity":{"forecast":70,"actual":71}},
        {"from":"2023-01-01T00:30Z","to":"2023-01-01T01:00Z","intensity":{"forecast":72,"actual":null}}]}"#;
    let read = content(uk).expect("a trace");
    assert_eq!(read.trace.values(), [71.0, 72.0]);
    let maps = r#"{"zone":"DE","history":[{"datetime":"2023-01-01T00:00:00.000Z","carbonIntensity":302},
        {"datetime":"2023-01-01T01:00:00.000Z","carbonIntensity":null}]}"#;
    assert_eq!(
        content(maps).expect("a trace").trace.values(),
        [302.0, 302.0]
    );
    assert!(matches!(content("{\"a\":1}"), Err(TableError::UnknownJson)));
}

#[test]
fn zones_gaps_order_and_repeats_have_an_answer() {
    let text = "time,value\n2023-03-26T03:00+02:00,3\n2023-03-26T00:00+01:00,1\n\
        2023-03-26T01:00+01:00,2\n2023-03-26T01:00+01:00,9\n2023-03-26T06:00+02:00,4\n";
    let read = content(text).expect("a trace");
    // 23:00, 00:00, 01:00, (02:00 and 03:00 are missing), 04:00 of UTC.
    assert_eq!(read.trace.values(), [1.0, 2.0, 3.0, 3.0, 3.0, 4.0]);
    for said in ["sorted", "repeat", "2 of 6"] {
        assert!(
            read.notes.iter().any(|n| n.contains(said)),
            "{said} {:?}",
            read.notes
        );
    }
    let leap = "utc,v\n2024-02-28T00:00Z,1\n2024-02-29T00:00Z,2\n2024-03-01T00:00Z,3\n";
    assert_eq!(
        content(leap).expect("a trace").trace.values(),
        [1.0, 2.0, 3.0]
    );
}

#[test]
fn rows_that_overlap_are_put_onto_slots_and_told() {
    // Half-hours, and two rows that begin within one: the one that begins with the slot counts.
    let text = "utc,gco2\n2023-01-01T00:00Z,1\n2023-01-01T00:30Z,2\n2023-01-01T00:45Z,9\n\
        2023-01-01T01:00Z,3\n2023-01-01T01:30Z,4\n2023-01-01T02:00Z,5\n";
    let read = content(text).expect("a trace");
    assert_eq!(read.trace.values(), [1.0, 2.0, 3.0, 4.0, 5.0]);
    let is_told = |note: &String| note.contains("1 rows do not begin with a slot");
    assert!(read.notes.iter().any(is_told), "{:?}", read.notes);
}

#[test]
fn local_times_without_a_zone_keep_the_first_of_the_doubled_hour() {
    let text = "time,gco2\n2023-10-29T00:00,1\n2023-10-29T01:00,2\n2023-10-29T02:00,3\n\
        2023-10-29T02:00,4\n2023-10-29T03:00,5\n";
    let read = content(text).expect("a trace");
    assert_eq!(read.trace.values(), [1.0, 2.0, 3.0, 5.0]);
    for said in ["UTC", "repeat"] {
        assert!(
            read.notes.iter().any(|n| n.contains(said)),
            "{said} {:?}",
            read.notes
        );
    }
}

#[test]
fn nonsense_is_refused_with_its_line() {
    for (text, said) in [
        ("", "no row"),
        ("utc,gco2\n", "no row"),
        ("utc,gco2\n2023-01-01T00:00Z,5\n", "only one row"),
        ("utc,gco2\n2023-01-01T00:00Z,5\nsoon,6\n", "line 3: `soon`"),
        (
            "utc,gco2\n2023-01-01T00:00Z,5\n2023-01-01T01:00Z,six\n",
            "line 3: `six`",
        ),
        ("a,b\nx,y\n", "no column holds times"),
        ("utc,name\n2023-01-01T00:00Z,x\n", "no column holds numbers"),
        (
            "utc,gco2\n2023-01-01T00:00Z,5\n2023-01-01T01:00Z,-6\n",
            "cannot be right",
        ),
        (
            "utc,gco2\n2023-01-01T00:00Z,5\n2023-01-01T01:00Z,1e9\n",
            "cannot be right",
        ),
        (
            "utc,gco2\n2023-01-01T00:00Z,\n2023-01-01T01:00Z,\n",
            "cannot be right",
        ),
        (
            "utc,gco2\n1970-01-01T00:00Z,5\n1970-01-01T00:00:01Z,5\n2023-01-01T01:00Z,6\n",
            "time column",
        ),
    ] {
        let error = content(text).expect_err(text).to_string();
        assert!(error.contains(said), "{text:?}: {error}");
    }
}

proptest! {
    // `WEIR_PARSE_CASES=100000 cargo test --release -p weir-engine reading` for the long run; `fuzz/` goes further.
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("WEIR_PARSE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(256)
    ))]

    #[test]
    fn bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = content(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn parsing_never_panics(text in "\\PC{0,200}") {
        let _ = content(&text);
    }

    #[test]
    fn parsing_what_looks_like_a_trace_never_panics(
        head in "(utc|time|from|x)[,;\t](gco2|intensity|forecast|y)",
        rows in prop::collection::vec("(2023-0[1-9]-[0-3][0-9]T[0-2][0-9]:[0-5]0Z|[0-9]{1,13}|)[,;\t](-?[0-9.e]{0,6}|NaN|inf|\"1\")", 0..12),
    ) {
        let _ = content(&format!("{head}\n{}", rows.join("\n")));
    }
}
