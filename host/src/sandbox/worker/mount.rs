//! A mount whose calls run in a worker: one of its own, or the one that mounts without grants share.

use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::frame::MessageError;
use super::message::{CallExtras, MountHandover, WorkerCall};
use super::pending::PendingCall;
use super::running::{RunningWorker, UnsentCall};
use super::slot::WorkerSlot;
use super::starter::WorkerSettings;
use crate::grants::secrets::Redactor;
use crate::grants::{CallRecord, MountGrants};
use crate::interfaces::redact_result;
use crate::limits::{Permit, sandbox_capacity};
use crate::model::error::LimitKind;
use crate::model::{DecisionKind, Limit, Limits, MountName, ReadError, Usage};
use crate::sandbox::mount_id::MountId;
use crate::sandbox::output::LogRate;
use crate::sandbox::spec::{CallSpec, Outcome, check_size};

/// How often a call is given to a new worker, because the last one ended before it got the call.
const MAX_TRIES: usize = 3;

/// The least time after its deadline that a call has to answer before its worker is killed. On a busy machine, a worker
/// waits for a processor.
const MIN_GRACE: Duration = Duration::from_secs(1);

/// A mount whose calls run in a worker.
pub(in crate::sandbox) struct WorkerMount(Arc<MountInWorker>);

/// What a worker needs of a mount.
pub(in crate::sandbox) struct MountParts {
    /// The mount in the calls.
    pub(in crate::sandbox) id: MountId,
    /// Its name.
    pub(in crate::sandbox) name: MountName,
    /// Its limits.
    pub(in crate::sandbox) limits: Limits,
    /// The compiled code.
    pub(in crate::sandbox) code: Arc<OwnedFd>,
    /// The grants for all principals.
    pub(in crate::sandbox) grants: Arc<MountGrants>,
    /// The rate limit of its log lines.
    pub(in crate::sandbox) log_rate: Arc<LogRate>,
}

struct MountInWorker {
    parts: MountParts,
    first: Arc<WorkerSlot>,
    /// True if `first` is the worker that mounts without grants share.
    is_sharing: bool,
    /// Its own worker, after it left the shared one.
    own: OnceLock<Arc<WorkerSlot>>,
    /// True while a thread looks for the directories of the mount.
    is_finding: AtomicBool,
    /// Signals that it has found them.
    found: Notify,
}

impl Drop for MountInWorker {
    fn drop(&mut self) {
        if self.is_sharing {
            self.first.unload(self.parts.id);
        }
    }
}

impl WorkerMount {
    /// A mount with a worker of its own, which is made with `settings`. Starts no process.
    pub(in crate::sandbox) fn alone(parts: MountParts, settings: &WorkerSettings) -> Self {
        let first = Arc::new(own_slot(&parts, settings.clone()));
        Self::new(parts, first, false)
    }

    /// A mount with a worker for each call, which is made with `settings`. Starts no process.
    pub(in crate::sandbox) fn for_one_call(parts: MountParts, settings: &WorkerSettings) -> Self {
        let first = Arc::new(own_slot(&parts, settings.clone()).for_one_call());
        Self::new(parts, first, false)
    }

    /// A mount without grants, whose calls run in a worker that others share.
    pub(in crate::sandbox) fn sharing(parts: MountParts, shared: Arc<WorkerSlot>) -> Self {
        Self::new(parts, shared, true)
    }

    fn new(parts: MountParts, first: Arc<WorkerSlot>, is_sharing: bool) -> Self {
        let (own, is_finding, found) = (OnceLock::new(), AtomicBool::new(false), Notify::new());
        Self(Arc::new(MountInWorker { parts, first, is_sharing, own, is_finding, found }))
    }

    /// The state of the wall of its worker, which is started if it does not run.
    pub(in crate::sandbox) async fn wall(&self) -> Result<String, ReadError> {
        Ok(self.0.slot().get().await?.wall.clone())
    }

