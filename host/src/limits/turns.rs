//! The scheduler of calls: the turns of the host, and the slots of each mount.
//!
//! A turn goes to the mount that holds the fewest. Among equals, turns alternate between two rules. The first picks the
//! mount that has waited longest since it came or returned its last turn. The second picks the mount with the shortest
//! calls.
//!
//! A quarter of all turns is a reserve. Half of the reserve is for mounts without a turn. The other half is also for
//! quick mounts, judged by their average and by the calls that they run now.
//!
//! A principal that a credential proved holds at most half of all turns, or as many as `[callers]` says. A turn goes
//! first to the principal that holds the fewest, however many connections it has, and then by the rules above.
//!
//! If no turn is free, a waiting mount without a turn gets one from the mount that holds most: the oldest call of that
//! mount is recalled. In the same way, a caller without a call in a mount gets a slot from the caller that has most
//! there, and a principal without a turn gets one from the principal that holds most. A call is recalled only after
//! [`RECALL_AFTER`] if its owner has others, and after [`RECALL_AFTER_ALONE`] if it is the only one.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until};

use super::mount_state::{MountState, QUICK};
use crate::model::ReadError;
use crate::model::bounds::{self, RECALL_AFTER, RECALL_AFTER_ALONE, TURN_RESERVE};
use crate::policy::{CallerId, PrincipalId};

/// The only call of a mount is recalled only for mounts whose average call is shorter by this factor.
const RECALL_RATIO: u32 = 4;

/// The interval at which a waiting call checks whether a turn can be recalled.
const RECALL_CHECK: Duration = Duration::from_millis(100);

/// The scheduler of all turns of the host.
pub(super) struct TurnScheduler {
    reserve: usize,
    /// The most turns of one principal.
    max_per_principal: AtomicUsize,
    recall_signals: Box<[RecallSignal]>,
    state: Mutex<SchedulerState>,
}

struct SchedulerState {
    /// Free places.
    free: Vec<u32>,
    /// The holder of each place.
    held: Box<[Option<HeldTurn>]>,
    /// The number of turns of each principal that holds one.
    by_principal: HashMap<PrincipalId, usize>,
    /// Waiting calls, by mount.
    queues: HashMap<usize, MountQueue>,
    /// The next sequence number. Grants, new waiters and returned turns take one each.
    next_number: u64,
    /// True if the next turn goes to the waiting mount with the shortest calls.
    shortest_is_next: bool,
}

/// A turn as recorded at its place.
struct HeldTurn {
    mount: Arc<MountState>,
    caller: CallerId,
    number: u64,
    since: Instant,
    is_recalled: bool,
    /// True if it also holds a slot of the mount.
    has_slot: bool,
}

struct MountQueue {
    mount: Arc<MountState>,
    waiters: VecDeque<Waiter>,
}

struct Waiter {
    number: u64,
    caller: CallerId,
    is_read: bool,
    sender: oneshot::Sender<Turn>,
}

/// Tells the holder of a place that its turn is recalled.
#[derive(Default)]
struct RecallSignal {
    /// The sequence number of the recalled grant.
    number: AtomicU64,
    notify: Notify,
}

fn get(count: &AtomicUsize) -> usize {
    count.load(Ordering::Relaxed)
}

fn change(count: &AtomicUsize, by: isize) {
    count.store(get(count).saturating_add_signed(by), Ordering::Relaxed);
}

/// A turn of the host, with a slot of the mount unless [`Turn::detach`] took it. Released when dropped.
pub(super) struct Turn {
    scheduler: Arc<TurnScheduler>,
    place: u32,
    number: u64,
    since: Instant,
    is_read: bool,
    /// True if the turn was released before it reached the waiter.
    is_released: bool,
}

/// A slot of a mount without a turn, held by a thread that hangs. Released when dropped.
pub(super) struct Slot {
    scheduler: Arc<TurnScheduler>,
    mount: Arc<MountState>,
}

