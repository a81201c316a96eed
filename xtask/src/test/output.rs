//! Reads what `cargo test` prints, line by line: which program ran, how many tests passed, which failed.
//!
//! [`super::summary`] makes a table of it.

use super::{plan::ON_API_SERVER, programs::Names};

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
#[derive(Debug, Default)]
pub(crate) struct Output {
    names: Names,
    programs: Vec<Program>,
    /// In the list of names after `failures:`.
    in_failures: bool,
    /// Of `--list`: the program and the test, of those that need a server.
    pub(crate) listed: Vec<(String, String)>,
}

impl Output {
    /// Nothing is read yet; programs will be called by these names.
    pub(crate) fn new(names: &Names) -> Self {
        Self {
            names: names.clone(),
            ..Self::default()
        }
    }

    /// Takes in one line.
    pub(crate) fn read(&mut self, line: &str) {
        let line = without_colours(line);
        let line = line.trim_end();
        if let Some(name) = program_name(line, &self.names) {
            self.in_failures = false;
            self.programs.push(Program {
                name,
                ..Program::default()
            });
            return;
        }
        let Some(program) = self.programs.last_mut() else {
            return;
        };
        if let Some(test) = line.strip_suffix(": test") {
            if test.contains(ON_API_SERVER) {
                self.listed.push((program.name.clone(), test.to_owned()));
            }
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

    /// The programs, with those tests counted as skipped that were listed as needing a server.
    pub(crate) fn finish(self, skipped: &[(String, String)]) -> Vec<Program> {
        let mut programs = self.programs;
        for program in &mut programs {
            program.skipped += skipped
                .iter()
                .filter(|(name, _)| *name == program.name)
                .count();
            if program.began && !program.ended {
                program.failed += 1;
                program
                    .failures
                    .push("(it crashed before it told its result)".to_owned());
            }
        }
        programs
    }
}

impl Program {
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

/// The program that cargo says it runs now.
fn program_name(line: &str, names: &Names) -> Option<String> {
    let line = line.trim_start();
    if let Some(of) = line.strip_prefix("Doc-tests ") {
        return Some(format!("{of} (documentation)"));
    }
    // `Running tests/it/main.rs (target/debug/deps/it-dc1fe466cf027a6f)`
    let (source, file) = line
        .strip_prefix("Running ")?
        .strip_suffix(')')?
        .split_once(" (")?;
    let file = file.rsplit(['/', '\\']).next()?;
    Some(names.get(file).unwrap_or(source).to_owned())
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
        let mut output = Output::default();
        for line in text.lines() {
            output.read(line);
        }
        output
    }

    const PASSED: &str = "
   Compiling weir-api v0.1.0
     Running unittests src/lib.rs (target/debug/deps/weir_api-d5c6240d4967c7f4)

running 3 tests
test cache::tests::found ... ok
test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.52s
";

    #[test]
    fn a_program_is_read_with_its_name_counts_and_time() {
        let programs = read(PASSED).finish(&[]);
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
            ("unittests src/lib.rs", 2, 0, 1)
        );
        assert!((seconds - 0.52).abs() < 1e-9);
    }

    #[test]
    fn colours_do_not_matter() {
        let coloured = PASSED
            .replace("     Running", "\u{1b}[1m\u{1b}[92m     Running\u{1b}[0m")
            .replace(": ok", ": \u{1b}[32mok\u{1b}(B\u{1b}[m");
        assert_eq!(read(&coloured).finish(&[])[0].passed, 2);
    }

    #[test]
    fn failures_are_named_once_and_not_taken_from_their_output() {
        let text = "
     Running tests/it/main.rs (target/debug/deps/it-dc1fe466cf027a6f)

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
        let programs = read(text).finish(&[]);
        assert_eq!(programs[0].failures, ["a::fails"]);
        assert_eq!((programs[0].passed, programs[0].failed), (1, 1));
        assert_eq!(programs[0].name, "tests/it/main.rs");
    }

    #[test]
    fn a_program_that_tells_no_result_has_crashed() {
        let text = "     Running tests/it/main.rs (target/debug/deps/it-dc1f)\n\nrunning 2 tests\n";
        let programs = read(text).finish(&[]);
        assert_eq!(programs[0].failed, 1);
        assert!(programs[0].failures[0].contains("crashed"));
    }

    #[test]
    fn listed_tests_count_as_skipped_where_they_belong() {
        let listing = "
     Running unittests src/lib.rs (target/debug/deps/weir_api-d5c6240d4967c7f4)
on_api_server::refuses: test
plain: test

2 tests, 0 benchmarks
";
        let skipped = read(listing).listed;
        assert_eq!(skipped.len(), 1);
        let programs = read(PASSED).finish(&skipped);
        assert_eq!((programs[0].passed, programs[0].skipped), (2, 2));
    }

    #[test]
    fn documentation_is_a_program_too() {
        let name = |line| program_name(line, &Names::default());
        assert_eq!(
            name("   Doc-tests weir_api").unwrap(),
            "weir_api (documentation)"
        );
        assert_eq!(name("     Running `target/debug/weir`"), None);
    }
}
