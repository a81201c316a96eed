//! All families, in the order in which they are shown: the peers' first, then ours.

use weir_api::hold::{
    Mode,
    names::metrics::{
        ACTION, CRD_NAME, ERROR, INFORMER_NAME, KEY, MODE, NAMESPACE,
        OPERATOR_CRD_FINALIZER_COUNTER, OPERATOR_CRD_UPDATE_COUNTER, OPERATOR_INFORMER_COUNT,
        OPERATOR_INFORMER_COUNTER, OPERATOR_INFORMER_HANDLER_COUNTER, OPERATOR_MODE,
        OPERATOR_RECONCILE, OPERATOR_SCALE_COUNTER, SERVICE_NAME, TARGET,
    },
};
use weir_role::metrics::{
    exposition::{Exposition, Kind},
    lock,
};

use super::{
    OperatorMetrics,
    names::{
        API_WRITES, BUILD_INFO, KIND, LEADER, OUTCOME, PHASE, REASON, RECONCILE_ERRORS, SERVICES,
        TRIGGERS, VERSION, WAKES,
    },
    object::{self, ObjectCounts, PHASES},
};

/// The counts of an object, under the name that the peers give it.
struct Named {
    name: String,
    counts: ObjectCounts,
}

pub(super) fn render(metrics: &OperatorMetrics) -> String {
    let all: Vec<Named> = metrics
        .sorted()
        .into_iter()
        .map(|(id, counts)| Named {
            name: format!("{}/{}", id.namespace, id.name),
            counts,
        })
        .collect();
    let mut out = Exposition::default();
    objects(&all, &mut out);
    watches(&all, &mut out);
    scales(metrics, &mut out);
    ours(metrics, &all, &mut out);
    metrics.place.render(&mut out);
    out.finish()
}

fn objects(all: &[Named], out: &mut Exposition) {
    let help = "Looks at an ElastiService.";
    let mut family = out.family(OPERATOR_RECONCILE, Kind::Counter, help);
    for Named { name, counts } in all {
        family.sample(&[(CRD_NAME, name)], counts.reconciles);
    }
    let help = "Finalizers added and removed.";
    let mut family = out.family(OPERATOR_CRD_FINALIZER_COUNTER, Kind::Counter, help);
    for Named { name, counts } in all {
        for (action, count) in &counts.finalizers {
            family.sample(&[(CRD_NAME, name), (ACTION, action)], count);
        }
    }
    let help = "Statuses written.";
    let mut family = out.family(OPERATOR_CRD_UPDATE_COUNTER, Kind::Counter, help);
    for Named { name, counts } in all {
        for (mode, count) in &counts.updates {
            family.sample(&[(CRD_NAME, name), (MODE, mode)], count);
        }
    }
    let help = "1 while requests go to the resolver, 0 while they go to the pods.";
    let mut family = out.family(OPERATOR_MODE, Kind::Gauge, help);
    for Named { name, counts } in all {
        if let Some(mode) = counts.mode {
            family.sample(&[(CRD_NAME, name)], u8::from(mode == Mode::Proxy));
        }
    }
}

fn watches(all: &[Named], out: &mut Exposition) {
    let help = "Watches now open.";
    let mut family = out.family(OPERATOR_INFORMER_COUNT, Kind::Gauge, help);
    for Named { name, counts } in all {
        family.sample(&[(CRD_NAME, name)], counts.open);
    }
    let help = "Watches opened and closed.";
    let mut family = out.family(OPERATOR_INFORMER_COUNTER, Kind::Counter, help);
    for Named { name, counts } in all {
        for ((action, key), count) in &counts.watches {
            family.sample(&[(CRD_NAME, name), (ACTION, action), (KEY, key)], count);
        }
    }
    let help = "Changes that a watch saw.";
    let mut family = out.family(OPERATOR_INFORMER_HANDLER_COUNTER, Kind::Counter, help);
    for Named { name, counts } in all {
        for ((key, watch), count) in &counts.seen {
            let labels = [
                (CRD_NAME, name.as_str()),
                (KEY, key),
                (INFORMER_NAME, watch),
            ];
            family.sample(&labels, count);
        }
    }
}

fn scales(metrics: &OperatorMetrics, out: &mut Exposition) {
    let help = "Scales of a target; error is success where all went well.";
    let mut family = out.family(OPERATOR_SCALE_COUNTER, Kind::Counter, help);
    let scales = lock(&metrics.scales).clone();
    for (service, counts) in &scales {
        for ((target, error), count) in counts {
            let labels = [
                (SERVICE_NAME, &*service.name),
                (NAMESPACE, &*service.namespace),
                (TARGET, target),
                (ERROR, error),
            ];
            family.sample(&labels, count);
        }
    }
}

fn ours(metrics: &OperatorMetrics, all: &[Named], out: &mut Exposition) {
    let help = "1 in the process that leads.";
    out.family(LEADER, Kind::Gauge, help)
        .sample(&[], metrics.leader.get());
    for (name, help, label, reasons) in [
        (WAKES, "Wake signals.", OUTCOME, &metrics.wakes),
        (
            TRIGGERS,
            "Questions to triggers.",
            OUTCOME,
            &metrics.triggers,
        ),
        (
            RECONCILE_ERRORS,
            "Looks that failed.",
            REASON,
            &metrics.reconcile_errors,
        ),
        (
            API_WRITES,
            "Writes to the API server.",
            KIND,
            &metrics.writes,
        ),
    ] {
        let mut family = out.family(name, Kind::Counter, help);
        for (value, count) in reasons.sorted() {
            family.sample(&[(label, value)], count);
        }
    }
    let help = "ElastiServices in each phase.";
    let mut family = out.family(SERVICES, Kind::Gauge, help);
    for phase in PHASES {
        let count = all
            .iter()
            .filter(|named| named.counts.phase == Some(phase))
            .count();
        family.sample(&[(PHASE, object::phase(phase))], count);
    }
    let help = "Always 1; the version is in the label.";
    let version = env!("CARGO_PKG_VERSION");
    out.family(BUILD_INFO, Kind::Gauge, help)
        .sample(&[(VERSION, version)], 1);
}
