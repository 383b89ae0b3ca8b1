//! The only path of a call: authorize, admit, execute, check, record.
//!
//! Reads, lists, templates, completion, revisions, descriptions and the conformance kit use [`Gateway::call`] or its
//! parts. Nothing else makes a call.

use std::future::ready;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::asking::ProviderAsks;
use super::call_group::CallGroup;
use super::consent::{AskedRequest, ConsentManager, ConsentState};
use super::explain::{explain, needs_restart};
use super::read_cache::SharedReads;
use super::record::{Recorder, RequestRecord};
use super::replica_link::ReplicaLink;
use super::response_cost::ResponseCost;
use super::subscriptions::Subscriptions;
use crate::catalog::{Catalog, Mount, ServedMount, Snapshot};
use crate::config::{Ask, ConfigFingerprint};
use crate::interfaces::{Exported, Reply, Request};
use crate::limits::keyed_slots::KeyedSlots;
use crate::limits::memory_budget::MemoryBudget;
use crate::limits::progress::ProgressSender;
use crate::limits::{Admission, CallOrigin, Operation};
use crate::model::bounds::{MAX_SEARCHES, MAX_SEARCHES_OF_CALLER};
use crate::model::error::LimitKind;
use crate::model::{ReadError, Usage};
use crate::policy::{Access, Caller, CallerId, Policy};
use crate::sandbox::{CallSpec, Executor, Outcome};
use crate::store::{Generation, SharedStore};
use crate::telemetry::trace::Tracer;
use crate::telemetry::{Event, EventError, RecordUnavailable, Sink};

/// Time that the first requests wait for the components that were in the plugin directory at the start.
///
/// Compiling a component takes a fraction of a second, and an interpreter half a minute; each is compiled once. A
/// client that saw an incomplete list may not ask again. A client that waits for too long gives up.
pub(super) const FIRST_LOAD_WAIT: Duration = Duration::from_secs(10);

/// Longer than any loading takes.
const LOAD_WAIT: Duration = Duration::from_secs(24 * 3600);

/// Serves every request.
pub struct Gateway {
    pub(super) catalog: Arc<Catalog>,
    executor: Executor,
    pub(super) policy: Policy,
    pub(super) admission: Admission,
    pub(super) audit: Sink,
    pub(super) consents: ConsentManager,
    pub(super) provider_asks: ProviderAsks,
    pub(super) shared_reads: SharedReads,
    pub(super) subscriptions: Arc<Subscriptions>,
    /// One permit for each search that may run at the same time.
    pub(super) searches: Semaphore,
    pub(super) searches_of_callers: KeyedSlots<CallerId>,
    /// Time that one page of a list of all mounts may take.
    pub(super) list_time: Duration,
    /// True if cursors come from other replicas too.
    checks_cursors: bool,
    pub(super) replicas: Option<ReplicaLink>,
    pub(super) fingerprint: ArcSwap<ConfigFingerprint>,
    pub(super) generation: ArcSwap<Generation>,
}

/// A call that is to be made: its caller, its mount and its options.
#[derive(Clone, Copy)]
pub(super) struct MountCall<'a> {
    caller: &'a Caller,
    mount: &'a Arc<Mount>,
    /// The group that the call belongs to, if several calls are recorded as one.
    group: Option<&'a CallGroup>,
    /// A deadline before the mount's own.
    deadline: Option<Instant>,
    /// True if the call is made even after repeated failures of the same call, and does not count as a failure itself.
    is_probe: bool,
}

impl<'a> MountCall<'a> {
    /// A call of `mount` for `caller`.
    pub(super) fn new(caller: &'a Caller, mount: &'a Arc<Mount>) -> Self {
        Self { caller, mount, group: None, deadline: None, is_probe: false }
    }

    /// A call of `mount` in `group`, for the group's caller.
    pub(super) fn in_group(group: &'a CallGroup, mount: &'a Arc<Mount>) -> Self {
        Self { group: Some(group), ..Self::new(group.caller(), mount) }
    }

