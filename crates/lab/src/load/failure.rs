//! Requests that were not answered right, one by one: when, how, and on what kind of connection.
//!
//! Counts say how many; these say whose fault it was. A server that ends closes connections on which a request may just be under
//! way. That is the server's doing, and a proxy before it can be blamed only for what went through it.

use serde::{Deserialize, Serialize};

use super::outcome::Outcome;

/// How many are kept of a run; the first ones, since what follows is often a consequence.
pub(super) const MOST_KEPT: usize = 200;

/// The connection on which a request was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Link {
    /// It was made for this request, or it could not be made.
    New,
    /// It had carried an answer that the server gave without a proxy in between.
    KeptToServer,
    /// It had carried an answer that came through a proxy, or from somebody who does not say.
    KeptToProxy,
    /// Shared with other requests.
    #[default]
    Shared,
}

/// One request that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// When it was meant to be sent, in seconds from the start.
    pub at_seconds: f64,
    /// How long it took, from then on.
    pub took_seconds: f64,
    /// How it ended.
    pub outcome: String,
    /// On what it was sent.
    pub link: Link,
}

impl Link {
    /// Did the server itself end a connection that was in use? Nobody else is at the other end of it.
    pub(super) fn is_cut_by_server(self, outcome: &Outcome) -> bool {
        self == Self::KeptToServer && matches!(outcome, Outcome::Reset | Outcome::Cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_that_is_there_alone_is_blamed() {
        let blamed = |link: Link, outcome| link.is_cut_by_server(&outcome);
        assert!(blamed(Link::KeptToServer, Outcome::Reset));
        assert!(blamed(Link::KeptToServer, Outcome::Cut));
        assert!(!blamed(Link::KeptToServer, Outcome::Status(503)));
        for link in [Link::New, Link::KeptToProxy, Link::Shared] {
            assert!(!blamed(link, Outcome::Cut), "{link:?}");
        }
    }
}