    /// Runs a call with the `grants` of its principal.
    pub(in crate::sandbox) async fn call(
        &self,
        grants: &Arc<MountGrants>,
        spec: CallSpec,
        permit: &Permit,
        record: &CallRecord,
    ) -> Outcome {
        let running = record.running();
        record.begin(spec.limits.fuel);
        let redactor = grants.redactor();
        let (limits, deadline) = (spec.limits.clone(), permit.deadline());
        let parts = &self.0.parts;
        self.0.find_directories(deadline).await;
        grants.mask_in(record);
        // The directories are the same for all principals.
        parts.grants.record_absent(record);
        // The worker ends the call at its deadline. One that does not is hung, or lies.
        let end = deadline + (deadline.saturating_duration_since(Instant::now()) / 10).max(MIN_GRACE);
        let extras = CallExtras { variables: variables(grants), longest_secret: redactor.map_or(0, Redactor::margin) };
        let pending = PendingCall {
            mount: parts.name.clone(),
            grants: Arc::clone(grants),
            log_rate: Arc::clone(&parts.log_rate),
            record: record.clone(),
            limits: limits.clone(),
            consent: spec.consent.clone(),
            deadline,
            end,
            reply: None,
            entries: 0,
            has_printed: false,
            broker: OnceLock::new(),
            streams: JoinSet::new(),
            _running: running,
        };
        let message = WorkerCall { number: 0, spec, extras, time_left: Duration::ZERO, freed: Vec::new() };
        let mut unsent = Box::new(UnsentCall { pending, message });
        let mut tries = 0;
        let (worker, mut sent) = loop {
            let worker = match timeout_at(deadline, self.0.slot().get()).await {
                Ok(Ok(worker)) => worker,
                Ok(Err(error)) => return failed(error, record),
                Err(_) => return failed(ReadError::Exhausted(permit.time_limit()), record),
            };
            if let Err(error) = self.0.load_in(&worker) {
                if worker.end().is_some() && tries < MAX_TRIES {
                    tries += 1;
                    continue;
                }
                return failed(
                    ReadError::Unavailable(format!("the worker process cannot load the mount: {error}")),
                    record,
                );
            }
            unsent.message.time_left = deadline.saturating_duration_since(Instant::now());
            if unsent.message.time_left.is_zero() {
                return failed(ReadError::Exhausted(permit.time_limit()), record);
            }
            match worker.send(unsent) {
                Ok(sent) => break (worker, sent),
                // The worker ended before it got the call, so a new one may run it.
                Err(back) if tries < MAX_TRIES => (unsent, tries) = (back, tries + 1),
                Err(_) => return failed(died(&worker), record),
            }
        };
        let answered = timeout_at(end, sent.outcome()).await;
        let said = match &answered {
            Ok(Some(outcome)) => outcome.usage.cpu,
            _ => Duration::ZERO,
        };
        let now = Instant::now();
        // A call runs on one thread. The kernel counts what the worker did not say.
        permit.charge_cpu(now, worker.charge(said.min(record.usage().time), now));
        let mut outcome = match answered {
            Ok(Some(outcome)) => outcome,
            Ok(None) => {
                self.0.leave_shared();
                return failed(died(&worker), record);
            }
            Err(_) => {
                worker.kill("it did not answer in time");
                self.0.leave_shared();
                return failed(ReadError::Exhausted(permit.time_limit()), record);
            }
        };
        outcome.result = match outcome.result {
            Ok(reply) => check_size(reply, limits.result),
            // The worker knows only the rest of the time.
            Err(ReadError::Exhausted(Limit { kind: LimitKind::Time | LimitKind::ListTime, .. })) => {
                Err(ReadError::Exhausted(permit.time_limit()))
            }
            Err(error) => Err(error),
        };
        redact_result(&mut outcome.result, redactor);
        let (said, measured) = (outcome.usage.time, record.usage());
        let bytes = outcome.result.as_ref().map_or(0, |reply| reply.bytes() as u64);
        outcome.usage = Usage { time: said.min(measured.time), bytes, ..measured };
        outcome.decisions = record.take_decisions();
        if let Err(ReadError::Denied { denial, .. }) = &mut outcome.result {
            *denial = outcome.decisions.first(DecisionKind::Denied).cloned();
        }
        outcome
    }
}

/// The worker of one mount.
fn own_slot(parts: &MountParts, settings: WorkerSettings) -> WorkerSlot {
    let calls = sandbox_capacity(u32::try_from(parts.limits.concurrency).unwrap_or(u32::MAX));
    let owner = format!("the mount \"{}\"", parts.name);
    WorkerSlot::new(settings, owner, calls, vec![Arc::clone(&parts.code)], Some(Arc::clone(&parts.grants)))
}

impl MountInWorker {
    /// The worker for the next call.
    fn slot(&self) -> &Arc<WorkerSlot> {
        self.own.get().unwrap_or(&self.first)
    }

    /// Gives the mount to a worker that does not have it.
    fn load_in(&self, worker: &RunningWorker) -> Result<(), MessageError> {
        let MountParts { id, name, limits, code, grants, .. } = &self.parts;
        let largest = limits.result.max(limits.of_tools().result);
        worker.load(*id, (code, largest), |lent| MountHandover {
            id: *id,
            name: name.to_string(),
            limits: limits.clone(),
            // The directories of a worker of its own were opened when it started.
            grants: if self.is_sharing { grants.lend().handover } else { lent.handover.clone() },
        })
    }

    /// Gives the mount a worker of its own, because the one that it shares ended during a call of it. The mount that
    /// ended it leaves with all others that were called at that moment, so it does not harm the rest again.
    fn leave_shared(&self) {
        if !self.is_sharing {
            return;
        }
        self.own.get_or_init(|| {
            tracing::warn!(
                mount = %self.parts.name,
                "the worker process that mounts without grants share ended during a call of this mount; from now on it has a worker process of its own"
            );
            Arc::new(own_slot(&self.parts, self.first.settings().clone()))
        });
    }

    /// Looks for directories of the mount that went or were replaced, on a thread that may block. All calls wait for the
    /// same thread: a drive that does not answer must not hold more than one.
    async fn find_directories(self: &Arc<Self>, deadline: Instant) {
        // The question itself finds what the kernel knows without a drive.
        if !self.parts.grants.may_stall() {
            return;
        }
        let mut found = pin!(self.found.notified());
        found.as_mut().enable();
        if !self.is_finding.swap(true, Ordering::Relaxed) {
            let own = Arc::clone(self);
            tokio::task::spawn_blocking(move || {
                own.parts.grants.find_directories();
                own.is_finding.store(false, Ordering::Relaxed);
                own.found.notify_waiters();
            });
        }
        let _ = timeout_at(deadline, found).await;
    }
}

/// The environment variables of a call.
fn variables(grants: &MountGrants) -> Vec<(String, String)> {
    grants.variables().into_iter().map(|(name, value)| (name, value.to_string())).collect()
}

/// The error of a call whose worker ended.
fn died(worker: &RunningWorker) -> ReadError {
    let why = worker.end().unwrap_or("it closed its socket");
    ReadError::Internal(format!("the worker process of the mount ended: {why}"))
}

fn failed(error: ReadError, record: &CallRecord) -> Outcome {
    Outcome { result: Err(error), usage: record.usage(), decisions: record.take_decisions() }
}
