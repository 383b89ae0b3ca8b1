//! Who may run a call, how many at once, and how long a call waits. Gives the permit without which the sandbox runs
//! nothing.

pub mod account;
mod breaker;
pub mod budget;
mod share;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::model::error::Bound;
use crate::model::{Consent, Guard, Limit, Limits, MountName, Operation, ReadError};
use budget::{Allowance, Budget, Part};

/// Calls of one mount that may wait for a turn; one more is refused at once.
const WAITING: usize = 256;

/// A mount whose calls take less than this, on average, is quick: it gets its turn also when all that long calls may have
/// is taken.
const QUICK: Duration = Duration::from_millis(10);

/// The turnstile of the whole host.
pub struct Admission {
    /// Turns that any call may take.
    common: Arc<Semaphore>,
    /// Turns that quick mounts alone may take: a quarter of all.
    reserve: Arc<Semaphore>,
    budget: Arc<Budget>,
}

/// The turnstile of one mount.
pub struct Gate {
    mount: Arc<Mount>,
    slots: Arc<Semaphore>,
    waiting: AtomicUsize,
    breaker: breaker::Breaker,
}

/// What admission keeps of a mount and its permits use.
struct Mount {
    name: MountName,
    limits: Limits,
    share: share::Share,
    memory: Arc<Part>,
    /// Of reads, and of anything else: listing a mount whose reads are long stays prompt.
    paces: [Paces; 2],
}

impl Gate {
    /// A turnstile with the mount's own number of slots.
    pub fn new(name: MountName, limits: Limits) -> Self {
        let slots = if Guard::Concurrency.is_on() { limits.concurrency } else { Semaphore::MAX_PERMITS };
        let slots = Arc::new(Semaphore::new(slots));
        let share = share::Share::new(limits.cpu);
        let mount = Mount { name, limits, share, memory: Part::new(), paces: Default::default() };
        Self { mount: Arc::new(mount), slots, waiting: AtomicUsize::new(0), breaker: breaker::Breaker::default() }
    }

    /// The mount's limits.
    pub fn limits(&self) -> &Limits {
        &self.mount.limits
    }

    /// Takes note of how a call ended that was let in: what fails again and again is asked less often.
    pub fn ended(&self, operation: &Operation, error: Option<&ReadError>) {
        if let Some(pause) = self.breaker.ended(operation, error, Instant::now) {
            tracing::warn!(
                mount = %self.mount.name,
                "{} failed again; not asked for {}",
                breaker::shown(operation),
                humantime::format_duration(pause)
            );
        }
    }
}

/// Nanoseconds that calls take, as a running average.
#[derive(Default)]
struct Pace(AtomicU64);

