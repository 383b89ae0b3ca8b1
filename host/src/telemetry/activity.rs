//! What happened lately, for the console: sums by mount and by caller, refusals, the slowest and largest requests, and the
//! last hour. Made from the events and from nothing else.
//!
//! Every table is bounded. What finds no place replaces the entry that was used least recently.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde::Serialize;

use super::event::{Event, EventError};
use super::line::micros;
use super::metrics::UPSTREAM;
use super::observer::EventObserver;
use crate::model::{DecisionKind, MountName, ReadError, text};
use crate::policy::{PrincipalId, PrincipalKind};

/// The most mounts with sums.
const MAX_MOUNTS: usize = 2000;

/// The most callers, refusals, limits and upstream requests, each.
const MAX_ENTRIES: usize = 500;

/// The most slow and large requests, each.
const MAX_EXTREMES: usize = 50;

/// The most requests that wait for the viewers. More are skipped, and counted.
const MAX_LIVE: usize = 200;

/// The length of one step of the last hour.
pub const STEP: Duration = Duration::from_secs(10);

/// The steps of an hour.
const MAX_STEPS: usize = 360;

/// Characters of a name that are kept.
const MAX_NAME: usize = 500;

/// Sums of some requests or calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Calls of providers; for a caller, its requests.
    pub count: u64,
    /// Reads that were answered without a call of their own.
    pub served: u64,
    /// Those that failed.
    pub failed: u64,
    /// Uses of grants that were refused.
    pub denied: u64,
    /// Bytes of the answers.
    pub bytes: u64,
    /// Processor time.
    pub cpu_micros: u64,
}

/// A caller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallerName {
    /// The principal.
    pub principal: String,
    /// The client's name and version.
    pub client: Option<Arc<str>>,
    /// How its requests arrive.
    pub transport: &'static str,
}

/// A use of a grant, or of a kind of grant that the mount lacks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GrantUse {
    /// The mount.
    pub mount: MountName,
    /// The kind of grant.
    pub grant: String,
    /// The path, request or variable.
    pub target: String,
}

/// How often something happened, and when last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// How often.
    pub times: u64,
    /// When last.
    pub last: SystemTime,
}

/// A limit that stopped calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitMet {
    /// How often, and when last.
    pub times: Times,
    /// The amount that the last call used.
    pub used: u64,
    /// The amount that was allowed.
    pub cap: u64,
    /// The command that raises the limit.
    pub command: Option<String>,
}

/// A finished request, for a list.
#[derive(Clone, Debug, Serialize)]
pub struct FinishedRequest {
    /// The end, in milliseconds since the Unix epoch.
    pub time: u64,
    /// The principal.
    pub principal: String,
    /// The client's name and version.
    pub client: Option<Arc<str>>,
    /// How it arrived.
    pub transport: &'static str,
    /// The method.
    pub method: &'static str,
    /// The mount.
    pub mount: Option<String>,
    /// The operation.
    pub operation: &'static str,
    /// The reference.
    pub reference: Option<String>,
    /// The outcome.
    pub outcome: &'static str,
    /// The time that it took.
    pub micros: u64,
    /// The processor time of its call.
    pub cpu_micros: u64,
    /// The bytes of the answer.
    pub bytes: u64,
    /// Uses of grants that were refused.
    pub denied: u64,
}

/// One step of the last hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The begin, in milliseconds since the Unix epoch.
    pub t: u64,
    /// Requests that ended.
    pub requests: u64,
    /// Those that failed.
    pub failed: u64,
    /// Processor time of the calls that ended.
    pub cpu_micros: u64,
    /// Memory in use at the end.
    pub memory: u64,
    /// Turns in use at the end.
    pub turns: usize,
}

