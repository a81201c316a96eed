//! What is counted, as Prometheus reads it.

use weir_api::hold::names::metrics::{SCALE_SUCCESS, scale_target};

use super::{names::ADDED, *};

fn web() -> ObjectId {
    ObjectId::new("shop", "web")
}

/// Everything happens once.
fn busy() -> Arc<OperatorMetrics> {
    let metrics = OperatorMetrics::new();
    let id = web();
    metrics.reconciled(&id);
    metrics.reconcile_failed("conflict");
    metrics.finalizer(&id, ADDED);
    metrics.status_written(&id, Mode::Proxy);
    metrics.set_mode(&id, Mode::Proxy);
    metrics.set_phase(&id, Phase::Asleep);
    metrics.holds(&id, "front");
    let target = scale_target("Deployment", "web");
    metrics.scaled("shop", "front", &target, SCALE_SUCCESS);
    metrics.wrote("Scale");
    metrics.woken("woken");
    metrics.trigger_asked("idle");
    metrics.watch_opened(&id, "Service");
    metrics.watch_opened(&id, "Deployment");
    metrics.watch_closed(&id, "Service");
    metrics.watch_seen(&id, "Deployment", "targets");
    metrics.set_leader(true);
    metrics
}

#[test]
fn the_peers_dashboards_find_what_they_ask_for() {
    let text = busy().render();
    for line in [
        r#"elasti_operator_reconcile{crd_name="shop/web"} 1"#,
        r#"elasti_operator_CRD_finalizer_counter{crd_name="shop/web",action="added"} 1"#,
        r#"elasti_operator_CRD_update_counter{crd_name="shop/web",mode="proxy"} 1"#,
        r#"elasti_operator_mode{crd_name="shop/web"} 1"#,
        r#"elasti_operator_informer_count{crd_name="shop/web"} 1"#,
        r#"elasti_operator_informer_counter{crd_name="shop/web",action="added",key="Service"} 1"#,
        r#"elasti_operator_informer_counter{crd_name="shop/web",action="removed",key="Service"} 1"#,
        r#"elasti_operator_informer_handler_counter{crd_name="shop/web",key="Deployment",informer_name="targets"} 1"#,
        r#"elasti_operator_scale_counter{service_name="front",namespace="shop",target="Deployment-web",error="success"} 1"#,
        "weir_operator_leader 1",
        r#"weir_operator_wakes{outcome="woken"} 1"#,
        r#"weir_operator_triggers{outcome="idle"} 1"#,
        r#"weir_operator_reconcile_errors{reason="conflict"} 1"#,
        r#"weir_operator_services{phase="Asleep"} 1"#,
        r#"weir_operator_services{phase="Serving"} 0"#,
        r#"weir_operator_api_writes{kind="Scale"} 1"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(!text.contains("_total"), "the peers' names do not end so");
}

#[test]
fn what_is_forgotten_leaves_no_series() {
    let metrics = busy();
    let other = ObjectId::new("shop", "other");
    metrics.reconciled(&other);
    metrics.forget(&web());
    let text = metrics.render();
    assert!(
        !text.contains("shop/web") && !text.contains("front"),
        "{text}"
    );
    assert!(text.contains(r#"crd_name="shop/other""#));
    assert!(text.contains(r#"weir_operator_services{phase="Asleep"} 0"#));
    // Not known: nothing happens.
    metrics.forget(&web());
}

#[test]
fn what_another_service_was_goes_when_the_spec_changes() {
    let metrics = busy();
    metrics.holds(&web(), "front");
    assert!(metrics.render().contains("front"));
    metrics.holds(&web(), "back");
    assert!(!metrics.render().contains("front"));
}

#[test]
fn targets_of_one_service_are_bounded() {
    let metrics = OperatorMetrics::new();
    for number in 0..1000 {
        let target = scale_target("Deployment", &number.to_string());
        metrics.scaled("shop", "web", &target, SCALE_SUCCESS);
    }
    let text = metrics.render();
    assert!(text.matches("Deployment-").count() <= TARGETS, "{text}");
}

#[test]
fn every_family_has_help_and_a_type_before_its_samples() {
    let text = busy().render();
    let mut known = Vec::new();
    for line in text.lines() {
        match line.split_once(' ') {
            Some(("#", rest)) if rest.starts_with("TYPE ") => {
                known.push(rest.split(' ').nth(1).unwrap().to_owned());
            }
            Some(("#", _)) => {}
            _ => {
                let name = line.split(['{', ' ']).next().unwrap();
                assert_eq!(known.last().map(String::as_str), Some(name), "{line}");
            }
        }
    }
}
