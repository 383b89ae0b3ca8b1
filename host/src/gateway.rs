//! The one conductor: route, admit, call, check, record.
//!
//! A read is one line through here. Knows no MCP and no WebAssembly; every request ends in exactly one record per call.

pub mod check;
pub mod completing;
pub mod consent;
mod record;
pub mod search;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use tokio::time::{Instant, timeout_at};

use crate::admission::Admission;
use crate::admission::budget::Budget;
use crate::audit::Sink;
use crate::catalog::listing::{Listed, Position, is_full};
use crate::catalog::{Catalog, Mount, Snapshot};
use crate::model::error::{Bound, Limit};
use crate::model::{
    Answer, Caller, Completing, Description, Fault, Guard, MountName, Operation, Outcome, ReadError, Reading,
    Suggestions, reference, text,
};
use crate::sandbox::Sandbox;
use consent::{Asking, Consents, Question, Round};
use record::Recorder;

/// Mounts whose first page is asked for at once.
const WINDOW: usize = 8;

/// Pages of a walk that one mount may use up by being slow.
const SLOW_PAGES: u32 = 16;

/// Reasons that a listing carries for what it left out.
const NOTICES: usize = 64;

/// How long the first requests wait for what lay in the plugin directory at the start. Compiling a component takes a
/// fraction of a second, once; a client that saw an incomplete list would not ask again.
const FIRST_LOAD: Duration = Duration::from_secs(20);

/// Longer than any loading takes.
const LOADED: Duration = Duration::from_secs(24 * 3600);

/// Everything that serves a request.
pub struct Gateway {
    catalog: Arc<Catalog>,
    sandbox: Arc<Sandbox>,
    admission: Admission,
    audit: Sink,
    consents: Consents,
    list_time: Duration,
}

/// What a read comes to.
pub enum Read {
    /// Contents, and the mount that they are from.
    Given(Reading, Arc<Mount>),
    /// A question to whoever reads; the same read with the answer goes on.
    Asks(Question),
}

/// A page over all mounts.
#[derive(Debug)]
pub struct Listing<T> {
    /// The entries, in the order of mounts, each mount's in its own order.
    pub entries: Vec<(T, MountName)>,
    /// Where it goes on.
    pub next: Option<Position>,
    /// What was left out, and why: the mount, then the reason; sanitised.
    pub notices: Vec<(MountName, String)>,
}

impl<T> Default for Listing<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), next: None, notices: Vec::new() }
    }
}

/// One page of one mount: its entries, unchecked, and the provider's next cursor.
type Fetched<T> = Result<(Vec<T>, Option<String>), ReadError>;

impl Gateway {
    /// Puts the parts together.
    pub fn new(
        catalog: Arc<Catalog>,
        sandbox: Arc<Sandbox>,
        admission: Admission,
        audit: Sink,
        consents: Consents,
        list_time: Duration,
    ) -> Self {
        Self { catalog, sandbox, admission, audit, consents, list_time }
    }

    /// The mounts, once everything that lay in the plugin directory at the start is loaded, or did not within
    /// [`FIRST_LOAD`].
    async fn settled(&self) -> Arc<Snapshot> {
        self.catalog.settled(Instant::now() + FIRST_LOAD).await;
        self.catalog.snapshot()
    }

    /// The mounts, once everything that lay in the plugin directory at the start is loaded, however long that takes.
    pub async fn loaded(&self) -> Arc<Snapshot> {
        self.catalog.settled(Instant::now() + LOADED).await;
        self.catalog.snapshot()
    }

    /// The memory of all calls and of all answers on their way.
    pub fn budget(&self) -> &Arc<Budget> {
        self.admission.budget()
    }

