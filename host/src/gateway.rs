//! The one conductor: route, admit, call, check, record.
//!
//! A read is one line through here. Knows no MCP and no WebAssembly; every request ends in exactly one record per call.

mod answers;
pub mod bill;
pub mod check;
pub mod completing;
pub mod conformance;
pub mod consent;
mod due;
mod listing;
mod look;
mod names;
mod record;
mod rounds;
pub mod search;
mod walk;
pub mod watching;

use std::future::ready;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::admission::budget::Budget;
use crate::admission::effort::MUCH;
use crate::admission::{Admission, Who};
use crate::audit::Sink;
use crate::catalog::{Catalog, Mount, Snapshot, Unserved};
use crate::config::Ask;
use crate::model::error::Bound;
use crate::model::{
    Answer, Caller, Completing, Description, Fault, Operation, Outcome, ReadError, Reading, Suggestions, reference,
    text,
};
use crate::sandbox::Sandbox;
use answers::Answers;
use bill::Bill;
use consent::{Asking, Consents, Question, Round};
pub use listing::Listing;
use record::Recorder;
use walk::Walk;
use watching::Watching;

/// How long the first requests wait for what lay in the plugin directory at the start. Compiling a component takes a
/// fraction of a second, once, and an interpreter half a minute; a client that saw an incomplete list may not ask again,
/// and one that waited for too long gives up.
const FIRST_LOAD: Duration = Duration::from_secs(10);

/// Longer than any loading takes.
const LOADED: Duration = Duration::from_secs(24 * 3600);

/// Everything that serves a request.
pub struct Gateway {
    catalog: Arc<Catalog>,
    sandbox: Arc<Sandbox>,
    admission: Admission,
    audit: Sink,
    consents: Consents,
    answers: Answers,
    watching: Arc<Watching>,
    list_time: Duration,
}

/// What a read comes to.
pub enum Read {
    /// Contents, the mount that they are from, and what further work on them is charged to.
    Given(Reading, Arc<Mount>, Bill),
    /// A question to whoever reads; the same read with the answer goes on.
    Asks(Question),
    /// A failure for want of something that a person could allow, and whoever reads cannot be asked.
    CannotAsk(Fault),
}

impl Gateway {
    /// Puts the parts together.
    pub fn new(
        catalog: Arc<Catalog>,
        sandbox: Arc<Sandbox>,
        admission: Admission,
        audit: Sink,
        consents: Consents,
        watching: Arc<Watching>,
        list_time: Duration,
    ) -> Self {
        let answers = Answers::new(admission.budget());
        Self { catalog, sandbox, admission, audit, consents, answers, watching, list_time }
    }

    /// The mounts, once everything that lay in the plugin directory at the start is loaded, or did not within ten
    /// seconds.
    pub async fn settled(&self) -> Arc<Snapshot> {
        self.catalog.settled(Instant::now() + FIRST_LOAD).await;
        self.catalog.snapshot()
    }

    /// The mounts, once everything that lay in the plugin directory at the start is loaded, however long that takes.
    pub async fn loaded(&self) -> Arc<Snapshot> {
        self.catalog.settled(Instant::now() + LOADED).await;
        self.catalog.snapshot()
    }

