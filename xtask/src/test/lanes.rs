//! Runs test programs, several beside each other: most of them wait more than they compute.
//!
//! In one lane all that a program prints is passed on as it comes. With more lanes that could not be read: then one
//! line tells how each ended, and only of one that failed everything is printed, in one piece.

use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, Write},
    process::{Child, Command},
    sync::{Mutex, PoisonError},
    thread,
};

use anyhow::{Context, Result, anyhow};

use super::output::{Output, Program};

/// What the standard test harness says of a test that may hang.
const LONG: &str = " has been running for over ";

/// A program to run.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) command: Command,
}

/// Runs all of them in so many lanes, in this order, and returns what they said, by name.
pub(crate) fn run(
    jobs: Vec<Job>,
    lanes: usize,
    start: impl Fn(&mut Command) -> io::Result<Child> + Sync,
) -> Result<Vec<Program>> {
    let is_aloud = lanes == 1;
    let jobs = Mutex::new(VecDeque::from(jobs));
    let next = || {
        let mut jobs = jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.pop_front()
    };
    let lane = || -> Result<Vec<Program>> {
        let mut programs = Vec::new();
        while let Some(job) = next() {
            programs.extend(run_one(job, is_aloud, &start)?);
        }
        Ok(programs)
    };
    let mut programs = thread::scope(|scope| -> Result<Vec<Program>> {
        let lanes: Vec<_> = (0..lanes).map(|_| scope.spawn(lane)).collect();
        let mut programs = Vec::new();
        for lane in lanes {
            let of_lane = lane.join().map_err(|_| anyhow!("a lane of tests ended"))?;
            programs.extend(of_lane?);
        }
        Ok(programs)
    })?;
    programs.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(programs)
}

fn run_one(
    Job { name, mut command }: Job,
    is_aloud: bool,
    start: impl Fn(&mut Command) -> io::Result<Child>,
) -> Result<Vec<Program>> {
    // One pipe for both of its outputs, whose order tells what belongs together.
    let (reader, writer) = io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = start(&mut command).with_context(|| format!("cannot run {name}"))?;
    // It holds the writing end; with that open the pipe would never end.
    drop(command);

    if is_aloud {
        print(format!("\n== {name}\n").as_bytes())?;
    }
    let mut output = Output::of(&name);
    let mut said = Vec::new();
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        output.read(&text);
        if is_aloud {
            print(&line)?;
        } else {
            if text.contains(LONG) {
                print(format!("  ...     {name}: {text}").as_bytes())?;
            }
            said.extend_from_slice(&line);
        }
        line.clear();
    }
    let programs = output.finish(child.wait()?.success());
    if !is_aloud {
        let mut end = Vec::new();
        let failed: usize = programs.iter().map(|program| program.failed).sum();
        if failed > 0 {
            end.extend_from_slice(format!("\n== {name}\n").as_bytes());
            end.append(&mut said);
        }
        end.extend_from_slice(how_it_ended(&name, &programs).as_bytes());
        print(&end)?;
    }
    Ok(programs)
}

fn how_it_ended(name: &str, programs: &[Program]) -> String {
    let total = |count: fn(&Program) -> usize| programs.iter().map(count).sum::<usize>();
    let seconds: f64 = programs.iter().map(|program| program.seconds).sum();
    let (passed, failed) = (total(|it| it.passed), total(|it| it.failed));
    match failed {
        0 => format!("  ok      {name}: {passed} passed in {seconds:.1} s\n"),
        _ => format!("  FAILED  {name}: {failed} failed, {passed} passed in {seconds:.1} s\n"),
    }
}

/// All of it before anything of another lane.
fn print(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str, script: &str) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Job {
            name: name.to_owned(),
            command,
        }
    }

    #[test]
    fn each_program_is_run_once_and_told_by_name() {
        let jobs = ["c", "a", "d", "b"].map(|name| {
            job(
                name,
                "echo running 1 test; echo 'test result: ok. 1 passed'",
            )
        });
        let programs = run(jobs.into(), 3, Command::spawn).unwrap();
        let names: Vec<_> = programs.iter().map(|program| &*program.name).collect();
        assert_eq!(names, ["a", "b", "c", "d"]);
        assert!(programs.iter().all(|program| program.passed == 1));
    }

    #[test]
    fn lanes_run_beside_each_other() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        // Each waits for the other, ten seconds at most.
        let meet = |mine: &str, other: &str| {
            format!(
                "touch {}; for i in $(seq 100); do [ -e {} ] && exit 0; sleep 0.1; done; exit 1",
                path(mine),
                path(other)
            )
        };
        let jobs = vec![job("a", &meet("a", "b")), job("b", &meet("b", "a"))];
        let programs = run(jobs, 2, Command::spawn).unwrap();
        assert!(programs.iter().all(|program| program.failed == 0));
    }

    #[test]
    fn a_program_that_ends_badly_without_a_word_has_failed() {
        let programs = run(vec![job("a", "kill -9 $$")], 1, Command::spawn).unwrap();
        assert_eq!(programs[0].failed, 1);
        assert!(how_it_ended("a", &programs).starts_with("  FAILED  a: 1 failed"));
    }
}