    /// Reads `uri`, for someone who cannot be asked.
    ///
    /// # Errors
    /// Names the mount where one was found.
    pub async fn read(&self, caller: &Caller, uri: &str) -> Result<(Reading, Arc<Mount>), Fault> {
        match self.read_asking(caller, uri, Asking::default(), std::future::ready(())).await? {
            Read::Given(reading, mount) => Ok((reading, mount)),
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
        let (mount, reference) = match self.route(uri).await {
            Ok(found) => found,
            Err(error) => {
                let mount = self.catalog.snapshot().quarantined_at(uri).map(|one| one.name.clone());
                record::refused(&self.audit, caller, uri, (mount.clone(), None), &error);
                return Err(Fault { error, mount, uri: Some(text::excerpt(uri, reference::MAX_URI)) });
            }
        };
        let fault = |error| Fault { error, mount: Some(mount.name.clone()), uri: Some(uri.to_owned()) };
        let mut round = self.consents.begin(asking, caller, uri, &mount).await.map_err(|error| {
            record::refused(&self.audit, caller, uri, (Some(mount.name.clone()), Some(mount.digest)), &error);
            fault(error)
        })?;
        let operation = Operation::Read { reference };
        let outcome = self.call_asking(caller, &mount, &operation, None, room, (&mut round, uri)).await;
        if let Some(question) = round.question {
            return Ok(Read::Asks(question));
        }
        let read = outcome.and_then(|answer| match answer {
            Answer::Reading(reading) => check::reading(reading, operation.reference().unwrap_or_default(), &mount),
            _ => Err(ReadError::Internal("an answer to another operation".to_owned())),
        });
        match read {
            Ok(reading) => Ok(Read::Given(reading, mount)),
            Err(error) => Err(fault(error)),
        }
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
            let is_loaded = self.catalog.settled_or(by, is_known).await;
            snapshot = self.catalog.snapshot();
            if let Some(one) = snapshot.quarantined_at(uri) {
                return Err(one.error());
            }
            if !is_loaded {
                let why = "components are still being compiled, and that of this URI may be one of them";
                return Err(ReadError::Unavailable(why.to_owned()));
            }
        }
        let Some((mount, reference)) = snapshot.route(uri) else {
            return Err(match uri.split_once(':') {
                Some((scheme, _)) if !scheme.is_empty() && uri.bytes().all(|b| b.is_ascii_graphic()) => {
                    ReadError::NotFound
                }
                Some(_) => ReadError::BadUri("is not a URI (RFC 3986); percent-encode other characters".to_owned()),
                None => ReadError::BadUri("has no scheme; expected one such as \"belljar://MOUNT/...\"".to_owned()),
            });
        };
        reference::check(reference).map_err(|why| ReadError::BadUri(why.to_owned()))?;
        Ok((Arc::clone(mount), reference.to_owned()))
    }