impl Pace {
    fn is_quick(&self) -> bool {
        u128::from(self.0.load(Ordering::Relaxed)) <= QUICK.as_nanos()
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

impl Mount {
    fn pace(&self, is_read: bool) -> &Paces {
        let [reads, others] = &self.paces;
        if is_read { reads } else { others }
    }
}

/// The right to run one call, with its bounds. Only [`Admission::admit`] makes one; it gives its slots back when dropped.
pub struct Permit {
    mount: Arc<Mount>,
    budget: Arc<Budget>,
    since: Instant,
    started: Instant,
    deadline: Instant,
    bound: Bound,
    is_read: bool,
    /// Nanoseconds that the call computed.
    computed: AtomicU64,
    consent: Vec<Consent>,
    _slots: (OwnedSemaphorePermit, OwnedSemaphorePermit),
}

impl Permit {
    /// The bounds of the call.
    pub fn limits(&self) -> &Limits {
        &self.mount.limits
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
        self.mount.pace(self.is_read).computed.is_quick()
    }

    /// Draws processor time, spent until `now`, on the mount's account.
    pub fn spent(&self, now: Instant, time: Duration) {
        self.computed.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.mount.share.draw(now, time);
    }

    /// What the memory of the call is drawn from.
    pub fn memory(&self) -> Allowance {
        Allowance::new(&self.budget, &self.mount.memory)
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
        let paces = self.mount.pace(self.is_read);
        paces.held.add(self.started.elapsed());
        paces.computed.add(Duration::from_nanos(self.computed.load(Ordering::Relaxed)));
    }
}

impl Admission {
    /// Lets at most `calls` calls run at once, over all mounts, with what `budget` has for them.
    pub fn new(calls: usize, budget: Arc<Budget>) -> Self {
        let reserve = calls / 4;
        let [common, reserve] = [calls - reserve, reserve].map(|turns| Arc::new(Semaphore::new(turns)));
        Self { common, reserve, budget }
    }

    /// The memory of all calls and answers.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Waits for a slot of the mount and one of the host. The call's deadline counts from now, or is `by` where that is
    /// earlier: the time that a listing over all mounts may take.
    ///
    /// # Errors
    /// [`ReadError::Busy`] when too many wait already, no slot came free in the mount's queueing time, the mount used up its
    /// share of the processors, or memory is short. [`ReadError::Again`] when `operation` failed again and again.
    pub async fn admit(&self, gate: &Gate, operation: &Operation, by: Option<Instant>) -> Result<Permit, ReadError> {
        let mount = &gate.mount;
        let limits = &mount.limits;
        let now = Instant::now();
        gate.breaker.check(operation, now, limits.time)?;
        if self.budget.is_spent() {
            return Err(ReadError::Busy(self.budget.explain()));
        }
        let own = now + limits.time;
        let (deadline, bound) = match by {
            Some(by) if by < own => (by, Bound::ListTime),
            _ => (own, Bound::Time),
        };
        let is_read = matches!(operation, Operation::Read { .. });
        let is_quick = mount.pace(is_read).held.is_quick();
        let permit = |slots, started| Permit {
            mount: Arc::clone(mount),
            budget: Arc::clone(&self.budget),
            since: now,
            started,
            deadline,
            bound,
            is_read,
            computed: AtomicU64::new(0),
            consent: Vec::new(),
            _slots: slots,
        };
        let rest = mount.share.wait(now);
        // The usual case: both are free, nothing is counted and no timer is made.
        if rest.is_zero()
            && let Ok(own) = Arc::clone(&gate.slots).try_acquire_owned()
            && let Some(turn) = self.try_turn(is_quick)
        {
            return Ok(permit((own, turn), now));
        }
        let _place = Place::take(&gate.waiting)
            .ok_or_else(|| ReadError::Busy(format!("{WAITING} calls of mount \"{}\" wait already", mount.name)))?;
        let latest = deadline.min(now + limits.queue);
        if now + rest > latest {
            return Err(ReadError::Busy(format!(
                "mount \"{0}\" computed more than its share of {1}% of a processor over {2}, and gets its next turn in {3}; to allow more, set cpu = \"{4}%\" under [mounts.{0}.limits]",
                mount.name,
                limits.cpu,
                humantime::format_duration(share::WINDOW),
                humantime::format_duration(Duration::from_secs(rest.as_secs() + 1)),
                limits.cpu * 2,
            )));
        }
        let slots = async {
            tokio::time::sleep(rest).await;
            let own = Arc::clone(&gate.slots).acquire_owned().await.ok()?;
            let turn = self.turn(is_quick).await?;
            Some((own, turn))
        };
        match timeout_at(latest, slots).await {
            // While it waited, answers that nobody takes may have filled the memory.
            Ok(Some(_)) if self.budget.is_spent() => Err(ReadError::Busy(self.budget.explain())),
            Ok(Some(slots)) => Ok(permit(slots, Instant::now())),
            Ok(None) => Err(ReadError::Unavailable("belljar is shutting down".to_owned())),
            Err(_) => Err(ReadError::Busy(format!(
                "no turn came free within {}; mount \"{}\" runs {} calls at once, at most",
                humantime::format_duration(limits.queue),
                mount.name,
                limits.concurrency
            ))),
        }
    }

    fn try_turn(&self, is_quick: bool) -> Option<OwnedSemaphorePermit> {
        let common = Arc::clone(&self.common).try_acquire_owned().ok();
        common.or_else(|| is_quick.then(|| Arc::clone(&self.reserve).try_acquire_owned().ok())?)
    }

    async fn turn(&self, is_quick: bool) -> Option<OwnedSemaphorePermit> {
        let common = Arc::clone(&self.common).acquire_owned();
        if !is_quick {
            return common.await.ok();
        }
        tokio::select! {
            turn = common => turn.ok(),
            turn = Arc::clone(&self.reserve).acquire_owned() => turn.ok(),
        }
    }
}

/// A place in the queue.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize) -> Option<Self> {
        let before = waiting.fetch_add(1, Ordering::Relaxed);
        let place = Self(waiting);
        (before < WAITING || !Guard::Queue.is_on()).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Operation = Operation::Read { reference: String::new() };

    fn admission(calls: usize) -> Admission {
        Admission::new(calls, Budget::new(1 << 30))
    }

    fn gate(concurrency: usize) -> Gate {
        let limits = Limits { concurrency, queue: Duration::from_millis(50), ..Limits::default() };
        Gate::new(MountName::new("m").unwrap(), limits)
    }

    #[tokio::test]
    async fn a_mount_takes_no_more_than_its_slots() {
        let admission = admission(10);
        let (busy, other) = (gate(2), gate(2));
        let first = admission.admit(&busy, &READ, None).await.unwrap();
        let _second = admission.admit(&busy, &READ, None).await.unwrap();
        assert!(matches!(admission.admit(&busy, &READ, None).await, Err(ReadError::Busy(_))));
        assert!(admission.admit(&other, &READ, None).await.is_ok(), "another mount has its own slots");
        drop(first);
        assert!(admission.admit(&busy, &READ, None).await.is_ok());
    }

    #[tokio::test]
    async fn all_mounts_share_the_total_and_a_refused_call_keeps_nothing() {
        let admission = admission(1);
        let (a, b) = (gate(1), gate(1));
        let held = admission.admit(&a, &READ, None).await.unwrap();
        assert!(matches!(admission.admit(&b, &READ, None).await, Err(ReadError::Busy(_))));
        drop(held);
        assert!(admission.admit(&b, &READ, None).await.is_ok());
    }

    #[tokio::test]
    async fn the_queue_is_bounded() {
        let admission = Arc::new(admission(10));
        let gate = Arc::new(gate(1));
        let _held = admission.admit(&gate, &READ, None).await.unwrap();
        let waiters: Vec<_> = (0..WAITING)
            .map(|_| {
                let (admission, gate) = (Arc::clone(&admission), Arc::clone(&gate));
                tokio::spawn(async move { admission.admit(&gate, &READ, None).await.is_ok() })
            })
            .collect();
        while gate.waiting.load(Ordering::Relaxed) < WAITING {
            tokio::task::yield_now().await;
        }
        assert!(matches!(admission.admit(&gate, &READ, None).await, Err(ReadError::Busy(_))));
        assert_eq!(gate.waiting.load(Ordering::Relaxed), WAITING, "refused at once, while all others still wait");
        for waiter in waiters {
            assert!(!waiter.await.unwrap());
        }
        assert_eq!(gate.waiting.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn the_earlier_deadline_holds() {
        let admission = admission(1);
        let gate = gate(1);
        let by = Instant::now() + Duration::from_secs(1);
        assert_eq!(admission.admit(&gate, &READ, Some(by)).await.unwrap().deadline(), by);
    }

    #[tokio::test]
    async fn a_quarter_of_all_turns_is_kept_for_quick_mounts() {
        let admission = admission(8);
        let [slow, quick] = [gate(100), gate(100)];
        slow.mount.pace(true).held.add(Duration::from_secs(60));
        let mut held = Vec::new();
        for _ in 0..6 {
            held.push(admission.admit(&slow, &READ, None).await.unwrap());
        }
        assert!(admission.admit(&slow, &READ, None).await.is_err());
        for _ in 0..2 {
            held.push(admission.admit(&quick, &READ, None).await.unwrap());
        }
        assert!(admission.admit(&quick, &READ, None).await.is_err());
    }

    #[tokio::test]
    async fn one_long_call_makes_a_mount_slow_and_a_few_short_ones_quick_again() {
        let admission = admission(1);
        let gate = gate(1);
        let mut waiting = admission.admit(&gate, &READ, None).await.unwrap();
        waiting.started -= Duration::from_millis(250);
        drop(waiting);
        assert!(!gate.mount.pace(true).held.is_quick(), "it held its turn for long");
        let permit = admission.admit(&gate, &READ, None).await.unwrap();
        assert!(permit.is_quick(), "whoever only waits computes little");
        permit.spent(Instant::now(), Duration::from_millis(250));
        drop(permit);
        let mut calls = 0;
        while !admission.admit(&gate, &READ, None).await.unwrap().is_quick() {
            calls += 1;
        }
        assert!((3..20).contains(&calls), "{calls}");
    }

    #[tokio::test]
    async fn a_share_is_waited_for_or_refused_with_the_cure() {
        let admission = admission(1);
        let gate = gate(1);
        let permit = admission.admit(&gate, &READ, None).await.unwrap();
        permit.spent(Instant::now(), share::WINDOW + Duration::from_millis(20));
        drop(permit);
        let began = Instant::now();
        assert!(admission.admit(&gate, &READ, None).await.is_ok());
        assert!(began.elapsed() >= Duration::from_millis(20));
        gate.mount.share.draw(Instant::now(), share::WINDOW);
        let Err(ReadError::Busy(why)) = admission.admit(&gate, &READ, None).await else { panic!("let in") };
        assert!(
            why.contains("share of 100% of a processor over 10s")
                && why.contains("cpu = \"200%\" under [mounts.m.limits]"),
            "{why}"
        );
    }

    #[tokio::test]
    async fn nobody_is_let_in_when_memory_is_spent() {
        let budget = Budget::new(1 << 20);
        let admission = Admission::new(8, Arc::clone(&budget));
        let held = budget.hold(1 << 20);
        let Err(ReadError::Busy(why)) = admission.admit(&gate(8), &READ, None).await else { panic!("let in") };
        assert_eq!(why, "all memory for calls is in use (1MiB of 1MiB)");
        drop(held);
        assert!(admission.admit(&gate(8), &READ, None).await.is_ok());
    }
}
