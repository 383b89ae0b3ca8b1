//! Who runs now, and who runs next: the turns of the host, and the slots of each mount.
//!
//! The rule is that whoever has least comes first. Of those who have as little, every other turn is for the one that waits
//! for longest since it came or had its last turn, and the rest are for the one whose calls are shortest. A quarter of all turns is a reserve: half of it for mounts that hold no
//! turn, the other half for quick mounts as well, where quick is judged by what a mount did and by what it holds now. When
//! nothing is free, a waiting mount without a turn gets one from the mount that holds most: its oldest call is recalled. In
//! the same way a caller without a call in a mount gets a slot from the caller that has most there. What is recalled was
//! held for long: [`RIPE`] where its owner has others, [`RIPE_ALONE`] where it is the only one.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until};

use super::{MountState, QUICK};
use crate::model::{Guard, ReadError};

/// Calls of one mount that may wait for a turn; one more is refused at once, or pushes out one of a caller that has more.
pub(super) const WAITING: usize = 256;

/// How long a call is left its turn whose owner has others.
const RIPE: Duration = Duration::from_millis(250);

/// How long a call is left its turn that is the only one of its owner.
const RIPE_ALONE: Duration = Duration::from_secs(1);

/// A call that is the only one of its mount gives way to mounts whose calls take so much less, on average.
const BREVITY: u32 = 4;

/// How often whoever waits looks for a turn that can be recalled.
const LOOK: Duration = Duration::from_millis(100);

/// All turns of the host.
pub(super) struct Turns {
    reserve: usize,
    bells: Box<[Bell]>,
    state: Mutex<State>,
}

struct State {
    /// Places that nobody has.
    free: Vec<u32>,
    /// Who has which place.
    held: Box<[Option<Held>]>,
    /// Who waits, by mount.
    lines: HashMap<usize, Line>,
    /// The number of the next grant, or of whoever waits next, or of the next turn that comes back.
    next: u64,
    /// Whether the next turn is for the mount whose calls are shortest, of those that wait.
    is_for_short: bool,
}

/// A turn as its place has it.
struct Held {
    mount: Arc<MountState>,
    caller: u64,
    number: u64,
    since: Instant,
    is_recalled: bool,
    /// Whether a slot of the mount goes with it.
    has_slot: bool,
}

struct Line {
    mount: Arc<MountState>,
    waiters: VecDeque<Waiter>,
}

struct Waiter {
    number: u64,
    caller: u64,
    is_read: bool,
    give: oneshot::Sender<Turn>,
}

/// Tells the holder of a place that its turn is recalled.
#[derive(Default)]
struct Bell {
    /// Which grant.
    number: AtomicU64,
    rung: Notify,
}

/// How many turns and slots a mount has now. Written under the lock of [`Turns`] only.
#[derive(Default)]
pub(super) struct Counts {
    /// Turns of the host.
    pub(super) turns: AtomicUsize,
    /// Its own slots: more than turns, where threads hang whose calls were answered.
    pub(super) slots: AtomicUsize,
    /// The most slots.
    pub(super) most: AtomicUsize,
    /// The number at which it gave its last turn back: what waits in it since before then waits since then.
    last: AtomicU64,
}

fn get(count: &AtomicUsize) -> usize {
    count.load(Ordering::Relaxed)
}

fn change(count: &AtomicUsize, by: isize) {
    count.store(get(count).saturating_add_signed(by), Ordering::Relaxed);
}

/// A turn of the host, with a slot of the mount unless [`Turn::detach`] took it. Given back when dropped.
pub(super) struct Turn {
    turns: Arc<Turns>,
    place: u32,
    number: u64,
    since: Instant,
    is_read: bool,
    /// Given back already, by whoever could not hand it over.
    is_void: bool,
}

/// A slot of a mount without a turn: what a thread keeps that hangs. Given back when dropped.
pub(super) struct Slot {
    turns: Arc<Turns>,
    mount: Arc<MountState>,
}

/// Says when a turn is wanted back.
pub struct Recall {
    turns: Arc<Turns>,
    place: u32,
    number: u64,
    since: Instant,
}