    /// How `mount` describes itself.
    ///
    /// # Errors
    /// As a read.
    pub async fn describe(&self, caller: &Caller, mount: &Arc<Mount>) -> Result<Description, ReadError> {
        match self.call(caller, mount, &Operation::Describe, None, std::future::ready(())).await? {
            Answer::Description(about) => Ok(check::description(about)),
            _ => Err(ReadError::Internal("an answer to another operation".to_owned())),
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
        match self.call(caller, mount, &Operation::Complete(completing), None, std::future::ready(())).await? {
            Answer::Suggestions(given) => Ok(check::suggestions(given)),
            _ => Err(ReadError::Internal("an answer to another operation".to_owned())),
        }
    }

    /// The revision of `mount`'s list, as its provider tells it.
    ///
    /// # Errors
    /// As a read.
    pub async fn catalog_revision(&self, caller: &Caller, mount: &Arc<Mount>) -> Result<String, ReadError> {
        match self.call(caller, mount, &Operation::CatalogRevision, None, std::future::ready(())).await? {
            Answer::Revision(revision) => check::revision(revision),
            _ => Err(ReadError::Internal("an answer to another operation".to_owned())),
        }
    }

    /// The revisions of `references` in `mount`, in order, as its provider tells them.
    ///
    /// # Errors
    /// As a read.
    pub async fn revisions(
        &self,
        caller: &Caller,
        mount: &Arc<Mount>,
        references: Vec<String>,
    ) -> Result<Vec<Result<String, ReadError>>, ReadError> {
        let asked = references.len();
        match self.call(caller, mount, &Operation::Revisions { references }, None, std::future::ready(())).await? {
            Answer::Revisions(given) => check::revisions(given, asked),
            _ => Err(ReadError::Internal("an answer to another operation".to_owned())),
        }
    }

    /// One page of resources or templates over all mounts, from `start` on. A mount that fails, hangs or lies is left out,
    /// with a notice; the others are served in the listing's time. `only` restricts the walk to one mount.
    pub async fn list<T: Listed>(
        &self,
        caller: &Caller,
        start: Option<Position>,
        only: Option<&MountName>,
    ) -> Listing<T> {
        // Loading is no mount's doing, so it does not count against the time in which mounts answer.
        let snapshot = self.settled().await;
        let began = Instant::now();
        // A mount that hangs is given up before the listing's time is over, so that those behind it are still asked.
        let patience = began + self.list_time * 2 / 3;
        let end = began + self.list_time;
        let from = snapshot.from(start.as_ref().map(|p| &p.mount).or(only));
        let mut rest: VecDeque<Arc<Mount>> =
            from.iter().filter(|mount| only.is_none_or(|only| mount.name == *only)).cloned().collect();
        let pages = start.as_ref().map_or(0, |p| p.pages);
        let mut walk = Walk {
            gateway: self,
            caller,
            snapshot: &snapshot,
            pages,
            listing: Listing::default(),
            keys: HashSet::new(),
            bytes: 0,
        };

        // Once a listing, on its first page.
        if start.is_none() {
            for one in snapshot.quarantined().iter().filter(|one| only.is_none_or(|only| one.name == *only)) {
                walk.tell(&one.name, one.notice());
            }
        }

        // In the middle of one mount, the others are not asked until it is finished.
        if let Some(position) = start.filter(|p| !p.is_start())
            && let Some(mount) = rest.pop_front_if(|mount| mount.name == position.mount)
        {
            let first = self.fetch(caller, &mount, &position, end).await;
            if walk.mount(&mount, position, first, end).await {
                return walk.listing;
            }
        }
        let mut ahead = FuturesOrdered::new();
        loop {
            while ahead.len() < WINDOW
                && Instant::now() < patience
                && let Some(mount) = rest.pop_front()
            {
                ahead.push_back(self.first_page(caller, mount, pages, patience));
            }
            let Some((mount, position, first)) = ahead.next().await else {
                // Those that nobody had time for are the first to be asked on the next page.
                if let Some(next) = rest.front() {
                    walk.pause(Position::start_of(&next.name, pages));
                }
                break;
            };
            let is_over = walk.is_full() || (Instant::now() >= end && !walk.listing.entries.is_empty());
            if is_over {
                walk.pause(position);
                break;
            }
            if walk.mount(&mount, position, first, end).await {
                break;
            }
        }
        walk.listing
    }

    async fn first_page<T: Listed>(
        &self,
        caller: &Caller,
        mount: Arc<Mount>,
        pages: u32,
        by: Instant,
    ) -> (Arc<Mount>, Position, Fetched<T>) {
        let position = Position::start_of(&mount.name, pages);
        let first = self.fetch(caller, &mount, &position, by).await;
        (mount, position, first)
    }

    async fn fetch<T: Listed>(
        &self,
        caller: &Caller,
        mount: &Arc<Mount>,
        position: &Position,
        by: Instant,
    ) -> Fetched<T> {
        let answer = self.call(caller, mount, &T::operation(position), Some(by), std::future::ready(())).await?;
        T::unpack(answer)
    }

    /// Admits, calls, records. `by`: an earlier deadline than the mount's own. `room`: see [`Gateway::read_asking`].
    async fn call(
        &self,
        caller: &Caller,
        mount: &Arc<Mount>,
        operation: &Operation,
        by: Option<Instant>,
        room: impl Future<Output = ()>,
    ) -> Result<Answer, ReadError> {
        self.call_asking(caller, mount, operation, by, room, (&mut Round::default(), "")).await
    }

    /// The same between questions about a URI: with what was allowed, and with what is asked when it has ended.
    async fn call_asking(
        &self,
        caller: &Caller,
        mount: &Arc<Mount>,
        operation: &Operation,
        by: Option<Instant>,
        room: impl Future<Output = ()>,
        (round, uri): (&mut Round, &str),
    ) -> Result<Answer, ReadError> {
        let mut recorder = Recorder::new(&self.audit, caller, mount, operation);
        recorder.consent = round.on_record();
        let outcome = match self.admission.admit(&mount.gate, operation, by).await {
            Ok(permit) => match timeout_at(permit.deadline(), room).await {
                Ok(()) => {
                    let permit = permit.with_consent(self.consents.for_call(mount, round));
                    let outcome = self.sandbox.call(mount.id, permit, operation.clone()).await;
                    let failed = outcome.result.as_ref().err();
                    if !failed.is_some_and(|error| self.was_hurried(error)) {
                        mount.gate.ended(operation, failed);
                    }
                    outcome
                }
                Err(_) => Outcome::failed(ReadError::Busy("earlier answers wait to be taken".to_owned())),
            },
            Err(error) => Outcome::failed(error),
        };
        let Outcome { result, usage, trail } = outcome;
        let result = result.map_err(|error| check::explain(error, &trail, mount));
        if let Err(error) = &result {
            self.consents.ask(round, caller, uri, mount, error, &trail);
            recorder.consent = round.on_record();
        }
        recorder.ended = Some((result.as_ref().map(|_| ()).map_err(Clone::clone), usage, trail));
        result
    }

    /// Whether a call was stopped because a listing over all mounts had little time left for it: that says nothing about
    /// its provider.
    fn was_hurried(&self, error: &ReadError) -> bool {
        let half = u64::try_from(self.list_time.as_millis() / 2).unwrap_or(u64::MAX);
        error.limit().is_some_and(|limit| limit.bound == Bound::ListTime && limit.cap < half)
    }
}

/// A page of a walk that is being filled.
struct Walk<'a, T> {
    gateway: &'a Gateway,
    caller: &'a Caller,
    snapshot: &'a Snapshot,
    pages: u32,
    listing: Listing<T>,
    keys: HashSet<String>,
    bytes: usize,
}

