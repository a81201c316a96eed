//! Whether a request that an endpoint did not answer is sent again, decided here and nowhere else.

use std::time::Duration;

use http::Method;

use crate::upstream::Cause;

/// What is to be done with a request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Sent again.
    Again,
    /// Given up.
    GiveUp,
}

/// The first pause before another attempt, doubled each time up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Whether doing it twice is as good as once (RFC 9110, 9.2.2).
pub(crate) fn is_idempotent(method: &Method) -> bool {
    matches!(
        *method,
        Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE | Method::PUT | Method::DELETE
    )
}

/// Nothing of it was sent, or it is safe to send it again and all of it is at hand. One that was understood wrongly is
/// not: the next answer would be no better, and something was done with it.
pub(crate) fn decide(
    cause: Cause,
    is_unsent: bool,
    is_idempotent: bool,
    is_whole: bool,
) -> Verdict {
    let is_worth_it = !matches!(cause, Cause::ClientGone | Cause::Garbled);
    if is_worth_it && is_whole && (is_unsent || is_idempotent) {
        Verdict::Again
    } else {
        Verdict::GiveUp
    }
}

/// How long to wait before an attempt, counted from 1. With several endpoints each is tried once without a pause.
pub(crate) fn pause(attempt: u32, endpoints: usize) -> Duration {
    let tried_all = usize::try_from(attempt).is_ok_and(|attempt| attempt >= endpoints);
    if !tried_all {
        return Duration::ZERO;
    }
    let doublings = attempt.saturating_sub(1).min(10);
    (FIRST_PAUSE * 2_u32.pow(doublings)).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_safe_is_sent_again() {
        use Cause::{Broken, ClientGone, ConnectTimeout, Garbled, Refused, Unreachable};
        for cause in [Refused, ConnectTimeout, Unreachable, Broken] {
            assert_eq!(decide(cause, true, false, true), Verdict::Again, "not sent");
            assert_eq!(decide(cause, false, true, true), Verdict::Again, "safe");
            assert_eq!(
                decide(cause, false, false, true),
                Verdict::GiveUp,
                "a POST that was sent"
            );
            assert_eq!(
                decide(cause, false, true, false),
                Verdict::GiveUp,
                "its body is gone"
            );
        }
        for cause in [ClientGone, Garbled] {
            assert_eq!(decide(cause, true, true, true), Verdict::GiveUp);
        }
    }

    #[test]
    fn pauses_grow_up_to_a_second() {
        assert_eq!(pause(1, 1), Duration::from_millis(10));
        assert_eq!(pause(1, 3), Duration::ZERO);
        assert_eq!(pause(2, 3), Duration::ZERO);
        assert_eq!(pause(3, 3), Duration::from_millis(40));
        assert_eq!(pause(100, 1), LONGEST_PAUSE);
        assert_eq!(pause(u32::MAX, 0), LONGEST_PAUSE);
    }
}
