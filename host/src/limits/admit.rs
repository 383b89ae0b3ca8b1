//! Admission to the host, and the permits that it creates.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::caller_quotas::{AnswerQuota, CallerLimits, CallerQuotas};
use super::detached_threads::{DetachedThreads, ThreadSlot};
use super::gate::{CallOrigin, Gate, GateState};
use super::memory_budget::{Allowance, MemoryBudget};
use super::operation::Operation;
use super::operation_breaker::{self, OperationBreaker};
use super::turns::{Recall, Slot, Turn, TurnRequest, TurnScheduler};
use crate::model::bounds::MAX_WAITING_CALLS;
use crate::model::error::LimitKind;
use crate::model::{Limit, Limits, ReadError};
use crate::policy::{Access, CallerId, Principal, QuotaRule};
use crate::store::{MemoryQuotas, QuotaStore};

/// The longest delay of a refusal because of the CPU share. Without a delay, a client that retries at once would get
/// refusals in a busy loop.
const REFUSAL_DELAY: Duration = Duration::from_millis(100);

/// Admission to the host, for all mounts.
pub struct Admission {
    host: Arc<HostLimits>,
    callers: CallerQuotas,
}

/// The limits of the whole host, shared with every permit.
struct HostLimits {
    turns: Arc<TurnScheduler>,
    threads: Arc<DetachedThreads>,
    budget: Arc<MemoryBudget>,
}

/// The number of calls for which the sandbox needs room, if `calls` calls may have turns. A call whose thread hangs has
/// lost its turn and still occupies the sandbox.
pub fn sandbox_capacity(calls: u32) -> u32 {
    calls.saturating_mul(2)
}

/// The right to run one call, with its limits. Only [`Admission::admit`] creates one. Dropping it releases the turn and
/// the slot.
pub struct Permit {
    gate: Arc<GateState>,
    host: Arc<HostLimits>,
    since: Instant,
    deadline: Instant,
    limit_kind: LimitKind,
    is_read: bool,
    is_tool_call: bool,
    /// Processor time of the call so far, in nanoseconds.
    computed: AtomicU64,
    /// True if this call continues although its mount has exceeded its CPU share.
    is_leader: AtomicBool,
    access: Access,
    _trial: Option<Trial>,
    holding: Mutex<Holding>,
}

