//! Reads what a test program prints, line by line: how many tests passed, which failed.
//!
//! [`super::summary`] makes a table of it.

use super::plan::ON_API_SERVER;

/// What one test program did.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Program {
    /// Its crate and what of it: `weir-lab tests/it`.
    pub(crate) name: String,
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    /// Marked `#[ignore]`, or skipped for want of a server.
    pub(crate) skipped: usize,
    pub(crate) seconds: f64,
    /// The names of those that failed.
    pub(crate) failures: Vec<String>,
    /// It began to run tests.
    pub(super) began: bool,
    /// It told its result. One that did not has crashed.
    pub(super) ended: bool,
}

/// All that was read so far.
#[derive(Debug)]
pub(crate) struct Output {
    /// One, or of documentation one for each crate.
    programs: Vec<Program>,
    /// In the list of names after `failures:`.
    in_failures: bool,
    /// Of `--list`: how many need a server.
    pub(crate) listed: usize,
}

impl Output {
    /// Nothing is read yet of the program of this name.
    pub(crate) fn of(name: &str) -> Self {
        Self {
            programs: vec![Program::named(name.to_owned())],
            in_failures: false,
            listed: 0,
        }
    }

    /// Takes in one line.
    pub(crate) fn read(&mut self, line: &str) {
        let line = without_colours(line);
        let line = line.trim_end();
        if let Some(of) = line.trim_start().strip_prefix("Doc-tests ") {
            self.in_failures = false;
            let name = format!("{of} (documentation)");
            self.programs.push(Program::named(name));
            return;
        }
        let Some(program) = self.programs.last_mut() else {
            return;
        };
        if let Some(test) = line.strip_suffix(": test") {
            self.listed += usize::from(test.contains(ON_API_SERVER));
        } else if line.starts_with("running ") && line.contains(" test") {
            program.began = true;
        } else if line == "failures:" {
            self.in_failures = true;
        } else if let Some(result) = line.strip_prefix("test result: ") {
            self.in_failures = false;
            program.take_result(result);
        } else if self.in_failures
            && let Some(name) = line.strip_prefix("    ")
            && is_test_name(name)
            && !program.failures.iter().any(|known| known == name)
        {
            program.failures.push(name.to_owned());
        }
    }

    /// The programs. Whether they succeeded is known from how they ended: one that failed and told no result crashed.
    pub(crate) fn finish(self, succeeded: bool) -> Vec<Program> {
        let mut programs = self.programs;
        let has_failed = programs.iter().any(|program| program.failed > 0);
        if let Some(last) = programs.last_mut()
            && ((last.began && !last.ended) || (!succeeded && !has_failed))
        {
            last.failed += 1;
            last.failures
                .push("(it crashed before it told its result)".to_owned());
        }
        programs
    }
}

impl Program {
    fn named(name: String) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    /// `ok. 14 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s`
    fn take_result(&mut self, result: &str) {
        self.ended = true;
        let counts = result.split_once(". ").map_or(result, |(_, counts)| counts);
        for part in counts.split("; ") {
            let count = || {
                part.split(' ')
                    .next()
                    .and_then(|n| n.parse().ok())
                    .unwrap_or(0)
            };
            if part.ends_with(" passed") {
                self.passed += count();
            } else if part.ends_with(" failed") {
                self.failed += count();
            } else if part.ends_with(" ignored") {
                self.skipped += count();
            } else if let Some(seconds) = part.strip_prefix("finished in ") {
                self.seconds += seconds.trim_end_matches('s').parse().unwrap_or(0.0);
            }
        }
    }
}

/// Names of tests are paths; the lines of a failure's own output mostly are not.
fn is_test_name(name: &str) -> bool {
    let is_part_of_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    !name.is_empty() && (name.chars().all(is_part_of_path) || name.contains(".rs - "))
}

fn without_colours(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        if c == '\u{1b}' {
            // `ESC [ … letter`
            characters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(c);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Output {
        let mut output = Output::of("weir-api src");
        for line in text.lines() {
            output.read(line);
        }
        output
    }

    const PASSED: &str = "

running 3 tests
test cache::tests::found ... ok
test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.52s
";

    #[test]
    fn a_program_is_read_with_its_counts_and_time() {
        let programs = read(PASSED).finish(true);
        assert_eq!(programs.len(), 1);
        let Program {
            name,
            passed,
            failed,
            skipped,
            seconds,
            ..
        } = &programs[0];
        assert_eq!(
            (name.as_str(), *passed, *failed, *skipped),
            ("weir-api src", 2, 0, 1)
        );
        assert!((seconds - 0.52).abs() < 1e-9);
    }

    #[test]
    fn colours_do_not_matter() {
        let coloured = PASSED.replace(": ok", ": \u{1b}[32mok\u{1b}(B\u{1b}[m");
        assert_eq!(read(&coloured).finish(true)[0].passed, 2);
    }

    #[test]
    fn failures_are_named_once_and_not_taken_from_their_output() {
        let text = "
running 2 tests
test a::fails ... FAILED

failures:

---- a::fails stdout ----
    what it printed, indented
thread 'a::fails' panicked at crates/lab/tests/it/refusals.rs:42:5:


failures:
    a::fails

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s
";
        let programs = read(text).finish(false);
        assert_eq!(programs[0].failures, ["a::fails"]);
        assert_eq!((programs[0].passed, programs[0].failed), (1, 1));
    }

    #[test]
    fn a_program_that_tells_no_result_has_crashed() {
        for (said, succeeded) in [("\nrunning 2 tests\n", true), ("", false)] {
            let programs = read(said).finish(succeeded);
            assert_eq!(programs[0].failed, 1);
            assert!(programs[0].failures[0].contains("crashed"));
        }
    }

    #[test]
    fn those_that_need_a_server_are_counted_in_a_list() {
        let listing = "
on_api_server::refuses: test
plain: test

2 tests, 0 benchmarks
";
        assert_eq!(read(listing).listed, 1);
    }

    #[test]
    fn each_crates_documentation_is_a_program_of_its_own() {
        let text = format!("   Doc-tests weir_api\n{PASSED}   Doc-tests weir_lab\n{PASSED}");
        let programs = read(&text).finish(true);
        let names: Vec<_> = programs.iter().map(|program| &*program.name).collect();
        assert_eq!(
            names[1..],
            ["weir_api (documentation)", "weir_lab (documentation)"]
        );
        assert_eq!((programs[1].passed, programs[2].passed), (2, 2));
    }
}
