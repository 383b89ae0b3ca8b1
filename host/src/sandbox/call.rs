//! One call: a fresh store, every limit set before the guest's first instruction, the export, the outcome.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep, timeout_at};
use wasmtime::component::ResourceTableError;
use wasmtime::{Engine, Error, Store, Trap, UpdateDeadline};

use super::descriptors::Reserved;
use super::lane::Progress;
use super::output::Output;
use super::state::State;
use super::{Mounted, crossing};
use crate::admission::Permit;
use crate::admission::account::Account;
use crate::admission::effort::{Effort, thread_time};
use crate::grants::{Scope, SharedTrail};
use crate::model::error::{Bound, Limit};
use crate::model::limits::{CORE_INSTANCES, WASM_STACK};
use crate::model::{Answer, Guard, Limits, Operation, Outcome, ReadError, Usage};

/// What an entry of a list costs beside its bytes, so that a million empty ones are not free.
const ENTRY: usize = 64;

/// How much more than the answer's cap the host copies out of a guest in one step before it refuses.
const LIFT_SLACK: usize = 64 << 10;

/// Ticks of the epoch after which a call is looked at for the first time: one to two milliseconds.
const FIRST_TICKS: u64 = 2;

/// A call that computed for longer goes on in the slow lane. Waiting, for an upstream or a timer, is not computing.
const LONG: Duration = Duration::from_millis(1);

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A computing guest that ran out of time, as the epoch callback reports it.
#[derive(Debug)]
struct OutOfTime;

impl fmt::Display for OutOfTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("out of time")
    }
}

impl std::error::Error for OutOfTime {}

/// A store, and who is told what it used when it is dropped: at the end of the call, or wherever it is withdrawn.
struct Noting<'t> {
    store: Store<State>,
    trail: &'t SharedTrail,
}

impl Drop for Noting<'_> {
    fn drop(&mut self) {
        self.trail.fuel_left(self.store.get_fuel().unwrap_or_default());
        self.trail.memory_used(self.store.data().account.peak());
    }
}

