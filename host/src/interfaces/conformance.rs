//! The conformance check of a provider: makes all calls that a client or the host could make, and checks the replies
//! before they are cleaned. `belljar check --conformance` runs it on a component.
//!
//! Each interface defines its checks; this file has the parts that all of them share.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::calls::Exported;
use super::function::{Function, MountContext};
use crate::model::error::show_bytes;
use crate::model::{Limits, ReadError, Resource, Template, Usage, text};

/// How long a call is repeated while the mount has used up its share of processor time.
const BUSY_TIMEOUT: Duration = Duration::from_secs(60);

/// The use of a limit, in percent, from which the check warns.
const WARNING_PERCENT: u64 = 50;

/// The end of the message about a denied call.
pub(super) const NEEDS: &str = "needs a grant; grant it in a configuration, and name that with --config";

/// The most messages of one check.
const MAX_MESSAGES: usize = 5;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckResult {
    /// The provider conforms to the interface.
    Good,
    /// The provider conforms, but should be improved.
    Warning,
    /// The provider does not conform.
    Bad,
    /// The check was impossible, or there was nothing to check.
    Skipped,
}

impl CheckResult {
    /// The result as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Warning => "warning",
            Self::Bad => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// The result of one check, with messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The name of the check.
    pub check: &'static str,
    /// The result.
    pub verdict: CheckResult,
    /// The messages. A failure says what was expected.
    pub messages: Vec<String>,
}

/// The results of all checks of a mount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConformanceReport {
    /// The results, in the order of the checks.
    pub findings: Vec<Finding>,
    /// The number of calls.
    pub calls: u32,
    /// For each limit, the highest use of a single call.
    pub most: Usage,
}

impl ConformanceReport {
    /// True if no check failed.
    pub fn is_good(&self) -> bool {
        self.findings.iter().all(|finding| finding.verdict != CheckResult::Bad)
    }
}

/// A check that is running. [`Check::finding`] ends it.
pub(super) struct Check {
    name: &'static str,
    bad: Vec<String>,
    warnings: Vec<String>,
    skipped: Vec<String>,
}

impl Check {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, bad: Vec::new(), warnings: Vec::new(), skipped: Vec::new() }
    }

    pub(super) fn bad(&mut self, why: String) {
        self.bad.push(why);
    }

    pub(super) fn warn(&mut self, why: String) {
        self.warnings.push(why);
    }

    pub(super) fn skip(&mut self, why: String) {
        self.skipped.push(why);
    }

    /// Notes an unexpected error. A missing grant is no fault of the provider, so the check is skipped then.
    pub(super) fn unexpected(&mut self, what: &str, error: &ReadError, expected: &str) {
        match error {
            ReadError::Denied { .. } => self.skip(format!("{what} {NEEDS}")),
            error => self.bad(format!("{what} ended with `{}` ({error}); expected {expected}", error.kind())),
        }
    }

    /// Ends the check. `good` is the message if there is no other.
    pub(super) fn finding(self, good: impl Into<String>) -> Finding {
        let (verdict, mut messages) = match () {
            () if !self.bad.is_empty() => (CheckResult::Bad, self.bad),
            () if !self.warnings.is_empty() => (CheckResult::Warning, self.warnings),
            () if !self.skipped.is_empty() => (CheckResult::Skipped, self.skipped),
            () => (CheckResult::Good, vec![good.into()]),
        };
        if messages.len() > MAX_MESSAGES {
            let more = messages.len() - MAX_MESSAGES;
            messages.truncate(MAX_MESSAGES);
            messages.push(format!("and {more} more"));
        }
        Finding { check: self.name, verdict, messages }
    }
}

/// Makes the calls of a conformance check, each in a fresh sandbox, with the mount's limits and grants.
pub trait ConformanceCaller: Send {
    /// Makes one call. Returns the unchecked reply and the resource use. A failed call does not stop later calls: the
    /// circuit breaker is not involved.
    fn call<F: Exported>(&mut self, function: F) -> impl Future<Output = (Result<F::Reply, ReadError>, Usage)> + Send;
}

/// A running conformance check of one provider, with the results so far.
pub struct ConformanceRun<'a, A> {
    caller: A,
    /// The mount of the provider.
    pub(super) mount: &'a (dyn MountContext + Sync),
    limits: &'a Limits,
    report: ConformanceReport,
    /// The resources that the provider lists.
    pub(super) resources: Vec<Resource>,
    /// The templates that the provider lists.
    pub(super) templates: Vec<Template>,
}

impl<'a, A: ConformanceCaller> ConformanceRun<'a, A> {
    /// Prepares the check of `mount` with its `limits`. `caller` makes the calls.
    pub fn new(caller: A, mount: &'a (dyn MountContext + Sync), limits: &'a Limits) -> Self {
        let (resources, templates) = (Vec::new(), Vec::new());
        Self { caller, mount, limits, report: ConformanceReport::default(), resources, templates }
    }

    /// Makes a call. Repeats it for up to [`BUSY_TIMEOUT`] while the mount is busy.
    pub(super) async fn call<F: Exported>(&mut self, function: F) -> Result<F::Reply, ReadError> {
        let until = Instant::now() + BUSY_TIMEOUT;
        loop {
            let (result, usage) = self.caller.call(function.clone()).await;
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

    /// The checked reply, as a client would get it.
    pub(super) fn checked<F: Function>(&self, function: &F, reply: F::Reply) -> Result<F::Checked, ReadError> {
        function.check(reply, self.mount)
    }

    pub(super) fn found(&mut self, finding: Finding) {
        self.report.findings.push(finding);
    }

    /// Ends the checks with one about the use of the limits, and returns all results.
    pub(super) fn finish(mut self) -> ConformanceReport {
        let (most, limits) = (self.report.most, self.limits);
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
            if used.saturating_mul(100) > cap.saturating_mul(WARNING_PERCENT) {
                check.warn(format!(
                    "a call used {shown} of {shown_cap} {name}: use less, or tell operators in the README to raise the limit"
                ));
            }
        }
        let calls = self.report.calls;
        self.found(check.finding(format!("no call of {calls} used more than {}", shares.join(", "))));
        self.report
    }
}

/// A name for a message: shortened and quoted.
pub(super) fn shown(name: &str) -> String {
    text::quoted(name, 100)
}

/// True if the call itself failed. False for errors that the interface defines as regular replies.
pub(super) fn is_crash(error: &ReadError) -> bool {
    matches!(error, ReadError::Trapped(_) | ReadError::Exhausted(_) | ReadError::BadOutput(_) | ReadError::Internal(_))
}
