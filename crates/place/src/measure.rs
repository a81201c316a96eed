//! How full a node's network is to one watch: a figure per interface that counts, the node's figure from the worst of
//! them, or why there is none. [`crate::history`] has the rates, [`crate::judge`] decides what follows.

#[cfg(test)]
mod tests;

use std::time::Duration;

use weir_api::place::Direction;

use crate::{
    capacity::{Annotation, Capacity},
    history::{NodeHistory, Rates},
    interfaces::Counted,
    moment::Moment,
    node::NodeFacts,
    settings::Settings,
};

/// What is known of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The node's figure, or why there is none.
    pub figure: Result<Figure, Unknown>,
    /// The interfaces that count.
    pub interfaces: Vec<Interface>,
    /// Bytes sent, over all interfaces that count.
    pub transmit_total: u64,
    /// Wall-clock seconds of the last answer; for people only.
    pub time: Option<i64>,
}

/// How full a node is.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Use of the worst interface's capacity; finite, never below zero.
    pub percent: f64,
    /// Which interface that is.
    pub interface: String,
    /// When the window ended.
    pub at: Moment,
}

/// One interface that counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// What it can carry, if anybody knows.
    pub capacity: Option<Capacity>,
    /// Use of that, if a window is full.
    pub percent: Option<f64>,
}

/// Why there is no figure, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// Why.
    pub reason: Reason,
    /// How old the last answer is; none if there was none.
    pub age: Option<Duration>,
}

/// Why there is no figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// No answer yet.
    NeverAnswered,
    /// The last answer is older than `maxSampleAge`.
    TooOld,
    /// No full window yet, or the counters began anew.
    WindowTooShort,
    /// None of the interfaces counts.
    NoInterface,
    /// Nobody says what the interfaces that count can carry.
    NoCapacity,
}

impl Reason {
    /// The reason in a sentence for a condition, after the node's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NeverAnswered => "has not answered yet",
            Self::TooOld => "has not answered for longer than maxSampleAge",
            Self::WindowTooShort => "has not been measured for a full window",
            Self::NoInterface => "has no interface that counts: see spec.interfaces",
            Self::NoCapacity => {
                "does not say what its interfaces can carry: set spec.capacities or the annotation traffic.example.com/bandwidth"
            }
        }
    }

    /// Whether waiting does not help: somebody has to change something.
    pub const fn is_lasting(self) -> bool {
        matches!(self, Self::NoInterface | Self::NoCapacity)
    }
}

/// Measures one node for one watch.
///
/// Interfaces without a capacity, such as a port with no cable in it, and those without a full window do not hide the
/// figures of the others.
pub fn measure(
    node: &NodeFacts,
    history: Option<&NodeHistory>,
    settings: &Settings,
    now: Moment,
) -> Measurement {
    let unknown = |reason, age| Err(Unknown { reason, age });
    let Some(history) = history else {
        return Measurement {
            figure: unknown(Reason::NeverAnswered, None),
            interfaces: Vec::new(),
            transmit_total: 0,
            time: None,
        };
    };
    let annotation = Annotation::of(&node.annotations);
    let counted = (history.devices()).filter(|name| settings.interfaces.does_count(name));
    let interface = |name: &str| judge_interface(name, node, &annotation, history, settings);
    let interfaces: Vec<Interface> = counted.map(interface).collect();
    let transmit_total = (interfaces.iter())
        .filter_map(|interface| history.transmit_total(&interface.name))
        .fold(0, u64::saturating_add);

    let age = now.since(history.last());
    let figure = if age > settings.max_sample_age {
        unknown(Reason::TooOld, Some(age))
    } else if let Some((percent, interface)) = worst(&interfaces) {
        Ok(Figure {
            percent,
            interface: interface.to_owned(),
            at: history.last(),
        })
    } else if interfaces.is_empty() {
        unknown(Reason::NoInterface, Some(age))
    } else if interfaces.iter().all(|it| it.capacity.is_none()) {
        unknown(Reason::NoCapacity, Some(age))
    } else {
        unknown(Reason::WindowTooShort, Some(age))
    };
    Measurement {
        figure,
        interfaces,
        transmit_total,
        time: Some(history.time()),
    }
}

/// Interfaces that do not count for this watch, and why not; for people. Of those that no watch counts only the first.
pub fn not_counted(history: &NodeHistory, settings: &Settings) -> Vec<(String, Counted)> {
    let others = history.others().iter().map(String::as_str);
    let said = history.devices().chain(others).map(|name| {
        let counted = settings.interfaces.counts(name);
        (name.to_owned(), counted)
    });
    said.filter(|(_, counted)| *counted != Counted::Yes)
        .collect()
}

/// The most loaded interface; of equal ones the first by name, so that nothing else decides.
fn worst(interfaces: &[Interface]) -> Option<(f64, &str)> {
    let measured = interfaces.iter().filter_map(|interface| {
        let percent = interface.percent?;
        Some((percent, interface.name.as_str()))
    });
    measured.max_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(one.1)))
}

fn judge_interface(
    name: &str,
    node: &NodeFacts,
    annotation: &Annotation,
    history: &NodeHistory,
    settings: &Settings,
) -> Interface {
    let speed = history.speed(name);
    let capacity = (settings.capacities).find(&node.labels, annotation, name, speed);
    // A window may be somewhat longer than asked for, but not so long that it tells of another time.
    let longest = settings.max_sample_age.max(settings.window * 2);
    let rates = history.rates(name, settings.window, longest);
    let rate = rates.and_then(|rates| by_direction(settings.direction, rates));
    let percent = rate.zip(capacity).map(|(bytes, capacity)| {
        #[expect(clippy::cast_precision_loss, reason = "a percentage needs no 53rd bit")]
        let capacity = capacity.bits_per_second as f64;
        bytes * 8.0 / capacity * 100.0
    });
    Interface {
        name: name.to_owned(),
        capacity,
        percent: percent.filter(|percent| percent.is_finite()),
    }
}

fn by_direction(direction: Direction, rates: Rates) -> Option<f64> {
    match direction {
        Direction::Transmit => rates.transmit,
        Direction::Receive => rates.receive,
        Direction::Max => match (rates.transmit, rates.receive) {
            (Some(transmit), Some(receive)) => Some(transmit.max(receive)),
            (one, other) => one.or(other),
        },
    }
}