/// The signal that a turn is recalled.
pub struct Recall {
    scheduler: Arc<TurnScheduler>,
    place: u32,
    number: u64,
    since: Instant,
}

impl Recall {
    /// Waits until the turn is recalled. Returns the error for the caller.
    pub async fn recalled(&self) -> ReadError {
        let Some(signal) = self.scheduler.recall_signals.get(self.place as usize) else {
            return std::future::pending().await;
        };
        loop {
            let mut notified = std::pin::pin!(signal.notify.notified());
            notified.as_mut().enable();
            if signal.number.load(Ordering::Acquire) == self.number {
                let held = Duration::from_millis(u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX));
                return ReadError::busy(format!(
                    "stopped to free its turn: all turns were taken, and this call had held one for {} while another mount or caller had none",
                    humantime::format_duration(held)
                ));
            }
            notified.await;
        }
    }
}

impl TurnScheduler {
    /// A scheduler of `calls` turns.
    pub(super) fn new(calls: usize) -> Arc<Self> {
        let places = u32::try_from(calls).unwrap_or(u32::MAX);
        Arc::new(Self {
            reserve: calls / TURN_RESERVE.get(),
            max_per_principal: AtomicUsize::new(bounds::of_principal((calls / 2).max(1))),
            recall_signals: (0..places).map(|_| RecallSignal::default()).collect(),
            state: Mutex::new(SchedulerState {
                free: (0..places).rev().collect(),
                held: (0..places).map(|_| None).collect(),
                by_principal: HashMap::new(),
                queues: HashMap::new(),
                next_number: 1,
                shortest_is_next: false,
            }),
        })
    }

    /// Lets one principal hold at most `most` turns.
    pub(super) fn set_max_per_principal(&self, most: usize) {
        self.max_per_principal.store(bounds::of_principal(most.max(1)), Ordering::Relaxed);
    }

    /// The most turns of one principal.
    pub(super) fn max_per_principal(&self) -> usize {
        get(&self.max_per_principal)
    }

    /// True if `caller` is a principal that holds as many turns as it may.
    pub(super) fn is_at_cap(&self, caller: CallerId) -> bool {
        matches!(caller, CallerId::Principal(_)) && self.has_most(&self.lock(), caller)
    }

    /// The turns that are held, and all turns.
    pub(super) fn counts(&self) -> (usize, usize) {
        let state = self.lock();
        (state.held.len() - state.free.len(), state.held.len())
    }

    fn has_most(&self, state: &SchedulerState, caller: CallerId) -> bool {
        state.of_principal(caller).is_some_and(|held| held >= self.max_per_principal())
    }

    fn lock(&self) -> MutexGuard<'_, SchedulerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a turn and a slot, if both are free and no call of the mount waits.
    pub(super) fn try_enter(self: &Arc<Self>, request: &TurnRequest<'_>, now: Instant) -> Option<Turn> {
        let mut state = self.lock();
        let is_first = state.queues.is_empty() || !state.queues.contains_key(&key(request.mount));
        (is_first && self.may_take(&state, request, now))
            .then(|| self.give_turn(&mut state, request.mount, request.caller, request.is_read, now))
            .flatten()
    }

    /// Waits for a turn and a slot. `None` if another caller's call took the place in the queue.
    pub(super) async fn enter(self: &Arc<Self>, request: &TurnRequest<'_>) -> Option<Turn> {
        let (sender, mut receiver) = oneshot::channel();
        let number = {
            let mut state = self.lock();
            let number = state.next_number;
            state.next_number += 1;
            let new = || MountQueue { mount: Arc::clone(request.mount), waiters: VecDeque::new() };
            let queue = state.queues.entry(key(request.mount)).or_insert_with(new);
            queue.waiters.push_back(Waiter { number, caller: request.caller, is_read: request.is_read, sender });
            self.dispatch(&mut state, Instant::now());
            number
        };
        let _entry = QueueEntry { scheduler: self, queue: key(request.mount), number };
        loop {
            let next_check = self.recall_for(request, Instant::now());
            tokio::select! {
                biased;
                turn = &mut receiver => return turn.ok(),
                () = sleep_until(next_check) => {}
            }
        }
    }

