//! Spare instances. A mount that is called often has an instance that was made before the call which uses it, so the
//! caller does not wait for that. Each instance still serves one call.
//!
//! Components run code when they are instantiated: their languages prepare memory. For a spare instance this code runs before
//! its call, so it has no grants and little fuel, and no host function may take part. A component whose code needs more has
//! no spare instance. The call gives the instance its own data and limits, and pays for the fuel and the memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::task::yield_now;
use tokio::time::Instant;
use wasmtime::component::Instance;
use wasmtime::{Engine, PoolConcurrencyLimitError, Store};

use super::output::GuestOutput;
use super::store_data::StoreData;
use crate::grants::{Ambient, CallRecord, CallScope, ConfigureError, DedicatedThread, GrantConfig, MountGrants};
use crate::interfaces::Exports;
use crate::limits::cpu_timer::thread_time;
use crate::limits::memory_account::MemoryAccount;
use crate::limits::memory_budget::{Allowance, MemoryBudget};
use crate::model::{Limits, MountName};

/// A mount whose last call is older is not called often.
const OFTEN: Duration = Duration::from_millis(50);

/// A spare instance that was not used for this long is removed.
const KEEP: Duration = Duration::from_millis(250);

/// The processor time that making one may take. It is made on a thread that serves other mounts, too.
const MAX_MAKING: Duration = Duration::from_millis(1);

/// A component has no more spare instances after so many, one after the other, took longer. The first one finds cold
/// caches.
const MAX_SLOW: u32 = 3;

/// The most spare instances of a process.
const MOST: usize = 16;

/// The fuel of an instance until its call.
const FUEL: u64 = 100_000;

/// Ticks of the epoch that no instance waits for.
const FAR: u64 = 1 << 32;

/// The linear memory of all spare instances together, in bytes.
const MEMORY: u64 = 512 << 20;

/// How often a call tries to get a slot of the pool while spare instances and ended calls release theirs.
const ATTEMPTS: usize = 64;

/// Makes, keeps and removes the spare instances of one sandbox.
pub(super) struct Spares {
    engine: Engine,
    /// The slots that have a spare instance, or had one a while ago.
    slots: Mutex<Vec<Weak<SpareSlot>>>,
    no_grants: MountGrants,
    limits: Limits,
    budget: Arc<MemoryBudget>,
    count: Arc<AtomicUsize>,
    /// How many ended calls still have their instances.
    waiting: Arc<AtomicUsize>,
    /// The most spare instances.
    most: usize,
}

/// The spare instance of one mount.
#[derive(Default)]
pub(super) struct SpareSlot(Mutex<SlotState>);

#[derive(Default)]
struct SlotState {
    spare: Option<SpareInstance>,
    /// True if the slot is in the list of [`Spares`].
    is_listed: bool,
    last_call: Option<Instant>,
    is_called_often: bool,
    /// How many spare instances, one after the other, took too long to make.
    slow: u32,
    /// True if the component needs more at its start than a spare instance has, or takes too long.
    is_unfit: bool,
}

impl SpareSlot {
    fn lock(&self) -> MutexGuard<'_, SlotState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a call at `now`, and takes the spare instance for it.
    pub(super) fn take(&self, now: Instant) -> Option<SpareInstance> {
        let mut state = self.lock();
        let last = state.last_call.replace(now);
        state.is_called_often = last.is_some_and(|last| now.saturating_duration_since(last) < OFTEN);
        state.spare.take()
    }

    /// True if the mount has no spare instance and should have one.
    fn is_wanted(&self) -> bool {
        let state = self.lock();
        state.is_called_often && !state.is_unfit && state.spare.is_none()
    }

    /// Removes the spare instance if it was made before `before`. Returns true if the slot stays in the list.
    fn tidy(&self, before: Instant) -> bool {
        let mut state = self.lock();
        let removed = state.spare.take_if(|spare| spare.made < before);
        state.is_listed = state.spare.is_some();
        let is_listed = state.is_listed;
        drop(state);
        // Outside of the lock, because it takes time.
        drop(removed);
        is_listed
    }
}

/// Counts one instance.
pub(super) struct Counted(Arc<AtomicUsize>);

