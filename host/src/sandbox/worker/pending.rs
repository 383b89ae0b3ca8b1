//! The calls that run in a worker, on the front's side. What a worker says about a call is believed for that call only.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::answer_memory::{AnswerMemory, BodyError, BodyRange, HeldBodies};
use super::message::ToFront;
use crate::grants::{
    Broker, CallRecord, CallScope, DedicatedThread, FrontRequest, GrantKind, MountGrants, RecordEntry, UnfinishedCall,
};
use crate::model::{Consent, DecisionKind, Limits, MountName, Usage};
use crate::sandbox::output::{GuestOutput, LogRate};
use crate::sandbox::spec::Outcome;

/// The most entries for the record of one call. The provider's own refusals are cut at a few dozen, and it can use only
/// what was granted.
const MAX_ENTRIES: usize = 20_000;

/// The most streams that one call may have at once.
const MAX_STREAMS: usize = 256;

/// The time after the end of a call in which its streams may send what it has written.
const LINGER: Duration = Duration::from_secs(1);

/// A worker broke the rules of the protocol. It is ended.
#[derive(Debug, thiserror::Error)]
pub(in crate::sandbox) enum WorkerFault {
    /// It answered a call that it was not given.
    #[error("it answered a call that does not run")]
    UnknownCall,
    /// It sent more entries than a call can have.
    #[error("it sent more than {MAX_ENTRIES} entries for the record of a call")]
    TooManyEntries,
    /// It named a kind of grant that does not exist, or that it does not decide about.
    #[error("it sent a decision that it cannot make")]
    ForgedDecision,
    /// It sent the output of a call twice.
    #[error("it sent the output of a call twice")]
    RepeatedOutput,
    /// It asked for streams, and does not receive them.
    #[error("it does not take the streams that it asked for")]
    UntakenStreams,
    /// It opened more streams than a call can have.
    #[error("it opened more than {MAX_STREAMS} streams for a call")]
    TooManyStreams,
    /// It put more into memory than a call may answer.
    #[error("it put {len} bytes of an answer into memory; at most {most} are allowed")]
    LargeBodies {
        /// Their length, in bytes.
        len: u64,
        /// The most bytes.
        most: u64,
    },
    /// It lied about bodies in memory.
    #[error(transparent)]
    Bodies(#[from] BodyError),
}

/// What a worker answers.
pub(in crate::sandbox) struct WorkerAnswer {
    /// The outcome, without its large bodies.
    pub(in crate::sandbox) outcome: Outcome,
    /// The large bodies.
    pub(in crate::sandbox) bodies: Option<HeldBodies>,
}

/// A call that runs in a worker.
pub(in crate::sandbox) struct PendingCall {
    pub(in crate::sandbox) mount: MountName,
    /// The grants for the principal of the call.
    pub(in crate::sandbox) grants: Arc<MountGrants>,
    pub(in crate::sandbox) log_rate: Arc<LogRate>,
    pub(in crate::sandbox) record: CallRecord,
    pub(in crate::sandbox) limits: Limits,
    pub(in crate::sandbox) consent: Vec<Consent>,
    pub(in crate::sandbox) deadline: Instant,
    /// When it has ended, or its worker is ended.
    pub(in crate::sandbox) end: Instant,
    /// `None` after the caller is gone.
    pub(in crate::sandbox) reply: Option<oneshot::Sender<WorkerAnswer>>,
    pub(in crate::sandbox) entries: usize,
    /// True after the worker sent what the guest printed.
    pub(in crate::sandbox) has_printed: bool,
    /// What the call asks of the front. Made when it first asks.
    pub(in crate::sandbox) broker: OnceLock<Arc<Broker>>,
    /// The streams of the call. They end with it.
    pub(in crate::sandbox) streams: JoinSet<()>,
    pub(in crate::sandbox) _running: UnfinishedCall,
}

impl PendingCall {
    /// Adds an entry to the record of the call.
    fn add(&mut self, entry: RecordEntry) -> Result<(), WorkerFault> {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return Err(WorkerFault::TooManyEntries);
        }
        match entry {
            RecordEntry::Decision(kind, target, verdict, cure) => {
                let kind = GrantKind::find(&kind).ok_or(WorkerFault::ForgedDecision)?;
                // The front itself decides about what it does for a call.
                if verdict == DecisionKind::Allowed && !kind.is_used_in_workers {
                    return Err(WorkerFault::ForgedDecision);
                }
                let cure =
                    || cure.and_then(|said| self.grants.cure_of_worker(&self.mount, (kind.name, &target), &said));
                self.record.add_decision(kind.name, &target, verdict, cure);
            }
            RecordEntry::Consent(consent) => {
                let kind = GrantKind::find(&consent.grant).ok_or(WorkerFault::ForgedDecision)?;
                self.record.request_consent(Consent { grant: kind.name.into(), target: consent.target });
            }
            RecordEntry::Progress(done, total, note) => self.record.report_progress(done, total, note),
            RecordEntry::Printed(bytes, dropped) => {
                if std::mem::replace(&mut self.has_printed, true) {
                    return Err(WorkerFault::RepeatedOutput);
                }
                let redactor = self.grants.redactor();
                let longest = redactor.map_or(0, crate::grants::secrets::Redactor::margin);
                let output = GuestOutput::of_worker(self.limits.output, longest, &bytes, dropped);
                self.log_rate.log(&self.mount, &output, redactor);
            }
        }
        Ok(())
    }

