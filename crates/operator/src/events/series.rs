//! The same told again: counted in the Event that is there, not written as another one.
//!
//! Times are spans of this process' own clock.

use std::{collections::HashMap, time::Duration};

use k8s_openapi::api::core::v1::ObjectReference;

use super::{Note, NoteKind};

/// The same told again within this time is the same story.
const STORY: Duration = Duration::from_mins(5);
/// A count is written this often at most.
pub(super) const COUNT_EVERY: Duration = Duration::from_secs(10);
/// Stories remembered, at most; the oldest is forgotten first.
const KNOWN: usize = 4096;

/// What makes two the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    namespace: Option<String>,
    object: Option<String>,
    name: Option<String>,
    uid: Option<String>,
    kind: NoteKind,
    reason: &'static str,
    text: String,
}

/// A story that goes on.
#[derive(Clone, Debug)]
struct Story {
    /// The Event's own name.
    event: String,
    count: i32,
    last: Duration,
    written: Duration,
    is_behind: bool,
}

/// A count that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) key: Key,
    pub(super) event: String,
    pub(super) times: i32,
}

/// What to do about something told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Create,
    Write(Count),
    /// It was counted; that is written with the next round.
    Later,
}

/// The stories that go on.
#[derive(Debug, Default)]
pub(super) struct Stories(HashMap<Key, Story>);

impl Key {
    pub(super) fn new(about: &ObjectReference, note: &Note) -> Self {
        Self {
            namespace: about.namespace.clone(),
            object: about.kind.clone(),
            name: about.name.clone(),
            uid: about.uid.clone(),
            kind: note.kind,
            reason: note.reason,
            text: note.text.clone(),
        }
    }

    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }
}

impl Stories {
    /// Something was told.
    pub(super) fn hear(&mut self, key: &Key, now: Duration) -> Deed {
        let Some(story) = self.0.get_mut(key) else {
            return Deed::Create;
        };
        if now.saturating_sub(story.last) > STORY {
            self.0.remove(key);
            return Deed::Create;
        }
        story.last = now;
        story.count = story.count.saturating_add(1);
        if now.saturating_sub(story.written) < COUNT_EVERY {
            story.is_behind = true;
            return Deed::Later;
        }
        story.written = now;
        story.is_behind = false;
        Deed::Write(Count {
            key: key.clone(),
            event: story.event.clone(),
            times: story.count,
        })
    }

    /// An Event was written, and a story begins.
    pub(super) fn begin(&mut self, key: Key, event: String, now: Duration) {
        if self.0.len() >= KNOWN {
            self.make_room(now);
        }
        let story = Story {
            event,
            count: 1,
            last: now,
            written: now,
            is_behind: false,
        };
        self.0.insert(key, story);
    }

    /// It cannot be counted there any more.
    pub(super) fn end(&mut self, key: &Key) {
        self.0.remove(key);
    }

    /// Counts that are behind, `at_once` or when it is time; they are taken as written.
    pub(super) fn behind(&mut self, now: Duration, at_once: bool) -> Vec<Count> {
        let stories = self.0.iter_mut();
        stories
            .filter(|(_, story)| story.is_behind)
            .filter(|(_, story)| at_once || now.saturating_sub(story.written) >= COUNT_EVERY)
            .map(|(key, story)| {
                story.is_behind = false;
                story.written = now;
                Count {
                    key: key.clone(),
                    event: story.event.clone(),
                    times: story.count,
                }
            })
            .collect()
    }

    fn make_room(&mut self, now: Duration) {
        self.0
            .retain(|_, story| now.saturating_sub(story.last) <= STORY);
        if self.0.len() < KNOWN {
            return;
        }
        let oldest = self.0.iter().min_by_key(|(_, story)| story.last);
        if let Some(key) = oldest.map(|(key, _)| key.clone()) {
            self.0.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(text: &str) -> Key {
        let note = Note {
            kind: NoteKind::Normal,
            reason: "Asleep",
            action: "Sleep",
            text: text.to_owned(),
        };
        Key::new(&ObjectReference::default(), &note)
    }

    fn count(times: i32) -> Count {
        Count {
            key: key("a"),
            event: "event".to_owned(),
            times,
        }
    }

    #[test]
    fn the_same_is_counted_and_seldom_written() {
        let seconds = Duration::from_secs;
        let mut stories = Stories::default();
        assert_eq!(stories.hear(&key("a"), seconds(0)), Deed::Create);
        stories.begin(key("a"), "event".to_owned(), seconds(0));
        assert_eq!(stories.hear(&key("a"), seconds(1)), Deed::Later);
        assert_eq!(stories.hear(&key("b"), seconds(1)), Deed::Create);
        assert_eq!(stories.behind(seconds(2), false), []);
        assert_eq!(stories.behind(seconds(10), false), [count(2)]);
        assert_eq!(stories.behind(seconds(30), false), []);
        assert_eq!(stories.hear(&key("a"), seconds(30)), Deed::Write(count(3)));
        assert_eq!(stories.hear(&key("a"), seconds(31)), Deed::Later);
        assert_eq!(stories.behind(seconds(31), true), [count(4)]);
        assert_eq!(stories.hear(&key("a"), seconds(332)), Deed::Create);
    }

    proptest! {
        #[test]
        fn none_is_lost_and_few_are_written(pauses in prop::collection::vec(0_u64..400_000, 1..60)) {
            let mut stories = Stories::default();
            let mut now = Duration::ZERO;
            let (mut told, mut writes) = (0_u32, 0_u32);
            let mut shown: Vec<i32> = Vec::new();
            for pause in pauses {
                now += Duration::from_millis(pause);
                told += 1;
                let mut show = |count: Count| *shown.last_mut().unwrap() = count.times;
                match stories.hear(&key("a"), now) {
                    Deed::Create => {
                        shown.push(1);
                        stories.begin(key("a"), "event".to_owned(), now);
                        writes += 1;
                    }
                    Deed::Write(count) => {
                        show(count);
                        writes += 1;
                    }
                    Deed::Later => {}
                }
                // The round at the end of a story, so that its count is whole before another begins.
                for count in stories.behind(now, true) {
                    *shown.last_mut().unwrap() = count.times;
                }
            }
            prop_assert_eq!(shown.iter().sum::<i32>(), i32::try_from(told).unwrap());
            prop_assert!(writes <= told);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn memory_is_bounded(names in prop::collection::vec(0_u32..20_000, 5000)) {
            let mut stories = Stories::default();
            for (now, name) in names.into_iter().enumerate() {
                let key = key(&name.to_string());
                stories.begin(key, String::new(), Duration::from_millis(now as u64));
            }
            prop_assert!(stories.0.len() <= KNOWN);
        }
    }
}
