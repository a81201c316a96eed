//! What an interface can carry: what the user says in `capacities[]`, else the node's annotation, else the speed that the
//! interface reports, else unknown. Never guessed: virtual interfaces report −1 or −125000, and those are no speeds.

use std::collections::BTreeMap;

use weir_api::{
    form::{
        bandwidth::{BandwidthError, BitsPerSecond},
        glob::Glob,
    },
    place::{self, names::BANDWIDTH_ANNOTATION},
};

use crate::{node::has_labels, settings::SettingsError};

/// What the user says of capacities; the first that matches counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capacities(Vec<Row>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    node_selector: BTreeMap<String, String>,
    interface: Option<Glob>,
    bits_per_second: u64,
}

/// A capacity, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Above zero.
    pub bits_per_second: u64,
    /// Who says so.
    pub source: Source,
}

/// Who says what an interface can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// `capacities[]` of the watch.
    Spec,
    /// The node's annotation.
    Annotation,
    /// The interface itself.
    Speed,
}

/// What a node says of its interfaces by its annotation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Annotation {
    /// Nothing.
    #[default]
    Absent,
    /// This much, each of them.
    Bandwidth(BitsPerSecond),
    /// Something that is no bandwidth. It counts as absent, and somebody should be told.
    Bad(BandwidthError),
}

impl Capacities {
    /// As the spec has them. One that is not above zero, which the schema refuses, says nothing.
    pub fn of(spec: &[place::Capacity]) -> Result<Self, SettingsError> {
        let mut rows = Vec::new();
        for row in spec {
            let bits_per_second = u64::try_from(row.bits_per_second).unwrap_or_default();
            if bits_per_second == 0 {
                continue;
            }
            let interface = row.interface.as_deref().map(Glob::parse).transpose();
            rows.push(Row {
                node_selector: row.node_selector.clone(),
                interface: interface.map_err(|source| SettingsError::Glob {
                    field: "capacities[].interface",
                    source,
                })?,
                bits_per_second,
            });
        }
        Ok(Self(rows))
    }

    /// What this interface can carry. `speed` is in bytes per second, as the exporter has it.
    pub fn find(
        &self,
        labels: &BTreeMap<String, String>,
        annotation: &Annotation,
        interface: &str,
        speed: Option<f64>,
    ) -> Option<Capacity> {
        let row = self.0.iter().find(|row| {
            has_labels(labels, &row.node_selector)
                && (row.interface.as_ref()).is_none_or(|glob| glob.matches(interface))
        });
        if let Some(row) = row {
            return Some(Capacity {
                bits_per_second: row.bits_per_second,
                source: Source::Spec,
            });
        }
        if let Annotation::Bandwidth(bits) = annotation {
            return Some(Capacity {
                bits_per_second: bits.get(),
                source: Source::Annotation,
            });
        }
        speed.and_then(bits_of_speed).map(|bits| Capacity {
            bits_per_second: bits,
            source: Source::Speed,
        })
    }
}

impl Annotation {
    /// What these annotations say.
    pub fn of(annotations: &BTreeMap<String, String>) -> Self {
        match annotations.get(BANDWIDTH_ANNOTATION) {
            None => Self::Absent,
            Some(text) => BitsPerSecond::parse(text).map_or_else(Self::Bad, Self::Bandwidth),
        }
    }
}

/// Bytes per second as bits, if it is a speed at all.
fn bits_of_speed(bytes: f64) -> Option<u64> {
    /// No interface carries an exabyte a second; what says so is broken.
    const MOST: f64 = 1e18;
    let bits = bytes * 8.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 1 and 10^18"
    )]
    (1.0..=MOST).contains(&bits).then_some(bits as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GIGABIT: u64 = 1_000_000_000;

    fn row(selector: &[(&str, &str)], interface: Option<&str>, bits: i64) -> place::Capacity {
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        place::Capacity {
            node_selector: selector.iter().map(own).collect(),
            interface: interface.map(str::to_owned),
            bits_per_second: bits,
        }
    }

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        pairs.iter().map(own).collect()
    }

    fn annotated(text: &str) -> Annotation {
        Annotation::of(&labels(&[(BANDWIDTH_ANNOTATION, text)]))
    }

    #[test]
    fn the_ladder_is_spec_then_annotation_then_speed_then_unknown() {
        let capacities = Capacities::of(&[
            row(&[("zone", "a")], Some("eth*"), 1),
            row(&[("zone", "a")], None, 2),
        ])
        .unwrap();
        let find = |zone, annotation: &Annotation, interface, speed| {
            let found = capacities.find(&labels(&[("zone", zone)]), annotation, interface, speed);
            found.map(|found| (found.bits_per_second, found.source))
        };
        let annotation = annotated("10Gbit");
        let speed = Some(125_000_000.0);
        assert_eq!(
            find("a", &annotation, "eth0", speed),
            Some((1, Source::Spec))
        );
        assert_eq!(
            find("a", &annotation, "ens5", speed),
            Some((2, Source::Spec))
        );
        let by_annotation = Some((10 * GIGABIT, Source::Annotation));
        assert_eq!(find("b", &annotation, "eth0", speed), by_annotation);
        let by_speed = Some((GIGABIT, Source::Speed));
        assert_eq!(find("b", &Annotation::Absent, "eth0", speed), by_speed);
        assert_eq!(find("b", &Annotation::Absent, "eth0", None), None);
    }

    #[test]
    fn the_speed_of_a_virtual_interface_is_no_speed() {
        let capacities = Capacities::default();
        for speed in [
            -1.0,
            -125_000.0,
            0.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            1e300,
        ] {
            let found = capacities.find(&BTreeMap::new(), &Annotation::Absent, "eth0", Some(speed));
            assert_eq!(found, None, "{speed}");
        }
    }

    #[test]
    fn an_annotation_that_is_no_bandwidth_is_told_and_counts_as_absent() {
        let bad = annotated("10 GB");
        let Annotation::Bad(error) = &bad else {
            panic!("{bad:?}")
        };
        assert!(error.to_string().contains("Gbit"), "{error}");
        let found = Capacities::default().find(&BTreeMap::new(), &bad, "eth0", Some(125.0));
        assert_eq!(found.map(|found| found.source), Some(Source::Speed));
    }

    proptest! {
        #[test]
        fn a_capacity_is_above_zero_whatever_is_said(
            bits in any::<i64>(), speed in proptest::option::of(any::<f64>()), text in "[0-9.]{0,4}[kMGT]?(bit)?",
        ) {
            let capacities = Capacities::of(&[row(&[("zone", "a")], None, bits)]).unwrap();
            for zone in ["a", "b"] {
                let found = capacities.find(&labels(&[("zone", zone)]), &annotated(&text), "eth0", speed);
                prop_assert!(found.is_none_or(|found| found.bits_per_second > 0));
            }
        }
    }
}