    /// The same with a deadline before the mount's own.
    pub(super) fn with_deadline(self, deadline: Instant) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    /// The caller.
    pub(super) fn caller(self) -> &'a Caller {
        self.caller
    }

    /// The mount that is called.
    pub(super) fn mount(self) -> &'a Arc<Mount> {
        self.mount
    }

    /// The same as a probe: its result does not affect later calls.
    pub(super) fn as_probe(self) -> Self {
        Self { is_probe: true, ..self }
    }
}

/// What a call shares with its request: the grants that a person allowed before it, the question that follows it, and its
/// progress.
pub(super) struct ConsentContext<'a> {
    pub(super) consent: &'a mut ConsentState,
    /// The request, as the client made it.
    pub(super) request: &'a AskedRequest<'a>,
    /// Where the call reports its progress.
    pub(super) progress: Option<ProgressSender>,
}

/// The result of a call before its reply is checked.
pub(super) struct UncheckedReply {
    pub(super) result: Result<Reply, ReadError>,
    pub(super) usage: Usage,
    pub(super) cost: ResponseCost,
    /// True if the call sent a request that may have changed something.
    pub(super) has_acted: bool,
}

impl Gateway {
    /// A gateway made of its parts.
    pub fn new(
        catalog: Arc<Catalog>,
        executor: Executor,
        admission: Admission,
        audit: Sink,
        consents: ConsentManager,
        subscriptions: Arc<Subscriptions>,
        list_time: Duration,
    ) -> Self {
        let shared_reads = SharedReads::new(admission.budget());
        let searches = Semaphore::new(MAX_SEARCHES.get().min(Semaphore::MAX_PERMITS));
        let policy = Policy::default();
        let provider_asks = ProviderAsks::new(consents.states());
        let searches_of_callers = KeyedSlots::new(MAX_SEARCHES_OF_CALLER.get());
        Self {
            catalog,
            executor,
            policy,
            admission,
            audit,
            consents,
            provider_asks,
            shared_reads,
            subscriptions,
            searches,
            searches_of_callers,
            list_time,
            checks_cursors: false,
            replicas: None,
            fingerprint: ArcSwap::default(),
            generation: ArcSwap::default(),
        }
    }

    /// The same gateway for one of several replicas: its cursors tell which list they belong to. `store`: what the
    /// replicas share.
    #[must_use]
    pub fn as_replica(self, store: Option<Arc<SharedStore>>) -> Self {
        Self { checks_cursors: true, replicas: store.map(ReplicaLink::new), ..self }
    }

    /// True if cursors tell which list they belong to.
    pub fn checks_cursors(&self) -> bool {
        self.checks_cursors
    }

    /// The same gateway with another policy.
    #[cfg(test)]
    #[must_use]
    pub(crate) fn with_policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// The mounts, once every component that was in the plugin directory at the start is loaded. Waits at most ten
    /// seconds.
    pub async fn loaded_snapshot(&self) -> Arc<Snapshot> {
        self.catalog.wait_loaded(Instant::now() + FIRST_LOAD_WAIT).await;
        self.catalog.snapshot()
    }

    /// The mounts, once every component that was in the plugin directory at the start is loaded, however long that
    /// takes.
    pub async fn fully_loaded_snapshot(&self) -> Arc<Snapshot> {
        self.catalog.wait_loaded(Instant::now() + LOAD_WAIT).await;
        self.catalog.snapshot()
    }

    /// Notified of each change of the mounts.
    pub fn catalog_changes(&self) -> tokio::sync::watch::Receiver<bool> {
        self.catalog.changes()
    }

