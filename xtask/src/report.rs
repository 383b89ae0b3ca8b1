//! Runs steps one after another, and tells at the end how each went: a failure half-way hides no other.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// What has been run so far.
pub(crate) struct Report {
    title: &'static str,
    lines: Vec<Line>,
    began: Instant,
}

struct Line {
    name: String,
    verdict: Verdict,
    took: Duration,
    note: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Verdict {
    Passed,
    Failed,
    Skipped,
}

impl Report {
    /// An empty report.
    pub(crate) fn new(title: &'static str) -> Report {
        Report { title, lines: Vec::new(), began: Instant::now() }
    }

    /// Runs one step.
    pub(crate) fn step(&mut self, name: &str, step: impl FnOnce() -> Result<()>) {
        self.noted_step(name, || step().map(|()| String::new()));
    }

    /// Runs one step that has something to say when it succeeds.
    pub(crate) fn noted_step(&mut self, name: &str, step: impl FnOnce() -> Result<String>) {
        println!("\n=== {name}");
        let began = Instant::now();
        let (verdict, note) = match step() {
            Ok(note) => (Verdict::Passed, note),
            Err(error) => (Verdict::Failed, format!("{error:#}")),
        };
        if verdict == Verdict::Failed {
            println!("{name}: {note}");
        }
        self.lines.push(Line { name: name.to_owned(), verdict, took: began.elapsed(), note });
    }

    /// Notes what could not be run here.
    pub(crate) fn skip(&mut self, name: &str, reason: &str) {
        let line =
            Line { name: name.to_owned(), verdict: Verdict::Skipped, took: Duration::ZERO, note: reason.to_owned() };
        self.lines.push(line);
    }

    /// Whether a step has failed.
    pub(crate) fn failed(&self) -> bool {
        self.lines.iter().any(|line| line.verdict == Verdict::Failed)
    }

    /// Prints the summary; fails if a step did.
    pub(crate) fn finish(self) -> Result<()> {
        println!("\n=== summary of {}", self.title);
        for line in &self.lines {
            let verdict = match line.verdict {
                Verdict::Passed => "ok",
                Verdict::Failed => "FAILED",
                Verdict::Skipped => "SKIPPED",
            };
            // Only the first line: the rest stands above, where it happened.
            let note = line.note.lines().next().unwrap_or_default();
            println!("{verdict:<8} {:<24} {:>4} s  {note}", line.name, line.took.as_secs());
        }
        let took = self.began.elapsed().as_secs();
        println!("{:<8} {:<24} {took:>4} s", "", "all");
        if self.failed() {
            bail!("{} failed", self.title);
        }
        Ok(())
    }
}
