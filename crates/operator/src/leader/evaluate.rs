//! Whether a Lease may be taken: a function of what was seen and of when it was seen.
//!
//! Times are spans of the looking process' own clock, which never goes back. What is written in a Lease as a time is only
//! compared with itself: another value means that its holder lives.

#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;

/// Begins what tells processes of one name apart.
pub(super) const RANDOM_PART: char = '_';

/// What a Lease says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Who holds it; none: it was given back.
    pub holder: Option<String>,
    /// When it was renewed, by the holder's clock.
    pub renewed: Option<Timestamp>,
    /// How long it lasts without being renewed.
    pub lasts: Duration,
}

/// A Lease as it was seen, and since when it has looked so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    record: Option<Record>,
    since: Duration,
}

/// What may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody holds it: it may be taken.
    Free,
    /// It is in our own name.
    Ours,
    /// Somebody holds it, for so long yet unless it is renewed.
    Held(Duration),
}

impl Sight {
    /// The Lease was looked at; none: there is none.
    pub fn look(&mut self, record: Option<Record>, now: Duration) {
        if self.record != record {
            self.record = record;
            self.since = now;
        }
    }

    /// Somebody else holds it and has not renewed it for so long, though they should have.
    pub fn is_silent(&self, me: &str, now: Duration, silence: Duration) -> bool {
        self.holder().is_some_and(|holder| holder != me)
            && now.saturating_sub(self.since) >= silence
    }

    /// Who holds it, whether or not they live.
    pub fn holder(&self) -> Option<&str> {
        self.record.as_ref()?.holder.as_deref()
    }
}

/// May this process take the Lease?
pub fn evaluate(sight: &Sight, me: &str, now: Duration) -> Verdict {
    let Some(record) = &sight.record else {
        return Verdict::Free;
    };
    match record.holder.as_deref() {
        None => Verdict::Free,
        Some(holder) if holder == me => Verdict::Ours,
        Some(_) => {
            let end = sight.since.saturating_add(record.lasts);
            match end.checked_sub(now) {
                None | Some(Duration::ZERO) => Verdict::Free,
                Some(left) => Verdict::Held(left),
            }
        }
    }
}

/// Whether the holder is an earlier process of this pod, whose name both begin with. It has ended: a container is started
/// again when what ran in it is gone.
pub fn is_predecessor(holder: &str, me: &str) -> bool {
    let pod = |identity: &str| {
        identity
            .rsplit_once(RANDOM_PART)
            .map(|(pod, _)| pod.to_owned())
    };
    holder != me && pod(me).is_some_and(|mine| pod(holder) == Some(mine))
}

/// Does a leader still lead? `sent` is when the last renewal that succeeded was sent, not when it was answered: the Lease
/// may have been written at once.
pub fn still_leads(sent: Duration, now: Duration, deadline: Duration) -> bool {
    now.saturating_sub(sent) < deadline
}
