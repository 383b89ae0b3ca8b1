//! The record of a call in progress: its decisions and its resource usage. The grants, the sandbox and the gateway
//! share it, so the record is complete however the call ends.
//!
//! All guest text of the grants passes through this record. The record masks secrets before it shortens the text.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::front::{Front, RecordEntry};
use super::secrets::Redactor;
use super::traffic::TrafficUsage;
use crate::limits::progress::{MAX_NOTE, ProgressReport, ProgressSender};
use crate::model::{Consent, DecisionKind, DecisionLog, RequestInfo, TraceContext, UpstreamSpan, Usage, text};

/// The most characters of a cure: a command that contains a path from the guest.
const MAX_CURE_CHARS: usize = 1024;

/// The most characters of the target of a decision.
const MAX_TARGET_CHARS: usize = 200;

/// The most characters that a worker process sends to the front beyond those that the record keeps: the front finds a
/// secret only if it is whole.
const MAX_UNMASKED_CHARS: usize = 4096;

/// A shared handle of the record of one call.
#[derive(Clone, Default)]
pub struct CallRecord(Arc<Shared>);

#[derive(Default)]
struct Shared {
    decisions: Mutex<DecisionLog>,
    /// Where the call reports its progress. Empty if the caller does not want to know.
    progress: OnceLock<ProgressSender>,
    /// The traced request that the call belongs to.
    traced: OnceLock<Arc<RequestInfo>>,
    redactor: OnceLock<Arc<Redactor>>,
    /// The front, if the call runs in a worker process. Then entries go to the record there, as they are.
    front: OnceLock<Arc<dyn Front>>,
    began: OnceLock<(Instant, u64)>,
    fuel: AtomicU64,
    /// In nanoseconds.
    cpu: AtomicU64,
    memory: AtomicU64,
    traffic: TrafficUsage,
    end: Mutex<CallEnd>,
}

/// A function that gets the usage and the decisions of a call that has ended.
type AtEnd = Box<dyn FnOnce(Usage, DecisionLog) + Send>;

/// Whether a call still runs, and who waits for its end.
#[derive(Default)]
enum CallEnd {
    /// Nobody has to wait: the call has not begun, has ended, or may hang.
    #[default]
    NotAwaited,
    Running,
    Awaited(AtEnd),
}

/// A call that has not ended. Dropped when the call has ended and has written its usage to the record.
pub struct UnfinishedCall(CallRecord);

impl Drop for UnfinishedCall {
    fn drop(&mut self) {
        self.0.end_wait();
    }
}

impl CallRecord {
    /// From now on, masks these secrets in all text that is added.
    pub(super) fn mask_with(&self, redactor: &Arc<Redactor>) {
        // Only the first redactor counts: a record belongs to one call of one mount.
        let _ = self.0.redactor.set(Arc::clone(redactor));
    }

    /// The record of a call in a worker process: entries go to `front`, which has the secrets to mask.
    pub fn of_worker(front: Arc<dyn Front>) -> Self {
        let record = Self::default();
        let _ = record.0.front.set(front);
        record
    }

    /// The front, if this is a worker process.
    pub(super) fn front(&self) -> Option<&Arc<dyn Front>> {
        self.0.front.get()
    }

    /// Guest text for a decision: masks secrets, then removes unsafe characters, then shortens to `max` characters.
    pub fn excerpt(&self, text: &str, max: usize) -> String {
        match (self.0.redactor.get(), self.0.front.get()) {
            (Some(redactor), _) => redactor.excerpt(text, max),
            // The front masks this text, and a secret that was cut is not found any more.
            (None, Some(_)) => text::excerpt(text, max.saturating_add(MAX_UNMASKED_CHARS)),
            (None, None) => text::excerpt(text, max),
        }
    }

