//! A mount whose calls run in a worker: starts the worker when a call first needs it, and again after it ended.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::message::{CallExtras, WorkerCall, WorkerStart};
use super::pending::PendingCall;
use super::running::{RunningWorker, UnsentCall};
use super::starter::WorkerSettings;
use crate::grants::secrets::Redactor;
use crate::grants::{CallRecord, MountGrants};
use crate::interfaces::redact_result;
use crate::limits::Permit;
use crate::model::error::LimitKind;
use crate::model::{Limit, Limits, MountName, ReadError, Usage};
use crate::sandbox::output::LogRate;
use crate::sandbox::spec::{CallSpec, Outcome, check_size};

/// How many workers of a mount may end within [`DEATH_WINDOW`] before it is given up for a time.
const MAX_DEATHS: usize = 5;

/// How often a call is given to a new worker, because the last one ended before it got the call.
const MAX_TRIES: usize = 3;

/// The time in which ended workers are counted.
const DEATH_WINDOW: Duration = Duration::from_secs(60);

/// The pause before the second start after a worker ended. It doubles with each further end.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The least time after its deadline that a call has to answer before its worker is killed.
const MIN_GRACE: Duration = Duration::from_millis(250);

/// The worker of a mount.
pub(in crate::sandbox) struct WorkerMount(Arc<MountWorker>);

struct MountWorker {
    settings: WorkerSettings,
    name: MountName,
    code: Arc<OwnedFd>,
    /// The grants for all principals.
    grants: Arc<MountGrants>,
    log_rate: Arc<LogRate>,
    limits: Limits,
    state: Mutex<WorkerState>,
    /// True while a thread looks for the directories of the mount.
    is_finding: AtomicBool,
}

#[derive(Default)]
struct WorkerState {
    current: Option<Arc<RunningWorker>>,
    /// When earlier workers ended, the oldest first.
    deaths: VecDeque<Instant>,
}

impl WorkerMount {
    /// The worker of a mount with this compiled code. Starts no process.
    pub(in crate::sandbox) fn new(
        settings: WorkerSettings,
        (name, limits): (&MountName, &Limits),
        code: Arc<OwnedFd>,
        grants: Arc<MountGrants>,
        log_rate: Arc<LogRate>,
    ) -> Self {
        let (name, limits, state) = (name.clone(), limits.clone(), Mutex::default());
        Self(Arc::new(MountWorker {
            settings,
            name,
            code,
            grants,
            log_rate,
            limits,
            state,
            is_finding: AtomicBool::new(false),
        }))
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
        self.0.find_directories(deadline).await;
        grants.mask_in(record);
        // The directories are the same for all principals.
        self.0.grants.record_absent(record);
        let extras = CallExtras { variables: variables(grants), longest_secret: redactor.map_or(0, Redactor::margin) };
        let pending = PendingCall {
            mount: self.0.name.clone(),
            grants: Arc::clone(grants),
            log_rate: Arc::clone(&self.0.log_rate),
            record: record.clone(),
            limits: limits.clone(),
            consent: spec.consent.clone(),
            deadline,
            reply: None,
            entries: 0,
            has_printed: false,
            broker: OnceLock::new(),
            streams: JoinSet::new(),
            _running: running,
        };
        let message = WorkerCall { number: 0, spec, extras, time_left: Duration::ZERO };
        let mut unsent = Box::new(UnsentCall { pending, message });
        let mut tries = 0;
        let (worker, mut sent, time_left) = loop {
            let worker = match timeout_at(deadline, self.0.get()).await {
                Ok(Ok(worker)) => worker,
                Ok(Err(error)) => return failed(error, record),
                Err(_) => return failed(ReadError::Exhausted(permit.time_limit()), record),
            };
            let time_left = deadline.saturating_duration_since(Instant::now());
            unsent.message.time_left = time_left;
            match worker.send(unsent) {
                Ok(sent) => break (worker, sent, time_left),
                // The worker ended before it got the call, so a new one may run it.
                Err(back) if tries < MAX_TRIES => (unsent, tries) = (back, tries + 1),
                Err(_) => return failed(died(&worker), record),
            }
        };
        // The worker ends the call at its deadline. One that does not is hung, or lies.
        let end = deadline + (time_left / 10).max(MIN_GRACE);
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
            Ok(None) => return failed(died(&worker), record),
            Err(_) => {
                worker.kill("it did not answer in time");
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
        outcome
    }
}

impl MountWorker {
    /// Looks for directories of the mount that went or were replaced, on a thread that may block. Not if another call does
    /// so: a drive that does not answer must not hold more than one thread.
    async fn find_directories(self: &Arc<Self>, deadline: Instant) {
        // The question itself finds what the kernel knows without a drive.
        if !self.grants.may_stall() || self.is_finding.swap(true, Ordering::Relaxed) {
            return;
        }
        let own = Arc::clone(self);
        let finding = tokio::task::spawn_blocking(move || {
            own.grants.find_directories();
            own.is_finding.store(false, Ordering::Relaxed);
        });
        let _ = timeout_at(deadline, finding).await;
    }

