//! Whether a provider keeps to the interface: asks it whatever a client or a host could, and judges the answers before they
//! are mended. `belljar check --conformance` runs it on anyone's component.
//!
//! Each question is a call like any other: in a fresh sandbox, within the mount's limits, with its grants.

mod lists;
mod optional;
mod reads;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::record::Recorder;
use super::{Gateway, check};
use crate::catalog::{Mount, Snapshot};
use crate::model::error::show_bytes;
use crate::model::{Answer, Caller, Operation, Outcome, ReadError, Resource, Template, Usage, text};

/// For how long a provider is asked again that had used up its share of the processors.
const PATIENCE: Duration = Duration::from_secs(60);

/// Of a limit, so much in percent may be used before it is worth a warning.
const WORTH_A_WARNING: u64 = 50;

/// What is said of a call that was denied.
const NEEDS: &str = "needs a grant; give it one in a configuration, and name that with --config";

/// Reasons that one check gives.
const REASONS: usize = 5;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As the interface says.
    Good,
    /// As the interface says, and worth a look.
    Warning,
    /// Against the interface.
    Bad,
    /// There was nothing to check, or it could not be.
    Skipped,
}

impl Verdict {
    /// One word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Warning => "warning",
            Self::Bad => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// What came of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was checked, in a few words.
    pub check: &'static str,
    /// How it ended.
    pub verdict: Verdict,
    /// What was seen; for what is not good, each with what was expected.
    pub said: Vec<String>,
}

/// What came of all checks of a mount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// In the order in which they were made.
    pub findings: Vec<Finding>,
    /// Calls that were made.
    pub calls: u32,
    /// The most that one of them used of each limit.
    pub most: Usage,
}

impl Report {
    /// Whether nothing is against the interface.
    pub fn is_good(&self) -> bool {
        self.findings.iter().all(|finding| finding.verdict != Verdict::Bad)
    }
}

/// One check on its way to a finding.
struct Check {
    name: &'static str,
    bad: Vec<String>,
    warnings: Vec<String>,
    skipped: Vec<String>,
}

impl Check {
    fn new(name: &'static str) -> Self {
        Self { name, bad: Vec::new(), warnings: Vec::new(), skipped: Vec::new() }
    }

    fn bad(&mut self, why: String) {
        self.bad.push(why);
    }

    fn warn(&mut self, why: String) {
        self.warnings.push(why);
    }

    fn skip(&mut self, why: String) {
        self.skipped.push(why);
    }

    /// What is not as `expected`. That a grant is missing says nothing about the provider.
    fn unexpected(&mut self, what: &str, got: Result<Answer, ReadError>, expected: &str) {
        match got {
            Ok(_) => self.bad(format!("{what} gave an answer to another operation; expected {expected}")),
            Err(ReadError::Denied { .. }) => self.skip(format!("{what} {NEEDS}")),
            Err(error) => self.bad(format!("{what} ended with `{}` ({error}); expected {expected}", error.kind())),
        }
    }

    /// `good`: what to say when everything was.
    fn finding(self, good: impl Into<String>) -> Finding {
        let (verdict, mut said) = match () {
            () if !self.bad.is_empty() => (Verdict::Bad, self.bad),
            () if !self.warnings.is_empty() => (Verdict::Warning, self.warnings),
            () if !self.skipped.is_empty() => (Verdict::Skipped, self.skipped),
            () => (Verdict::Good, vec![good.into()]),
        };
        if said.len() > REASONS {
            let more = said.len() - REASONS;
            said.truncate(REASONS);
            said.push(format!("and {more} more"));
        }
        Finding { check: self.name, verdict, said }
    }
}

/// A mount that is being asked, and what is known of it by now.
struct Probe<'a> {
    gateway: &'a Gateway,
    caller: &'a Caller,
    mount: &'a Arc<Mount>,
    snapshot: Arc<Snapshot>,
    report: Report,
    /// What it lists.
    resources: Vec<Resource>,
    templates: Vec<Template>,
}

impl Gateway {
    /// Runs every check on `mount`.
    pub async fn conformance(&self, caller: &Caller, mount: &Arc<Mount>) -> Report {
        let snapshot = self.catalog.snapshot();
        let report = Report::default();
        let (resources, templates) = (Vec::new(), Vec::new());
        let mut probe = Probe { gateway: self, caller, mount, snapshot, report, resources, templates };
        probe.describes_itself().await;
        probe.lists().await;
        probe.reads().await;
        probe.optional().await;
        probe.limits();
        probe.report
    }