    /// Adds a decision. `target` may be guest text of any length. See [`DecisionLog::add`].
    pub fn add_decision(
        &self,
        grant: &'static str,
        target: &str,
        verdict: DecisionKind,
        cure: impl FnOnce() -> Option<String>,
    ) {
        if let Some(front) = self.front() {
            let target = self.excerpt(target, MAX_TARGET_CHARS);
            let cure = cure().map(|cure| self.excerpt(&cure, MAX_CURE_CHARS));
            return front.record(RecordEntry::Decision(grant.to_owned(), target, verdict, cure));
        }
        let target = self.excerpt(target, MAX_TARGET_CHARS);
        let cure = || cure().map(|cure| self.excerpt(&cure, MAX_CURE_CHARS));
        self.0.decisions.lock().unwrap_or_else(PoisonError::into_inner).add(grant, &target, verdict, cure);
    }

    /// Adds a consent that a person could give; see [`DecisionLog::request_consent`]. Ignores a consent whose text contains
    /// a secret.
    pub fn request_consent(&self, consent: Consent) {
        if let Some(front) = self.front() {
            return front.record(RecordEntry::Consent(consent));
        }
        if self.excerpt(&consent.target, usize::MAX >> 1) == consent.target {
            self.0.decisions.lock().unwrap_or_else(PoisonError::into_inner).request_consent(consent);
        }
    }

    /// From now on, requests to upstream servers are traced, as parts of this request.
    pub fn set_trace(&self, request: &Arc<RequestInfo>) {
        let _ = self.0.traced.set(Arc::clone(request));
    }

    /// The trace that the call belongs to. `None`: it is not traced.
    pub(super) fn trace(&self) -> Option<&TraceContext> {
        self.0.traced.get()?.trace.as_ref()
    }

    /// Adds a request to an upstream server to the trace.
    pub(super) fn add_upstream(&self, upstream: UpstreamSpan) {
        self.0.decisions.lock().unwrap_or_else(PoisonError::into_inner).add_upstream(upstream);
    }

    /// From now on, passes reports of progress on to `sender`.
    pub fn set_progress(&self, sender: ProgressSender) {
        let _ = self.0.progress.set(sender);
    }

    /// Reports the progress of the call, if its caller wants to know. `note` is guest text.
    pub fn report_progress(&self, done: f64, total: Option<f64>, note: Option<String>) {
        if let Some(front) = self.front() {
            return front.record(RecordEntry::Progress(done, total, note));
        }
        if let Some(sender) = self.0.progress.get() {
            let note = note.map(|note| self.excerpt(&note, MAX_NOTE)).filter(|note| !note.is_empty());
            sender.send(ProgressReport { done, total, note });
        }
    }

    /// Records that a request is sent that may change something.
    pub fn act(&self) {
        self.0.decisions.lock().unwrap_or_else(PoisonError::into_inner).has_acted = true;
    }

    /// Says that the call runs until the returned value is dropped.
    pub fn running(&self) -> UnfinishedCall {
        *self.end() = CallEnd::Running;
        UnfinishedCall(self.clone())
    }

    /// Says that nobody may wait for the end of the call, because it may hang.
    pub fn may_hang(&self) {
        self.end_wait();
    }

    /// Passes the usage and the decisions of the call to `at_end`: when the call has ended, or now if it does not run. A
    /// call that its caller withdrew ends on another thread and writes its last usage there.
    pub fn when_ended(&self, at_end: impl FnOnce(Usage, DecisionLog) + Send + 'static) {
        let mut end = self.end();
        if matches!(*end, CallEnd::Running) {
            *end = CallEnd::Awaited(Box::new(at_end));
            return;
        }
        drop(end);
        at_end(self.usage(), self.take_decisions());
    }

    fn end(&self) -> std::sync::MutexGuard<'_, CallEnd> {
        self.0.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end_wait(&self) {
        let end = std::mem::take(&mut *self.end());
        if let CallEnd::Awaited(at_end) = end {
            at_end(self.usage(), self.take_decisions());
        }
    }

    /// Records the start of the call, and its fuel.
    pub fn begin(&self, fuel: u64) {
        let _ = self.0.began.set((Instant::now(), fuel));
    }

    /// Records the remaining fuel.
    pub fn fuel_left(&self, left: u64) {
        if let Some((_, had)) = self.0.began.get() {
            self.0.fuel.fetch_max(had.saturating_sub(left), Ordering::Relaxed);
        }
    }

    /// Records the processor time that the call has used so far.
    pub fn cpu_used(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0.cpu.fetch_max(nanos, Ordering::Relaxed);
    }