/// What happened lately.
#[derive(Clone, Default)]
pub struct ActivityReport {
    /// The sums of each mount.
    pub mounts: HashMap<MountName, Totals>,
    /// The sums of each caller, and its last request.
    pub callers: Vec<(CallerName, Totals, SystemTime)>,
    /// Refused uses.
    pub denials: Vec<(GrantUse, Times)>,
    /// Limits that were met.
    pub limits: Vec<((MountName, &'static str), LimitMet)>,
    /// Requests to upstream servers.
    pub upstreams: Vec<(GrantUse, Times)>,
    /// The slowest requests, slowest first.
    pub slowest: Vec<FinishedRequest>,
    /// The largest answers, largest first.
    pub largest: Vec<FinishedRequest>,
    /// The last hour, oldest first.
    pub history: Vec<Step>,
}

/// See the module.
#[derive(Default)]
pub struct Activity {
    state: Mutex<State>,
    viewers: AtomicUsize,
}

/// What tells callers apart, without the text of their names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CallerKey {
    principal: PrincipalId,
    client: Option<Arc<str>>,
    transport: &'static str,
}

struct CallerEntry {
    name: CallerName,
    totals: Totals,
    last: SystemTime,
}

#[derive(Default)]
struct State {
    mounts: HashMap<MountName, Totals>,
    callers: HashMap<CallerKey, CallerEntry>,
    denials: HashMap<GrantUse, Times>,
    limits: HashMap<(MountName, &'static str), LimitMet>,
    upstreams: HashMap<GrantUse, Times>,
    slowest: Vec<FinishedRequest>,
    largest: Vec<FinishedRequest>,
    history: VecDeque<Step>,
    current: Step,
    live: Vec<FinishedRequest>,
    skipped: u64,
}

/// Counts one viewer of the live requests, until it is dropped.
pub struct Viewer(Arc<Activity>);

impl Drop for Viewer {
    fn drop(&mut self) {
        self.0.viewers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Activity {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more viewer of the live requests. Without any, they are not kept.
    pub fn viewer(self: &Arc<Self>) -> Viewer {
        self.viewers.fetch_add(1, Ordering::Relaxed);
        Viewer(Arc::clone(self))
    }

    /// Takes the requests that ended since the last call, and the number of those that found no place.
    pub fn take_live(&self) -> (Vec<FinishedRequest>, u64) {
        let mut state = self.lock();
        (std::mem::take(&mut state.live), std::mem::take(&mut state.skipped))
    }

    /// Ends the current step of the last hour, and begins the next one.
    pub fn end_step(&self, memory: u64, turns: usize) {
        let mut state = self.lock();
        let next = Step { t: millis(SystemTime::now()), ..Step::default() };
        let ended = Step { memory, turns, ..std::mem::replace(&mut state.current, next) };
        if ended.t == 0 {
            return;
        }
        if state.history.len() >= MAX_STEPS {
            state.history.pop_front();
        }
        state.history.push_back(ended);
    }

    /// What happened lately. The tables are sorted: most recent first.
    pub fn report(&self) -> ActivityReport {
        let state = self.lock();
        let mut report = ActivityReport {
            mounts: state.mounts.clone(),
            callers: state.callers.values().map(|one| (one.name.clone(), one.totals, one.last)).collect(),
            denials: state.denials.iter().map(|(one, times)| (one.clone(), *times)).collect(),
            limits: state.limits.iter().map(|(one, met)| (one.clone(), met.clone())).collect(),
            upstreams: state.upstreams.iter().map(|(one, times)| (one.clone(), *times)).collect(),
            slowest: state.slowest.clone(),
            largest: state.largest.clone(),
            history: state.history.iter().copied().collect(),
        };
        drop(state);
        report.callers.sort_by_key(|(_, _, last)| std::cmp::Reverse(*last));
        report.denials.sort_by_key(|(_, times)| std::cmp::Reverse(times.last));
        report.limits.sort_by_key(|(_, met)| std::cmp::Reverse(met.times.last));
        report.upstreams.sort_by_key(|(_, times)| std::cmp::Reverse(times.last));
        report
    }
}

/// Milliseconds since the Unix epoch.
pub fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn principal_text(event: &Event) -> String {
    text::excerpt(&event.caller.principal.to_string(), MAX_NAME)
}

/// The entry of `key`. A full table forgets the entry that was used least recently.
fn entry<K: Clone + Eq + Hash, V>(
    table: &mut HashMap<K, V>,
    key: K,
    new: impl FnOnce() -> V,
    last: impl Fn(&V) -> SystemTime,
) -> &mut V {
    if table.len() >= MAX_ENTRIES && !table.contains_key(&key) {
        let oldest = table.iter().min_by_key(|(_, value)| last(value)).map(|(key, _)| key.clone());
        oldest.iter().for_each(|oldest| drop(table.remove(oldest)));
    }
    table.entry(key).or_insert_with(new)
}

/// True if a request with the value `own` is among the [`MAX_EXTREMES`] largest.
fn is_extreme(kept: &[FinishedRequest], own: u64, value: fn(&FinishedRequest) -> u64) -> bool {
    own > 0 && (kept.len() < MAX_EXTREMES || kept.last().is_some_and(|least| value(least) < own))
}

/// Puts a request among the [`MAX_EXTREMES`] with the largest `value`, if it is one of them.
fn keep_largest(kept: &mut Vec<FinishedRequest>, one: &FinishedRequest, value: fn(&FinishedRequest) -> u64) {
    let own = value(one);
    if !is_extreme(kept, own, value) {
        return;
    }
    let at = kept.partition_point(|other| value(other) >= own);
    kept.insert(at, one.clone());
    kept.truncate(MAX_EXTREMES);
}

impl State {
    fn add_times(table: &mut HashMap<GrantUse, Times>, used: GrantUse, times: u32, now: SystemTime) {
        let entry = entry(table, used, || Times { times: 0, last: now }, |times| times.last);
        entry.times = entry.times.saturating_add(u64::from(times));
        entry.last = now;
    }

    fn add_mount(&mut self, event: &Event, mount: &MountName, denied: u64) {
        let now = event.ended_at;
        if self.mounts.len() < MAX_MOUNTS || self.mounts.contains_key(mount) {
            let totals = self.mounts.entry(mount.clone()).or_default();
            match event.served_from {
                Some(_) => totals.served += 1,
                None => totals.count += u64::from(event.calls),
            }
            totals.add(event, denied);
        }
        for decision in event.decision_log.decisions() {
            let used = || GrantUse {
                mount: mount.clone(),
                grant: decision.grant.to_string(),
                target: text::excerpt(&decision.target, MAX_NAME),
            };
            match decision.verdict {
                DecisionKind::Denied => Self::add_times(&mut self.denials, used(), decision.times, now),
                DecisionKind::Allowed if UPSTREAM.contains(&&*decision.grant) => {
                    Self::add_times(&mut self.upstreams, used(), decision.times, now);
                }
                DecisionKind::Allowed | DecisionKind::Unavailable => {}
            }
        }
        let error = event.outcome.as_ref().err().and_then(EventError::of_call);
        if let Some(limit) = error.and_then(ReadError::limit) {
            let new = || LimitMet { times: Times { times: 0, last: now }, used: 0, cap: 0, command: None };
            let met = entry(&mut self.limits, (mount.clone(), limit.kind.as_str()), new, |met| met.times.last);
            met.times = Times { times: met.times.times.saturating_add(1), last: now };
            (met.used, met.cap) = (limit.used, limit.cap);
            // The hint ends with the command, and has only names of belljar.
            let hint = error.and_then(|error| error.hint(Some(mount)));
            met.command = hint.and_then(|hint| hint.split_once("run: ").map(|(_, command)| command.to_owned()));
        }
    }

    fn add_request(&mut self, event: &Event, denied: u64, is_watched: bool) {
        let Some(request) = &event.request else { return };
        let is_kept = is_extreme(&self.slowest, micros(event.took), |one| one.micros)
            || is_extreme(&self.largest, event.usage.bytes, |one| one.bytes);
        if !is_watched && !is_kept {
            return;
        }
        let one = FinishedRequest {
            time: millis(event.ended_at),
            principal: principal_text(event),
            client: event.caller.client.clone(),
            transport: event.caller.transport,
            method: request.method,
            mount: event.mount.as_ref().map(ToString::to_string),
            operation: event.operation,
            reference: event.reference.as_deref().map(|reference| text::excerpt(reference, MAX_NAME)),
            outcome: event.outcome.as_ref().err().map_or("ok", EventError::kind),
            micros: micros(event.took),
            cpu_micros: micros(event.usage.cpu),
            bytes: event.usage.bytes,
            denied,
        };
        keep_largest(&mut self.slowest, &one, |one| one.micros);
        keep_largest(&mut self.largest, &one, |one| one.bytes);
        if !is_watched {
            return;
        }
        match self.live.len() < MAX_LIVE {
            true => self.live.push(one),
            false => self.skipped += 1,
        }
    }
}

impl Totals {
    fn add(&mut self, event: &Event, denied: u64) {
        self.failed += u64::from(event.outcome.is_err());
        self.denied += denied;
        self.bytes = self.bytes.saturating_add(event.usage.bytes);
        self.cpu_micros = self.cpu_micros.saturating_add(micros(event.usage.cpu));
    }
}

impl EventObserver for Activity {
    fn observe(&self, event: &Event) {
        let is_watched = self.viewers.load(Ordering::Relaxed) > 0;
        let denied = event.decision_log.decisions().iter().filter(|one| one.verdict == DecisionKind::Denied);
        let denied = denied.map(|one| u64::from(one.times)).sum();
        // belljar's own polls are nobody's requests.
        let is_own = event.caller.principal.kind() == PrincipalKind::Belljar;
        let mut state = self.lock();
        if let Some(mount) = &event.mount {
            state.add_mount(event, mount, denied);
        }
        state.current.cpu_micros += micros(event.usage.cpu);
        if event.request.is_some() {
            state.current.requests += 1;
            state.current.failed += u64::from(event.outcome.is_err());
        }
        if !is_own {
            let (client, transport) = (event.caller.client.clone(), event.caller.transport);
            let key = CallerKey { principal: event.caller.principal.id(), client: client.clone(), transport };
            let new = || CallerEntry {
                name: CallerName { principal: principal_text(event), client, transport },
                totals: Totals::default(),
                last: event.ended_at,
            };
            let caller = entry(&mut state.callers, key, new, |caller| caller.last);
            caller.totals.count += u64::from(event.request.is_some());
            caller.totals.add(event, denied);
            caller.last = event.ended_at;
        }
        state.add_request(event, denied, is_watched);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::error::{Limit, LimitKind};
    use crate::model::{RequestInfo, Usage};
    use crate::policy::{Caller, Evidence, KeyIdentity, authenticate};

    fn event(key: &str, reference: &str, bytes: u64) -> Event {
        let identity = KeyIdentity { name: key.to_owned(), ..KeyIdentity::default() };
        let request = Arc::new(RequestInfo::new("resources/read", None, None));
        let caller = Caller { request: Some(request), ..Caller::new(authenticate(Evidence::Key(identity)), "http") };
        Event {
            mount: MountName::new("notes").ok(),
            reference: Some(reference.to_owned()),
            usage: Usage { bytes, ..Usage::default() },
            took: Duration::from_micros(bytes),
            ..Event::new(caller, "read", Ok(()))
        }
    }

    #[test]
    fn every_table_is_bounded_and_keeps_the_latest() {
        let activity = Activity::default();
        for n in 0..10_000_u64 {
            let mut one = event(&format!("k{n}"), &format!("{n}.md"), n);
            one.ended_at = SystemTime::UNIX_EPOCH + Duration::from_secs(n);
            one.decision_log.add("fs", &format!("/{n}"), DecisionKind::Denied, || None);
            one.decision_log.add("http", &format!("GET https://{n}.example/"), DecisionKind::Allowed, || None);
            activity.observe(&one);
        }
        let report = activity.report();
        let lengths = [report.callers.len(), report.denials.len(), report.upstreams.len()];
        assert_eq!(lengths, [MAX_ENTRIES; 3]);
        assert_eq!(report.callers[0].0.principal, "key:k9999", "most recent first");
        assert_eq!(report.mounts.len(), 1);
        let totals = report.mounts.values().next().unwrap();
        assert_eq!((totals.count, totals.denied), (10_000, 10_000));
        assert_eq!(report.largest.len(), MAX_EXTREMES);
        assert!(report.largest.iter().map(|one| one.bytes).eq((9950..10_000).rev()), "largest first");
    }

    #[test]
    fn live_requests_are_kept_for_viewers_only() {
        let activity = Arc::new(Activity::default());
        activity.observe(&event("a", "x", 1));
        assert_eq!(activity.take_live().0.len(), 0);
        let viewer = activity.viewer();
        (0..MAX_LIVE + 7).for_each(|_| activity.observe(&event("a", "x", 1)));
        let (live, skipped) = activity.take_live();
        assert_eq!((live.len(), skipped), (MAX_LIVE, 7));
        drop(viewer);
        activity.observe(&event("a", "x", 1));
        assert_eq!(activity.take_live().0.len(), 0);
    }

    #[test]
    fn limits_and_the_last_hour_are_counted() {
        let activity = Activity::default();
        activity.end_step(0, 0);
        let mut stopped = event("a", "x", 1);
        stopped.outcome = Err(ReadError::Exhausted(Limit { kind: LimitKind::Fuel, used: 9, cap: 5 }).into());
        activity.observe(&stopped);
        activity.end_step(7, 3);
        let report = activity.report();
        let ((mount, limit), met) = &report.limits[0];
        assert_eq!((mount.as_str(), *limit, met.times.times, met.used, met.cap), ("notes", "fuel", 1, 9, 5));
        let step = report.history[0];
        assert_eq!((step.requests, step.failed, step.memory, step.turns), (1, 1, 7, 3));
    }
}
