//! Our slice: whether it is as it should be, and when it may go.

use jiff::Timestamp;

use super::{
    View,
    settings::after,
    step::{Plan, Step},
};

/// Makes or corrects the slice, if there is anything to correct.
///
/// Only resolvers that know the service are in it. Where none is left it stays as it is: an empty one
/// helps nobody, and a resolver that the operator cannot see may still be there for the nodes.
pub(super) fn upkeep(view: &View<'_>, mark: Option<Timestamp>) -> Option<Plan> {
    let resolvers = view.facts.usable_resolvers();
    if resolvers.is_empty() {
        return None;
    }
    let right = view.facts.slice.as_ref().is_some_and(|slice| {
        slice.resolvers == resolvers && (mark.is_none() || slice.mark == mark)
    });
    (!right).then(|| {
        let slice = view.facts.slice.as_ref();
        let step = Step::ApplySlice {
            version: slice.map(|slice| slice.version.clone()),
            resolvers,
            mark,
        };
        step.because("the Service is to lead to the resolvers that know it")
    })
}

/// Removes the slice once every node leads to a ready endpoint. None when there is no slice.
///
/// Only for a target whose `spec.replicas` was read and is above zero.
pub(super) fn removal(view: &View<'_>) -> Option<Plan> {
    let slice = view.facts.slice.as_ref()?;
    let Some(served) = view.memory.served_since() else {
        return Some(Plan::rest("the slice stays until an endpoint is ready"));
    };
    let overlapped = after(served, view.settings.sync_period);
    if view.now < overlapped {
        let stay = Plan::rest("the slice stays until every node leads to the endpoint");
        return Some(upkeep(view, None).unwrap_or(stay).until(overlapped));
    }
    let version = slice.version.clone();
    Some(Step::RemoveSlice { version }.because("every node leads to a ready endpoint"))
}
