//! Whether the target should be asleep or awake, apart from how to get there.

use std::time::Duration;

use jiff::Timestamp;
use weir_api::hold::defaults::{LAST_SCALED_UP_COOLDOWN_DIVISOR, LAST_SCALED_UP_MIN_INTERVAL};

use super::{
    View,
    facts::{Triggers, Window},
    settings::after,
};

/// Why a target is woken when there is no resolver. Told by its text: such wakes are not done all at once.
pub const NO_RESOLVER: &str = "no resolver is there to hold requests";

/// Why a target may not sleep now.
pub(super) struct Awake {
    pub(super) because: &'static str,
    /// When time alone may change that.
    pub(super) until: Option<Timestamp>,
}

impl From<&'static str> for Awake {
    fn from(because: &'static str) -> Self {
        Self {
            because,
            until: None,
        }
    }
}

/// Why a sleeping target should wake.
pub(super) fn wake(view: &View<'_>) -> Option<&'static str> {
    let wanted = &view.facts.wanted;
    let since_creation = after(wanted.created, wanted.cooldown);
    let no_resolver = view.memory.no_resolver;
    let fail_open = no_resolver.map(|since| after(since, view.settings.fail_open_after));
    if view.facts.wake_wanted {
        Some("requests are waiting")
    } else if view.facts.group.others_wake {
        Some("another Service of the target needs it")
    } else if let Some(how) = view.facts.deletion {
        Some(super::deletion::because(how))
    } else if matches!(wanted.window, Window::Closed(_)) {
        Some("outside enabledPeriod the target is kept up")
    } else if wanted.triggers == Triggers::Busy && since_creation <= view.now {
        Some("a trigger is not idle")
    } else if fail_open.is_some_and(|moment| moment <= view.now) {
        Some(NO_RESOLVER)
    } else {
        None
    }
}

/// When time alone may wake a sleeping target.
pub(super) fn wake_at(view: &View<'_>) -> Option<Timestamp> {
    let wanted = &view.facts.wanted;
    let fail_open = view
        .memory
        .no_resolver
        .map(|since| after(since, view.settings.fail_open_after));
    let busy = (wanted.triggers == Triggers::Busy).then(|| after(wanted.created, wanted.cooldown));
    let window = match wanted.window {
        Window::Open(change) => change,
        Window::Closed(_) | Window::Unreadable => None,
    };
    [fail_open, busy, window].into_iter().flatten().min()
}

/// Whether the target may go to sleep. Errors of triggers and of the window never put it to sleep.
pub(super) fn sleep(view: &View<'_>) -> Result<(), Awake> {
    let wanted = &view.facts.wanted;
    match wanted.triggers {
        Triggers::Idle => {}
        Triggers::Absent => return Err("without triggers nothing is scaled down".into()),
        Triggers::Busy => {
            return Err(Awake {
                because: "a trigger is not idle",
                until: record_at(view),
            });
        }
        Triggers::Unknown => return Err("a trigger does not say that it is idle".into()),
    }
    match wanted.window {
        Window::Open(_) => {}
        Window::Unreadable => return Err("enabledPeriod cannot be read".into()),
        Window::Closed(until) => {
            return Err(Awake {
                because: "outside enabledPeriod the target is kept up",
                until,
            });
        }
    }
    if view.facts.wake_wanted {
        return Err("requests are waiting".into());
    }
    if view.facts.group.others_wake || !view.facts.group.others_agree {
        return Err("another Service of the target needs it".into());
    }
    if view.facts.usable_resolvers().is_empty() {
        return Err("no ready resolver knows the service".into());
    }
    let rested = [
        (Some(wanted.created), "it was made only just now"),
        (wanted.last_scaled_up, "it was busy only just now"),
        (wanted.cut_over_failed, "the last cut-over was not seen"),
    ];
    for (start, because) in rested {
        let until = start.map(|start| after(start, wanted.cooldown));
        if until.is_some_and(|until| view.now < until) {
            return Err(Awake { because, until });
        }
    }
    Ok(())
}

/// Whether a busy trigger should be noted; not each time that it is asked.
pub(super) fn activity_to_record(view: &View<'_>) -> bool {
    view.facts.wanted.triggers == Triggers::Busy
        && record_at(view).is_none_or(|moment| moment <= view.now)
}

/// When a busy trigger is to be noted next; at once if it never was.
fn record_at(view: &View<'_>) -> Option<Timestamp> {
    let wanted = &view.facts.wanted;
    let part: Duration = wanted.cooldown / LAST_SCALED_UP_COOLDOWN_DIVISOR;
    let interval = part.max(LAST_SCALED_UP_MIN_INTERVAL);
    wanted.last_scaled_up.map(|last| after(last, interval))
}

/// The replicas to scale up to, where the window demands more than there are.
pub(super) fn replicas_short_of_window(view: &View<'_>) -> Option<i32> {
    let target = view.facts.target.as_ref()?;
    let closed = matches!(view.facts.wanted.window, Window::Closed(_));
    let least = view.facts.wanted.min_replicas;
    (closed && target.replicas < least).then_some(least)
}