    /// The running worker, or a new one. A start goes on if the call that needs it does not wait for it.
    async fn get(self: &Arc<Self>) -> Result<Arc<RunningWorker>, ReadError> {
        let current = self.state.lock().await.current.clone();
        if let Some(current) = current.filter(|current| current.end().is_none() && self.grants.are_lent(current.lent()))
        {
            return Ok(current);
        }
        let own = Arc::clone(self);
        let started = tokio::spawn(async move { own.get_or_start().await }).await;
        started.unwrap_or_else(|error| Err(ReadError::Internal(format!("the start of a worker process: {error}"))))
    }

    async fn get_or_start(&self) -> Result<Arc<RunningWorker>, ReadError> {
        let mut state = self.state.lock().await;
        if let Some(current) = &state.current {
            match current.end() {
                // A directory that was replaced needs a new wall, and so a new worker. The old one ends after its calls.
                None if self.grants.are_lent(current.lent()) => return Ok(Arc::clone(current)),
                None => {}
                Some(why) => {
                    tracing::warn!(mount = %self.name, "the worker process of the mount ended: {why}");
                    state.deaths.push_back(Instant::now());
                }
            }
            state.current = None;
        }
        self.pause(&mut state).await?;
        let lent = self.grants.lend();
        let start = WorkerStart {
            name: self.name.to_string(),
            limits: self.limits.clone(),
            total_memory: self.settings.total_memory,
            grants: lent.handover.clone(),
            has_wall: self.settings.has_wall,
        };
        let largest = self.limits.result.max(self.limits.of_tools().result);
        let code = self.code.try_clone();
        let code = code.map_err(|error| ReadError::Unavailable(format!("cannot start a worker process: {error}")))?;
        match RunningWorker::start(&self.settings, start, code, lent, largest).await {
            Ok(worker) => {
                tracing::debug!(mount = %self.name, wall = %worker.wall, "the worker process of the mount is ready");
                state.current = Some(Arc::clone(&worker));
                Ok(worker)
            }
            Err(error) => {
                state.deaths.push_back(Instant::now());
                Err(ReadError::Unavailable(error.to_string()))
            }
        }
    }

    /// Waits after workers have ended, longer each time.
    async fn pause(&self, state: &mut WorkerState) -> Result<(), ReadError> {
        let now = Instant::now();
        while state.deaths.front().is_some_and(|at| now.saturating_duration_since(*at) >= DEATH_WINDOW) {
            state.deaths.pop_front();
        }
        let Some(last) = state.deaths.back().copied() else { return Ok(()) };
        let count = state.deaths.len();
        if count >= MAX_DEATHS {
            let again = state.deaths.front().map_or(DEATH_WINDOW, |first| DEATH_WINDOW.saturating_sub(now - *first));
            let again = Duration::from_secs(again.as_secs() + 1);
            return Err(ReadError::Unavailable(format!(
                "its worker process ended {count} times within a minute; belljar starts it again in {}",
                humantime::format_duration(again)
            )));
        }
        // The first end costs no pause.
        let doublings = u32::try_from(count).unwrap_or(u32::MAX).saturating_sub(2);
        if count >= 2 {
            sleep_until(last + FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(doublings))).await;
        }
        Ok(())
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
