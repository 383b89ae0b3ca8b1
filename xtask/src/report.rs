//! Runs steps, one after another or in lanes at the same time, and prints at the end the result and the time of each.
//! A failed step does not stop the others.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::output;

/// How many lines of the reason of a failed step are printed below the summary.
const REASON_LINES: usize = 120;

/// How many lines of the log of a step are printed if the step does not end.
const LAST_LINES: usize = 20;

/// The words of the test harness about a test that runs for long.
const RUNS_FOR_LONG: &str = "has been running for over";

/// The steps that run now, and their logs.
static RUNNING: Mutex<Vec<(String, PathBuf)>> = Mutex::new(Vec::new());

/// Ends this program after `time`, because a test hangs or the machine is too slow. First prints what the running steps wrote: who
/// stops a run from outside sees only what was printed.
pub(crate) fn end_after(time: Duration) {
    thread::spawn(move || {
        thread::sleep(time);
        for (name, log) in lock(&RUNNING).iter() {
            println!("\n=== NOT FINISHED after {} minutes: {name}", time.as_secs() / 60);
            let log = fs::read_to_string(log).unwrap_or_default();
            unfinished(&log).iter().for_each(|line| println!("{line}"));
        }
        std::process::exit(1);
    });
}

/// The lines of a log that name tests which run for long and have not ended, and the last lines.
fn unfinished(log: &str) -> Vec<&str> {
    let is_open = |line: &&str| {
        let test = line.split_once(RUNS_FOR_LONG).map(|(test, _)| test.trim_end());
        test.is_some_and(|test| {
            !log.lines().any(|line| line.strip_prefix(test).is_some_and(|end| end.starts_with(" ... ")))
        })
    };
    let last = log.lines().count().saturating_sub(LAST_LINES);
    log.lines().filter(is_open).chain(log.lines().skip(last)).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The results so far.
pub(crate) struct Report {
    title: &'static str,
    /// The directory for the logs of steps that run at the same time.
    logs: PathBuf,
    /// The name of the lane; empty if steps run one after another.
    lane: &'static str,
    lines: Vec<Line>,
    began: Instant,
}

struct Line {
    name: String,
    lane: &'static str,
    verdict: Verdict,
    /// The time since the start of the report.
    began: Duration,
    took: Duration,
    /// Processor time of the programs that the step started.
    processor: Duration,
    note: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Verdict {
    Passed,
    Failed,
    Skipped,
}

/// A family of tests that cannot run here, and the reason.
pub(crate) struct Missing {
    /// Its name in `BELLJAR_SKIP`.
    pub(crate) family: &'static str,
    /// The reason, and how to install what is missing.
    pub(crate) reason: String,
}

/// Steps that run one after another, beside those of other lanes.
pub(crate) struct Lane<'a> {
    pub(crate) name: &'static str,
    pub(crate) steps: Box<dyn FnOnce(&mut Report) + Send + 'a>,
}

impl Report {
    /// An empty report. The logs of steps that run at the same time lie below `target`.
    pub(crate) fn new(title: &'static str, target: &std::path::Path) -> Report {
        let logs = target.join("logs");
        Report { title, logs, lane: "", lines: Vec::new(), began: Instant::now() }
    }

    /// Runs one step.
    pub(crate) fn step(&mut self, name: &str, step: impl FnOnce() -> Result<()>) {
        self.noted_step(name, || step().map(|()| String::new()));
    }

    /// Runs one step that returns a note for the summary.
    pub(crate) fn noted_step(&mut self, name: &str, step: impl FnOnce() -> Result<String>) {
        let log = self.begin(name);
        lock(&RUNNING).extend(log.iter().map(|log| (name.to_owned(), log.clone())));
        let (began, processor) = (self.began.elapsed(), output::processor_time());
        let (verdict, note) = match step() {
            Ok(note) => (Verdict::Passed, note),
            Err(error) => (Verdict::Failed, format!("{error:#}")),
        };
        if verdict == Verdict::Failed {
            output::line(&format!("{name}: {note}"));
        }
        let took = self.began.elapsed().saturating_sub(began);
        let processor = output::processor_time().saturating_sub(processor);
        self.lines.push(Line { name: name.to_owned(), lane: self.lane, verdict, began, took, processor, note });
        if let Some(log) = log {
            output::set_log(None);
            lock(&RUNNING).retain(|(_, running)| *running != log);
            show(&format!("{name}: {} seconds", took.as_secs()), &log);
        }
    }

    /// Prints the title of a step. In a lane, also opens the log of the step, and returns its path.
    fn begin(&self, name: &str) -> Option<PathBuf> {
        if !self.lane.is_empty() {
            let path = self.logs.join(format!("{}.txt", name.replace([' ', ','], "-")));
            if let Ok(log) = fs::create_dir_all(&self.logs).and_then(|()| File::create(&path)) {
                println!("... {name} ({})", self.lane);
                output::set_log(Some(log));
                return Some(path);
            }
        }
        println!("\n=== {name}");
        None
    }

    /// Runs lanes at the same time, and waits for all of them.
    pub(crate) fn lanes(&mut self, lanes: Vec<Lane<'_>>) {
        let (title, began) = (self.title, self.began);
        let lines = thread::scope(|scope| {
            let running: Vec<_> = lanes
                .into_iter()
                .map(|lane| {
                    let (name, logs) = (lane.name, self.logs.clone());
                    let steps = move || {
                        let mut report = Report { title, logs, lane: name, lines: Vec::new(), began };
                        (lane.steps)(&mut report);
                        report.lines
                    };
                    (name, scope.spawn(steps))
                })
                .collect();
            running.into_iter().map(|(name, lane)| (name, lane.join())).collect::<Vec<_>>()
        });
        for (name, lines) in lines {
            match lines {
                Ok(lines) => self.lines.extend(lines),
                Err(_) => self.add_unrun(name, Verdict::Failed, "the lane panicked"),
            }
        }
    }

    /// Notes a step that this machine cannot run.
    pub(crate) fn skip(&mut self, name: &str, reason: &str) {
        self.add_unrun(name, Verdict::Skipped, reason);
    }

    /// Adds a line for a step that did not run.
    fn add_unrun(&mut self, name: &str, verdict: Verdict, reason: &str) {
        let (began, took, processor) = (self.began.elapsed(), Duration::ZERO, Duration::ZERO);
        let (name, note) = (name.to_owned(), reason.to_owned());
        self.lines.push(Line { name, lane: self.lane, verdict, began, took, processor, note });
    }

    /// True if a step has failed.
    pub(crate) fn failed(&self) -> bool {
        self.lines.iter().any(|line| line.verdict == Verdict::Failed)
    }

    /// Prints the summary; fails if a step did.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.lines.sort_by_key(|line| line.began);
        println!("\n=== summary of {}: result, step, lane, from, time, processor time (seconds)", self.title);
        for line in &self.lines {
            let verdict = match line.verdict {
                Verdict::Passed => "ok",
                Verdict::Failed => "FAILED",
                Verdict::Skipped => "SKIPPED",
            };
            let note = line.note.lines().next().unwrap_or_default();
            let [began, took, processor] = [line.began, line.took, line.processor].map(|time| time.as_secs());
            println!("{verdict:<8} {:<34} {:<10} {began:>5} {took:>5} {processor:>5}  {note}", line.name, line.lane);
        }
        let processor: u64 = self.lines.iter().map(|line| line.processor.as_secs()).sum();
        println!("{:<8} {:<34} {:<10} {:>5} {:>5} {processor:>5}", "", "all", "", "", self.began.elapsed().as_secs());
        // The reasons are also printed above. CI often shows only the end of a long log.
        for line in self.lines.iter().filter(|line| line.verdict == Verdict::Failed) {
            let reason: Vec<_> = line.note.lines().take(REASON_LINES).collect();
            println!("\n=== why \"{}\" failed\n{}", line.name, reason.join("\n"));
        }
        if self.failed() {
            bail!("{} failed", self.title);
        }
        Ok(())
    }
}

