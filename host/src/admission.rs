//! Who may run a call, how many at once, and how long a call waits. Gives the permit without which the sandbox runs
//! nothing.

pub mod account;
pub mod breaker;
pub mod budget;
pub mod callers;
pub mod effort;
pub mod freed;
pub mod gates;
mod operations;
mod share;
mod turns;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use crate::model::error::Bound;
use crate::model::{Consent, Guard, Limit, Limits, MountName, Operation, ReadError};
use budget::{Allowance, Budget, Part};
use callers::{Callers, Rate};
use operations::Operations;
pub use turns::Recall;
use turns::{Asks, Counts, Slot, ThreadPlace, Threads, Turn, Turns, WAITING};

/// A mount whose calls take less than this, on average, is quick: it gets its turn also when all that long calls may have
/// is taken.
const QUICK: Duration = Duration::from_millis(10);

/// How long a call waits that is refused because its mount computed too much, at the most: whoever asks again and again
/// is not to be answered without pause.
const REFUSAL: Duration = Duration::from_millis(100);

/// The turnstile of the whole host.
pub struct Admission {
    host: Arc<Host>,
    callers: Callers,
}

/// What every permit uses of it.
struct Host {
    turns: Arc<Turns>,
    threads: Arc<Threads>,
    budget: Arc<Budget>,
}

/// Calls for which the sandbox must have room, when `calls` have turns at once: those whose threads hang have lost theirs.
pub fn places(calls: u32) -> u32 {
    calls.saturating_mul(2)
}

/// The turnstile of one mount, with one version of its limits.
pub struct Gate {
    own: Arc<Own>,
    operations: Arc<Operations>,
}

struct Own {
    mount: Arc<MountState>,
    limits: Limits,
}

/// What admission keeps of a mount, whatever version of it is served.
struct MountState {
    name: MountName,
    share: share::Share,
    memory: Arc<Part>,
    counts: Counts,
    waiting: AtomicUsize,
    /// Of reads, and of anything else: listing a mount whose reads are long stays prompt.
    paces: [Paces; 2],
}

impl Gate {
    /// A turnstile of a mount that nobody else knows of: see [`gates::Gates`].
    pub fn new(name: MountName, limits: Limits) -> Self {
        Self::of(Arc::new(MountState::new(name, &limits)), Arc::default(), limits)
    }

    fn of(mount: Arc<MountState>, operations: Arc<Operations>, limits: Limits) -> Self {
        Self { own: Arc::new(Own { mount, limits }), operations }
    }

    /// The mount's limits.
    pub fn limits(&self) -> &Limits {
        &self.own.limits
    }

    /// Draws processor time on the mount's account that was used for an answer after its call had ended.
    pub fn charge(&self, time: Duration) {
        self.own.mount.share.draw(Instant::now(), time);
    }

    /// Takes note of how a call ended that was let in: what fails again and again is asked less often.
    pub fn ended(&self, who: Who, operation: &Operation, error: Option<&ReadError>) {
        if let Some(pause) = self.operations.ended((operation, who.scope), error, Instant::now) {
            tracing::warn!(
                mount = %self.own.mount.name,
                "{} failed again; not asked for {}",
                operations::shown(operation),
                humantime::format_duration(pause)
            );
        }
    }
}

/// Who asks for a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// The connection or session: those who have least come first.
    pub caller: u64,
    /// Whose failures are theirs alone: the same as `caller`, where what a call may do depends on it, else nobody.
    pub scope: u64,
}

/// Nanoseconds that calls take, as a running average.
#[derive(Default)]
struct Pace(AtomicU64);

impl Pace {
    fn is_quick(&self) -> bool {
        self.average() <= QUICK
    }

    fn average(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }

    /// Takes a fourth of the latest call: one long call makes a mount slow, a dozen short ones make it quick again. Of two
    /// calls that end at once, one may be lost.
    fn add(&self, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.0.store(self.0.load(Ordering::Relaxed) / 4 * 3 + took / 4, Ordering::Relaxed);
    }
}