/// Runs `operation` on a fresh instance of `mounted`. Dropping the future drops the store: that is cancellation.
pub(super) async fn run(
    engine: &Engine,
    mounted: &Mounted,
    permit: &Permit,
    operation: &Operation,
    progress: &Arc<Progress>,
    trail: &SharedTrail,
) -> Outcome {
    let started = Instant::now();
    let own = permit.limits();
    // Files are the process's, and other calls need some too.
    let files = mounted.descriptors.as_ref().map(|descriptors| descriptors.reserve(own.handles));
    let handles = files.as_ref().map_or(own.handles, Reserved::count);
    let bound = if handles < own.handles { Bound::OpenFiles } else { Bound::Handles };
    let limits = &Limits { handles, ..own.clone() };
    let redactor = mounted.held.redactor();
    let output = Output::new(limits.output, redactor);
    let deadline = permit.deadline();
    let scope =
        Scope { mount: &mounted.name, limits, deadline, consent: permit.consent(), trail, thread: &progress.thread };
    trail.begin(limits.fuel);
    let account = Account::new(limits.memory, permit.memory());
    let mut noting = Noting { store: new_store(engine, mounted, &scope, account, &output), trail };
    let store = &mut noting.store;
    let (own, told) = (Arc::clone(progress), trail.clone());
    store.epoch_deadline_callback(move |store| {
        let now = Instant::now();
        told.fuel_left(store.get_fuel().unwrap_or_default());
        told.memory_used(store.data().account.peak());
        if now >= deadline && Guard::Time.is_on() {
            return Err(OutOfTime.into());
        }
        if nanos(now - started).saturating_sub(own.began.load(Ordering::Relaxed)) >= nanos(LONG) {
            own.is_long.store(true, Ordering::Relaxed);
        }
        // tokio's own yield goes to the back of the queue; wasmtime's built-in one is run again at once.
        Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
    });

    // The epoch stops a guest that computes; a guest that sleeps or waits is stopped by this timer.
    let mut cpu = Duration::ZERO;
    let mut pause: Option<Pin<Box<Sleep>>> = None;
    let ended = {
        let mut call = pin!(mounted.ready.run(store, operation));
        let metered = poll_fn(|cx| {
            if let Some(sleep) = pause.as_mut() {
                ready!(sleep.as_mut().poll(cx));
                pause = None;
            }
            let before = Instant::now();
            progress.began.store(nanos((before - started).saturating_sub(cpu)), Ordering::Relaxed);
            // What the thread used, not what passed on the wall: debts are carried, so that a busy machine would have a mount pay
            // for others.
            let own_before = thread_time();
            let polled = call.as_mut().poll(cx);
            let now = Instant::now();
            let spent = thread_time().saturating_sub(own_before);
            cpu += spent;
            trail.cpu_used(cpu);
            permit.spent(now, spent);
            if polled.is_pending() && progress.is_long.load(Ordering::Relaxed) {
                match permit.pause(now) {
                    Err(refused) => return Poll::Ready(Err(refused)),
                    Ok(Duration::ZERO) => {}
                    Ok(time) => {
                        pause = Some(Box::pin(sleep(time)));
                        // So that it is looked at, whatever the guest waits for.
                        cx.waker().wake_by_ref();
                    }
                }
            }
            polled.map(Ok)
        });
        if Guard::Time.is_on() { timeout_at(deadline, metered).await } else { Ok(metered.await) }
    };

    let effort = Effort::begin(match &ended {
        Ok(Ok(Ok(Ok(answer)))) => size(answer),
        _ => 0,
    });
    let store = &noting.store;
    let used_fuel = limits.fuel.saturating_sub(store.get_fuel().unwrap_or_default());
    let memory = store.data().account.peak();
    let mut result = match ended {
        Ok(Ok(Ok(Ok(answer)))) => weigh(answer, limits.result),
        // Its mount had computed more than its share.
        Ok(Err(refused)) => Err(refused),
        // A provider that was cut off says so in words of its own; the trail of limits knows better.
        Ok(Ok(Ok(Err(error)))) => Err(store.data().traffic().map_or(error, ReadError::Exhausted)),
        Ok(Ok(Err(error))) => Err(classify(&error, store, (limits, bound), permit, used_fuel)),
        Err(_) => Err(ReadError::Exhausted(permit.out_of_time())),
    };
    drop(noting);
    crossing::result(&mut result, redactor);
    let bytes = result.as_ref().map_or(0, |answer| size(answer) as u64);
    for line in mounted.said.pass(output.lines(redactor)) {
        tracing::info!(target: "belljar::guest", mount = %mounted.name, "printed {line}");
    }
    // What the host does for an answer is its mount's.
    let own = effort.cost();
    cpu += own;
    permit.spent(Instant::now(), own);
    Outcome {
        result,
        usage: Usage { fuel: used_fuel, time: started.elapsed(), cpu, memory, bytes },
        trail: trail.take(),
    }
}

fn new_store(engine: &Engine, mounted: &Mounted, scope: &Scope<'_>, account: Account, output: &Output) -> Store<State> {
    let limits = scope.limits;
    let mut store = Store::new(engine, State::new(account, &mounted.held, scope, output));
    store.limiter(|state| &mut state.meter);
    // Cannot fail: the engine counts fuel. Were it to fail, the guest would have none.
    let _ = store.set_fuel(if Guard::Fuel.is_on() { limits.fuel } else { u64::MAX });
    if Guard::Result.is_on() {
        store.set_hostcall_fuel(usize::try_from(limits.result).unwrap_or(usize::MAX).saturating_add(LIFT_SLACK));
    }
    if Guard::Handles.is_on() {
        store.set_max_component_handles(limits.handles);
    }
    store.set_epoch_deadline(FIRST_TICKS);
    store
}

