//! Says how a run of the tests went: a table, what failed, what was skipped and why, and one last line of counts.

use std::{fmt, time::Duration};

use super::output::Program;
use crate::{
    progress::human,
    table::{self, Align},
};

/// All that is known when the tests have run.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(crate) programs: Vec<Program>,
    pub(crate) is_built: bool,
    /// Why tests that need an API server were skipped.
    pub(crate) no_server: Option<String>,
    pub(crate) is_ci: bool,
    pub(crate) filters: Vec<String>,
    pub(crate) took: Duration,
}

impl Summary {
    pub(crate) fn is_success(&self) -> bool {
        self.complaints().is_empty() && self.total(|program| program.failed) == 0
    }

    fn total(&self, count: impl Fn(&Program) -> usize) -> usize {
        self.programs.iter().map(count).sum()
    }

    /// What is wrong with the run as a whole, beside tests that failed.
    fn complaints(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        if !self.is_built {
            complaints.push("the tests could not be built: see above".to_owned());
        }
        let ran = self.total(|program| program.passed + program.failed + program.skipped);
        if self.is_built && ran == 0 && !self.filters.is_empty() {
            complaints.push(format!(
                "no test's name contains {}",
                self.filters.join(" or ")
            ));
        }
        if self.is_ci && self.no_server.is_some() {
            complaints.push("tests were skipped, which CI does not allow".to_owned());
        }
        complaints
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let head = ["tests of", "passed", "failed", "skipped", "seconds"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        let ran = |program: &&Program| program.passed + program.failed + program.skipped > 0;
        for program in self.programs.iter().filter(ran) {
            rows.push(row(
                &program.name,
                [program.passed, program.failed, program.skipped],
                program.seconds,
            ));
        }
        let seconds = self.programs.iter().map(|program| program.seconds).sum();
        rows.push(row("total", self.counts(), seconds));
        rows
    }

    fn counts(&self) -> [usize; 3] {
        [
            self.total(|p| p.passed),
            self.total(|p| p.failed),
            self.total(|p| p.skipped),
        ]
    }
}

fn row(name: &str, counts: [usize; 3], seconds: f64) -> Vec<String> {
    let [passed, failed, skipped] = counts.map(|count| count.to_string());
    vec![
        name.to_owned(),
        passed,
        failed,
        skipped,
        format!("{seconds:.1}"),
    ]
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let align = [
            Align::Left,
            Align::Right,
            Align::Right,
            Align::Right,
            Align::Right,
        ];
        writeln!(f, "{}\n", table::render(&align, &self.rows()))?;
        if self.total(|program| program.failed) > 0 {
            writeln!(f, "failed:")?;
            for program in &self.programs {
                for name in &program.failures {
                    writeln!(f, "  {name}  ({})", program.name)?;
                }
            }
        }
        if let Some(reason) = &self.no_server {
            writeln!(f, "SKIPPED: tests that need an API server: {reason}")?;
        }
        for complaint in self.complaints() {
            writeln!(f, "error: {complaint}")?;
        }
        writeln!(f, "all in {}", human(self.took))?;
        let [passed, failed, skipped] = self.counts();
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(programs: Vec<Program>) -> Summary {
        Summary {
            programs,
            is_built: true,
            no_server: None,
            is_ci: false,
            filters: Vec::new(),
            took: Duration::from_secs(75),
        }
    }

    fn program(passed: usize, failed: usize, skipped: usize) -> Program {
        let failures = (0..failed).map(|n| format!("fails_{n}")).collect();
        let name = "weir_api src/lib.rs".to_owned();
        Program {
            name,
            passed,
            failed,
            skipped,
            failures,
            seconds: 0.5,
            ..Program::default()
        }
    }

    #[test]
    fn the_last_line_is_the_counts_and_nothing_else() {
        let text = summary(vec![program(3, 0, 1), program(2, 1, 0)]).to_string();
        assert_eq!(text.lines().last(), Some("5 passed, 1 failed, 1 skipped"));
        assert!(text.contains("  fails_0  (weir_api src/lib.rs)"), "{text}");
        assert!(text.contains("all in 1 min 15 s"));
    }

    #[test]
    fn a_failed_test_fails_the_run() {
        assert!(summary(vec![program(3, 0, 1)]).is_success());
        assert!(!summary(vec![program(3, 1, 0)]).is_success());
    }

    #[test]
    fn a_build_that_failed_fails_the_run() {
        let summary = Summary {
            is_built: false,
            ..summary(Vec::new())
        };
        assert!(!summary.is_success());
    }

    #[test]
    fn a_filter_that_no_test_matches_fails_the_run() {
        let filters = vec!["nosuch".to_owned()];
        let summary = Summary {
            filters,
            ..summary(vec![program(0, 0, 0)])
        };
        assert!(!summary.is_success());
        assert!(
            summary
                .to_string()
                .contains("error: no test's name contains nosuch")
        );
    }

    #[test]
    fn skipping_is_allowed_on_a_desk_and_not_in_ci() {
        let skipping = |is_ci| Summary {
            no_server: Some("Go is not installed".to_owned()),
            is_ci,
            ..summary(vec![program(3, 0, 2)])
        };
        assert!(skipping(false).is_success());
        assert!(!skipping(true).is_success());
        assert!(skipping(false).to_string().contains("SKIPPED"));
    }
}