    /// The mounts now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.catalog.snapshot()
    }

    /// The memory of all calls and of all answers on their way.
    pub fn budget(&self) -> &Arc<Budget> {
        self.admission.budget()
    }

    /// The books of subscriptions.
    pub fn watching(&self) -> &Arc<Watching> {
        &self.watching
    }

    /// Ends all calls, before the runtime is ended: see [`Sandbox::end_calls`].
    pub fn end_calls(&self, within: Duration) {
        self.sandbox.end_calls(within);
    }

    /// Reads `uri`, for someone who cannot be asked.
    ///
    /// # Errors
    /// Names the mount where one was found.
    pub async fn read(&self, caller: &Caller, uri: &str) -> Result<(Reading, Arc<Mount>), Fault> {
        match self.read_asking(caller, uri, Asking::default(), ready(())).await? {
            Read::Given(reading, mount, _) => Ok((reading, mount)),
            Read::CannotAsk(fault) => Err(fault),
            Read::Asks(question) => {
                let error = ReadError::Internal("a question to someone who cannot answer".to_owned());
                Err(Fault { error, mount: Some(question.mount), uri: Some(question.uri) })
            }
        }
    }

    /// Reads `uri` once `room` is there for the answer. That is waited for after the call has its turn, so that a caller who
    /// asks for much and takes nothing holds the turns of its mounts, and no answers beyond them. What `asking` allows may
    /// be asked.
    ///
    /// # Errors
    /// As [`Gateway::read`].
    pub async fn read_asking(
        &self,
        caller: &Caller,
        uri: &str,
        asking: Asking<'_>,
        room: impl Future<Output = ()>,
    ) -> Result<Read, Fault> {
        // What is answered without a call is on record too.
        self.audit.room().await;
        let (mount, reference) = match self.route(uri).await {
            Ok(found) => found,
            Err(error) => {
                let snapshot = self.catalog.snapshot();
                let unserved = snapshot.unserved_at(uri).filter(|_| matches!(error, ReadError::Unavailable(_)));
                let mount =
                    snapshot.quarantined_at(uri).map(|one| &one.name).or(unserved.map(|one| &one.name)).cloned();
                record::refused(&self.audit, caller, uri, (mount.clone(), None), &error);
                return Err(Fault { error, mount, uri: Some(text::excerpt(uri, reference::MAX_URI)) });
            }
        };
        let fault = |error| Fault { error, mount: Some(mount.name.clone()), uri: Some(uri.to_owned()) };
        let read = self.catalog.read();
        let mut round = self.consents.begin(asking, caller, uri, &mount, read).await.map_err(|error| {
            record::refused(&self.audit, caller, uri, (Some(mount.name.clone()), Some(mount.digest)), &error);
            fault(error)
        })?;
        // The answer did not come with its state.
        if let Some(question) = round.question {
            return Ok(Read::Asks(question));
        }
        let read = match mount.ask {
            Ask::Never => self.read_shared(caller, &mount, reference, room, (&mut round, uri)).await,
            // What a person allows, or is asked, is between them and belljar.
            Ask::Once | Ask::Persist => self.read_alone(caller, &mount, reference, room, (&mut round, uri)).await,
        };
        match round.question {
            Some(question) => Ok(Read::Asks(question)),
            None => match read {
                Ok((reading, bill)) => Ok(Read::Given(reading, mount, bill)),
                Err(error) if round.lacks_an_answer => Ok(Read::CannotAsk(fault(error))),
                Err(ReadError::NotFound) => {
                    Err(fault(names::absent(&mount, uri.strip_prefix(&mount.base).unwrap_or_default())))
                }
                Err(error) => Err(fault(error)),
            },
        }
    }

    /// Reads together with whoever reads the same, or gives what was read and is fresh.
    async fn read_shared(
        &self,
        caller: &Caller,
        mount: &Arc<Mount>,
        reference: String,
        room: impl Future<Output = ()>,
        (round, uri): (&mut Round, &str),
    ) -> Result<(Reading, Bill), ReadError> {
        let mut room = pin!(room);
        let key = answers::key(mount, &reference);
        if let Some(reading) = self.answers.fresh(&key) {
            room.await;
            return Ok((reading, record::served(&self.audit, caller, mount, reference, "cache", &Ok(()))));
        }
        let joined = self.answers.join(&key);
        let (mut led, mut own, mut bill) = (false, None, None);
        let (shared, again) = (&mut *round, reference.clone());
        let read = async || {
            led = true;
            let (reading, billed) = match self.read_alone(caller, mount, again, room.as_mut(), (shared, uri)).await {
                // That there was no turn for this one says nothing about the others.
                Err(busy @ ReadError::Busy(_)) => {
                    own = Some(Err(busy));
                    return Ok(None);
                }
                read => read?,
            };
            bill = Some(billed);
            Ok(match answers::share(reading) {
                Ok(shared) => Some(shared),
                Err(large) => {
                    own = Some(Ok(large));
                    None
                }
            })
        };
        if let Some(flight) = joined.flight() {
            flight.get_or_init(read).await;
        }
        if led {
            self.answers.land(mount, &joined);
        }
        let read = match (joined.taken(), own) {
            (Ok(None), Some(own)) => own,
            // Not to be shared: each has a turn of its own.
            (Ok(None), None) => return self.read_alone(caller, mount, reference, room, (round, uri)).await,
            (read, _) => {
                if !led {
                    room.await;
                    let outcome = read.as_ref().map(|_| ());
                    bill = Some(record::served(&self.audit, caller, mount, reference, "another read", &outcome));
                }
                read.map(Option::unwrap_or_default)
            }
        };
        let bill = bill.unwrap_or_else(|| Bill::new(&self.audit, mount, None));
        read.map(|reading| (reading, bill))
    }

    /// Reads by a call of its own.
    async fn read_alone(
        &self,
        caller: &Caller,
        mount: &Arc<Mount>,
        reference: String,
        room: impl Future<Output = ()>,
        round: (&mut Round, &str),
    ) -> Result<(Reading, Bill), ReadError> {
        let operation = Operation::Read { reference };
        let (answer, mut bill) = self.call_asking(caller, mount, &operation, None, room, round).await;
        let Answer::Reading(reading) = answer? else { return Err(Answer::to_another()) };
        let reference = operation.reference().unwrap_or_default();
        let bytes = answers::size(&reading);
        let reading = bill.charge(bytes, || check::reading(reading, reference, mount, &self.catalog.snapshot()))?;
        Ok((reading, bill))
    }

    /// The mount and the checked reference that `uri` names. While components are still being loaded, waits for them.
    async fn route(&self, uri: &str) -> Result<(Arc<Mount>, String), ReadError> {
        if uri.len() > reference::MAX_URI {
            return Err(ReadError::BadUri(format!(
                "has {} bytes; at most {} are accepted",
                uri.len(),
                reference::MAX_URI
            )));
        }
        let mut snapshot = self.catalog.snapshot();
        if snapshot.route(uri).is_none() {
            let by = Instant::now() + FIRST_LOAD;
            let is_known =
                |snapshot: &Snapshot| snapshot.route(uri).is_some() || snapshot.quarantined_at(uri).is_some();
            // What came later, or is tried once more, may be on its way as well.
            let is_decided = |snapshot: &Snapshot| is_known(snapshot) || !snapshot.is_compiling(uri);
            let is_loaded = self.catalog.settled_or(by, is_known).await && self.catalog.until(by, is_decided).await;
            snapshot = self.catalog.snapshot();
            if let Some(one) = snapshot.quarantined_at(uri) {
                return Err(one.error());
            }
            if !is_loaded {
                let why = match snapshot.is_compiling(uri) {
                    true => "its component is being compiled, which is done once; read again in a moment",
                    false => "components are still being compiled, and that of this URI may be one of them",
                };
                return Err(ReadError::Unavailable(why.to_owned()));
            }
        }
        let Some((mount, reference)) = snapshot.route(uri) else {
            return Err(match uri.split_once(':') {
                Some((scheme, _)) if !scheme.is_empty() && uri.bytes().all(|b| b.is_ascii_graphic()) => {
                    snapshot.unserved_at(uri).map_or_else(|| names::nowhere(&snapshot, uri), Unserved::error)
                }
                Some(_) => ReadError::BadUri("is not a URI (RFC 3986); percent-encode other characters".to_owned()),
                None => ReadError::BadUri("has no scheme; expected one such as \"belljar://MOUNT/...\"".to_owned()),
            });
        };
        reference::check(reference).map_err(|why| ReadError::BadUri(why.to_owned()))?;
        if snapshot.is_disguised(uri) {
            let why = "escapes letters that need none, and leads to another mount without that; write them plainly";
            return Err(ReadError::BadUri(why.to_owned()));
        }
        Ok((Arc::clone(mount), reference.to_owned()))
    }

    /// How `mount` describes itself.
    ///
    /// # Errors
    /// As a read.
    pub async fn describe(&self, caller: &Caller, mount: &Arc<Mount>) -> Result<Description, ReadError> {
        match self.call(caller, mount, &Operation::Describe, None).await? {
            Answer::Description(about) => Ok(check::description(about)),
            _ => Err(Answer::to_another()),
        }
    }

    /// What a variable of one of `mount`'s templates could become, by the provider's own `completion`.
    ///
    /// # Errors
    /// As a read.
    pub async fn complete(
        &self,
        caller: &Caller,
        mount: &Arc<Mount>,
        completing: Completing,
    ) -> Result<Suggestions, ReadError> {
        let operation = Operation::Complete(completing);
        let (answer, mut bill) = self.call_billed(caller, mount, &operation, None).await;
        match (answer?, &operation) {
            (Answer::Suggestions(given), Operation::Complete(asked)) => {
                Ok(bill.charge(MUCH, || check::suggestions(given, asked, mount, &self.catalog.snapshot())))
            }
            _ => Err(Answer::to_another()),
        }
    }

    /// The revisions of `references` in `mount`, in order, as its provider tells them.
    ///
    /// # Errors
    /// As a read.
    async fn revisions(
        &self,
        walk: &Walk,
        mount: &Arc<Mount>,
        references: Vec<String>,
    ) -> Result<Vec<Result<String, ReadError>>, ReadError> {
        let asked = references.len();
        match self.call_in(walk, mount, &Operation::Revisions { references }, None).await.0? {
            Answer::Revisions(given) => check::revisions(given, asked),
            _ => Err(Answer::to_another()),
        }
    }

    /// Admits, calls, records. `by`: an earlier deadline than the mount's own.
    async fn call(
        &self,
        caller: &Caller,
        mount: &Arc<Mount>,
        operation: &Operation,
        by: Option<Instant>,
    ) -> Result<Answer, ReadError> {
        self.call_billed(caller, mount, operation, by).await.0
    }

    /// The same, with what further work on the answer is charged to.
    async fn call_billed(
        &self,
        caller: &Caller,
        mount: &Arc<Mount>,
        operation: &Operation,
        by: Option<Instant>,
    ) -> (Result<Answer, ReadError>, Bill) {
        self.call_asking(caller, mount, operation, by, ready(()), (&mut Round::default(), "")).await
    }

    /// The same between questions about a URI: with what was allowed, and with what is asked when it has ended. `room`: see
    /// [`Gateway::read_asking`].
    async fn call_asking(
        &self,
        caller: &Caller,
        mount: &Arc<Mount>,
        operation: &Operation,
        by: Option<Instant>,
        room: impl Future<Output = ()>,
        (round, uri): (&mut Round, &str),
    ) -> (Result<Answer, ReadError>, Bill) {
        let recorder = Recorder::new(&self.audit, caller, mount, operation);
        self.call_recorded(recorder, by, room, (round, uri)).await
    }

    /// The same for a call that is a part of a walk, and has no record of its own.
    async fn call_in(
        &self,
        walk: &Walk,
        mount: &Arc<Mount>,
        operation: &Operation,
        by: Option<Instant>,
    ) -> (Result<Answer, ReadError>, Bill) {
        let recorder = Recorder::in_walk(walk, mount, operation);
        self.call_recorded(recorder, by, ready(()), (&mut Round::default(), "")).await
    }

    async fn call_recorded(
        &self,
        mut recorder: Recorder<'_>,
        by: Option<Instant>,
        room: impl Future<Output = ()>,
        (round, uri): (&mut Round, &str),
    ) -> (Result<Answer, ReadError>, Bill) {
        let Recorder { caller, mount, operation, .. } = recorder;
        self.audit.room().await;
        recorder.consent = round.on_record();
        // Where a person may be asked, what a call may do depends on who asks.
        let scope = if mount.ask == Ask::Never { 0 } else { caller.peer };
        let who = Who { caller: caller.peer, scope };
        let outcome = match self.admission.admit_for(&mount.gate, who, operation, by).await {
            Ok(permit) => {
                let recall = permit.recall();
                let wanted = async {
                    match &recall {
                        Some(recall) => recall.wanted().await,
                        None => std::future::pending().await,
                    }
                };
                let call = async {
                    if timeout_at(permit.deadline(), room).await.is_err() {
                        return Outcome::failed(ReadError::Busy("earlier answers wait to be taken".to_owned()));
                    }
                    let permit = permit.with_consent(self.consents.for_call(mount, round, self.catalog.read()));
                    self.sandbox.call_noting(mount.loaded.id(), permit, operation.clone(), &recorder.trail).await
                };
                let outcome = tokio::select! {
                    biased;
                    outcome = call => outcome,
                    busy = wanted => {
                        let trail = &recorder.trail;
                        Outcome { result: Err(busy), usage: trail.usage(), trail: trail.take() }
                    }
                };
                let failed = outcome.result.as_ref().err();
                if !failed.is_some_and(|error| self.was_hurried(error)) {
                    mount.gate.ended(who, operation, failed);
                }
                outcome
            }
            Err(error) => Outcome::failed(error),
        };
        let Outcome { mut result, usage, trail } = outcome;
        if mount.is_withdrawn() {
            let why = "what it is granted changed while it was asked; ask again";
            result = Err(ReadError::Unavailable(why.to_owned()));
        }
        let result = result.map_err(|error| {
            let error = check::explain(error, &trail, mount);
            let waits = matches!(error, ReadError::Denied { .. }) && self.catalog.snapshot().needs_restart(&mount.name);
            if waits { check::waiting(error) } else { error }
        });
        if let Err(error) = &result {
            self.consents.ask(round, caller, uri, mount, error, &trail);
            recorder.consent = round.on_record();
        }
        recorder.ended = Some((result.as_ref().map(|_| ()).map_err(Clone::clone), usage, trail));
        (result, recorder.bill())
    }

    /// Counts a tool call or completion, `operation`, of `caller`.
    ///
    /// # Errors
    /// When the caller asks too often.
    #[expect(clippy::result_large_err, reason = "as every failure of a request; it is rare")]
    pub fn count(&self, caller: &Caller, operation: &'static str) -> Result<(), Fault> {
        self.admission.count(caller.peer).map_err(|error| {
            record::too_often(&self.audit, caller, operation, &error);
            Fault { error, mount: None, uri: None }
        })
    }

    /// Whether a call was stopped because a listing over all mounts had little time left for it: that says nothing about
    /// its provider.
    fn was_hurried(&self, error: &ReadError) -> bool {
        let half = u64::try_from(self.list_time.as_millis() / 2).unwrap_or(u64::MAX);
        error.limit().is_some_and(|limit| limit.bound == Bound::ListTime && limit.cap < half)
    }
}