    /// One call, with the answer exactly as the guest gave it. How it ends says nothing about later ones: a provider that
    /// fails here is asked on.
    async fn probe(
        &self,
        caller: &Caller,
        mount: &Arc<Mount>,
        operation: &Operation,
    ) -> (Result<Answer, ReadError>, Usage) {
        let mut recorder = Recorder::new(&self.audit, caller, mount, operation);
        let outcome = match self.admission.admit(&mount.gate, operation, None).await {
            Ok(permit) => {
                let (id, operation) = (mount.loaded.id(), operation.clone());
                self.sandbox.call_noting(id, permit, operation, &recorder.trail).await
            }
            Err(error) => Outcome::failed(error),
        };
        let Outcome { result, usage, trail } = outcome;
        let result = result.map_err(|error| check::explain(error, &trail, mount));
        recorder.ended = Some((result.as_ref().map(|_| ()).map_err(Clone::clone), usage, trail));
        (result, usage)
    }
}

impl Probe<'_> {
    /// Asks, and once more when it was only too much at once.
    async fn ask(&mut self, operation: Operation) -> Result<Answer, ReadError> {
        let until = Instant::now() + PATIENCE;
        loop {
            let (result, usage) = self.gateway.probe(self.caller, self.mount, &operation).await;
            if matches!(result, Err(ReadError::Busy(_))) && Instant::now() < until {
                sleep(Duration::from_millis(200)).await;
                continue;
            }
            let most = &mut self.report.most;
            self.report.calls += 1;
            most.fuel = most.fuel.max(usage.fuel);
            most.time = most.time.max(usage.time);
            most.cpu = most.cpu.max(usage.cpu);
            most.memory = most.memory.max(usage.memory);
            most.bytes = most.bytes.max(usage.bytes);
            return result;
        }
    }

    fn found(&mut self, finding: Finding) {
        self.report.findings.push(finding);
    }

    async fn describes_itself(&mut self) {
        let mut check = Check::new("describe");
        match self.ask(Operation::Describe).await {
            Ok(Answer::Description(about)) => {
                let given = [("title", &about.title), ("version", &about.version), ("description", &about.description)];
                for (field, _) in given.iter().filter(|(_, value)| value.as_ref().is_none_or(|v| v.trim().is_empty())) {
                    check.warn(format!("it gives no {field}; a person who chooses what to trust would like one"));
                }
                let cleaned = check::description(about.clone());
                let pairs = [
                    ("title", about.title, cleaned.title),
                    ("version", about.version, cleaned.version),
                    ("description", about.description, cleaned.description),
                ];
                for (field, before, after) in pairs {
                    if before != after && before.is_some_and(|text| !text.trim().is_empty()) {
                        check.bad(format!(
                            "its {field} is too long or has control characters, and is not shown as it is"
                        ));
                    }
                }
            }
            other => check.unexpected("describe", other, "its title, version and description"),
        }
        self.found(check.finding("a title, a version and a description"));
    }

    /// How far the calls were from their limits.
    fn limits(&mut self) {
        let (most, limits) = (self.report.most, self.mount.gate.limits());
        let mut check = Check::new("limits");
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let used = [
            ("fuel", most.fuel, limits.fuel, most.fuel.to_string(), limits.fuel.to_string()),
            ("memory", most.memory, limits.memory, show_bytes(most.memory), show_bytes(limits.memory)),
            (
                "time",
                millis(most.time),
                millis(limits.time),
                format!("{} ms", millis(most.time)),
                format!("{} ms", millis(limits.time)),
            ),
            ("result", most.bytes, limits.result, show_bytes(most.bytes), show_bytes(limits.result)),
        ];
        let mut shares = Vec::new();
        for (name, used, cap, shown, shown_cap) in used {
            shares.push(format!("{name} {shown} of {shown_cap}"));
            if used.saturating_mul(100) > cap.saturating_mul(WORTH_A_WARNING) {
                check.warn(format!(
                    "a call used {shown} of {shown_cap} {name}: say in its README to raise the limit, or use less"
                ));
            }
        }
        let calls = self.report.calls;
        self.found(check.finding(format!("of {calls} calls, none used more than {}", shares.join(", "))));
    }
}

/// A name for a message: short, and harmless.
fn shown(name: &str) -> String {
    text::quoted(name, 100)
}

/// Whether an error says that the call went wrong, rather than what the provider thinks of the question.
fn is_crash(error: &ReadError) -> bool {
    matches!(error, ReadError::Trapped(_) | ReadError::Exhausted(_) | ReadError::BadOutput(_) | ReadError::Internal(_))
}