/// Prints the log of a step, without the lines of another one in between.
fn show(title: &str, log: &std::path::Path) {
    let mut out = std::io::stdout().lock();
    // Standard output that is closed must not end a test run: the result does not depend on it.
    let _ = writeln!(out, "\n=== {title}");
    if let Ok(mut log) = File::open(log) {
        let _ = std::io::copy(&mut log, &mut out);
    }
}

/// A result that one lane makes and other lanes wait for.
#[derive(Default)]
pub(crate) struct Awaited {
    made: Mutex<Option<bool>>,
    reported: Condvar,
}

impl Awaited {
    /// Reports that the result was made, or that it was not. Later calls have no effect.
    pub(crate) fn report_result(&self, made: bool) {
        lock(&self.made).get_or_insert(made);
        self.reported.notify_all();
    }

    /// Waits for the report.
    ///
    /// # Errors
    /// If the result was not made. The error names it as `name`.
    pub(crate) fn wait(&self, name: &str) -> Result<()> {
        let guard = self.reported.wait_while(lock(&self.made), |made| made.is_none());
        match *guard.unwrap_or_else(PoisonError::into_inner) {
            Some(true) => Ok(()),
            _ => bail!("needs {name}, which failed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report::new("a test", &std::env::temp_dir().join(format!("belljar-report-{}", std::process::id())))
    }

    #[test]
    fn a_lane_waits_for_the_result_of_another_lane() {
        for made in [true, false] {
            let (mut report, awaited) = (report(), Awaited::default());
            report.lanes(vec![
                Lane { name: "second", steps: Box::new(|report| report.step("takes", || awaited.wait("the thing"))) },
                Lane {
                    name: "first",
                    steps: Box::new(|report| {
                        report.step("makes", || Ok(()));
                        awaited.report_result(made);
                    }),
                },
            ]);
            assert_eq!(report.lines.len(), 2);
            assert_eq!(report.failed(), !made);
            assert_eq!(report.finish().is_ok(), made);
        }
    }

    #[test]
    fn a_log_names_the_tests_that_have_not_ended() {
        let ended = (0..LAST_LINES).map(|test| format!("test quick_{test} ... ok\n")).collect::<String>();
        let log = format!(
            "test slow has been running for over 60 seconds\ntest hangs has been running for over 60 seconds\n\
             test slow ... ok\n{ended}"
        );
        let lines = unfinished(&log);
        assert_eq!(lines.len(), 1 + LAST_LINES);
        assert_eq!(lines[..2], ["test hangs has been running for over 60 seconds", "test quick_0 ... ok"]);
    }

    #[test]
    fn a_lane_that_panics_is_a_failure() {
        let mut report = report();
        report.lanes(vec![Lane { name: "broken", steps: Box::new(|_| panic!("on purpose")) }]);
        assert!(report.failed());
    }
}