/// The resources that a permit holds.
enum Holding {
    Turn(Turn),
    Thread(#[expect(dead_code, reason = "held until it is dropped")] (Slot, ThreadSlot)),
}

/// A trial call after a circuit breaker was open. If it is dropped without a result, the next call becomes the trial.
struct Trial {
    operations: Arc<OperationBreaker>,
    key: operation_breaker::OperationKey,
}

impl Drop for Trial {
    fn drop(&mut self) {
        self.operations.trial_cancelled(&self.key, Instant::now());
    }
}

/// The turn of a call on a dedicated thread. Released when dropped, even if the thread still hangs.
pub struct DetachedTurn(#[expect(dead_code, reason = "held until it is dropped")] Turn);

/// Charges a mount for work that outlives the permit.
pub struct LaterCharges(Arc<GateState>);

impl LaterCharges {
    /// Charges processor time to the mount.
    pub fn charge_cpu(&self, time: Duration) {
        self.0.mount.share.charge(Instant::now(), time);
    }
}

impl Permit {
    /// The limits of the call.
    pub fn limits(&self) -> &Limits {
        if self.is_tool_call { &self.gate.tool_limits } else { &self.gate.limits }
    }

    /// The access for which the call was admitted.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// The time by which the call must have ended.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// True if the mount's calls usually compute for a short time, however long they wait. Decides only where a
    /// call starts.
    pub fn is_quick(&self) -> bool {
        self.gate.mount.times(self.is_read).computed.is_quick()
    }

    /// The signal that the turn is recalled for a mount without one. The call must end then. `None` after
    /// [`Permit::detach`].
    pub fn recall(&self) -> Option<Recall> {
        match &*self.lock() {
            Holding::Turn(turn) => Some(turn.recall()),
            Holding::Thread(_) => None,
        }
    }

    /// Prepares a call on a dedicated thread, which may hang after the deadline. The returned value holds the turn. The
    /// permit keeps a slot of the mount and a slot for the thread.
    ///
    /// # Errors
    /// [`ReadError::Busy`] if too many threads hang already.
    pub fn detach(&self) -> Result<Option<DetachedTurn>, ReadError> {
        let mut holding = self.lock();
        let Holding::Turn(turn) = &*holding else { return Ok(None) };
        let mount = &self.gate.mount;
        let thread = self.host.threads.enter(mount).ok_or_else(|| {
            ReadError::busy(format!(
                "too many calls hang in file operations, among them calls of mount \"{}\"; a drive may be disconnected",
                mount.name
            ))
        })?;
        let slot = turn.detach(mount);
        match std::mem::replace(&mut *holding, Holding::Thread((slot, thread))) {
            Holding::Turn(turn) => Ok(Some(DetachedTurn(turn))),
            Holding::Thread(_) => Ok(None),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Holding> {
        self.holding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Charges processor time, spent until `now`, to the mount.
    pub fn charge_cpu(&self, now: Instant, time: Duration) {
        self.computed.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.gate.mount.share.charge(now, time);
    }

    /// Charges the mount for work that is done when the call has ended.
    pub fn later_charges(&self) -> LaterCharges {
        LaterCharges(Arc::clone(&self.gate))
    }

    /// The time that the call must wait before it computes on. While its mount has exceeded its CPU share, one call of
    /// the mount continues at a time.
    ///
    /// # Errors
    /// [`ReadError::Busy`] if the wait would end after the deadline.
    pub fn cpu_pause(&self, now: Instant) -> Result<Duration, ReadError> {
        let pause = self.gate.mount.share.pause(now, &self.is_leader);
        // A call without a pause may be polled once more after its deadline. The timer of the caller reports that case.
        if !pause.is_zero() && now + pause > self.deadline {
            return Err(self.gate.mount.cpu_share_error(self.gate.limits.cpu, pause));
        }
        Ok(pause)
    }

    /// The memory that the call may take, from the budget of all calls.
    pub fn memory(&self) -> Allowance {
        Allowance::new(&self.host.budget, &self.gate.mount.memory)
    }

    /// The limit behind the deadline, for the error after it has passed. Waiting counts as used time.
    pub fn time_limit(&self) -> Limit {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (used, cap) = (ms(self.since.elapsed()), ms(self.deadline.saturating_duration_since(self.since)));
        Limit { kind: self.limit_kind, used: used.max(cap), cap }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mount = &self.gate.mount;
        mount.times(self.is_read).computed.add(Duration::from_nanos(self.computed.load(Ordering::Relaxed)));
        mount.share.end(&self.is_leader);
    }
}

impl Admission {
    /// Admits at most `calls` calls at once, over all mounts, with memory from `budget`.
    pub fn new(calls: usize, budget: Arc<MemoryBudget>) -> Self {
        let host = HostLimits { turns: TurnScheduler::new(calls), threads: DetachedThreads::new(calls), budget };
        Self {
            host: Arc::new(host),
            callers: CallerQuotas::new(CallerLimits::default().rate, Arc::new(MemoryQuotas::default())),
        }
    }

    /// Replaces the limits of each caller, which `counts` counts.
    #[must_use]
    pub fn with_callers(self, limits: CallerLimits, counts: Arc<dyn QuotaStore>) -> Self {
        if let Some(concurrency) = limits.concurrency {
            self.host.turns.set_max_per_principal(concurrency);
        }
        Self { callers: CallerQuotas::new(limits.rate, counts), ..self }
    }

    /// The memory budget of all calls and results.
    pub fn budget(&self) -> &Arc<MemoryBudget> {
        &self.host.budget
    }

    /// The turns of the host that are held, and all of them.
    pub fn turns(&self) -> (usize, usize) {
        self.host.turns.counts()
    }

    /// Counts one tool call or completion of `caller`.
    ///
    /// # Errors
    /// [`ReadError::Busy`] if the caller exceeds its rate. It says when the caller may come again.
    pub async fn count_request(&self, caller: CallerId) -> Result<(), ReadError> {
        self.callers.count(caller).await
    }

    /// Counts one request of `principal` against the rates of the rules that allow it: before its first call, and also
    /// if it needs none. A request counts once, however many calls it makes.
    ///
    /// # Errors
    /// [`ReadError::Busy`] if a rate is used up. It says when the caller may come again. Then nothing is counted.
    pub async fn count_rules<'a>(
        &self,
        principal: &Principal,
        rules: impl Iterator<Item = &'a Arc<QuotaRule>>,
    ) -> Result<AnswerQuota, ReadError> {
        self.callers.count_rules(principal, rules).await
    }

    /// True if `caller` is a principal that holds as many turns as it may. Its next call waits for one of its own.
    pub fn is_at_cap(&self, caller: CallerId) -> bool {
        self.host.turns.is_at_cap(caller)
    }

    /// Waits for a slot of the mount and a turn of the host, on behalf of the holder of `access`. The call's deadline
    /// counts from now. An earlier `by`, the end of a listing over all mounts, replaces it.
    ///
    /// # Errors
    /// [`ReadError::Busy`] if the queue is full, no slot or turn came free within the queueing time, the mount exceeded
    /// its CPU share, or memory is short. [`ReadError::CircuitOpen`] if the same operation failed repeatedly.
    /// [`ReadError::Internal`] if `access` is for another mount than `gate`.
    pub async fn admit(
        &self,
        access: Access,
        gate: &Gate,
        origin: CallOrigin,
        operation: &dyn Operation,
        by: Option<Instant>,
    ) -> Result<Permit, ReadError> {
        let GateState { mount, limits, tool_limits } = &*gate.state;
        let is_tool_call = operation.is_tool_call();
        let limits = if is_tool_call { tool_limits } else { limits };
        if access.mount() != &mount.name {
            return Err(ReadError::Internal("the access is for another mount than the gate".to_owned()));
        }
        let now = Instant::now();
        let trial = gate.operations.check(operation, origin.breaker_scope, now, limits.time)?;
        let trial = trial.map(|key| Trial { operations: Arc::clone(&gate.operations), key });
        if self.host.budget.is_exhausted() {
            return Err(ReadError::busy(self.host.budget.explain()));
        }
        let call_deadline = now + limits.time;
        let (deadline, limit_kind) = match by {
            Some(by) if by < call_deadline => (by, LimitKind::ListTime),
            _ => (call_deadline, LimitKind::Time),
        };
        let is_read = operation.is_read();
        let permit = |turn| Permit {
            gate: Arc::clone(&gate.state),
            host: Arc::clone(&self.host),
            since: now,
            deadline,
            limit_kind,
            is_read,
            is_tool_call,
            computed: AtomicU64::new(0),
            is_leader: AtomicBool::new(false),
            access,
            _trial: trial,
            holding: Mutex::new(Holding::Turn(turn)),
        };
        let request = TurnRequest { mount, caller: origin.caller, is_read };
        let rest = mount.share.time_until_available(now);
        // Fast path: a slot and a turn are free. No counter changes and no timer starts.
        if rest.is_zero()
            && let Some(turn) = self.host.turns.try_enter(&request, now)
        {
            return Ok(permit(turn));
        }
        let full = || {
            ReadError::busy(format!(
                "{} calls of mount \"{}\" are waiting already",
                MAX_WAITING_CALLS.get(),
                mount.name
            ))
        };
        let Some(_queued) = QueuePlace::take(&mount.waiting, || self.host.turns.evict_waiter(mount, origin.caller))
        else {
            return Err(full());
        };
        let latest = deadline.min(now + limits.queue);
        if now + rest > latest {
            sleep_until(latest.min(now + REFUSAL_DELAY)).await;
            return Err(mount.cpu_share_error(limits.cpu, rest));
        }
        let turn = async {
            let mut rest = rest;
            while !rest.is_zero() {
                tokio::time::sleep(rest).await;
                rest = mount.share.time_until_available(Instant::now());
            }
            self.host.turns.enter(&request).await
        };
        match timeout_at(latest, turn).await {
            // During the wait, unread results may have filled the budget.
            Ok(Some(_)) if self.host.budget.is_exhausted() => Err(ReadError::busy(self.host.budget.explain())),
            Ok(Some(turn)) => Ok(permit(turn)),
            Ok(None) => Err(full()),
            Err(_) if self.host.turns.is_at_cap(origin.caller) => Err(ReadError::busy(format!(
                "this caller has {} calls running, and more of them may not run at once; none ended within {}",
                self.host.turns.max_per_principal(),
                humantime::format_duration(limits.queue)
            ))),
            Err(_) => Err(ReadError::busy(format!(
                "no turn came free within {}; mount \"{}\" runs at most {} calls at once",
                humantime::format_duration(limits.queue),
                mount.name,
                limits.concurrency
            ))),
        }
    }
}

/// A place in the queue of a mount, released when dropped.
struct QueuePlace<'a>(&'a AtomicUsize);

impl<'a> QueuePlace<'a> {
    /// Takes a place. If the queue is full, `evict` may free one.
    fn take(waiting: &'a AtomicUsize, evict: impl FnOnce() -> bool) -> Option<Self> {
        let before = waiting.fetch_add(1, Ordering::Relaxed);
        let holding = Self(waiting);
        (before < MAX_WAITING_CALLS.get() || evict()).then_some(holding)
    }
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