impl Counted {
    /// `None` if there are `most` already.
    fn new(count: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let one_more = |count| Some(count + 1).filter(|count| *count <= most);
        count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok().map(|_| Self(Arc::clone(count)))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An instance that no call has used.
pub(super) struct SpareInstance {
    store: Store<StoreData>,
    instance: Instance,
    /// The fuel that it has used.
    fuel: u64,
    made: Instant,
    _counted: Counted,
}

/// Why no spare instance was made.
enum NotMade {
    /// There is no room for one now.
    NoRoom,
    /// The component is unfit for it.
    Unfit,
}

impl SpareInstance {
    /// Gives the instance to a call with this data.
    pub(super) fn give_to(self, data: StoreData) -> (Store<StoreData>, Option<PreparedInstance>) {
        let Self { mut store, instance, fuel, .. } = self;
        let memory = store.data().account.peak();
        *store.data_mut() = data;
        (store, Some(PreparedInstance { instance, memory, fuel }))
    }
}

/// An instance in the store of a call that has not begun.
#[derive(Clone, Copy)]
pub(super) struct PreparedInstance {
    instance: Instance,
    /// The bytes of its memory.
    memory: u64,
    /// The fuel that it has used.
    fuel: u64,
}

impl PreparedInstance {
    /// The fuel that it has used.
    pub(super) fn fuel(self) -> u64 {
        self.fuel
    }
}

impl Spares {
    /// For a sandbox with room for `calls` calls.
    ///
    /// # Errors
    /// If the absence of grants cannot be configured.
    pub(super) fn new(engine: &Engine, calls: u32) -> Result<Self, ConfigureError> {
        Ok(Self {
            engine: engine.clone(),
            slots: Mutex::default(),
            no_grants: GrantConfig::default().configure(&Ambient::default())?,
            limits: Limits::default(),
            budget: MemoryBudget::new(MEMORY),
            count: Arc::default(),
            waiting: Arc::default(),
            most: MOST.min(usize::try_from(calls).unwrap_or(usize::MAX) / 4),
        })
    }

    /// Number of spare instances.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Counts an ended call that still has its instance. `None` if another one has: a second task would wake another
    /// thread, which costs more than to remove the instance at once.
    pub(super) fn wait_to_tidy(&self) -> Option<Counted> {
        Counted::new(&self.waiting, self.most.min(1))
    }

    /// A store with this data, and no instance.
    pub(super) fn store(&self, data: StoreData) -> Store<StoreData> {
        let mut store = Store::new(&self.engine, data);
        store.limiter(|state| &mut state.meter);
        store
    }

    /// The instance of a call: `prepared`, whose memory is charged to the call, or a new one.
    ///
    /// # Errors
    /// A trap or a limit.
    pub(super) async fn instance(
        &self,
        prepared: Option<PreparedInstance>,
        exports: &Exports<StoreData>,
        store: &mut Store<StoreData>,
    ) -> wasmtime::Result<Instance> {
        if let Some(PreparedInstance { instance, memory, .. }) = prepared {
            return match store.data().account.take(memory) {
                true => Ok(instance),
                false => Err(wasmtime::format_err!("the memory of the instance exceeds the limit")),
            };
        }
        for _ in 0..ATTEMPTS {
            match exports.instantiate(store).await {
                Err(error) if error.is::<PoolConcurrencyLimitError>() => {
                    self.remove_all();
                    // The instances of calls that have ended are removed by tasks of this runtime.
                    yield_now().await;
                }
                made => return made,
            }
        }
        exports.instantiate(store).await
    }

    /// Makes a spare instance of the mount `name`, if it is called often.
    pub(super) fn make(&self, name: &MountName, slot: &Arc<SpareSlot>, exports: &Exports<StoreData>) {
        if !slot.is_wanted() {
            return;
        }
        let Some(counted) = Counted::new(&self.count, self.most) else { return };
        let before = thread_time();
        let made = self.try_make(name, exports, counted);
        let took = thread_time().saturating_sub(before);
        let mut state = slot.lock();
        state.slow = if took > MAX_MAKING { state.slow + 1 } else { 0 };
        state.is_unfit |= matches!(made, Err(NotMade::Unfit)) || state.slow >= MAX_SLOW;
        state.spare = made.ok();
        if state.spare.is_some() && !std::mem::replace(&mut state.is_listed, true) {
            self.slots().push(Arc::downgrade(slot));
        }
    }

    fn try_make(
        &self,
        name: &MountName,
        exports: &Exports<StoreData>,
        counted: Counted,
    ) -> Result<SpareInstance, NotMade> {
        let made = Instant::now();
        let account = MemoryAccount::new(MEMORY, Allowance::of(&self.budget));
        let mut store = self.store(self.unused_data(name, account.clone()));
        // Cannot fail: the engine is configured to count fuel. If it did, the guest would have no fuel.
        let _ = store.set_fuel(FUEL);
        // The fuel bounds the code. A tick says nothing of it: this thread may have waited for a processor.
        store.set_epoch_deadline(FAR);
        // An instance that waits for something has called a host function.
        let instance = match exports.instantiate(&mut store).now_or_never() {
            Some(Ok(instance)) if !store.data().is_used() => instance,
            Some(Err(error)) if error.is::<PoolConcurrencyLimitError>() || account.refusal().is_some() => {
                return Err(NotMade::NoRoom);
            }
            _ => return Err(NotMade::Unfit),
        };
        let fuel = FUEL.saturating_sub(store.get_fuel().unwrap_or_default());
        Ok(SpareInstance { store, instance, fuel, made, _counted: counted })
    }

    /// The data of a store without a call. It has no grants.
    fn unused_data(&self, mount: &MountName, account: MemoryAccount) -> StoreData {
        let (record, thread) = (CallRecord::default(), DedicatedThread::default());
        let scope = CallScope {
            mount,
            limits: &self.limits,
            deadline: Instant::now(),
            consent: &[],
            record: &record,
            thread: &thread,
            memory: &[],
        };
        StoreData::new(account, &self.no_grants, &scope, &[], &GuestOutput::new(0, 0))
    }

    /// Removes the spare instances that were not used for a while.
    pub(super) fn remove_unused(&self) {
        if let Some(before) = Instant::now().checked_sub(KEEP) {
            self.remove(before);
        }
    }

    /// Removes all spare instances.
    pub(super) fn remove_all(&self) {
        self.remove(Instant::now());
    }

    fn remove(&self, before: Instant) {
        let listed = std::mem::take(&mut *self.slots());
        let is_kept = |slot: &Weak<SpareSlot>| slot.upgrade().is_some_and(|slot| slot.tidy(before));
        let kept: Vec<_> = listed.into_iter().filter(is_kept).collect();
        self.slots().extend(kept);
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Weak<SpareSlot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
