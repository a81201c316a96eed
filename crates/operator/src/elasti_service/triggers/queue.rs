//! Which question is sent next: in the order in which they came, with room for every server.
//!
//! A synchronous state machine. One server that hangs keeps its own places taken and no others.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use super::question::Question;

/// The most requests that are under way at a time.
pub const PARALLEL: usize = 32;
/// The most of them that one server gets.
pub const PER_SERVER: usize = 16;

/// The questions that wait, and how many are under way.
#[derive(Debug, Default)]
pub struct Queue {
    /// One line for each server that has questions waiting or under way.
    lines: HashMap<Arc<str>, Line>,
    /// The servers that have questions waiting, the one whose turn it is first.
    turns: VecDeque<Arc<str>>,
    running: usize,
}

#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<Arc<Question>>,
    running: usize,
}

impl Queue {
    /// A question goes to the end of its server's line.
    pub fn push(&mut self, question: Arc<Question>) {
        let line = self.lines.entry(Arc::clone(&question.server)).or_default();
        if line.waiting.is_empty() {
            self.turns.push_back(Arc::clone(&question.server));
        }
        line.waiting.push_back(question);
    }

    /// The next one to send, which is under way from now on.
    pub fn pop(&mut self) -> Option<Arc<Question>> {
        if self.running >= PARALLEL {
            return None;
        }
        for _ in 0..self.turns.len() {
            let server = self.turns.pop_front()?;
            let Some(line) = self.lines.get_mut(&server) else {
                continue;
            };
            let question = if line.running < PER_SERVER {
                line.waiting.pop_front()
            } else {
                None
            };
            line.running += usize::from(question.is_some());
            self.running += usize::from(question.is_some());
            if !line.waiting.is_empty() {
                self.turns.push_back(server);
            }
            if question.is_some() {
                return question;
            }
        }
        None
    }

    /// One that was under way is so no longer.
    pub fn finished(&mut self, question: &Question) {
        self.running = self.running.saturating_sub(1);
        if let Some(line) = self.lines.get_mut(&question.server) {
            line.running = line.running.saturating_sub(1);
            if line.running == 0 && line.waiting.is_empty() {
                self.lines.remove(&question.server);
            }
        }
    }

    /// One that waits is not wanted any more.
    pub fn remove(&mut self, question: &Question) {
        let Some(line) = self.lines.get_mut(&question.server) else {
            return;
        };
        line.waiting.retain(|waiting| **waiting != *question);
        if line.waiting.is_empty() {
            self.turns.retain(|server| *server != question.server);
            if line.running == 0 {
                self.lines.remove(&question.server);
            }
        }
    }

    /// Nothing that waits is wanted any more.
    pub fn clear(&mut self) {
        self.turns.clear();
        self.lines.retain(|_, line| {
            line.waiting.clear();
            line.running > 0
        });
    }
}
