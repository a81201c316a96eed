//! What exporters say, what else may answer, and any bytes at all.

use std::fmt::Write;

use proptest::prelude::*;

use super::*;

fn transmit(body: &str, device: &str) -> Option<u64> {
    read(body.as_bytes()).ok()?.interfaces.get(device)?.transmit
}

#[test]
fn an_answer_of_node_exporter() {
    let body = "\
# HELP node_network_receive_bytes_total Network device statistic receive_bytes.
# TYPE node_network_receive_bytes_total counter
node_network_receive_bytes_total{device=\"eth0\"} 1.83993e+05
node_network_receive_bytes_total{device=\"lo\"} 516
# TYPE node_network_transmit_bytes_total counter
node_network_transmit_bytes_total{device=\"eth0\"} 9.12345678901e+11
node_network_transmit_bytes_total{device=\"lo\"} 516
node_network_transmit_packets_total{device=\"eth0\"} 77
# TYPE node_network_speed_bytes gauge
node_network_speed_bytes{device=\"eth0\"} 1.25e+09
node_network_speed_bytes{device=\"virtual0\"} -125000
";
    let scrape = read(body.as_bytes()).unwrap();
    assert_eq!(scrape.interfaces.len(), 3);
    assert_eq!((scrape.bad_lines, scrape.left_out), (0, 0));
    let eth0 = Counters {
        transmit: Some(912_345_678_901),
        receive: Some(183_993),
        speed: Some(1.25e9),
    };
    assert_eq!(scrape.interfaces["eth0"], eth0);
    assert_eq!(scrape.interfaces["virtual0"].speed, Some(-125_000.0));
}

#[test]
fn label_values_may_hold_commas_braces_hashes_and_escapes() {
    for (written, device) in [
        ("a,b", "a,b"),
        ("a}b{", "a}b{"),
        ("a#b # c", "a#b # c"),
        (r#"a\"b"#, "a\"b"),
        (r"a\\", "a\\"),
        (r"a\nb", "a\nb"),
        (r"a\tb", r"a\tb"),
        ("eth0} 5", "eth0} 5"),
        ("größe", "größe"),
    ] {
        let body = format!("{TRANSMIT_BYTES}{{x=\"{written}\",device=\"{written}\"}} 7\n");
        assert_eq!(transmit(&body, device), Some(7), "{written}");
    }
}

#[test]
fn timestamps_exemplars_and_odd_spaces_do_not_matter() {
    for rest in [
        "{device=\"eth0\"} 7",
        "{device=\"eth0\"} 7 1700000000000",
        "{device=\"eth0\"} 7 1700000000.5 # {trace_id=\"a b\"} 3 1700000000",
        "{device=\"eth0\"} 7 # {trace_id=\"x\"} 3",
        " { device = \"eth0\" , job=\"a\" , } 7.0 ",
        "{job=\"a\",device=\"eth0\",}\t7",
        "{device=\"eth0\"} 7\r",
    ] {
        let body = format!("{TRANSMIT_BYTES}{rest}\n");
        assert_eq!(transmit(&body, "eth0"), Some(7), "{rest}");
    }
}

#[test]
fn a_bad_line_is_counted_and_loses_nothing_else() {
    for bad in [
        "{device=\"eth1\"}",
        "{device=\"eth1\"} seven",
        "{device=\"eth1\"} 7 then",
        "{device=\"eth1\"} 7 8 9",
        "{device=\"eth1\" 7",
        "{device=\"eth1} 7",
        "{device=eth1} 7",
        "{device=\"eth1\" job=\"a\"} 7",
        "{device=\"eth1\",device=\"eth2\"} 7",
        "{job=\"a\"} 7",
        "{} 7",
        " 7",
        "{device=\"\"} 7",
        "{device=\"eth1\"} NaN",
        "{device=\"eth1\"} +Inf",
        "{device=\"eth1\"} -1",
        "{device=\"eth1\"} 1e19",
    ] {
        let body = format!("{TRANSMIT_BYTES}{bad}\n{TRANSMIT_BYTES}{{device=\"eth0\"}} 7\n");
        let scrape = read(body.as_bytes()).unwrap();
        assert_eq!(scrape.interfaces.len(), 1, "{bad}");
        assert_eq!(scrape.bad_lines, 1, "{bad}");
        assert_eq!(scrape.interfaces["eth0"].transmit, Some(7), "{bad}");
    }
}

#[test]
fn bytes_that_are_no_text_spoil_their_line_alone() {
    let mut body = format!("{TRANSMIT_BYTES}{{device=\"").into_bytes();
    body.extend([0xff, 0xfe]);
    body.extend(format!("\"}} 7\n{TRANSMIT_BYTES}{{device=\"eth0\"}} 7\n").bytes());
    let scrape = read(&body).unwrap();
    assert_eq!((scrape.interfaces.len(), scrape.bad_lines), (1, 1));
}

#[test]
fn lines_that_contradict_each_other_say_nothing_and_equal_ones_do() {
    let line = |device, value| format!("{TRANSMIT_BYTES}{{device=\"{device}\"}} {value}\n");
    let body = [
        line("eth0", 7),
        line("eth1", 1),
        line("eth0", 7),
        line("eth1", 2),
        line("eth1", 1),
    ]
    .concat();
    assert_eq!(transmit(&body, "eth0"), Some(7));
    assert_eq!(transmit(&body, "eth1"), None);
}

#[test]
fn a_last_line_that_was_cut_off_is_left_out() {
    let body =
        format!("{TRANSMIT_BYTES}{{device=\"eth0\"}} 7\n{TRANSMIT_BYTES}{{device=\"eth1\"}} 1839");
    assert_eq!(transmit(&body, "eth0"), Some(7));
    assert_eq!(transmit(&body, "eth1"), None);
}

#[test]
fn what_is_no_answer_says_what_to_do() {
    let read = |body: &str| read(body.as_bytes());
    let page = "\n <!DOCTYPE html><html><body>node_network_transmit_bytes_total</body></html>\n";
    assert_eq!(read(page), Err(ExpositionError::WebPage));
    assert_eq!(read(""), Err(ExpositionError::NoCounters));
    let other = "go_goroutines 7\nnode_network_transmit_bytes_total_more{device=\"eth0\"} 7\n";
    assert_eq!(read(other), Err(ExpositionError::NoCounters));
    let speed_only = format!("{SPEED_BYTES}{{device=\"eth0\"}} 7\n");
    assert_eq!(read(&speed_only), Err(ExpositionError::NoCounters));
    let long = " ".repeat(BODY_LIMIT + 1);
    assert_eq!(read(&long), Err(ExpositionError::TooLong));
}

#[test]
fn interfaces_are_limited_in_number_and_length() {
    let name = "e".repeat(NAME_LIMIT + 1);
    let mut body = format!("{TRANSMIT_BYTES}{{device=\"{name}\"}} 7\n");
    for number in 0..=INTERFACES_LIMIT {
        writeln!(body, "{TRANSMIT_BYTES}{{device=\"e{number}\"}} 7").unwrap();
    }
    let scrape = read(body.as_bytes()).unwrap();
    assert_eq!(scrape.interfaces.len(), INTERFACES_LIMIT);
    assert_eq!((scrape.bad_lines, scrape.left_out), (1, 1));
}

fn escaped(text: &str) -> String {
    let text = text.replace('\\', r"\\").replace('"', "\\\"");
    text.replace('\n', r"\n")
}

proptest! {
    #[test]
    fn any_bytes_give_an_answer_within_the_bounds(body in proptest::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(scrape) = read(&body) {
            prop_assert!(!scrape.interfaces.is_empty());
        }
    }

    #[test]
    fn any_mutilated_answer_gives_an_answer(
        tail in "[{}\",=#\\\\ a-z0-9.eE+-]{0,60}", cut in 0_usize..40,
    ) {
        let line = format!("{TRANSMIT_BYTES}{{device=\"eth0\"}} 7");
        let kept = line.get(..line.len() - cut).unwrap_or_default();
        let body = format!("{kept}{tail}\n{TRANSMIT_BYTES}{{device=\"eth1\"}} 7\n");
        prop_assert!(read(body.as_bytes()).is_ok());
    }

    #[test]
    fn the_pieces_in_which_an_answer_comes_do_not_matter(
        lines in proptest::collection::vec(
            "(node_network_(transmit|receive|speed)_bytes(_total)?(\\{device=\"eth[01]\"\\} [0-9.-]{1,4})?|[<# a-z]{0,4})[ \n]?", 0..12),
        long in prop_oneof![Just(0_usize), LINE_LIMIT - 40..LINE_LIMIT + 40],
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let device = "x".repeat(long);
        let body = format!("{}\n{TRANSMIT_BYTES}{{a=\"{device}\",device=\"eth9\"}} 7\n", lines.concat());
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len())).collect();
        cuts.sort_unstable();
        let mut reader = Reader::default();
        let mut begin = 0;
        let mut outcome = Ok(());
        for end in cuts.into_iter().chain([body.len()]) {
            outcome = outcome.and_then(|()| reader.feed(&body.as_bytes()[begin..end]));
            begin = end;
        }
        prop_assert_eq!(outcome.and_then(|()| reader.finish()), read(body.as_bytes()));
    }

    #[test]
    fn what_is_written_is_read(
        interfaces in proptest::collection::btree_map(
            "\\PC{1,16}|[,{}#\"\\\\\n ]{1,8}", (0_u64..1 << 53, 0_u64..1 << 53, -2e9..2e9_f64), 1..8),
    ) {
        let mut body = String::new();
        for (name, (transmit, receive, speed)) in &interfaces {
            let device = escaped(name);
            writeln!(body, "{TRANSMIT_BYTES}{{device=\"{device}\"}} {transmit:e}").unwrap();
            writeln!(body, "{RECEIVE_BYTES}{{a=\"{device}\",device=\"{device}\"}} {receive}").unwrap();
            writeln!(body, "{SPEED_BYTES}{{device=\"{device}\"}} {speed} 1700000000000").unwrap();
        }
        let scrape = read(body.as_bytes()).unwrap();
        prop_assert_eq!((scrape.bad_lines, scrape.left_out), (0, 0));
        prop_assert_eq!(scrape.interfaces.len(), interfaces.len());
        for (name, (transmit, receive, speed)) in interfaces {
            let counters = Counters { transmit: Some(transmit), receive: Some(receive), speed: Some(speed) };
            prop_assert_eq!(scrape.interfaces[&name], counters);
        }
    }
}
