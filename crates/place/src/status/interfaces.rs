//! A node's interfaces in words, for people: which count and what they can carry, and which do not and why. Short whatever
//! a node has, since it stands in a status that is written again and again: pods' interfaces are counted, not named.

use std::{collections::BTreeMap, fmt::Write};

use crate::{
    capacity::{Capacity, Source},
    interfaces::Counted,
    measure::Interface,
};

/// The most interfaces of a kind that are named.
const NAMED: usize = 3;
/// The most patterns that are named.
const PATTERNS: usize = 4;

/// Those that count, and those that do not.
pub(super) fn words(counted: &[Interface], others: &[(String, Counted)]) -> String {
    let mut text = String::new();
    let mut add = |part: &str| {
        if !text.is_empty() {
            text.push_str("; ");
        }
        text.push_str(part);
    };
    for interface in counted.iter().take(NAMED) {
        add(&format!(
            "{} {}",
            interface.name,
            capacity(interface.capacity)
        ));
    }
    let more = counted.len().saturating_sub(NAMED);
    if more > 0 {
        add(&format!("{more} more count"));
    }
    if counted.is_empty() {
        add("none counts");
    }
    let mut by_pattern: BTreeMap<&str, usize> = BTreeMap::new();
    let mut left_out = 0;
    for (_, why) in others {
        match why {
            Counted::Excluded(pattern) => *by_pattern.entry(pattern).or_default() += 1,
            Counted::NotIncluded => left_out += 1,
            // Beyond the number that gets a history.
            Counted::Yes => {}
        }
    }
    if !by_pattern.is_empty() {
        let named = by_pattern.iter().take(PATTERNS);
        let mut part = "excluded:".to_owned();
        for (number, (pattern, count)) in named.enumerate() {
            let comma = if number == 0 { "" } else { "," };
            // Writing to a String does not fail.
            let _ = match count {
                1 => write!(part, "{comma} {pattern}"),
                _ => write!(part, "{comma} {pattern} ({count})"),
            };
        }
        if by_pattern.len() > PATTERNS {
            part.push_str(", …");
        }
        add(&part);
    }
    if left_out > 0 {
        add(&format!("{left_out} not in include"));
    }
    text
}

fn capacity(capacity: Option<Capacity>) -> String {
    let Some(Capacity {
        bits_per_second,
        source,
    }) = capacity
    else {
        return "without a known capacity".to_owned();
    };
    let says = match source {
        Source::Spec => "spec.capacities",
        Source::Annotation => "the node's annotation",
        Source::Speed => "itself",
    };
    format!("of {}, by {says}", bits(bits_per_second))
}

/// In the largest unit that leaves a whole number, in the form of the annotation.
fn bits(bits: u64) -> String {
    for (unit, name) in [
        (1_000_000_000_000, "Tbit"),
        (1_000_000_000, "Gbit"),
        (1_000_000, "Mbit"),
        (1000, "kbit"),
    ] {
        if bits >= unit && bits.is_multiple_of(unit) {
            return format!("{}{name}", bits / unit);
        }
    }
    format!("{bits}bit")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, bits: Option<u64>) -> Interface {
        Interface {
            name: name.to_owned(),
            capacity: bits.map(|bits_per_second| Capacity {
                bits_per_second,
                source: Source::Speed,
            }),
            percent: None,
        }
    }

    fn excluded(name: &str, pattern: &str) -> (String, Counted) {
        (name.to_owned(), Counted::Excluded(pattern.to_owned()))
    }

    #[test]
    fn what_counts_comes_first_then_what_does_not_and_why() {
        let counted = [
            interface("eth0", Some(10_000_000_000)),
            interface("eth1", None),
        ];
        let others = [
            excluded("cali1", "cali*"),
            excluded("cali2", "cali*"),
            excluded("lo", "lo"),
            ("eth9".to_owned(), Counted::NotIncluded),
        ];
        assert_eq!(
            words(&counted, &others),
            "eth0 of 10Gbit, by itself; eth1 without a known capacity; excluded: cali* (2), lo; 1 not in include"
        );
        assert_eq!(
            words(&[], &[excluded("lo", "lo")]),
            "none counts; excluded: lo"
        );
    }

    #[test]
    fn it_stays_short_whatever_a_node_has() {
        let name = |number| format!("e{number:063}");
        let counted: Vec<Interface> = (0..128)
            .map(|it| interface(&name(it), Some(u64::MAX)))
            .collect();
        let others: Vec<_> = (0..64).map(|it| excluded("x", &name(it))).collect();
        let length = words(&counted, &others).len();
        assert!(length < 700, "{length}");
    }

    #[test]
    fn bits_have_the_form_of_the_annotation() {
        for (number, text) in [
            (1_000_000_000, "1Gbit"),
            (2_500_000_000, "2500Mbit"),
            (7, "7bit"),
        ] {
            assert_eq!(bits(number), text);
        }
    }
}
