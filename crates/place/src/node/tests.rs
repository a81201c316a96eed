//! Who is a worker, and what is read of a Node.

use serde_json::{Value, json};

use super::*;

fn facts(node: Value) -> NodeFacts {
    NodeFacts::of(&serde_json::from_value(node).unwrap())
}

fn worker(os: &str, ready: &str, taints: &Value) -> NodeFacts {
    facts(json!({
        "metadata": { "name": "a", "uid": "1", "labels": { "kubernetes.io/os": os } },
        "spec": { "taints": taints },
        "status": { "conditions": [
            { "type": "MemoryPressure", "status": "True" },
            { "type": "Ready", "status": ready },
        ] },
    }))
}

#[test]
fn a_worker_is_a_ready_linux_node_without_a_control_plane_taint() {
    let taint = |key: &str, effect: &str| json!([{ "key": key, "effect": effect }]);
    let none = json!([]);
    let control_plane = "node-role.kubernetes.io/control-plane";
    assert!(worker("linux", "True", &none).is_worker());
    assert!(!worker("windows", "True", &none).is_worker());
    assert!(!worker("linux", "False", &none).is_worker());
    assert!(!worker("linux", "Unknown", &none).is_worker());
    assert!(!worker("linux", "True", &taint(control_plane, "NoSchedule")).is_worker());
    assert!(worker("linux", "True", &taint(control_plane, "PreferNoSchedule")).is_worker());
    assert!(worker("linux", "True", &taint("dedicated", "NoSchedule")).is_worker());
}

#[test]
fn a_node_that_is_down_for_a_moment_is_still_judged() {
    let zone = BTreeMap::from([("kubernetes.io/os".to_owned(), "linux".to_owned())]);
    let down = worker("linux", "False", &json!([]));
    assert!(down.is_judged(&zone) && down.is_judged(&BTreeMap::new()));
    let other = BTreeMap::from([("zone".to_owned(), "a".to_owned())]);
    assert!(!down.is_judged(&other));
}

#[test]
fn a_node_says_what_it_has() {
    let node = facts(json!({
        "metadata": { "name": "a", "uid": "1", "annotations": { "x": "y" } },
        "spec": { "unschedulable": true },
        "status": {
            "allocatable": { "cpu": "3920m", "memory": "1Ki", "pods": "110" },
            "nodeInfo": {
                "architecture": "", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "",
                "kubeProxyVersion": "", "kubeletVersion": "", "machineID": "", "operatingSystem": "windows",
                "osImage": "", "systemUUID": "",
            },
        },
    }));
    assert!(node.unschedulable && !node.ready && !node.linux);
    assert_eq!(node.annotations["x"], "y");
    let allocatable = Resources {
        cpu: 3_920_000_000,
        memory: 1024 * 1_000_000_000,
        pods: 110_000_000_000,
    };
    assert_eq!(node.allocatable, allocatable);
    assert!(
        facts(json!({ "metadata": {} })).linux,
        "nobody says otherwise"
    );
}