impl Recall {
    /// Waits until the turn is wanted back. Gives what is told to whoever asked for the call.
    pub async fn wanted(&self) -> ReadError {
        let Some(bell) = self.turns.bells.get(self.place as usize) else { return std::future::pending().await };
        loop {
            let mut rung = std::pin::pin!(bell.rung.notified());
            rung.as_mut().enable();
            if bell.number.load(Ordering::Acquire) == self.number {
                let held = Duration::from_millis(u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX));
                return ReadError::Busy(format!(
                    "all turns were taken, and this call had held one for {} while others had none",
                    humantime::format_duration(held)
                ));
            }
            rung.await;
        }
    }
}

impl Turns {
    /// At most `calls` at once.
    pub(super) fn new(calls: usize) -> Arc<Self> {
        let places = u32::try_from(calls).unwrap_or(u32::MAX);
        Arc::new(Self {
            reserve: calls / 4,
            bells: (0..places).map(|_| Bell::default()).collect(),
            state: Mutex::new(State {
                free: (0..places).rev().collect(),
                held: (0..places).map(|_| None).collect(),
                lines: HashMap::new(),
                next: 1,
                is_for_short: false,
            }),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn and a slot, if both are there and nobody of the mount waits for them.
    pub(super) fn try_enter(self: &Arc<Self>, asks: &Asks<'_>, now: Instant) -> Option<Turn> {
        let mut state = self.lock();
        let is_first = state.lines.is_empty() || !state.lines.contains_key(&key(asks.mount));
        (is_first && self.may_take(&state, asks.mount, asks.is_read, now))
            .then(|| self.grant(&mut state, asks.mount, (asks.caller, asks.is_read), now))
            .flatten()
    }

    /// Waits for a turn and a slot. None: another caller's call took the place in the line.
    pub(super) async fn enter(self: &Arc<Self>, asks: &Asks<'_>) -> Option<Turn> {
        let (give, mut given) = oneshot::channel();
        let number = {
            let mut state = self.lock();
            let number = state.next;
            state.next += 1;
            let new = || Line { mount: Arc::clone(asks.mount), waiters: VecDeque::new() };
            let line = state.lines.entry(key(asks.mount)).or_insert_with(new);
            line.waiters.push_back(Waiter { number, caller: asks.caller, is_read: asks.is_read, give });
            self.dispatch(&mut state, Instant::now());
            number
        };
        let _waiting = Waiting { turns: self, line: key(asks.mount), number };
        loop {
            let look = self.press(asks, Instant::now());
            tokio::select! {
                biased;
                turn = &mut given => return turn.ok(),
                () = sleep_until(look) => {}
            }
        }
    }

    /// Makes place in a mount's line for `caller`: the call goes that came last of the caller who has most there, if that
    /// has more than this one. Says whether there is a place now.
    pub(super) fn push_out(&self, mount: &Arc<MountState>, caller: u64) -> bool {
        let mut state = self.lock();
        let Some(line) = state.lines.get_mut(&key(mount)) else { return false };
        let count = |caller: u64| line.waiters.iter().filter(|waiter| waiter.caller == caller).count();
        let last_of = |at: usize| line.waiters.get(at).map_or((0, at), |waiter| (count(waiter.caller), at));
        let most = (0..line.waiters.len()).map(last_of).max();
        let Some((most, at)) = most.filter(|(most, _)| *most > count(caller) + 1) else { return false };
        debug_assert!(most > 0);
        // Its sender goes: it is told that it has no place.
        line.waiters.remove(at).is_some()
    }

    fn may_take(&self, state: &State, mount: &Arc<MountState>, is_read: bool, now: Instant) -> bool {
        if get(&mount.counts.slots) >= get(&mount.counts.most) {
            return false;
        }
        let free = state.free.len();
        if free > self.reserve || !Guard::Turns.is_on() {
            return free > 0;
        }
        if get(&mount.counts.turns) == 0 {
            return free > 0;
        }
        let holds_long = || {
            let own = state.held.iter().flatten().filter(|held| Arc::ptr_eq(&held.mount, mount));
            own.into_iter().any(|held| now.saturating_duration_since(held.since) > QUICK)
        };
        free > self.reserve.div_ceil(2) && mount.pace(is_read).held.is_quick() && !holds_long()
    }

    fn grant(
        self: &Arc<Self>,
        state: &mut State,
        mount: &Arc<MountState>,
        (caller, is_read): (u64, bool),
        now: Instant,
    ) -> Option<Turn> {
        let place = state.free.pop()?;
        let number = state.next;
        state.next += 1;
        let mount = Arc::clone(mount);
        change(&mount.counts.turns, 1);
        change(&mount.counts.slots, 1);
        let held = Held { mount, caller, number, since: now, is_recalled: false, has_slot: true };
        *state.held.get_mut(place as usize)? = Some(held);
        Some(Turn { turns: Arc::clone(self), place, number, since: now, is_read, is_void: false })
    }

    /// Takes a turn back.
    fn release(state: &mut State, place: u32) -> Option<Held> {
        let held = state.held.get_mut(place as usize)?.take()?;
        change(&held.mount.counts.turns, -1);
        if held.has_slot {
            change(&held.mount.counts.slots, -1);
        }
        held.mount.counts.last.store(state.next, Ordering::Relaxed);
        state.next += 1;
        state.free.push(place);
        Some(held)
    }

    /// Gives what is free to those who wait: the mount first that has least, and of its callers the one that has least. A
    /// mount that gave its turn back does not come first again because its calls have waited for long.
    fn dispatch(self: &Arc<Self>, state: &mut State, now: Instant) {
        while !state.lines.is_empty() {
            let is_for_short = state.is_for_short;
            let rank = |(key, line): (&usize, &Line)| {
                let at = self.next_of(state, line)?;
                let is_read = line.waiters.get(at)?.is_read;
                let (mount, first) = (&line.mount, line.waiters.front()?.number);
                let since = first.max(mount.counts.last.load(Ordering::Relaxed));
                let length = if is_for_short { mount.pace(is_read).held.average() } else { Duration::ZERO };
                let may = self.may_take(state, mount, is_read, now);
                may.then(|| ((get(&mount.counts.turns), length, since), *key, at))
            };
            let ready = state.lines.iter().filter_map(rank).min();
            let Some((_, key, at)) = ready else { return };
            state.is_for_short = !is_for_short;
            let Some(line) = state.lines.get_mut(&key) else { return };
            let (mount, waiter) = (Arc::clone(&line.mount), line.waiters.remove(at));
            if line.waiters.is_empty() {
                state.lines.remove(&key);
            }
            let Some(Waiter { caller, is_read, give, .. }) = waiter else { return };
            let Some(turn) = self.grant(state, &mount, (caller, is_read), now) else { return };
            if let Err(mut turn) = give.send(turn) {
                // It waits no more. Dropping the turn would lock again.
                turn.is_void = true;
                Self::release(state, turn.place);
            }
        }
    }

    /// Whose turn it is in a line: the earliest call of the caller who has fewest running in the mount.
    fn next_of(&self, state: &State, line: &Line) -> Option<usize> {
        let first = line.waiters.front()?;
        if line.waiters.iter().all(|waiter| waiter.caller == first.caller) {
            return Some(0);
        }
        let mut seen: HashMap<u64, usize> = HashMap::new();
        let ranked = line.waiters.iter().enumerate().map(|(at, waiter)| {
            let caller = waiter.caller;
            (*seen.entry(caller).or_insert_with(|| state.count(&line.mount, caller)), at)
        });
        ranked.min().map(|(_, at)| at)
    }

    /// Recalls a turn for someone who waits and has none. Says when to look again.
    fn press(&self, asks: &Asks<'_>, now: Instant) -> Instant {
        let Asks { mount, caller, is_read } = asks;
        let look = now + LOOK;
        if !Guard::Turns.is_on() {
            return look;
        }
        let mut state = self.lock();
        let lacks_slot = get(&mount.counts.slots) >= get(&mount.counts.most);
        let age = |held: &Held| now.saturating_duration_since(held.since);
        let chosen = if lacks_slot {
            let own = || state.held.iter().flatten().filter(|held| Arc::ptr_eq(&held.mount, mount));
            if state.count(mount, *caller) > 0 || own().any(|held| held.is_recalled) {
                return look;
            }
            let ranked = own().map(|held| (state.count(mount, held.caller), age(held), Reverse(held.number)));
            ranked.filter(|(count, age, _)| *count > 1 && *age >= RIPE).max().map(|(.., Reverse(number))| number)
        } else {
            let starving = state.lines.values().filter(|line| get(&line.mount.counts.turns) == 0).count();
            let recalled = state.held.iter().flatten().filter(|held| held.is_recalled).count();
            if get(&mount.counts.turns) > 0 || !state.free.is_empty() || recalled >= starving {
                return look;
            }
            let alone = RIPE_ALONE.max(mount.pace(*is_read).held.average().saturating_mul(BREVITY));
            let ranked = state.held.iter().flatten().filter(|held| !held.is_recalled).map(|held| {
                let counts = &held.mount.counts;
                (get(&counts.turns), age(held).max(held.mount.slowest()), age(held), Reverse(held.number))
            });
            let is_ripe = |count: usize, age: Duration| age >= if count > 1 { RIPE } else { alone };
            ranked.filter(|(count, _, age, _)| is_ripe(*count, *age)).max().map(|(.., Reverse(number))| number)
        };
        let Some(chosen) = chosen else { return look };
        for (held, bell) in state.held.iter_mut().zip(&self.bells) {
            if let Some(held) = held.as_mut().filter(|held| held.number == chosen) {
                held.is_recalled = true;
                bell.number.store(held.number, Ordering::Release);
                bell.rung.notify_waiters();
            }
        }
        look
    }
}

/// Who asks for a turn.
pub(super) struct Asks<'a> {
    pub(super) mount: &'a Arc<MountState>,
    pub(super) caller: u64,
    pub(super) is_read: bool,
}

fn key(mount: &Arc<MountState>) -> usize {
    Arc::as_ptr(mount).addr()
}

impl State {
    /// Calls of `caller` that run in `mount`.
    fn count(&self, mount: &Arc<MountState>, caller: u64) -> usize {
        let own = |held: &&Held| held.caller == caller && Arc::ptr_eq(&held.mount, mount);
        self.held.iter().flatten().filter(own).count()
    }
}

impl Turn {
    /// Says when it is wanted back.
    pub(super) fn recall(&self) -> Recall {
        Recall { turns: Arc::clone(&self.turns), place: self.place, number: self.number, since: self.since }
    }

    /// Takes the slot from it, to be kept by a thread that may hang for longer than anybody waits.
    pub(super) fn detach(&self, mount: &Arc<MountState>) -> Slot {
        let mut state = self.turns.lock();
        if let Some(held) = state.held.get_mut(self.place as usize).and_then(Option::as_mut) {
            held.has_slot = false;
        }
        Slot { turns: Arc::clone(&self.turns), mount: Arc::clone(mount) }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.is_void {
            return;
        }
        let now = Instant::now();
        let mut state = self.turns.lock();
        if let Some(held) = Turns::release(&mut state, self.place) {
            held.mount.pace(self.is_read).held.add(now.saturating_duration_since(self.since));
        }
        self.turns.dispatch(&mut state, now);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.turns.lock();
        change(&self.mount.counts.slots, -1);
        self.turns.dispatch(&mut state, Instant::now());
    }
}

/// A place in a line, given up when dropped.
struct Waiting<'a> {
    turns: &'a Arc<Turns>,
    line: usize,
    number: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.lock();
        let Some(line) = state.lines.get_mut(&self.line) else { return };
        line.waiters.retain(|waiter| waiter.number != self.number);
        if line.waiters.is_empty() {
            state.lines.remove(&self.line);
        }
    }
}

/// Places for calls whose threads may hang: as many as there are turns, and beside them, so that what hangs takes no turn
/// from others. A quarter is kept for mounts that have none.
pub(super) struct Threads {
    most: usize,
    used: Mutex<HashMap<usize, usize>>,
}

/// A place for a thread, given back when dropped.
pub(super) struct ThreadPlace {
    threads: Arc<Threads>,
    mount: usize,
}

impl Threads {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, used: Mutex::default() })
    }

    /// A place, if there is one for this mount.
    pub(super) fn enter(self: &Arc<Self>, mount: &Arc<MountState>) -> Option<ThreadPlace> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, mount) = (used.values().sum::<usize>(), key(mount));
        let most = if used.contains_key(&mount) { self.most - self.most / 4 } else { self.most };
        if all >= most {
            return None;
        }
        *used.entry(mount).or_default() += 1;
        Some(ThreadPlace { threads: Arc::clone(self), mount })
    }
}

impl Drop for ThreadPlace {
    fn drop(&mut self) {
        let mut used = self.threads.used.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = used.get_mut(&self.mount) {
            *count -= 1;
            if *count == 0 {
                used.remove(&self.mount);
            }
        }
    }
}

#[cfg(test)]
mod tests;