    /// The mounts now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.catalog.snapshot()
    }

    /// The memory budget of all calls and of all answers that are not sent yet.
    pub fn budget(&self) -> &Arc<MemoryBudget> {
        self.admission.budget()
    }

    /// The subscriptions of all clients.
    pub fn subscriptions(&self) -> &Arc<Subscriptions> {
        &self.subscriptions
    }

    /// The policy in force.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Ends all calls before the runtime ends: see [`Executor::end_calls`].
    pub fn end_calls(&self, within: Duration) {
        self.executor.end_calls(within);
    }

    /// Checks that the record of calls can be written, if no request is served without it.
    ///
    /// # Errors
    /// [`RecordUnavailable`] if it cannot.
    pub fn check_record(&self) -> Result<(), RecordUnavailable> {
        self.audit.check()
    }

    /// Decides which requests are traced. `None`: no request is.
    pub fn tracer(&self) -> Option<&Tracer> {
        self.audit.tracer()
    }

    /// The record of the request of `caller`. It is written when it is dropped, unless a call of the request has its event.
    pub fn record_request(&self, caller: &Caller) -> RequestRecord {
        RequestRecord::new(&self.audit, caller)
    }

    /// Records a request that was refused before belljar knew what it asks for. `why` is what the client got. `count`: how
    /// many such requests the record stands for.
    pub fn record_refused(&self, caller: Caller, why: EventError, count: u32) {
        self.audit.record(Event { calls: count, ..Event::new(caller, "receive", Err(why)) });
    }

    /// Records a request that was refused because its credential is missing or not valid. `count`: how many such requests
    /// the record stands for.
    pub fn record_unauthenticated(&self, caller: Caller, why: String, credential: Option<String>, count: u32) {
        let refused = Event::new(caller, "authenticate", Err(ReadError::Unauthenticated(why).into()));
        self.audit.record(Event { credential, calls: count, ..refused });
    }

    /// Makes a call and checks the reply.
    pub(super) async fn call<F: Exported>(
        &self,
        call: MountCall<'_>,
        function: F,
    ) -> (Result<F::Checked, ReadError>, ResponseCost) {
        let request = function.into();
        let access = self.authorize(call, &request);
        let context =
            ConsentContext { consent: &mut ConsentState::default(), request: &AskedRequest::read(""), progress: None };
        let reply = self.run(call, access, &request, ready(()), context).await;
        self.check_reply::<F>(call.mount, &request, reply)
    }

    /// Makes a call and gives the unchecked reply of the guest.
    pub(super) async fn call_unchecked<F: Exported>(
        &self,
        call: MountCall<'_>,
        function: F,
    ) -> (Result<F::Reply, ReadError>, Usage) {
        let request = function.into();
        let access = self.authorize(call, &request);
        let context =
            ConsentContext { consent: &mut ConsentState::default(), request: &AskedRequest::read(""), progress: None };
        let UncheckedReply { result, usage, .. } = self.run(call, access, &request, ready(()), context).await;
        (result.and_then(|reply| F::reply(reply).ok_or_else(wrong_reply)), usage)
    }

    /// Checks the reply to `request`, a call of `F`, at the cost of its mount.
    pub(super) fn check_reply<F: Exported>(
        &self,
        mount: &Arc<Mount>,
        request: &Request,
        UncheckedReply { result, mut cost, .. }: UncheckedReply,
    ) -> (Result<F::Checked, ReadError>, ResponseCost) {
        let checked = result.and_then(|reply| {
            let (function, reply) = F::of(request).zip(F::reply(reply)).ok_or_else(wrong_reply)?;
            cost.charge(F::effort(&reply), || {
                let snapshot = self.catalog.snapshot();
                function.check(reply, &ServedMount { mount, snapshot: &snapshot })
            })
        });
        (checked, cost)
    }

    /// Runs a call, from one question to a person until the next.
    ///
    /// Waits for the permit first and then for `room` for the answer. A caller who makes many requests and takes no
    /// answers therefore occupies the turns of its mounts, and no memory for answers beyond them.
    pub(super) async fn run(
        &self,
        call: MountCall<'_>,
        access: Result<Access, ReadError>,
        request: &Request,
        room: impl Future<Output = ()>,
        ConsentContext { consent, request: asked, progress }: ConsentContext<'_>,
    ) -> UncheckedReply {
        let MountCall { caller, mount, group, deadline, is_probe } = call;
        let mut recorder = Recorder::new(&self.audit, caller, mount, request, group);
        self.audit.wait_for_room().await;
        recorder.consent = consent.consented();
        progress.into_iter().for_each(|sender| recorder.decisions.set_progress(sender));
        // If the mount may ask a person or has secrets of its own for each principal, the grants of a call depend on its
        // caller. The same connection may carry requests of several principals.
        let breaker_scope = match mount.ask == Ask::Never && !mount.is_per_principal() {
            true => 0,
            false => hash_of(&(caller.peer, &caller.principal)),
        };
        // The calls of a group fill what all principals share: a list, its revision, the state of watched resources.
        // They wait for no principal's other calls, because everybody would wait with it.
        let party = if group.is_some() { CallerId::Connection(caller.peer) } else { caller.id() };
        let origin = CallOrigin { caller: party, breaker_scope };
        let asked_at = Instant::now();
        recorder.called_at = Some(SystemTime::now());
        let recorded = self.check_record().map_err(|why| ReadError::Unavailable(why.to_string()));
        let recorded = recorded.and_then(|()| self.check_not_withheld(&mount.name));
        let permit = match access.and_then(|access| recorded.map(|()| access)) {
            Ok(access) => self.admission.admit(access, &mount.gate, origin, request, deadline).await,
            Err(error) => Err(error),
        };
        recorder.queue = asked_at.elapsed();
        let outcome = match permit {
            Ok(permit) => {
                let recall = permit.recall();
                let recalled = async {
                    match &recall {
                        Some(recall) => recall.recalled().await,
                        None => std::future::pending().await,
                    }
                };
                let call = async {
                    if timeout_at(permit.deadline(), room).await.is_err() {
                        return Outcome::failed(ReadError::busy(
                            "the client has not taken its earlier answers yet".to_owned(),
                        ));
                    }
                    let granted =
                        self.consents.for_call(&caller.principal, mount, consent, self.catalog.config_version());
                    let spec = CallSpec::new(&permit, mount.loaded.id(), request.clone()).with_consent(granted);
                    self.executor.execute(spec, permit, &recorder.decisions).await
                };
                let outcome = tokio::select! {
                    biased;
                    outcome = call => outcome,
                    busy = recalled => {
                        let decisions = &recorder.decisions;
                        Outcome { result: Err(busy), usage: decisions.usage(), decisions: decisions.take_decisions() }
                    }
                };
                let failed = outcome.result.as_ref().err();
                if !is_probe && !failed.is_some_and(|error| self.lacked_list_time(error)) {
                    mount.gate.record_result(origin, request, failed);
                }
                outcome
            }
            Err(error) => Outcome::failed(error),
        };
        let Outcome { mut result, usage, decisions } = outcome;
        let usage = Usage { queue: recorder.queue, ..usage };
        if mount.is_withdrawn() {
            let why = "its grants changed during the call; try again";
            result = Err(ReadError::Unavailable(why.to_owned()));
        }
        if let Err(withheld) = self.check_not_withheld(&mount.name) {
            result = Err(withheld);
        }
        let is_tool_call = request.is_tool_call();
        let result = result.map_err(|error| {
            let error = match error {
                ReadError::Exhausted(limit) if is_tool_call => ReadError::ToolExhausted(limit),
                error => error,
            };
            let error = explain(error, &decisions, mount);
            let is_restart_needed =
                matches!(error, ReadError::Denied { .. }) && self.catalog.snapshot().needs_restart(&mount.name);
            if is_restart_needed { needs_restart(error) } else { error }
        });
        let has_acted = decisions.has_acted;
        // The answer to a question would make the call once more.
        if let Err(error) = &result
            && !has_acted
        {
            self.consents.set_question(consent, caller, asked, mount, error, &decisions);
            recorder.consent = consent.consented();
        }
        recorder.ended = Some((result.as_ref().map(|_| ()).map_err(Clone::clone), usage, decisions));
        UncheckedReply { result, usage, cost: recorder.into_cost(), has_acted }
    }

    /// True if a call was stopped because the listing of all mounts had little time left for it. That says nothing
    /// about its provider.
    pub(super) fn lacked_list_time(&self, error: &ReadError) -> bool {
        let half = u64::try_from(self.list_time.as_millis() / 2).unwrap_or(u64::MAX);
        error.limit().is_some_and(|limit| limit.kind == LimitKind::ListTime && limit.cap < half)
    }
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The error for a reply that belongs to another function than the call. This is a bug in belljar.
fn wrong_reply() -> ReadError {
    ReadError::Internal("the reply belongs to another function".to_owned())
}
