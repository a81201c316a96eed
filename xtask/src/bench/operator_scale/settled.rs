//! When the operator has nothing more to do: every object was looked at, and for some seconds no more than time alone brings
//! up. How often each was looked at is told by its metrics.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::Result;

use crate::bench::{ask, scale::operator::Operator};

/// It is quiet if it was so for this long.
const QUIET: Duration = Duration::from_secs(3);
/// Looks in that time, at most, as a share of all objects: each is looked at every ten minutes, and so one of 200 is.
const FEW: f64 = 0.01;
/// The same for a few objects.
const FEW_AT_LEAST: f64 = 10.0;
/// What the operator calls it.
const LOOKS: &str = "elasti_operator_reconcile{";

/// How often the operator has looked.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Looks {
    objects: usize,
    all: f64,
}

/// Since when it has been quiet, now that `is_done` as well.
pub(super) fn wait(
    operator: &mut Operator,
    objects: usize,
    patience: Duration,
    mut is_done: impl FnMut() -> Result<bool>,
) -> Result<Instant> {
    let internal = operator.internal();
    let few = (f64::from(u32::try_from(objects)?) * FEW).max(FEW_AT_LEAST);
    let mut since = (Instant::now(), 0.0);
    operator.wait_until("it has nothing more to do", patience, || {
        // It does not listen yet.
        let Ok(looks) = looks(internal) else {
            return Ok(false);
        };
        if looks.objects < objects || looks.all - since.1 > few {
            since = (Instant::now(), looks.all);
            return Ok(false);
        }
        Ok(since.0.elapsed() >= QUIET && is_done()?)
    })?;
    Ok(since.0)
}

fn looks(internal: SocketAddr) -> Result<Looks> {
    let metrics = ask::get(internal, "/metrics")?;
    Ok(read(&String::from_utf8_lossy(&metrics.body)))
}

fn read(metrics: &str) -> Looks {
    let lines = metrics.lines().filter_map(|line| line.strip_prefix(LOOKS));
    let counts = lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
    let mut looks = Looks {
        objects: 0,
        all: 0.0,
    };
    for count in counts.filter(|count| *count > 0.0) {
        looks.objects += 1;
        looks.all += count;
    }
    looks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_counted_by_object_and_in_all() {
        let metrics = "# TYPE elasti_operator_reconcile counter\n\
            elasti_operator_reconcile{crd_name=\"a/b\"} 3\n\
            elasti_operator_reconcile{crd_name=\"a/c\"} 1\n\
            elasti_operator_reconcile{crd_name=\"a/d\"} 0\n\
            elasti_operator_mode{crd_name=\"a/b\"} 1\n";
        let expected = Looks {
            objects: 2,
            all: 4.0,
        };
        assert_eq!(read(metrics), expected);
    }
}
