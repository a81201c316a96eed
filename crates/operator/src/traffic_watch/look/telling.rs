//! What a look tells those who read Events and metrics.

use weir_place::judge::{State, Why};

use super::super::{
    context::Context,
    mind::{Decision, Turned},
    status,
};
use crate::events::NoteKind;

/// Nodes that are named in Events of one look; of more the number is told.
const TOLD: usize = 5;

/// Events and metrics.
pub(super) fn tell(context: &Context, decision: &Decision) {
    let place = &context.metrics.place;
    place.set_utilization(&decision.utilization);
    for view in &decision.views {
        let Some(judged) = &view.judged else {
            place.forget(&view.id);
            continue;
        };
        place.set_nodes(&view.id, status::counts(judged));
        for turned in judged.turned.iter().take(TOLD) {
            let reason = match turned.state {
                State::Fit => "NodeFit",
                State::Unfit => "NodeUnfit",
            };
            context.tell(
                &view.object,
                NoteKind::Normal,
                reason,
                "Judge",
                sentence(turned),
            );
        }
        let more = judged.turned.len().saturating_sub(TOLD);
        if more > 0 {
            let text = format!("{more} more nodes became fit or unfit");
            context.tell(&view.object, NoteKind::Normal, "NodesTurned", "Judge", text);
        }
    }
}

fn sentence(turned: &Turned) -> String {
    let Turned {
        node,
        state,
        why,
        load,
    } = turned;
    let state = match state {
        State::Fit => "fit",
        State::Unfit => "unfit",
    };
    let load = load.map_or_else(
        || "it gives no figures".to_owned(),
        |load| format!("its busiest interface is used by {load:.1} %"),
    );
    match why {
        Why::KeptFit => {
            format!("{node} is {state}, as too few nodes are below the limit: {load}")
        }
        _ => format!("{node} is {state}: {load}"),
    }
}
