//! When a watch may begin: every ready worker has been measured or has timed out once. Never false again, so the caller
//! asks only while the status does not say so yet.

use std::time::Duration;

use weir_api::place::defaults::SCRAPE_RETRY;

use crate::{
    measure::{Figure, Unknown},
    moment::Moment,
    node::{Asked, NodeFacts},
    settings::Settings,
};

/// One node, as far as `ready` is concerned.
#[derive(Clone, Debug)]
pub struct Waiting<'a> {
    /// The node.
    pub node: &'a NodeFacts,
    /// How full it is to the watch.
    pub figure: &'a Result<Figure, Unknown>,
    /// Since when it is asked; none: not yet.
    pub asked: Option<Asked>,
}

/// The workers that are still waited for, by name. None of them means ready, but a cluster without any worker is not:
/// its nodes have not come yet.
pub fn waited_for<'a>(
    nodes: impl IntoIterator<Item = Waiting<'a>>,
    settings: &Settings,
    now: Moment,
) -> Option<Vec<&'a str>> {
    let is_worker = |waiting: &Waiting<'_>| {
        waiting.node.is_worker() && waiting.node.is_judged(&settings.judged)
    };
    let workers: Vec<Waiting<'a>> = nodes.into_iter().filter(is_worker).collect();
    let mut missing: Vec<&str> = workers
        .iter()
        .filter(|waiting| !is_settled(waiting, settings, now))
        .map(|waiting| waiting.node.name.as_str())
        .collect();
    missing.sort_unstable();
    (!workers.is_empty()).then_some(missing)
}

/// Whether all that can be waited for has come.
pub fn is_ready<'a>(
    nodes: impl IntoIterator<Item = Waiting<'a>>,
    settings: &Settings,
    now: Moment,
) -> bool {
    waited_for(nodes, settings, now).is_some_and(|missing| missing.is_empty())
}

/// Measured, or timed out: no answer for as long as it takes to ask twice, no figure for as long as data may be old, or
/// an answer that more waiting does not make better.
fn is_settled(waiting: &Waiting<'_>, settings: &Settings, now: Moment) -> bool {
    let Err(unknown) = waiting.figure else {
        return true;
    };
    let Some(asked) = waiting.asked else {
        return false;
    };
    let since = now.since(asked.since);
    let window: Duration = settings.window + settings.interval;
    unknown.reason.is_lasting()
        || (asked.failing && since >= SCRAPE_RETRY)
        || since > settings.max_sample_age.max(window)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{fixture, measure::Reason};

    fn unknown(reason: Reason) -> Result<Figure, Unknown> {
        Err(Unknown { reason, age: None })
    }

    fn measured() -> Figure {
        Figure {
            percent: 1.0,
            interface: "eth0".to_owned(),
            at: Moment::default(),
        }
    }

    fn ready_at(
        now: u64,
        nodes: &[(&NodeFacts, &Result<Figure, Unknown>, Option<bool>)],
    ) -> Option<Vec<String>> {
        let settings = fixture::settings(&json!({}));
        let waiting = nodes.iter().map(|(node, figure, failing)| Waiting {
            node,
            figure,
            asked: failing.map(|failing| Asked {
                since: Moment::default(),
                failing,
            }),
        });
        let missing = waited_for(waiting, &settings, Moment::from_secs(now));
        missing.map(|missing| missing.into_iter().map(str::to_owned).collect())
    }

    #[test]
    fn ready_is_when_every_ready_worker_was_measured_or_timed_out() {
        let (a, b) = (fixture::node("a"), fixture::node("b"));
        let (figure, nothing) = (Ok(measured()), unknown(Reason::NeverAnswered));
        let short = unknown(Reason::WindowTooShort);
        let waits = |now, node, figure, asked| {
            let missing = ready_at(
                now,
                &[(&a, &Ok(measured()), Some(false)), (node, figure, asked)],
            );
            !missing.unwrap().is_empty()
        };
        assert!(!waits(0, &b, &figure, Some(false)), "measured");
        assert!(waits(0, &b, &nothing, None), "not asked yet");
        assert!(waits(0, &b, &nothing, Some(true)), "may only be starting");
        assert!(!waits(30, &b, &nothing, Some(true)), "asked twice");
        assert!(waits(30, &b, &short, Some(false)), "a window may be long");
        assert!(!waits(181, &b, &short, Some(false)), "but not for ever");
        assert!(
            !waits(0, &b, &unknown(Reason::NoCapacity), Some(false)),
            "lasting"
        );
    }

    #[test]
    fn nobody_waits_for_nodes_that_are_no_workers() {
        let mut down = fixture::node("down");
        down.ready = false;
        let mut windows = fixture::node("windows");
        windows.linux = false;
        let (figure, nothing) = (Ok(measured()), unknown(Reason::NeverAnswered));
        let a = fixture::node("a");
        let nodes = [
            (&a, &figure, None),
            (&down, &nothing, None),
            (&windows, &nothing, None),
        ];
        assert_eq!(ready_at(0, &nodes), Some(Vec::new()));
        assert_eq!(
            ready_at(0, &[(&down, &nothing, None)]),
            None,
            "no worker yet"
        );
    }
}
