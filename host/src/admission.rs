//! Who may run a call, how many at once, and how long a call waits. Gives the permit without which the sandbox runs
//! nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::model::error::Bound;
use crate::model::{Limit, Limits, MountName, ReadError};

/// Calls of one mount that may wait for a turn; one more is refused at once.
const WAITING: usize = 256;

/// The turnstile of the whole host.
pub struct Admission {
    total: Arc<Semaphore>,
}

/// The turnstile of one mount.
pub struct Gate {
    name: MountName,
    limits: Arc<Limits>,
    slots: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Gate {
    /// A turnstile with the mount's own number of slots.
    pub fn new(name: MountName, limits: Limits) -> Self {
        let slots = Arc::new(Semaphore::new(limits.concurrency));
        Self { name, limits: Arc::new(limits), slots, waiting: AtomicUsize::new(0) }
    }

    /// The mount's limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
}

/// The right to run one call, with its bounds. Only [`Admission::admit`] makes one; it gives its slots back when dropped.
pub struct Permit {
    limits: Arc<Limits>,
    since: Instant,
    deadline: Instant,
    bound: Bound,
    _slots: (OwnedSemaphorePermit, OwnedSemaphorePermit),
}

impl Permit {
    /// The bounds of the call.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// When the call must have ended.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The limit that the deadline comes from, as it is told when the deadline has passed: waiting counts.
    pub fn out_of_time(&self) -> Limit {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (used, cap) = (ms(self.since.elapsed()), ms(self.deadline.saturating_duration_since(self.since)));
        Limit { bound: self.bound, used: used.max(cap), cap }
    }
}

impl Admission {
    /// Lets at most `calls` calls run at once, over all mounts.
    pub fn new(calls: usize) -> Self {
        Self { total: Arc::new(Semaphore::new(calls)) }
    }

    /// Waits for a slot of the mount and one of the host. The call's deadline counts from now, or is `by` where that is
    /// earlier: the time that a listing over all mounts may take.
    ///
    /// # Errors
    /// [`ReadError::Busy`] when too many wait already or no slot came free in the mount's queueing time.
    pub async fn admit(&self, gate: &Gate, by: Option<Instant>) -> Result<Permit, ReadError> {
        let now = Instant::now();
        let own = now + gate.limits.time;
        let (deadline, bound) = match by {
            Some(by) if by < own => (by, Bound::ListTime),
            _ => (own, Bound::Time),
        };
        let permit = |slots| Permit { limits: Arc::clone(&gate.limits), since: now, deadline, bound, _slots: slots };
        // The usual case: both are free, nothing is counted and no timer is made.
        if let Ok(own) = Arc::clone(&gate.slots).try_acquire_owned()
            && let Ok(total) = Arc::clone(&self.total).try_acquire_owned()
        {
            return Ok(permit((own, total)));
        }
        let _place = Place::take(&gate.waiting)
            .ok_or_else(|| ReadError::Busy(format!("{WAITING} calls of mount \"{}\" wait already", gate.name)))?;
        let slots = async {
            let own = Arc::clone(&gate.slots).acquire_owned().await.ok()?;
            let total = Arc::clone(&self.total).acquire_owned().await.ok()?;
            Some((own, total))
        };
        match timeout_at(deadline.min(now + gate.limits.queue), slots).await {
            Ok(Some(slots)) => Ok(permit(slots)),
            Ok(None) => Err(ReadError::Unavailable("belljar is shutting down".to_owned())),
            Err(_) => Err(ReadError::Busy(format!(
                "no turn came free within {}; mount \"{}\" runs {} calls at once, at most",
                humantime::format_duration(gate.limits.queue),
                gate.name,
                gate.limits.concurrency
            ))),
        }
    }
}

/// A place in the queue.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize) -> Option<Self> {
        let before = waiting.fetch_add(1, Ordering::Relaxed);
        let place = Self(waiting);
        (before < WAITING).then_some(place)
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

    fn gate(concurrency: usize) -> Gate {
        let limits = Limits { concurrency, queue: Duration::from_millis(50), ..Limits::default() };
        Gate::new(MountName::new("m").unwrap(), limits)
    }

    #[tokio::test]
    async fn a_mount_takes_no_more_than_its_slots() {
        let admission = Admission::new(10);
        let (busy, other) = (gate(2), gate(2));
        let first = admission.admit(&busy, None).await.unwrap();
        let _second = admission.admit(&busy, None).await.unwrap();
        assert!(matches!(admission.admit(&busy, None).await, Err(ReadError::Busy(_))));
        assert!(admission.admit(&other, None).await.is_ok(), "another mount has its own slots");
        drop(first);
        assert!(admission.admit(&busy, None).await.is_ok());
    }

    #[tokio::test]
    async fn all_mounts_share_the_total_and_a_refused_call_keeps_nothing() {
        let admission = Admission::new(1);
        let (a, b) = (gate(1), gate(1));
        let held = admission.admit(&a, None).await.unwrap();
        assert!(matches!(admission.admit(&b, None).await, Err(ReadError::Busy(_))));
        drop(held);
        assert!(admission.admit(&b, None).await.is_ok());
    }

    #[tokio::test]
    async fn the_queue_is_bounded() {
        let admission = Arc::new(Admission::new(10));
        let gate = Arc::new(gate(1));
        let _held = admission.admit(&gate, None).await.unwrap();
        let waiters: Vec<_> = (0..WAITING)
            .map(|_| {
                let (admission, gate) = (Arc::clone(&admission), Arc::clone(&gate));
                tokio::spawn(async move { admission.admit(&gate, None).await.is_ok() })
            })
            .collect();
        while gate.waiting.load(Ordering::Relaxed) < WAITING {
            tokio::task::yield_now().await;
        }
        assert!(matches!(admission.admit(&gate, None).await, Err(ReadError::Busy(_))));
        assert_eq!(gate.waiting.load(Ordering::Relaxed), WAITING, "refused at once, while all others still wait");
        for waiter in waiters {
            assert!(!waiter.await.unwrap());
        }
        assert_eq!(gate.waiting.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn the_earlier_deadline_holds() {
        let admission = Admission::new(1);
        let gate = gate(1);
        let by = Instant::now() + Duration::from_secs(1);
        assert_eq!(admission.admit(&gate, Some(by)).await.unwrap().deadline(), by);
    }
}
