//! Shows that something is going on: a spinner with the time on a terminal, plain lines elsewhere.

use std::{
    io::IsTerminal,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};

/// One thing after another that takes a while.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    began: Instant,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("  {spinner} {msg} ({elapsed})") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self {
            bar,
            began: Instant::now(),
        }
    }

    /// What is being done now.
    pub(crate) fn doing(&self, what: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(what.to_owned()),
            None => println!("  {what} …"),
        }
    }

    /// A line that stays.
    pub(crate) fn done(&self, what: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| println!("  {what}")),
            None => println!("  {what}"),
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Seconds with one decimal below a minute, minutes and seconds above.
pub(crate) fn human(duration: Duration) -> String {
    if duration < Duration::from_mins(1) {
        return format!("{:.1} s", duration.as_secs_f64());
    }
    format!(
        "{} min {:02} s",
        duration.as_secs() / 60,
        duration.as_secs() % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_told_in_units_that_fit() {
        assert_eq!(human(Duration::from_millis(4100)), "4.1 s");
        assert_eq!(human(Duration::from_secs(442)), "7 min 22 s");
    }
}
