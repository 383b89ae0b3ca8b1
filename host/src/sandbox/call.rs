//! One call: a fresh instance, all limits set before the guest's first instruction, the export, the outcome.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep, timeout_at};
use wasmtime::component::ResourceTableError;
use wasmtime::{Error, Store, Trap, UpdateDeadline};

use super::call_runner::CallProgress;
use super::descriptors::ReservedDescriptors;
use super::engine::RunningCall;
use super::loaded_mount::MountRecord;
use super::output::GuestOutput;
use super::spare::Spares;
use super::spec::{CallSpec, Outcome, check_size};
use super::store_data::StoreData;
use super::worker::message::CallExtras;
use crate::grants::secrets::Redactor;
use crate::grants::{CallRecord, CallScope};
use crate::interfaces::{Exports, ReplyLimits, redact_result};
use crate::limits::Permit;
use crate::limits::cpu_timer::{CPU_CLOCK_MIN, CpuTimer, thread_time};
use crate::limits::memory_account::MemoryAccount;
use crate::model::error::{Limit, LimitKind};
use crate::model::limits::{CORE_INSTANCES, WASM_STACK};
use crate::model::{Limits, ReadError, Usage};

/// Bytes beyond the result limit that the host copies out of a guest in one step before it refuses.
const LIFT_SLACK: usize = 64 << 10;

/// Memory of a call, in bytes, whose removal takes so little time that the wall clock measures it well enough.
const SMALL: u64 = 4 << 20;

/// Epoch ticks until the first callback of a call: one to two milliseconds.
const FIRST_TICKS: u64 = 2;

/// A call that computes for longer moves to the slow pool. Waiting for an upstream or a timer is not computing.
const SLOW_AFTER: Duration = Duration::from_millis(1);

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The epoch callback stopped a computing guest at its deadline.
#[derive(Debug)]
struct DeadlineExceeded;

impl fmt::Display for DeadlineExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("deadline exceeded")
    }
}

impl std::error::Error for DeadlineExceeded {}

/// The store of a call. Writes its usage to the call record when it is dropped: the call may be cancelled.
struct CallStore {
    store: Store<StoreData>,
    record: CallRecord,
}

impl CallStore {
    fn record_usage(&self) {
        self.record.fuel_left(self.store.get_fuel().unwrap_or_default());
        self.record.memory_used(self.store.data().account.peak());
    }
}

impl Drop for CallStore {
    fn drop(&mut self) {
        self.record_usage();
    }
}

/// What is called.
pub(super) struct CalledMount {
    pub(super) spares: Arc<Spares>,
    /// The mount, with the grants of the principal.
    pub(super) mount: Arc<MountRecord>,
    /// The mount, with the grants that all principals have.
    pub(super) base: Arc<MountRecord>,
    pub(super) exports: Arc<Exports<StoreData>>,
    /// Counts the call.
    pub(super) running: RunningCall,
}