impl<T: Listed> Walk<'_, T> {
    fn is_full(&self) -> bool {
        is_full(self.listing.entries.len(), self.bytes, self.pages)
    }

    /// Takes over a mount's entries, page by page, from the page `first` at `position` on. Says whether the walk's page
    /// ends here.
    async fn mount(&mut self, mount: &Arc<Mount>, mut position: Position, first: Fetched<T>, end: Instant) -> bool {
        let mut page = first;
        let mut went_on = false;
        loop {
            let (entries, next) = match page {
                Ok(page) => page,
                // The rest of the listing's time was too short for one more page; the next one starts with it, and has
                // all of the time.
                Err(ReadError::Exhausted(Limit { bound: Bound::ListTime, .. }) | ReadError::Busy(_)) if went_on => {
                    return self.pause_for_time(mount, position);
                }
                Err(error) if self.gateway.was_hurried(&error) => return self.pause(position),
                Err(error) => {
                    let cure = error.hint(Some(&mount.name)).map(|hint| format!("; {hint}")).unwrap_or_default();
                    self.notice(mount, format!("left out: {error}{cure}"));
                    return false;
                }
            };
            let (mut bad, mut reason) = (0u32, None);
            for entry in entries.into_iter().skip(position.skip as usize) {
                if self.is_full() {
                    return self.pause(position);
                }
                position.skip = position.skip.saturating_add(1);
                if position.served >= mount.gate.limits().resources && Guard::Entries.is_on() {
                    self.notice(mount, format!("cut: it lists more than {} resources; to serve more, set resources under [mounts.{}.limits]", mount.gate.limits().resources, mount.name));
                    return false;
                }
                match entry.check(mount, self.snapshot) {
                    Ok(entry) if self.keys.contains(entry.key()) && Guard::Duplicates.is_on() => {
                        bad += 1;
                        reason
                            .get_or_insert_with(|| format!("\"{}\" is listed twice", text::excerpt(entry.key(), 100)));
                    }
                    Ok(entry) => {
                        position.served += 1;
                        self.bytes += entry.weight();
                        self.keys.insert(entry.key().to_owned());
                        self.listing.entries.push((entry, mount.name.clone()));
                    }
                    Err(why) => {
                        bad += 1;
                        reason.get_or_insert(why);
                    }
                }
            }
            if let Some(reason) = reason {
                self.notice(mount, format!("{bad} of its entries left out, the first because {reason}"));
            }
            let Some(next) = next else { return false };
            if let Err(error) = position.advance(next) {
                self.notice(mount, format!("cut: {error}"));
                return false;
            }
            if self.is_full() {
                return self.pause(position);
            }
            if Instant::now() >= end {
                return self.pause_for_time(mount, position);
            }
            went_on = true;
            page = self.gateway.fetch(self.caller, mount, &position, end).await;
        }
    }

    /// Ends the page because its time is over, and not for the first time in this mount's listing: then the mount is cut,
    /// so that a listing that drips for ever does not keep those behind it from ever being seen.
    fn pause_for_time(&mut self, mount: &Mount, mut position: Position) -> bool {
        position.slow += 1;
        if position.slow <= SLOW_PAGES {
            return self.pause(position);
        }
        self.notice(
            mount,
            format!(
                "cut: its listing took all of the time of {SLOW_PAGES} pages; to serve more, set a longer list-time"
            ),
        );
        false
    }

    fn pause(&mut self, position: Position) -> bool {
        self.listing.next = Some(Position { pages: self.pages.saturating_add(1), ..position });
        true
    }

    fn notice(&mut self, mount: &Mount, reason: String) {
        self.tell(&mount.name, reason);
    }

    fn tell(&mut self, mount: &MountName, reason: String) {
        tracing::warn!(mount = %mount, "in the listing: {reason}");
        if self.listing.notices.len() < NOTICES {
            self.listing.notices.push((mount.clone(), reason));
        }
    }
}