/// How long calls of one kind take.
#[derive(Default)]
struct Paces {
    /// For which they hold a turn, waiting for others included.
    held: Pace,
    /// For which they compute.
    computed: Pace,
}

impl MountState {
    fn new(name: MountName, limits: &Limits) -> Self {
        let mount = Self {
            name,
            share: share::Share::new(limits.cpu),
            memory: Part::new(),
            counts: Counts::default(),
            waiting: AtomicUsize::new(0),
            paces: Default::default(),
        };
        mount.set(limits);
        mount
    }

    /// Other limits from now on.
    fn set(&self, limits: &Limits) {
        let slots = if Guard::Concurrency.is_on() { limits.concurrency } else { usize::MAX };
        self.counts.most.store(slots, Ordering::Relaxed);
        self.share.set(Instant::now(), limits.cpu);
    }

    fn pace(&self, is_read: bool) -> &Paces {
        let [reads, others] = &self.paces;
        if is_read { reads } else { others }
    }

    /// How long its calls hold a turn, those of the slower kind.
    fn slowest(&self) -> Duration {
        let [reads, others] = &self.paces;
        reads.held.average().max(others.held.average())
    }

    /// Whether it computed more than its share.
    fn owes(&self, now: Instant) -> bool {
        !self.share.wait(now).is_zero()
    }

    /// Why a call of it has to wait for so long.
    fn explain_share(&self, cpu: u64, rest: Duration) -> ReadError {
        ReadError::Busy(format!(
            "mount \"{0}\" computed more than its share of {1}% of a processor over {2}, and gets its next turn in {3}; to allow more, set cpu = \"{4}%\" under [mounts.{0}.limits]",
            self.name,
            cpu,
            humantime::format_duration(share::WINDOW),
            humantime::format_duration(Duration::from_secs(rest.as_secs() + 1)),
            cpu.saturating_mul(2).min(crate::model::limits::MAX_CPU),
        ))
    }
}

/// The right to run one call, with its bounds. Only [`Admission::admit`] makes one; it gives its slots back when dropped.
pub struct Permit {
    own: Arc<Own>,
    host: Arc<Host>,
    since: Instant,
    deadline: Instant,
    bound: Bound,
    is_read: bool,
    /// Nanoseconds that the call computed.
    computed: AtomicU64,
    /// Whether it goes on although its mount owes.
    leads: AtomicBool,
    consent: Vec<Consent>,
    _trial: Option<Trial>,
    place: Mutex<Place>,
}