/// Runs the call of `spec` on a fresh instance of the mount, with as many handles as are available. Dropping the future
/// cancels the call and drops the store.
pub(super) async fn run(
    called: CalledMount,
    (spec, extras): (&mut CallSpec, &CallExtras),
    permit: &Permit,
    progress: &Arc<CallProgress>,
    record: &CallRecord,
) -> Outcome {
    let started = Instant::now();
    let CalledMount { spares, mount, base, exports, running: _ } = &called;
    let CallSpec { mount: _, principal: _, request, limits, consent } = spec;
    // File descriptors belong to the process, and other calls need some too.
    let files = mount.descriptors.as_ref().map(|descriptors| descriptors.reserve(limits.handles));
    let handles = files.as_ref().map_or(limits.handles, ReservedDescriptors::count);
    let handle_limit = if handles < limits.handles { LimitKind::OpenFiles } else { LimitKind::Handles };
    limits.handles = handles;
    let limits = &*limits;
    let redactor = mount.grants.redactor();
    let longest_secret = redactor.map_or(extras.longest_secret, Redactor::margin);
    request.prepare(ReplyLimits { result: limits.result, longest_secret });
    let output = GuestOutput::new(limits.output, longest_secret);
    let deadline = permit.deadline();
    let thread = &progress.thread;
    let scope = CallScope { mount: &mount.name, limits, deadline, consent, record, thread, memory: &[] };
    record.begin(limits.fuel);
    let account = MemoryAccount::new(limits.memory, permit.memory());
    let data = StoreData::new(account, &mount.grants, &scope, &extras.variables, &output);
    let (store, prepared) = match base.spare.take(started) {
        Some(spare) => spare.give_to(data),
        None => (spares.store(data), None),
    };
    let mut call_store = CallStore { store, record: record.clone() };
    let store = &mut call_store.store;
    set_limits(store, limits, prepared.map_or(0, |prepared| prepared.fuel()));
    let (call_progress, call_record) = (Arc::clone(progress), record.clone());
    store.epoch_deadline_callback(move |store| {
        let now = Instant::now();
        call_record.fuel_left(store.get_fuel().unwrap_or_default());
        call_record.memory_used(store.data().account.peak());
        if now >= deadline {
            return Err(DeadlineExceeded.into());
        }
        if nanos(now - started).saturating_sub(call_progress.started.load(Ordering::Relaxed)) >= nanos(SLOW_AFTER) {
            call_progress.is_long.store(true, Ordering::Relaxed);
        }
        // tokio's yield moves the task to the back of the queue; wasmtime's built-in yield runs it again at once.
        Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
    });

    // The epoch stops a guest that computes; this timer stops a guest that sleeps or waits.
    let mut cpu = Duration::ZERO;
    let mut pause: Option<Pin<Box<Sleep>>> = None;
    let ended = {
        let mut call = pin!(async {
            let instance = spares.instance(prepared, exports, store).await?;
            exports.call(store, &instance, request).await
        });
        let metered = poll_fn(|cx| {
            if let Some(sleep) = pause.as_mut() {
                ready!(sleep.as_mut().poll(cx));
                pause = None;
            }
            let before = Instant::now();
            progress.started.store(nanos((before - started).saturating_sub(cpu)), Ordering::Relaxed);
            // CPU time of the thread, not wall time. Debts are carried over, so on a busy machine wall time would
            // charge a mount for the work of others.
            let own_before = thread_time();
            let polled = call.as_mut().poll(cx);
            let now = Instant::now();
            let spent = thread_time().saturating_sub(own_before);
            cpu += spent;
            record.cpu_used(cpu);
            permit.charge_cpu(now, spent);
            if polled.is_pending() && progress.is_long.load(Ordering::Relaxed) {
                match permit.cpu_pause(now) {
                    Err(refused) => return Poll::Ready(Err(refused)),
                    Ok(Duration::ZERO) => {}
                    Ok(time) => {
                        pause = Some(Box::pin(sleep(time)));
                        // Schedules a poll of the new timer, whatever the guest waits for.
                        cx.waker().wake_by_ref();
                    }
                }
            }
            polled.map(Ok)
        });
        timeout_at(deadline, metered).await
    };

    let timer = CpuTimer::start(match &ended {
        Ok(Ok(Ok(Ok(reply)))) => reply.bytes(),
        _ => 0,
    });
    let store = &call_store.store;
    let used_fuel = limits.fuel.saturating_sub(store.get_fuel().unwrap_or_default());
    let memory = store.data().account.peak();
    let mut result = match ended {
        Ok(Ok(Ok(Ok(reply)))) => check_size(reply, limits.result),
        // The mount exceeded its CPU share.
        Ok(Err(refused)) => Err(refused),
        // A provider whose traffic was cut off reports that in its own words. The recorded limit is more exact.
        Ok(Ok(Ok(Err(error)))) => Err(store.data().traffic().map_or(error, ReadError::Exhausted)),
        Ok(Ok(Err(error))) => Err(classify(&error, store, (limits, handle_limit), permit, used_fuel)),
        Err(_) => Err(ReadError::Exhausted(permit.time_limit())),
    };
    call_store.record_usage();
    if record.is_of_worker() {
        // The front has the secrets. It masks them, and then cleans and cuts what it shows.
        if let Some((bytes, dropped)) = output.take() {
            record.send_printed(bytes, dropped);
        }
    } else {
        redact_result(&mut result, redactor);
        mount.log_rate.log(&mount.name, &output, redactor);
    }
    let bytes = result.as_ref().map_or(0, |reply| reply.bytes() as u64);
    // The host's work on a result is charged to the mount.
    let own = timer.elapsed();
    cpu += own;
    permit.charge_cpu(Instant::now(), own);
    end(call_store, called, permit);
    Outcome {
        result,
        usage: Usage { queue: Duration::ZERO, fuel: used_fuel, time: started.elapsed(), cpu, memory, bytes },
        decisions: record.take_decisions(),
    }
}

