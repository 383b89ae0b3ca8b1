//! A place for one worker: starts it when a call first needs it, and again after it ended.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::running::RunningWorker;
use super::starter::WorkerSettings;
use crate::grants::MountGrants;
use crate::limits::processors;
use crate::model::ReadError;
use crate::sandbox::mount_id::MountId;

/// How many workers may end within [`DEATH_WINDOW`] before their calls are refused for a time.
const MAX_DEATHS: usize = 5;

/// The time in which ended workers are counted.
const DEATH_WINDOW: Duration = Duration::from_secs(60);

/// The pause before the second start after a worker ended. It doubles with each further end.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// A worker that is started when needed.
pub(in crate::sandbox) struct WorkerSlot {
    settings: WorkerSettings,
    /// Whose worker it is, for messages.
    owner: String,
    /// The most calls at once.
    calls: u32,
    /// The compiled code that it may map, or directories with it.
    code: Vec<Arc<OwnedFd>>,
    /// The grants of its mount, of which it holds the directories. `None` for mounts without grants.
    grants: Option<Arc<MountGrants>>,
    /// True if each worker runs one call only.
    is_for_one_call: bool,
    /// The worker for the next call.
    current: Mutex<Option<Arc<RunningWorker>>>,
    /// Held while a worker starts. When earlier workers ended, the oldest first.
    deaths: tokio::sync::Mutex<VecDeque<Instant>>,
}

impl WorkerSlot {
    /// A worker of `owner`. Starts no process.
    pub(in crate::sandbox) fn new(
        settings: WorkerSettings,
        owner: String,
        calls: u32,
        code: Vec<Arc<OwnedFd>>,
        grants: Option<Arc<MountGrants>>,
    ) -> Self {
        let (current, deaths) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { settings, owner, calls, code, grants, is_for_one_call: false, current, deaths }
    }

    /// The same, with a worker for each call. The next one is started ahead.
    pub(in crate::sandbox) fn for_one_call(self) -> Self {
        Self { is_for_one_call: true, ..self }
    }

    /// How workers are made.
    pub(in crate::sandbox) fn settings(&self) -> &WorkerSettings {
        &self.settings
    }

    /// The running worker, or a new one. A start goes on if the call that needs it does not wait for it.
    ///
    /// # Errors
    /// If it does not start, or was ended too often.
    pub(in crate::sandbox) async fn get(self: &Arc<Self>) -> Result<Arc<RunningWorker>, ReadError> {
        if self.is_for_one_call {
            return self.get_for_one_call().await;
        }
        if let Some(current) = self.current().filter(|current| self.is_usable(current)) {
            return Ok(current);
        }
        let own = Arc::clone(self);
        finish(tokio::spawn(async move { own.get_or_start().await })).await
    }

    /// A worker that no other call gets.
    async fn get_for_one_call(self: &Arc<Self>) -> Result<Arc<RunningWorker>, ReadError> {
        let ahead = self.lock().take().filter(|ahead| self.is_usable(ahead));
        let own = Arc::clone(self);
        let worker = match ahead {
            Some(worker) => worker,
            None => finish(tokio::spawn(async move { own.start(&mut *own.deaths.lock().await).await })).await?,
        };
        let own = Arc::clone(self);
        tokio::spawn(async move {
            if own.current().is_some() {
                return;
            }
            if let Ok(next) = own.start(&mut *own.deaths.lock().await).await {
                *own.lock() = Some(next);
            }
        });
        Ok(worker)
    }

    /// Takes a mount away from the running worker.
    pub(in crate::sandbox) fn unload(&self, id: MountId) {
        if let Some(current) = self.current() {
            current.unload(id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<RunningWorker>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> Option<Arc<RunningWorker>> {
        self.lock().clone()
    }

    /// A directory that was replaced needs a new wall, and so a new worker. The old one ends after its calls.
    fn is_usable(&self, worker: &RunningWorker) -> bool {
        worker.end().is_none() && self.grants.as_ref().is_none_or(|grants| grants.are_lent(worker.lent()))
    }

    async fn get_or_start(&self) -> Result<Arc<RunningWorker>, ReadError> {
        let mut deaths = self.deaths.lock().await;
        if let Some(current) = self.current() {
            if self.is_usable(&current) {
                return Ok(current);
            }
            if let Some(why) = current.end() {
                tracing::warn!("the worker process of {} ended: {why}", self.owner);
                deaths.push_back(Instant::now());
            }
            *self.lock() = None;
        }
        let worker = self.start(&mut deaths).await?;
        *self.lock() = Some(Arc::clone(&worker));
        Ok(worker)
    }

    async fn start(&self, deaths: &mut VecDeque<Instant>) -> Result<Arc<RunningWorker>, ReadError> {
        self.pause(deaths).await?;
        let lent = self.grants.as_ref().map(|grants| grants.lend()).unwrap_or_default();
        // Mounts without grants share the worker, and a call of one must not keep the thread from the others.
        let threads = if self.grants.is_none() { processors() } else { 1 };
        match RunningWorker::start(&self.settings, self.calls, threads, &self.code, lent).await {
            Ok(worker) => {
                tracing::debug!(wall = %worker.wall, "the worker process of {} is ready", self.owner);
                Ok(worker)
            }
            Err(error) => {
                deaths.push_back(Instant::now());
                Err(ReadError::Unavailable(error.to_string()))
            }
        }
    }

    /// Waits after workers have ended, longer each time.
    async fn pause(&self, deaths: &mut VecDeque<Instant>) -> Result<(), ReadError> {
        let now = Instant::now();
        while deaths.front().is_some_and(|at| now.saturating_duration_since(*at) >= DEATH_WINDOW) {
            deaths.pop_front();
        }
        let Some(last) = deaths.back().copied() else { return Ok(()) };
        let count = deaths.len();
        if count >= MAX_DEATHS {
            let again = deaths.front().map_or(DEATH_WINDOW, |first| DEATH_WINDOW.saturating_sub(now - *first));
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

/// The result of a start, which also ends if nobody waits for it.
async fn finish(start: JoinHandle<Result<Arc<RunningWorker>, ReadError>>) -> Result<Arc<RunningWorker>, ReadError> {
    let started = start.await;
    started.unwrap_or_else(|error| Err(ReadError::Internal(format!("the start of a worker process: {error}"))))
}
