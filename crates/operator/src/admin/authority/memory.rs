//! What the API server said of tokens: bounded in number and in time, and without the tokens themselves.
//!
//! Times are spans of this process' own clock.

use std::{collections::HashMap, time::Duration};

use sha2::{Digest as _, Sha256};

/// What was said holds for so long.
const FRESH: Duration = Duration::from_mins(1);
/// What was allowed holds for so long while nobody can be asked.
const GRACE: Duration = Duration::from_mins(10);
/// Answers kept, at most.
const ANSWERS: usize = 1024;
/// The same trouble is said this often at most.
const TROUBLE: Duration = Duration::from_mins(1);

/// The SHA-256 of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Digest([u8; 32]);

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Question {
    Wake,
    Metrics,
}

/// What was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Allowed,
    /// It is somebody, but not one who may.
    Forbidden,
    /// It is nobody.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    said: Said,
    at: Duration,
}

/// The answers.
#[derive(Debug)]
pub(super) struct Memory {
    fresh: Duration,
    grace: Duration,
    answers: HashMap<(Digest, Question), Answer>,
    trouble: Option<Duration>,
}

impl Digest {
    pub(super) fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new(FRESH, GRACE)
    }
}

impl Memory {
    pub(super) fn new(fresh: Duration, grace: Duration) -> Self {
        Self {
            fresh,
            grace,
            answers: HashMap::new(),
            trouble: None,
        }
    }

    /// What was said lately.
    pub(super) fn fresh(&self, digest: Digest, question: Question, now: Duration) -> Option<Said> {
        let answer = self.answers.get(&(digest, question))?;
        (now.saturating_sub(answer.at) < self.fresh).then_some(answer.said)
    }

    /// Whether it was allowed not too long ago.
    pub(super) fn was_allowed(&self, digest: Digest, question: Question, now: Duration) -> bool {
        self.answers.get(&(digest, question)).is_some_and(|answer| {
            answer.said == Said::Allowed && now.saturating_sub(answer.at) < self.grace
        })
    }

    /// Keeps what was said. Where there is no room, a refusal goes first, since anybody can cause many of those; then
    /// what is oldest.
    pub(super) fn keep(&mut self, digest: Digest, question: Question, said: Said, now: Duration) {
        let key = (digest, question);
        if self.answers.len() >= ANSWERS && !self.answers.contains_key(&key) {
            let first = self
                .answers
                .iter()
                .min_by_key(|(_, answer)| (answer.said == Said::Allowed, answer.at));
            if let Some(first) = first.map(|(key, _)| *key) {
                self.answers.remove(&first);
            }
        }
        self.answers.insert(key, Answer { said, at: now });
        self.trouble = None;
    }

    /// Nobody can be asked: is that to be said?
    pub(super) fn trouble_is_news(&mut self, now: Duration) -> bool {
        let is_news = self
            .trouble
            .is_none_or(|said| now.saturating_sub(said) >= TROUBLE);
        if is_news {
            self.trouble = Some(now);
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn answers_are_fresh_for_a_minute_and_hold_ten_if_need_be() {
        let mut memory = Memory::default();
        let (good, bad) = (Digest::of("good"), Digest::of("bad"));
        memory.keep(good, Question::Wake, Said::Allowed, SECOND);
        memory.keep(bad, Question::Wake, Said::Unknown, SECOND);
        let fresh = |digest, question, seconds| memory.fresh(digest, question, SECOND * seconds);
        assert_eq!(fresh(good, Question::Wake, 60), Some(Said::Allowed));
        assert_eq!(fresh(bad, Question::Wake, 60), Some(Said::Unknown));
        assert_eq!(fresh(good, Question::Metrics, 60), None);
        assert_eq!(fresh(good, Question::Wake, 61), None);
        let allowed =
            |digest, seconds| memory.was_allowed(digest, Question::Wake, SECOND * seconds);
        assert!(allowed(good, 600) && !allowed(good, 601));
        assert!(!allowed(bad, 2));
        assert!(!memory.was_allowed(good, Question::Metrics, SECOND));
    }

    #[test]
    fn a_revoked_token_is_refused_from_then_on() {
        let mut memory = Memory::default();
        let digest = Digest::of("token");
        memory.keep(digest, Question::Wake, Said::Allowed, SECOND);
        memory.keep(digest, Question::Wake, Said::Unknown, 2 * SECOND);
        assert!(!memory.was_allowed(digest, Question::Wake, 3 * SECOND));
    }

    #[test]
    fn trouble_is_said_once_a_minute_and_anew_after_it_was_over() {
        let mut memory = Memory::default();
        assert!(memory.trouble_is_news(SECOND));
        assert!(!memory.trouble_is_news(60 * SECOND));
        assert!(memory.trouble_is_news(61 * SECOND));
        memory.keep(Digest::of("a"), Question::Wake, Said::Unknown, SECOND);
        assert!(memory.trouble_is_news(62 * SECOND));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn many_bad_tokens_neither_fill_it_nor_push_out_a_good_one(
            tokens in prop::collection::vec(any::<u16>(), 1500..3000),
        ) {
            let mut memory = Memory::default();
            let good = Digest::of("good");
            memory.keep(good, Question::Wake, Said::Allowed, Duration::ZERO);
            for (now, token) in tokens.into_iter().enumerate() {
                let now = Duration::from_millis(now as u64);
                memory.keep(Digest::of(&token.to_string()), Question::Wake, Said::Unknown, now);
                prop_assert!(memory.answers.len() <= ANSWERS);
            }
            prop_assert!(memory.was_allowed(good, Question::Wake, SECOND));
        }
    }
}