    /// Serves a stream that the call asked for.
    fn open(&mut self, request: FrontRequest, stream: UnixStream) -> Result<(), WorkerFault> {
        while self.streams.try_join_next().is_some() {}
        if self.streams.len() >= MAX_STREAMS {
            return Err(WorkerFault::TooManyStreams);
        }
        let broker = Arc::clone(self.broker.get_or_init(|| {
            let scope = CallScope {
                mount: &self.mount,
                limits: &self.limits,
                deadline: self.deadline,
                consent: &self.consent,
                record: &self.record,
                thread: &DedicatedThread::default(),
                memory: &[],
            };
            Arc::new(self.grants.broker(&scope))
        }));
        // Called at once, because requests are made in the order in which the call asked for them.
        let serving = broker.serve(request, stream);
        self.streams.spawn(async move {
            if let Err(error) = serving.await {
                tracing::debug!("a stream of a worker process ended early: {error}");
            }
        });
        Ok(())
    }

    /// Lets the streams send what the call has written last.
    fn end_streams(&mut self) {
        let mut streams = std::mem::take(&mut self.streams);
        if !streams.is_empty() {
            tokio::spawn(async move {
                let all = async { while streams.join_next().await.is_some() {} };
                let _ = tokio::time::timeout(LINGER, all).await;
            });
        }
    }

    /// Records what the call used, as far as the worker says it.
    fn record_usage(&self, usage: &Usage) {
        self.record.fuel_left(self.limits.fuel.saturating_sub(usage.fuel));
        self.record.memory_used(usage.memory.min(self.limits.memory));
        // A call runs on one thread.
        self.record.cpu_used(usage.cpu.min(self.record.usage().time));
    }
}

/// The calls of one worker.
pub(in crate::sandbox) struct PendingCalls {
    /// The calls by their numbers. `None` after the worker has ended.
    calls: Mutex<Option<HashMap<u64, PendingCall>>>,
    /// Where the worker puts large bodies.
    memory: Arc<AnswerMemory>,
}

impl PendingCalls {
    /// No call. The worker puts large bodies into `memory`.
    pub(in crate::sandbox) fn new(memory: Arc<AnswerMemory>) -> Self {
        Self { calls: Mutex::new(Some(HashMap::new())), memory }
    }

    fn lock(&self) -> MutexGuard<'_, Option<HashMap<u64, PendingCall>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The starts of the ranges of its memory that the worker may use again. Each is returned once.
    pub(in crate::sandbox) fn take_freed(&self) -> Vec<u64> {
        self.memory.take_freed()
    }