/// What stopped the call. wasmtime says some of it only in text ("private types"), which the tests pin.
fn classify(
    error: &Error,
    store: &Store<State>,
    (limits, handle_bound): (&Limits, Bound),
    permit: &Permit,
    fuel: u64,
) -> ReadError {
    let exhausted = |bound, used: u64, cap: u64| ReadError::Exhausted(Limit { bound, used, cap });
    if error.downcast_ref::<OutOfTime>().is_some() {
        return ReadError::Exhausted(permit.out_of_time());
    }
    let trap = error.downcast_ref::<Trap>().copied();
    match trap {
        Some(Trap::OutOfFuel) => return exhausted(Bound::Fuel, fuel, limits.fuel),
        Some(Trap::StackOverflow) => return exhausted(Bound::Stack, WASM_STACK as u64, WASM_STACK as u64),
        _ => {}
    }
    // A guest that was refused memory traps in a way of its own language; the account knows better.
    if let Some(refused) = store.data().account.refused() {
        return refused;
    }
    if let Some(limit) = store.data().traffic() {
        return ReadError::Exhausted(limit);
    }
    let handles = limits.handles as u64;
    if matches!(error.downcast_ref::<ResourceTableError>(), Some(ResourceTableError::Full)) {
        return exhausted(handle_bound, handles, handles);
    }
    let chain = error.chain().map(ToString::to_string).collect::<Vec<_>>();
    let says = |words: &str| chain.iter().any(|link| link.contains(words));
    if says("store handle limit exceeded") || says("resource table has no free keys") {
        return exhausted(handle_bound, handles, handles);
    }
    if says("fuel allocated for hostcalls has been exhausted") {
        return exhausted(Bound::Result, limits.result.saturating_add(1), limits.result);
    }
    if let Some(asked) =
        chain.iter().find_map(|link| link.strip_prefix("requested len ")?.split(' ').next()?.parse().ok())
    {
        return exhausted(Bound::Random, asked, limits.random);
    }
    if says("resource limit exceeded: instance count") {
        return exhausted(Bound::Instances, u64::from(CORE_INSTANCES) + 1, CORE_INSTANCES.into());
    }
    if says("maximum concurrent limit") {
        return ReadError::Busy("all instance slots are in use".to_owned());
    }
    if error.downcast_ref::<wasmtime_wasi::I32Exit>().is_some() {
        return ReadError::Trapped("it called exit instead of answering".to_owned());
    }
    let how = trap.map_or_else(|| chain.last().cloned().unwrap_or_default(), |trap| trap.to_string());
    ReadError::Trapped(how)
}

/// Refuses an answer over `cap` bytes.
fn weigh(answer: Answer, cap: u64) -> Result<Answer, ReadError> {
    let used = size(&answer) as u64;
    if used > cap && Guard::Result.is_on() {
        return Err(ReadError::Exhausted(Limit { bound: Bound::Result, used, cap }));
    }
    Ok(answer)
}

/// Bytes of an answer, with a charge for each entry.
fn size(answer: &Answer) -> usize {
    fn text(text: Option<&String>) -> usize {
        text.map_or(0, String::len)
    }
    fn meta(meta: &[(String, String)]) -> usize {
        meta.iter().map(|(key, value)| key.len() + value.len() + ENTRY).sum()
    }
    match answer {
        Answer::Description(about) => {
            text(about.title.as_ref()) + text(about.version.as_ref()) + text(about.description.as_ref())
        }
        Answer::Page(page) => {
            let entry = |r: &crate::model::Resource| {
                let icons: usize = r.icons.iter().map(|icon| icon.src.len() + ENTRY).sum();
                ENTRY
                    + r.reference.len()
                    + r.name.len()
                    + text(r.title.as_ref())
                    + text(r.description.as_ref())
                    + text(r.mime_type.as_ref())
                    + icons
                    + meta(&r.meta)
            };
            page.resources.iter().map(entry).sum::<usize>() + text(page.next.as_ref())
        }
        Answer::Templates(all) => {
            let entry = |t: &crate::model::Template| {
                let icons: usize = t.icons.iter().map(|icon| icon.src.len() + ENTRY).sum();
                ENTRY
                    + t.template.len()
                    + t.name.len()
                    + text(t.title.as_ref())
                    + text(t.description.as_ref())
                    + text(t.mime_type.as_ref())
                    + icons
                    + meta(&t.meta)
            };
            all.iter().map(entry).sum()
        }
        Answer::Reading(reading) => {
            let entry = |c: &crate::model::Contents| {
                ENTRY + c.reference.len() + text(c.mime_type.as_ref()) + c.body.len() + meta(&c.meta)
            };
            reading.contents.iter().map(entry).sum()
        }
        Answer::Suggestions(given) => given.values.iter().map(|value| value.len() + ENTRY).sum(),
        Answer::Revision(revision) => revision.len(),
        Answer::Revisions(all) => all.iter().map(|one| ENTRY + one.as_ref().map_or(0, String::len)).sum(),
    }
}