/// What a permit holds.
enum Place {
    Turn(Turn),
    Thread(#[expect(dead_code, reason = "held until it is dropped")] (Slot, ThreadPlace)),
}

/// A call that finds out whether what failed fails still. If nobody says how it ended, the next one may try.
struct Trial {
    operations: Arc<Operations>,
    key: operations::Key,
}

impl Drop for Trial {
    fn drop(&mut self) {
        self.operations.withdrawn(&self.key, Instant::now());
    }
}

/// The turn of a call that runs on a thread of its own: given back when this is dropped, whatever the thread does.
pub struct Held(#[expect(dead_code, reason = "held until it is dropped")] Turn);

impl Permit {
    /// The bounds of the call.
    pub fn limits(&self) -> &Limits {
        &self.own.limits
    }

    /// The same with what a person allowed for this call alone.
    pub fn with_consent(mut self, consent: Vec<Consent>) -> Self {
        self.consent = consent;
        self
    }

    /// What a person allowed for this call alone.
    pub fn consent(&self) -> &[Consent] {
        &self.consent
    }

    /// When the call must have ended.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether the mount's calls compute for a short time as a rule, however long they wait. It decides where a call starts,
    /// not what it may do.
    pub fn is_quick(&self) -> bool {
        self.own.mount.pace(self.is_read).computed.is_quick()
    }

    /// Says when its turn is wanted back, for others who have none. Then the call has to end.
    pub fn recall(&self) -> Option<Recall> {
        match &*self.place() {
            Place::Turn(turn) => Some(turn.recall()),
            Place::Thread(_) => None,
        }
    }

    /// For a call on a thread that may hang for longer than anybody waits: the turn goes back with the returned value, and
    /// the permit keeps a slot of the mount and a place for a thread.
    ///
    /// # Errors
    /// When too many threads hang already.
    pub fn detach(&self) -> Result<Option<Held>, ReadError> {
        let mut place = self.place();
        let Place::Turn(turn) = &*place else { return Ok(None) };
        let mount = &self.own.mount;
        let thread = self.host.threads.enter(mount).ok_or_else(|| {
            ReadError::Busy(format!(
                "too many calls of mount \"{}\" and others hang in file operations; a drive that they need may be gone",
                mount.name
            ))
        })?;
        let slot = turn.detach(mount);
        match std::mem::replace(&mut *place, Place::Thread((slot, thread))) {
            Place::Turn(turn) => Ok(Some(Held(turn))),
            Place::Thread(_) => Ok(None),
        }
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws processor time, spent until `now`, on the mount's account.
    pub fn spent(&self, now: Instant, time: Duration) {
        self.computed.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.own.mount.share.draw(now, time);
    }

    /// How long the call has to wait before it computes on: while its mount owes, one of its calls goes on at a time.
    ///
    /// # Errors
    /// When that is longer than the call may take.
    pub fn pause(&self, now: Instant) -> Result<Duration, ReadError> {
        let pause = self.own.mount.share.pause(now, &self.leads);
        // A call that owes nothing is looked at once more when its time is over: that is told by whoever watches the time.
        if !pause.is_zero() && now + pause > self.deadline {
            return Err(self.own.mount.explain_share(self.own.limits.cpu, pause));
        }
        Ok(pause)
    }

    /// What the memory of the call is drawn from.
    pub fn memory(&self) -> Allowance {
        Allowance::new(&self.host.budget, &self.own.mount.memory)
    }

    /// The limit that the deadline comes from, as it is told when the deadline has passed: waiting counts.
    pub fn out_of_time(&self) -> Limit {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (used, cap) = (ms(self.since.elapsed()), ms(self.deadline.saturating_duration_since(self.since)));
        Limit { bound: self.bound, used: used.max(cap), cap }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mount = &self.own.mount;
        mount.pace(self.is_read).computed.add(Duration::from_nanos(self.computed.load(Ordering::Relaxed)));
        mount.share.end(&self.leads);
    }
}

impl Admission {
    /// Lets at most `calls` calls run at once, over all mounts, with what `budget` has for them.
    pub fn new(calls: usize, budget: Arc<Budget>) -> Self {
        let host = Host { turns: Turns::new(calls), threads: Threads::new(calls), budget };
        Self { host: Arc::new(host), callers: Callers::new(Rate::default()) }
    }

    /// The same, with another rate of tool calls and completions for each caller.
    #[must_use]
    pub fn with_rate(self, rate: Rate) -> Self {
        Self { callers: Callers::new(rate), ..self }
    }

    /// The memory of all calls and answers.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.host.budget
    }

    /// Counts a tool call or completion of `caller`.
    ///
    /// # Errors
    /// [`ReadError::Busy`] when it asks too often; says when to come again.
    pub fn count(&self, caller: u64) -> Result<(), ReadError> {
        self.callers.count(caller, Instant::now()).map_err(|pause| {
            let Rate { rate, burst } = self.callers.rate();
            ReadError::Busy(format!(
                "this client calls tools and completes too often: {burst} times at once and {rate} times a second are let in; come again in {}",
                humantime::format_duration(pause)
            ))
        })
    }

    /// As [`Admission::admit_for`], for nobody in particular.
    ///
    /// # Errors
    /// As there.
    pub async fn admit(&self, gate: &Gate, operation: &Operation, by: Option<Instant>) -> Result<Permit, ReadError> {
        self.admit_for(gate, Who::default(), operation, by).await
    }

    /// Waits for a slot of the mount and a turn of the host. The call's deadline counts from now, or is `by` where that is
    /// earlier: the time that a listing over all mounts may take.
    ///
    /// # Errors
    /// [`ReadError::Busy`] when too many wait already, no slot came free in the mount's queueing time, the mount used up its
    /// share of the processors, or memory is short. [`ReadError::Again`] when `operation` failed again and again.
    pub async fn admit_for(
        &self,
        gate: &Gate,
        who: Who,
        operation: &Operation,
        by: Option<Instant>,
    ) -> Result<Permit, ReadError> {
        let Own { mount, limits } = &*gate.own;
        let now = Instant::now();
        let trial = gate.operations.check((operation, who.scope), now, limits.time)?;
        let trial = trial.map(|key| Trial { operations: Arc::clone(&gate.operations), key });
        if self.host.budget.is_spent() {
            return Err(ReadError::Busy(self.host.budget.explain()));
        }
        let own = now + limits.time;
        let (deadline, bound) = match by {
            Some(by) if by < own => (by, Bound::ListTime),
            _ => (own, Bound::Time),
        };
        let is_read = matches!(operation, Operation::Read { .. });
        let permit = |turn| Permit {
            own: Arc::clone(&gate.own),
            host: Arc::clone(&self.host),
            since: now,
            deadline,
            bound,
            is_read,
            computed: AtomicU64::new(0),
            leads: AtomicBool::new(false),
            consent: Vec::new(),
            _trial: trial,
            place: Mutex::new(Place::Turn(turn)),
        };
        let asks = Asks { mount, caller: who.caller, is_read };
        let rest = mount.share.wait(now);
        // The usual case: both are free, nothing is counted and no timer is made.
        if rest.is_zero()
            && let Some(turn) = self.host.turns.try_enter(&asks, now)
        {
            return Ok(permit(turn));
        }
        let full = || ReadError::Busy(format!("{WAITING} calls of mount \"{}\" wait already", mount.name));
        let Some(_queued) = Queued::take(&mount.waiting, || self.host.turns.push_out(mount, who.caller)) else {
            return Err(full());
        };
        let latest = deadline.min(now + limits.queue);
        if now + rest > latest {
            sleep_until(latest.min(now + REFUSAL)).await;
            return Err(mount.explain_share(limits.cpu, rest));
        }
        let turn = async {
            let mut rest = rest;
            while !rest.is_zero() {
                tokio::time::sleep(rest).await;
                rest = mount.share.wait(Instant::now());
            }
            self.host.turns.enter(&asks).await
        };
        match timeout_at(latest, turn).await {
            // While it waited, answers that nobody takes may have filled the memory.
            Ok(Some(_)) if self.host.budget.is_spent() => Err(ReadError::Busy(self.host.budget.explain())),
            Ok(Some(turn)) => Ok(permit(turn)),
            Ok(None) => Err(full()),
            Err(_) => Err(ReadError::Busy(format!(
                "no turn came free within {}; mount \"{}\" runs {} calls at once, at most",
                humantime::format_duration(limits.queue),
                mount.name,
                limits.concurrency
            ))),
        }
    }
}

/// A place in the queue of a mount.
struct Queued<'a>(&'a AtomicUsize);

impl<'a> Queued<'a> {
    /// Takes one. When there is none, `push_out` may make one.
    fn take(waiting: &'a AtomicUsize, push_out: impl FnOnce() -> bool) -> Option<Self> {
        let before = waiting.fetch_add(1, Ordering::Relaxed);
        let place = Self(waiting);
        (before < WAITING || !Guard::Queue.is_on() || push_out()).then_some(place)
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