    /// Makes room in a mount's queue for `caller`. Evicts the newest call of the caller with most waiting calls, if
    /// that caller has more than `caller`. Returns true if there is room now.
    pub(super) fn evict_waiter(&self, mount: &Arc<MountState>, caller: CallerId) -> bool {
        let mut state = self.lock();
        let Some(queue) = state.queues.get_mut(&key(mount)) else { return false };
        let count = |caller: CallerId| queue.waiters.iter().filter(|waiter| waiter.caller == caller).count();
        let last_of = |at: usize| queue.waiters.get(at).map_or((0, at), |waiter| (count(waiter.caller), at));
        let most = (0..queue.waiters.len()).map(last_of).max();
        let Some((most, at)) = most.filter(|(most, _)| *most > count(caller) + 1) else { return false };
        debug_assert!(most > 0);
        // Dropping the sender tells the waiting call.
        queue.waiters.remove(at).is_some()
    }

    fn may_take(&self, state: &SchedulerState, request: &TurnRequest<'_>, now: Instant) -> bool {
        let TurnRequest { mount, caller, is_read } = *request;
        if self.has_most(state, caller) || get(&mount.counts.slots) >= get(&mount.counts.max_slots) {
            return false;
        }
        let free = state.free.len();
        if free > self.reserve {
            return free > 0;
        }
        if get(&mount.counts.turns) == 0 {
            return free > 0;
        }
        let holds_long = || {
            let own = state.held.iter().flatten().filter(|held| Arc::ptr_eq(&held.mount, mount));
            own.into_iter().any(|held| now.saturating_duration_since(held.since) > QUICK)
        };
        free > self.reserve.div_ceil(2) && mount.times(is_read).held.is_quick() && !holds_long()
    }

    fn give_turn(
        self: &Arc<Self>,
        state: &mut SchedulerState,
        mount: &Arc<MountState>,
        caller: CallerId,
        is_read: bool,
        now: Instant,
    ) -> Option<Turn> {
        let place = state.free.pop()?;
        let number = state.next_number;
        state.next_number += 1;
        let mount = Arc::clone(mount);
        change(&mount.counts.turns, 1);
        change(&mount.counts.slots, 1);
        if let CallerId::Principal(id) = caller {
            *state.by_principal.entry(id).or_default() += 1;
        }
        let held = HeldTurn { mount, caller, number, since: now, is_recalled: false, has_slot: true };
        *state.held.get_mut(place as usize)? = Some(held);
        Some(Turn { scheduler: Arc::clone(self), place, number, since: now, is_read, is_released: false })
    }

    /// Releases a turn.
    fn release(state: &mut SchedulerState, place: u32) -> Option<HeldTurn> {
        let held = state.held.get_mut(place as usize)?.take()?;
        change(&held.mount.counts.turns, -1);
        if let CallerId::Principal(id) = held.caller
            && let Entry::Occupied(mut own) = state.by_principal.entry(id)
        {
            *own.get_mut() -= 1;
            if *own.get() == 0 {
                own.remove();
            }
        }
        if held.has_slot {
            change(&held.mount.counts.slots, -1);
        }
        held.mount.counts.last_returned.store(state.next_number, Ordering::Relaxed);
        state.next_number += 1;
        state.free.push(place);
        Some(held)
    }

