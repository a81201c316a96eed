//! What is done when.

use std::{sync::Arc, time::Duration};

use weir_api::place::TrafficWatch;
use weir_place::{settings::Settings, status::Nodes};
use weir_role::cluster::ObjectId;

use super::*;

fn object(replicas: Option<i32>, generation: i64) -> TrafficWatch {
    serde_json::from_value(json!({
        "apiVersion": "traffic.example.com/v1alpha1", "kind": "TrafficWatch",
        "metadata": { "name": "web", "namespace": "shop", "uid": "ours", "generation": generation },
        "spec": {
            "maxBandwidthPercent": "60",
            "deployment": {
                "replicas": replicas, "selector": {},
                "template": { "spec": { "containers": [] } },
            },
        },
    }))
    .unwrap()
}

fn sight(owner: &str, told: Option<&str>, generation: i64) -> DeploymentSight {
    DeploymentSight {
        generation,
        told: told.map(str::to_owned),
        object: json!({ "metadata": { "ownerReferences": [
            { "kind": "TrafficWatch", "name": "web", "uid": owner, "controller": true },
        ] } }),
    }
}

struct Case {
    replicas: Option<i32>,
    ready: bool,
    sight: Option<DeploymentSight>,
    is_shown: bool,
    keeping: Keeping,
}

impl Case {
    fn new(sight: Option<DeploymentSight>) -> Self {
        Self {
            replicas: Some(3),
            ready: true,
            sight,
            is_shown: true,
            keeping: Keeping::default(),
        }
    }

    fn step(&self) -> Step {
        let object = Arc::new(object(self.replicas, 7));
        let judged = Judged {
            settings: Arc::new(Settings::of(&object).unwrap()),
            ready: self.ready,
            nodes: Nodes::default(),
            measured: placed("", String::new()),
            enough_fit: placed("", String::new()),
            begun: placed("", String::new()),
            outcome: None,
            turned: Vec::new(),
        };
        let view = View {
            id: ObjectId::of(&*object),
            object,
            findings: Vec::new(),
            judged: None,
        };
        let around = Around {
            sight: self.sight.as_ref(),
            lost_to: None,
            is_shown: self.is_shown,
        };
        step(
            &view,
            &judged,
            around,
            &self.keeping,
            Moment::from_secs(100),
        )
    }
}

fn write(scale: Scale, is_new: bool, told: &str) -> Step {
    Step::Write {
        scale,
        is_new,
        told: told.to_owned(),
    }
}

fn reason(step: Step) -> &'static str {
    let Step::Nothing(said) = step else {
        panic!("{step:?}")
    };
    said.map_or("", |said| said.reason)
}

#[test]
fn replicas_are_set_when_it_is_made_and_when_the_user_changes_them() {
    assert_eq!(Case::new(None).step(), write(Scale::To(3), true, "3"));
    for (told, scale) in [
        (Some("pending"), Scale::To(3)),
        (Some("none"), Scale::To(3)),
        (Some("2"), Scale::To(3)),
        (Some("3"), Scale::Leave),
        (None, Scale::Leave),
    ] {
        let case = Case::new(Some(sight("ours", told, 1)));
        assert_eq!(case.step(), write(scale, false, "3"), "{told:?}");
    }
    let mut silent = Case::new(None);
    silent.replicas = None;
    assert_eq!(silent.step(), write(Scale::Leave, true, "none"));
}

#[test]
fn what_is_right_is_left_alone_until_somebody_changes_it() {
    let mut case = Case::new(Some(sight("ours", Some("3"), 4)));
    case.keeping.applied = Some((7, 4));
    assert_eq!(reason(case.step()), "");
    case.sight = Some(sight("ours", Some("3"), 5));
    assert_eq!(case.step(), write(Scale::Leave, false, "3"));
}

#[test]
fn a_stranger_is_never_written() {
    for owner in ["theirs", "web"] {
        let case = Case::new(Some(sight(owner, None, 1)));
        assert_eq!(reason(case.step()), NOT_OURS);
    }
}

#[test]
fn nothing_is_made_before_all_nodes_are_measured_and_labelled() {
    let mut case = Case::new(None);
    case.ready = false;
    assert_eq!(case.step(), Step::Ask);
    case.keeping.asked = Some(7);
    assert_eq!(reason(case.step()), "NotYet");
    case.ready = true;
    case.is_shown = false;
    assert_eq!(reason(case.step()), "NotYet");
    case.sight = Some(sight("ours", None, 1));
    assert_eq!(reason(case.step()), "", "one that is there stays as it is");
}

#[test]
fn what_was_refused_is_tried_again_after_a_while() {
    let mut case = Case::new(None);
    let at = |seconds| Some((7, "no".to_owned(), Moment::from_secs(seconds)));
    case.keeping.refused = at(80);
    assert_eq!(reason(case.step()), "DeploymentRefused");
    case.keeping.refused = at(100 - REFUSED_PAUSE.as_secs());
    assert_eq!(case.step(), write(Scale::To(3), true, "3"));
    case.keeping.refused = Some((6, "no".to_owned(), Moment::from_secs(100)));
    assert_eq!(
        case.step(),
        write(Scale::To(3), true, "3"),
        "the user changed it"
    );
    assert!(REFUSED_PAUSE > Duration::ZERO);
}
