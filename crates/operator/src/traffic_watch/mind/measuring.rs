//! How full every node is to a watch. Most watches measure alike, so that it is found out once for several of them.

use std::collections::BTreeMap;

use weir_place::{
    history::History,
    measure::{Measurement, measure},
    moment::Moment,
    node::NodeFacts,
    settings::Settings,
};

/// What was measured, by node.
pub(super) type Measurements = BTreeMap<String, Measurement>;

/// Measures every node that a watch judges.
pub(super) fn measure_all(
    nodes: &[&NodeFacts],
    history: &History,
    settings: &Settings,
    now: Moment,
) -> Measurements {
    let judged = nodes.iter().filter(|it| it.is_judged(&settings.judged));
    let measured = judged.map(|node| {
        let history = history.of(&node.name, &node.uid);
        (node.name.clone(), measure(node, history, settings, now))
    });
    measured.collect()
}

/// Whether two watches measure the same on the same nodes, as most do, whatever they make of it.
pub(super) fn measure_alike(one: &Settings, other: &Settings) -> bool {
    one.judged == other.judged
        && one.direction == other.direction
        && one.interfaces == other.interfaces
        && one.window == other.window
        && one.max_sample_age == other.max_sample_age
        && one.capacities == other.capacities
}

/// Of several watches the oldest that counts an interface is told, so that a node is not told once for each.
pub(super) fn note_loads(
    node: &str,
    measurement: &Measurement,
    utilization: &mut BTreeMap<(String, String), f64>,
    loads: &mut BTreeMap<String, f64>,
) {
    for interface in &measurement.interfaces {
        if let Some(percent) = interface.percent {
            let key = (node.to_owned(), interface.name.clone());
            utilization.entry(key).or_insert(percent / 100.0);
        }
    }
    if let Ok(figure) = &measurement.figure {
        loads.entry(node.to_owned()).or_insert(figure.percent);
    }
}