/// Removes the instance of a call that has ended, and makes a spare one: after the answer, in a task of its own. If other
/// calls run, they would wait for that, so there is no spare one. A call that may hold files or connections gives them back
/// at once.
fn end(ended: CallStore, called: CalledMount, permit: &Permit) {
    let account = &ended.store.data().account;
    let peak = account.peak();
    account.close();
    let CalledMount { spares, mount, base, exports, running } = called;
    if !running.is_alone() {
        return;
    }
    let Some(waiting) = spares.wait_to_tidy() else { return };
    let ended = if mount.grants.is_empty() { Some(ended) } else { None };
    let (charges, is_quick) = (permit.later_charges(), permit.is_quick());
    tokio::spawn(async move {
        let timer = CpuTimer::start(if peak > SMALL { CPU_CLOCK_MIN } else { 0 });
        drop((ended, waiting));
        if is_quick {
            spares.make(&base.name, &base.spare, &exports);
        }
        charges.charge_cpu(timer.elapsed());
    });
}

/// Sets the limits of a call. `used_fuel`: the fuel that its instance has used already.
fn set_limits(store: &mut Store<StoreData>, limits: &Limits, used_fuel: u64) {
    // Cannot fail: the engine is configured to count fuel. If it did, the guest would have no fuel.
    let _ = store.set_fuel(limits.fuel.saturating_sub(used_fuel));
    store.set_hostcall_fuel(usize::try_from(limits.result).unwrap_or(usize::MAX).saturating_add(LIFT_SLACK));
    store.set_max_component_handles(limits.handles);
    store.set_epoch_deadline(FIRST_TICKS);
}

/// The error that stopped the call. wasmtime reports some causes only as text (the types are private); tests pin these
/// texts.
fn classify(
    error: &Error,
    store: &Store<StoreData>,
    (limits, handle_limit): (&Limits, LimitKind),
    permit: &Permit,
    fuel: u64,
) -> ReadError {
    let exhausted = |kind, used: u64, cap: u64| ReadError::Exhausted(Limit { kind, used, cap });
    if error.downcast_ref::<DeadlineExceeded>().is_some() {
        return ReadError::Exhausted(permit.time_limit());
    }
    let trap = error.downcast_ref::<Trap>().copied();
    match trap {
        Some(Trap::OutOfFuel) => return exhausted(LimitKind::Fuel, fuel, limits.fuel),
        Some(Trap::StackOverflow) => return exhausted(LimitKind::Stack, WASM_STACK as u64, WASM_STACK as u64),
        _ => {}
    }
    // A guest without memory traps in a way of its own language. The account knows the cause.
    if let Some(refused) = store.data().account.refusal() {
        return refused;
    }
    if let Some(limit) = store.data().traffic() {
        return ReadError::Exhausted(limit);
    }
    let handles = limits.handles as u64;
    if matches!(error.downcast_ref::<ResourceTableError>(), Some(ResourceTableError::Full)) {
        return exhausted(handle_limit, handles, handles);
    }
    let chain = error.chain().map(ToString::to_string).collect::<Vec<_>>();
    let says = |words: &str| chain.iter().any(|link| link.contains(words));
    if says("store handle limit exceeded") || says("resource table has no free keys") {
        return exhausted(handle_limit, handles, handles);
    }
    if says("fuel allocated for hostcalls has been exhausted") {
        return exhausted(LimitKind::Result, limits.result.saturating_add(1), limits.result);
    }
    if let Some(asked) =
        chain.iter().find_map(|link| link.strip_prefix("requested len ")?.split(' ').next()?.parse().ok())
    {
        return exhausted(LimitKind::Random, asked, limits.random);
    }
    if says("resource limit exceeded: instance count") {
        return exhausted(LimitKind::Instances, u64::from(CORE_INSTANCES) + 1, CORE_INSTANCES.into());
    }
    if says("maximum concurrent limit") {
        return ReadError::busy("all instance slots are in use".to_owned());
    }
    if error.downcast_ref::<wasmtime_wasi::I32Exit>().is_some() {
        return ReadError::Trapped("it called exit instead of returning a result".to_owned());
    }
    let how = trap.map_or_else(|| chain.last().cloned().unwrap_or_default(), |trap| trap.to_string());
    ReadError::Trapped(how)
}