    /// Grants free turns to waiting calls: first to the principal with the fewest turns, then to the mount with the
    /// fewest, and within it to the caller with the fewest. A mount that returned its turn does not come first again because its calls have waited long.
    fn dispatch(self: &Arc<Self>, state: &mut SchedulerState, now: Instant) {
        while !state.queues.is_empty() {
            let shortest_first = state.shortest_is_next;
            let rank = |(key, queue): (&usize, &MountQueue)| {
                let at = self.next_waiter(state, queue)?;
                let Waiter { caller, is_read, .. } = *queue.waiters.get(at)?;
                let (mount, first) = (&queue.mount, queue.waiters.front()?.number);
                let since = first.max(mount.counts.last_returned.load(Ordering::Relaxed));
                let length = if shortest_first { mount.times(is_read).held.average() } else { Duration::ZERO };
                let own = state.of_principal(caller).unwrap_or_default();
                let may = self.may_take(state, &TurnRequest { mount, caller, is_read }, now);
                may.then(|| ((own, get(&mount.counts.turns), length, since), *key, at))
            };
            let ready = state.queues.iter().filter_map(rank).min();
            let Some((_, key, at)) = ready else { return };
            state.shortest_is_next = !shortest_first;
            let Some(queue) = state.queues.get_mut(&key) else { return };
            let (mount, waiter) = (Arc::clone(&queue.mount), queue.waiters.remove(at));
            if queue.waiters.is_empty() {
                state.queues.remove(&key);
            }
            let Some(Waiter { caller, is_read, sender, .. }) = waiter else { return };
            let Some(turn) = self.give_turn(state, &mount, caller, is_read, now) else { return };
            if let Err(mut turn) = sender.send(turn) {
                // The waiter is gone. Dropping the turn would lock again.
                turn.is_released = true;
                Self::release(state, turn.place);
            }
        }
    }

    /// The index of the next call in a queue: the oldest call of the principal with the fewest turns, or of the caller
    /// with the fewest running calls in the mount. Skips principals that may not hold more.
    fn next_waiter(&self, state: &SchedulerState, queue: &MountQueue) -> Option<usize> {
        let first = queue.waiters.front()?;
        if queue.waiters.iter().all(|waiter| waiter.caller == first.caller) {
            return (!self.has_most(state, first.caller)).then_some(0);
        }
        let mut seen: HashMap<CallerId, Option<usize>> = HashMap::new();
        let count = |caller| state.of_principal(caller).unwrap_or_else(|| state.count(&queue.mount, caller));
        let ranked = queue.waiters.iter().enumerate().filter_map(|(at, waiter)| {
            let caller = waiter.caller;
            let new = || (!self.has_most(state, caller)).then(|| count(caller));
            Some(((*seen.entry(caller).or_insert_with(new))?, at))
        });
        ranked.min().map(|(_, at)| at)
    }

    /// Recalls a turn for a waiting call, if its mount or caller has none. Returns the time of the next check.
    fn recall_for(&self, request: &TurnRequest<'_>, now: Instant) -> Instant {
        let TurnRequest { mount, caller, is_read } = request;
        let next_check = now + RECALL_CHECK;
        let mut state = self.lock();
        if self.has_most(&state, *caller) {
            return next_check;
        }
        let lacks_slot = get(&mount.counts.slots) >= get(&mount.counts.max_slots);
        let age = |held: &HeldTurn| now.saturating_duration_since(held.since);
        let chosen = if lacks_slot {
            let own = || state.held.iter().flatten().filter(|held| Arc::ptr_eq(&held.mount, mount));
            if state.count(mount, *caller) > 0 || own().any(|held| held.is_recalled) {
                return next_check;
            }
            let ranked = own().map(|held| (state.count(mount, held.caller), age(held), Reverse(held.number)));
            ranked
                .filter(|(count, age, _)| *count > 1 && *age >= RECALL_AFTER.get())
                .max()
                .map(|(.., Reverse(number))| number)
        } else if state.of_principal(*caller) == Some(0) && get(&mount.counts.turns) > 0 {
            if state.held.iter().flatten().any(|held| held.is_recalled) {
                return next_check;
            }
            let ranked = state
                .held
                .iter()
                .flatten()
                .filter_map(|held| Some((state.of_principal(held.caller)?, age(held), Reverse(held.number))));
            ranked
                .filter(|(count, age, _)| *count > 1 && *age >= RECALL_AFTER.get())
                .max()
                .map(|(.., Reverse(number))| number)
        } else {
            let starving = state.queues.values().filter(|queue| get(&queue.mount.counts.turns) == 0).count();
            let recalled = state.held.iter().flatten().filter(|held| held.is_recalled).count();
            if get(&mount.counts.turns) > 0 || !state.free.is_empty() || recalled >= starving {
                return next_check;
            }
            let alone = RECALL_AFTER_ALONE.get().max(mount.times(*is_read).held.average().saturating_mul(RECALL_RATIO));
            let ranked = state.held.iter().flatten().filter(|held| !held.is_recalled).map(|held| {
                let counts = &held.mount.counts;
                (get(&counts.turns), age(held).max(held.mount.slowest_average()), age(held), Reverse(held.number))
            });
            let is_old_enough = |count: usize, age: Duration| age >= if count > 1 { RECALL_AFTER.get() } else { alone };
            ranked.filter(|(count, _, age, _)| is_old_enough(*count, *age)).max().map(|(.., Reverse(number))| number)
        };
        let Some(chosen) = chosen else { return next_check };
        for (held, signal) in state.held.iter_mut().zip(&self.recall_signals) {
            if let Some(held) = held.as_mut().filter(|held| held.number == chosen) {
                held.is_recalled = true;
                signal.number.store(held.number, Ordering::Release);
                signal.notify.notify_waiters();
            }
        }
        next_check
    }
}

