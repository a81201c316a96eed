//! The original's account, kept for compatibility: it drives `creditBalance`, the older policies and the
//! throttle's creditsRatio, nothing else. What is promised to users is kept by [`crate::budget`].

use std::collections::VecDeque;

/// A running balance of (target error − realised error), clamped.
#[derive(Clone, Debug, PartialEq)]
pub struct Credit {
    /// The target error.
    pub target: f64,
    /// The least balance.
    pub min: f64,
    /// The greatest balance.
    pub max: f64,
    /// How strongly one window moves the balance.
    pub sensitivity: f64,
    balance: f64,
    window: usize,
    last: VecDeque<f64>,
}

impl Credit {
    /// A balance of zero; `window` is how many updates the velocity averages.
    pub fn new(target: f64, min: f64, max: f64, sensitivity: f64, window: usize) -> Self {
        Self {
            target,
            min,
            max,
            sensitivity,
            balance: 0.0,
            window,
            last: VecDeque::new(),
        }
    }

    /// With this balance instead, clamped or not, as the original takes it.
    #[must_use]
    pub fn with_balance(mut self, balance: f64) -> Self {
        self.balance = balance;
        self
    }

    /// A feedback window was served with this mean precision.
    pub fn update(&mut self, precision: f64) {
        let delta = (self.target - (1.0 - precision).max(0.0)) * self.sensitivity;
        // Not `clamp`: it panics where min is above max, which the original allows.
        self.balance = self.min.max(self.max.min(self.balance + delta));
        self.last.push_back(delta);
        while self.last.len() > self.window {
            self.last.pop_front();
        }
    }

    /// As at the beginning.
    pub fn reset(&mut self) {
        self.balance = 0.0;
        self.last.clear();
    }

    /// The balance.
    pub const fn balance(&self) -> f64 {
        self.balance
    }

    /// The mean change over the last windows.
    pub fn velocity(&self) -> f64 {
        if self.last.is_empty() {
            return 0.0;
        }
        #[expect(clippy::cast_precision_loss, reason = "a few hundred windows")]
        let count = self.last.len() as f64;
        self.last.iter().sum::<f64>() / count
    }

    /// Where the balance lies between min (0) and max (1), unclamped.
    pub fn normalised(&self) -> f64 {
        let span = self.max - self.min;
        (self.balance - self.min) / if span == 0.0 { 1.0 } else { span }
    }
}