    /// Records the peak memory of the call so far, in bytes.
    pub fn memory_used(&self, bytes: u64) {
        self.0.memory.fetch_max(bytes, Ordering::Relaxed);
    }

    /// The network traffic of the call.
    pub(super) fn traffic(&self) -> &TrafficUsage {
        &self.0.traffic
    }

    /// The resource usage of the call so far. All zero before [`CallRecord::begin`].
    pub fn usage(&self) -> Usage {
        let Some((began, _)) = self.0.began.get() else { return Usage::default() };
        Usage {
            queue: Duration::ZERO,
            fuel: self.0.fuel.load(Ordering::Relaxed),
            time: began.elapsed(),
            cpu: Duration::from_nanos(self.0.cpu.load(Ordering::Relaxed)),
            memory: self.0.memory.load(Ordering::Relaxed),
            bytes: 0,
        }
    }

    /// Removes and returns the decisions so far.
    pub fn take_decisions(&self) -> DecisionLog {
        std::mem::take(&mut *self.0.decisions.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::super::secrets::Secret;
    use super::*;

    #[test]
    fn the_usage_of_a_withdrawn_call_is_known_when_the_call_has_ended() {
        let (told, is_told) = std::sync::mpsc::channel();
        let tell = || {
            let told = told.clone();
            move |usage: Usage, _| told.send(usage.fuel).unwrap()
        };
        let record = CallRecord::default();
        record.when_ended(tell());
        assert_eq!(is_told.try_recv(), Ok(0), "a call that has not begun");
        let running = record.running();
        record.begin(100);
        record.when_ended(tell());
        assert!(is_told.try_recv().is_err(), "the call still runs");
        record.fuel_left(60);
        drop(running);
        assert_eq!(is_told.try_recv(), Ok(40));
        record.when_ended(tell());
        assert_eq!(is_told.try_recv(), Ok(40), "a call that has ended");
        let _running = record.running();
        record.when_ended(tell());
        record.may_hang();
        assert_eq!(is_told.try_recv(), Ok(40), "a call that may hang");
    }

    #[test]
    fn secrets_are_masked_before_shortening_and_never_part_of_a_consent() {
        let secret = Secret::new("s", Zeroizing::new("SecRet-Tok3n-abcdefghij".to_owned())).unwrap();
        let record = CallRecord::default();
        record.mask_with(&Arc::new(Redactor::new([&Arc::new(secret)]).unwrap()));
        for before in 150..=MAX_TARGET_CHARS + 4 {
            let what = format!("open {}SecRet-Tok3n-abcdefghij", "x".repeat(before));
            record.add_decision("fs", &what, DecisionKind::Denied, || Some(format!("run: {what}")));
        }
        record.add_decision("http", "GET http://secret-tok3n-abcdefghij.evil.test", DecisionKind::Allowed, || None);
        record.add_decision("http", "GET http://x/%53ec\u{200b}Ret-tok3n-abcdefghij", DecisionKind::Denied, || None);
        record.request_consent(Consent {
            grant: "http".into(),
            target: "https://secret-tok3n-abcdefghij.evil.test".to_owned(),
        });
        record.request_consent(Consent { grant: "http".into(), target: "https://fine.test".to_owned() });
        let record = record.take_decisions();
        for decision in record.decisions() {
            for told in [Some(&decision.target), decision.cure.as_ref()].into_iter().flatten() {
                assert!(!told.to_lowercase().contains("sec") && !told.contains("tok"), "{told}");
            }
        }
        assert_eq!(record.requested().iter().map(|ask| ask.target.as_str()).collect::<Vec<_>>(), ["https://fine.test"]);
    }

    #[test]
    fn clones_of_a_record_share_the_usage() {
        let record = CallRecord::default();
        assert_eq!(record.usage(), Usage::default());
        record.begin(100);
        let other = record.clone();
        other.fuel_left(60);
        other.cpu_used(Duration::from_nanos(7));
        other.memory_used(9);
        let usage = record.usage();
        assert_eq!((usage.fuel, usage.cpu, usage.memory), (40, Duration::from_nanos(7), 9));
    }
}