/// A request for a turn.
pub(super) struct TurnRequest<'a> {
    pub(super) mount: &'a Arc<MountState>,
    pub(super) caller: CallerId,
    pub(super) is_read: bool,
}

fn key(mount: &Arc<MountState>) -> usize {
    Arc::as_ptr(mount).addr()
}

impl SchedulerState {
    /// Number of turns of a principal. `None` for a connection, whose turns are not counted together.
    fn of_principal(&self, caller: CallerId) -> Option<usize> {
        match caller {
            CallerId::Principal(id) => Some(self.by_principal.get(&id).copied().unwrap_or_default()),
            CallerId::Connection(_) => None,
        }
    }

    /// Number of running calls of `caller` in `mount`.
    fn count(&self, mount: &Arc<MountState>, caller: CallerId) -> usize {
        let own = |held: &&HeldTurn| held.caller == caller && Arc::ptr_eq(&held.mount, mount);
        self.held.iter().flatten().filter(own).count()
    }
}

impl Turn {
    /// The signal that this turn is recalled.
    pub(super) fn recall(&self) -> Recall {
        Recall { scheduler: Arc::clone(&self.scheduler), place: self.place, number: self.number, since: self.since }
    }

    /// Moves the slot from the turn to a thread that may hang beyond the deadline.
    pub(super) fn detach(&self, mount: &Arc<MountState>) -> Slot {
        let mut state = self.scheduler.lock();
        if let Some(held) = state.held.get_mut(self.place as usize).and_then(Option::as_mut) {
            held.has_slot = false;
        }
        Slot { scheduler: Arc::clone(&self.scheduler), mount: Arc::clone(mount) }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.is_released {
            return;
        }
        let now = Instant::now();
        let mut state = self.scheduler.lock();
        if let Some(held) = TurnScheduler::release(&mut state, self.place) {
            held.mount.times(self.is_read).held.add(now.saturating_duration_since(self.since));
        }
        self.scheduler.dispatch(&mut state, now);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.scheduler.lock();
        change(&self.mount.counts.slots, -1);
        self.scheduler.dispatch(&mut state, Instant::now());
    }
}

/// A place in a queue, released when dropped.
struct QueueEntry<'a> {
    scheduler: &'a Arc<TurnScheduler>,
    queue: usize,
    number: u64,
}

impl Drop for QueueEntry<'_> {
    fn drop(&mut self) {
        let mut state = self.scheduler.lock();
        let Some(queue) = state.queues.get_mut(&self.queue) else { return };
        queue.waiters.retain(|waiter| waiter.number != self.number);
        if queue.waiters.is_empty() {
            state.queues.remove(&self.queue);
        }
    }
}

#[cfg(test)]
mod tests;