    /// Adds a call. Gives it back if the worker has ended.
    pub(in crate::sandbox) fn add(&self, number: u64, call: PendingCall) -> Option<PendingCall> {
        match self.lock().as_mut() {
            Some(calls) => calls.insert(number, call),
            None => Some(call),
        }
    }

    /// Runs `work` on a call.
    fn with(
        &self,
        number: u64,
        work: impl FnOnce(&mut PendingCall) -> Result<(), WorkerFault>,
    ) -> Result<(), WorkerFault> {
        let mut calls = self.lock();
        calls.as_mut().and_then(|calls| calls.get_mut(&number)).map_or(Err(WorkerFault::UnknownCall), work)
    }

    /// Takes what the worker says about a call. Returns the call, the number of the request, and the request, if the call asks
    /// for a stream.
    pub(in crate::sandbox) fn take(&self, message: ToFront) -> Result<Option<(u64, u64, FrontRequest)>, WorkerFault> {
        match message {
            ToFront::Outcome(number, outcome, bodies) => self.answer(number, *outcome, bodies)?,
            ToFront::Gone(number, usage) => self.gone(number, &usage)?,
            ToFront::Entry(number, entry) => self.add_entry(number, entry)?,
            ToFront::Open(number, id, request) => return Ok(Some((number, id, request))),
            // Said once, before the first call.
            ToFront::Ready(_) | ToFront::Refused(_) => return Err(WorkerFault::UnknownCall),
        }
        Ok(None)
    }

    /// Adds an entry to the record of a call.
    fn add_entry(&self, number: u64, entry: RecordEntry) -> Result<(), WorkerFault> {
        self.with(number, |call| call.add(entry))
    }

    /// Serves a stream that a call asked for.
    pub(in crate::sandbox) fn open(
        &self,
        number: u64,
        request: FrontRequest,
        stream: UnixStream,
    ) -> Result<(), WorkerFault> {
        self.with(number, |call| call.open(request, stream))
    }

    /// Ends a call with an outcome.
    fn answer(&self, number: u64, outcome: Outcome, bodies: Option<BodyRange>) -> Result<(), WorkerFault> {
        let mut call = self.remove(number)?;
        let (len, most) = (bodies.as_ref().map_or(0, BodyRange::len), call.limits.result);
        if len > most {
            return Err(WorkerFault::LargeBodies { len, most });
        }
        let bodies = bodies.map(|range| self.memory.hold(range)).transpose()?;
        call.record_usage(&outcome.usage);
        call.end_streams();
        if let Some(reply) = call.reply {
            // The caller may be gone.
            let _ = reply.send(WorkerAnswer { outcome, bodies });
        }
        Ok(())
    }

    /// Ends a call that was stopped.
    fn gone(&self, number: u64, usage: &Usage) -> Result<(), WorkerFault> {
        self.remove(number).map(|call| call.record_usage(usage))
    }

    /// Takes a call out.
    pub(in crate::sandbox) fn remove(&self, number: u64) -> Result<PendingCall, WorkerFault> {
        self.lock().as_mut().and_then(|calls| calls.remove(&number)).ok_or(WorkerFault::UnknownCall)
    }

    /// Marks a call whose caller is gone. Returns when it must have ended, if it still runs.
    pub(in crate::sandbox) fn withdraw(&self, number: u64) -> Option<Instant> {
        let mut end = None;
        let _ = self.with(number, |call| {
            call.reply = None;
            call.streams.abort_all();
            end = Some(call.end);
            Ok(())
        });
        end
    }

    /// True if the call still runs.
    pub(in crate::sandbox) fn contains(&self, number: u64) -> bool {
        self.lock().as_ref().is_some_and(|calls| calls.contains_key(&number))
    }

    /// Ends all calls: their callers get no outcome.
    pub(in crate::sandbox) fn end(&self) {
        let calls = self.lock().take();
        // Dropped outside of the lock: callers wait for the end of a call.
        drop(calls);
    }
}
