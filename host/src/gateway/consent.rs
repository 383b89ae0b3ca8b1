//! Just-in-time consent: the questions that a person may be asked, how often, and the answers that are valid.
//!
//! A call that fails for lack of a grant leaves in its decision log the grants that a person could allow. If the operator lets the
//! mount ask, this becomes a [`ConsentQuestion`] to the client. It travels with a state: the question itself, sealed, and
//! bound to the mount, its bytes, the request and the caller. The answer comes back with the state, in a new call. Nothing
//! else of the first call is kept.
//!
//! A state is valid once, for five minutes, in the process that issued it (with a store: in each replica), and only while
//! the mount's configuration does not change.
//!
//! Everything here belongs to one principal: a state, a remembered answer, and how often a question is asked. No answer of
//! one principal serves another.
//!
//! Consent that was given permanently is written to the configuration. Until the configuration is read again, it is
//! remembered here. From then on, only the configuration counts. The configuration grants for everybody, so only the
//! people at this machine can give consent permanently: the holder of a key or a token is not offered it.
//!
//! Knows no MCP: `mcp::consent` converts questions to wire types.

mod asked_request;
mod question;
mod question_state;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::request_states::{ANSWER_TIME, RequestStates, StateNumber};
use crate::catalog::Mount;
use crate::config::Ask;
use crate::grants::GrantKind;
use crate::model::bounds::{CONSENT_INTERVAL, CONSENTS_PER_MOUNT, CONSENTS_TOTAL};
use crate::model::seal::Seal;
use crate::model::{AskContext, Consent, DecisionLog, Digest, Guard, MountName, ReadError, text};
use crate::policy::{Caller, Principal, PrincipalKind};
use crate::telemetry::ConsentRecord;
use asked_request::MAX_SHOWN_CHARS;

pub use asked_request::AskedRequest;
pub use question::{ConsentAnswer, ConsentInput, ConsentQuestion};
pub use question_state::{QuestionState, QuestionStateError};

/// The most questions in one request.
pub const MAX_QUESTIONS: usize = 4;

/// Questions of all principals that are remembered. Bounds memory only.
const MAX_ASKED: usize = 16 << 10;

/// The reason why consent is not persisted, for the operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PersistError(pub String);

/// Writes permanent consent to the configuration.
pub trait ConsentWriter: Send + Sync {
    /// Grants `consent` permanently to `mount`, whose component has `digest`. May block on disk I/O.
    ///
    /// # Errors
    /// The reason why the consent is not persisted, for the operator.
    fn persist(&self, mount: &MountName, digest: &Digest, consent: &Consent) -> Result<(), PersistError>;
}

/// The consent of one call: the grants that were allowed before it, and the question that follows it.
#[derive(Debug, Default)]
pub(super) struct ConsentState {
    given: Vec<Consent>,
    may_ask: bool,
    /// True if the mount may ask, and the client cannot ask a person.
    cannot_ask: bool,
    /// True if the call failed for lack of a grant that a person could have allowed.
    pub(super) needs_answer: bool,
    answered: Option<(Consent, ConsentAnswer)>,
    /// What a provider's earlier question gave: the call with the answer to this one must know it too.
    pub(super) carried: Option<AskContext>,
    /// The question that the call ended with.
    pub(super) question: Option<ConsentQuestion>,
}

/// The questions that this process asked, and the consent that was given.
pub struct ConsentManager {
    states: RequestStates,
    seal: Seal,
    memory: Mutex<ConsentMemory>,
    writer: Option<Arc<dyn ConsentWriter>>,
}

#[derive(Default)]
struct ConsentMemory {
    /// The time at which each question was asked, by the identity of the principal.
    asked: HashMap<(String, MountName, Consent), Instant>,
    /// The time at which each question was answered: no answer is valid twice.
    used: HashMap<StateNumber, Instant>,
    /// Permanent consent that the loaded configuration does not contain yet.
    permanent: HashMap<ConsentKey, PersistentConsents>,
}

/// The object of consent: a mount, its digest, and the number of its loaded component; and the identity of the principal
/// who gave it.
type ConsentKey = (MountName, Digest, u64, String);

/// Permanent consent.
struct PersistentConsents {
    /// How often the configuration had been read when the consent was given.
    config_version: u64,
    consents: Vec<Consent>,
}

/// A number that makes consent invalid after a revocation. Constant if the guard is off.
fn version(number: u64) -> u64 {
    if Guard::Revoke.is_on() { number } else { 0 }
}

fn consent_key(mount: &Mount, principal: &Principal) -> ConsentKey {
    (mount.name.clone(), mount.digest, version(mount.loaded.id().number()), principal.identity())
}

/// True if the principal is one of the people at this machine.
fn is_local(principal: &Principal) -> bool {
    matches!(principal.kind(), PrincipalKind::Local | PrincipalKind::Anonymous)
}

impl PersistentConsents {
    fn is_in_force(&self, config_version: u64) -> bool {
        version(self.config_version) == version(config_version)
    }
}

fn drop_expired(times: &mut HashMap<impl std::hash::Hash + Eq, Instant>, now: Instant, after: Duration) {
    times.retain(|_, at| now.saturating_duration_since(*at) < after);
}

fn caller_id(caller: &Caller) -> (String, Option<String>) {
    (caller.transport.to_owned(), caller.client.as_deref().map(str::to_owned))
}

/// True if a provider that lacks this grant gets no refusal, so that its decision log stays empty.
pub(super) fn is_missed_silently(consent: &Consent) -> bool {
    GrantKind::find(&consent.grant).is_some_and(|kind| kind.is_missed_silently)
}

/// True if `error` may be the result of lacking `consent`.
///
/// A provider that was refused a grant reports this in its own way. For a grant that is missed silently, only "denied"
/// and "not found" count.
fn may_explain(consent: &Consent, error: &ReadError) -> bool {
    match error {
        ReadError::Denied { .. } | ReadError::NotFound => true,
        ReadError::Unavailable(_) | ReadError::ProviderUnavailable(_) | ReadError::ProviderFailed(_) => {
            !is_missed_silently(consent)
        }
        _ => false,
    }
}

/// The result of a check of an answer. Always `Ok` if the guard is off.
fn unless_guard_off(decided: Result<(), QuestionStateError>) -> Result<(), QuestionStateError> {
    if Guard::Consent.is_on() { decided } else { Ok(()) }
}

impl ConsentManager {
    /// `writer` persists permanent consent. Without one, questions do not offer "always".
    pub fn new(states: RequestStates, writer: Option<Arc<dyn ConsentWriter>>) -> Self {
        let seal = states.seal("belljar 2026-11 questions v3");
        Self { states, seal, memory: Mutex::default(), writer }
    }

    /// The states of all questions.
    pub(super) fn states(&self) -> RequestStates {
        self.states.clone()
    }

    /// The state of a question.
    pub fn seal(&self, question_state: &QuestionState) -> String {
        question_state.sealed(&self.seal)
    }

    /// Opens a state that belljar sealed. Does not check whether it is still valid.
    ///
    /// # Errors
    /// When the state is too long, or belljar did not seal it.
    pub fn open(&self, state: &str) -> Result<QuestionState, QuestionStateError> {
        QuestionState::open(state, &self.seal)
    }

    fn memory(&self) -> MutexGuard<'_, ConsentMemory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the answer to `question_state` is valid for this read at this time.
    fn check(
        &self,
        question_state: &QuestionState,
        caller: &Caller,
        request: &AskedRequest<'_>,
        mount: &Mount,
        now: Instant,
    ) -> Result<(), QuestionStateError> {
        if self.states.is_expired(question_state.at, now) {
            return Err(QuestionStateError::Expired);
        }
        unless_guard_off(self.check_read(question_state, caller, request, mount))
    }

    /// Checks that the question was asked for exactly this read.
    fn check_read(
        &self,
        question_state: &QuestionState,
        caller: &Caller,
        request: &AskedRequest<'_>,
        mount: &Mount,
    ) -> Result<(), QuestionStateError> {
        if question_state.request != *request {
            return Err(QuestionStateError::OtherRequest);
        }
        if question_state.caller != caller_id(caller) || question_state.principal != caller.principal.identity() {
            return Err(QuestionStateError::OtherClient);
        }
        if question_state.mount != mount.name {
            return Err(QuestionStateError::OtherMount);
        }
        if question_state.digest != mount.digest {
            return Err(QuestionStateError::OtherBytes);
        }
        if question_state.version != self.states.mount_version(mount) {
            return Err(QuestionStateError::OtherConfiguration);
        }
        if mount.ask == Ask::Never {
            return Err(QuestionStateError::AskingDisabled);
        }
        Ok(())
    }

    /// Accepts an answer, or begins without one.
    ///
    /// # Errors
    /// [`ReadError::BadRequestState`] when the answer is not valid.
    pub(super) async fn begin(
        &self,
        input: ConsentInput<'_>,
        caller: &Caller,
        request: &AskedRequest<'_>,
        mount: &Mount,
        config_version: u64,
    ) -> Result<ConsentState, ReadError> {
        let may_ask = input.can_answer && mount.ask != Ask::Never;
        let cannot_ask = !input.can_answer && mount.ask != Ask::Never;
        let initial = ConsentState { may_ask, cannot_ask, ..ConsentState::default() };
        let (state, choice) = match input.answered {
            None => return Ok(initial),
            // Do not repeat a question if the client cannot ask a person.
            Some((_, None)) if cannot_ask => return Ok(initial),
            Some((state, None)) => {
                let question = self.unanswered(state, caller, request, mount, Instant::now())?;
                return Ok(ConsentState { question: Some(question), ..initial });
            }
            Some((state, Some(choice))) => (state, choice),
        };
        // In a box of its own: nearly no request has an answer.
        let redeemed = Box::pin(self.redeem(state, choice, caller, request, mount, Instant::now()));
        let question_state = redeemed.await?;
        let QuestionState { wanted, mut given, carried, .. } = question_state;
        if choice == ConsentAnswer::Always {
            self.persist(&caller.principal, mount, &wanted, config_version).await;
        }
        let is_allowed = matches!(choice, ConsentAnswer::Once | ConsentAnswer::Always);
        if is_allowed {
            given.push(wanted.clone());
        }
        let shown = text::quoted(&wanted.target, MAX_SHOWN_CHARS);
        tracing::info!(mount = %mount.name, "{} {shown}: answered \"{}\"", wanted.grant, choice.as_str());
        // A person who refused one grant is not asked for the next one in the same request.
        Ok(ConsentState { given, may_ask: may_ask && is_allowed, answered: Some((wanted, choice)), carried, ..initial })
    }

    /// The unanswered question that a state belongs to.
    fn unanswered(
        &self,
        state: &str,
        caller: &Caller,
        request: &AskedRequest<'_>,
        mount: &Mount,
        now: Instant,
    ) -> Result<ConsentQuestion, QuestionStateError> {
        let question_state = self.open(state)?;
        self.check(&question_state, caller, request, mount, now)?;
        if self.memory().used.contains_key(&question_state.number) {
            return Err(QuestionStateError::Used);
        }
        Ok(self.question(question_state, &caller.principal, mount, state.to_owned()))
    }

    fn question(
        &self,
        question_state: QuestionState,
        principal: &Principal,
        mount: &Mount,
        state: String,
    ) -> ConsentQuestion {
        let QuestionState { mount: name, digest, request, wanted, .. } = question_state;
        let can_be_permanent = self.can_be_permanent(mount, principal);
        ConsentQuestion { mount: name, digest, request, wanted, can_be_permanent, state }
    }

    /// Opens and checks a state, and marks it as used.
    async fn redeem(
        &self,
        state: &str,
        choice: ConsentAnswer,
        caller: &Caller,
        request: &AskedRequest<'_>,
        mount: &Mount,
        now: Instant,
    ) -> Result<QuestionState, ReadError> {
        let question_state = self.open(state)?;
        self.check(&question_state, caller, request, mount, now)?;
        if choice == ConsentAnswer::Always && !self.can_be_permanent(mount, &caller.principal) {
            return Err(QuestionStateError::NotOffered.into());
        }
        let number = question_state.number;
        let is_used = {
            let mut memory = self.memory();
            drop_expired(&mut memory.used, now, ANSWER_TIME);
            memory.used.insert(number, now).is_some()
        };
        let spent = |is_used| unless_guard_off(if is_used { Err(QuestionStateError::Used) } else { Ok(()) });
        spent(is_used)?;
        let is_used = self.states.is_spent(number).await.inspect_err(|_| {
            // The client may send the same answer again.
            self.memory().used.remove(&number);
        })?;
        spent(is_used)?;
        Ok(question_state)
    }

    fn can_be_permanent(&self, mount: &Mount, principal: &Principal) -> bool {
        mount.ask == Ask::Persist && self.writer.is_some() && is_local(principal)
    }

    /// Writes consent to the configuration, and gives it to every call of the principal until the configuration is read
    /// again. `config_version`: how often the configuration was read before the write.
    async fn persist(&self, principal: &Principal, mount: &Mount, consent: &Consent, config_version: u64) {
        let Some(writer) = self.writer.clone() else { return };
        let (name, digest, granted) = (mount.name.clone(), mount.digest, consent.clone());
        let result = tokio::task::spawn_blocking(move || writer.persist(&name, &digest, &granted)).await;
        match result.unwrap_or_else(|error| Err(PersistError(error.to_string()))) {
            Ok(()) => {
                let mut memory = self.memory();
                memory.permanent.retain(|_, permanent| permanent.is_in_force(config_version));
                let permanent = memory
                    .permanent
                    .entry(consent_key(mount, principal))
                    .or_insert(PersistentConsents { config_version, consents: Vec::new() });
                if !permanent.consents.contains(consent) {
                    permanent.consents.push(consent.clone());
                }
            }
            Err(why) => {
                tracing::error!(mount = %mount.name, "\"always\" is taken as \"once\": the configuration cannot be changed: {why}");
            }
        }
    }

    /// All grants that a person allowed for this call. `config_version`: how often the configuration was read.
    pub(super) fn for_call(
        &self,
        principal: &Principal,
        mount: &Mount,
        consent: &ConsentState,
        config_version: u64,
    ) -> Vec<Consent> {
        let mut all = consent.given.clone();
        if mount.ask == Ask::Persist
            && let Some(permanent) = self.memory().permanent.get(&consent_key(mount, principal))
            && permanent.is_in_force(config_version)
        {
            all.extend(permanent.consents.iter().filter(|one| !consent.given.contains(one)).cloned());
        }
        all
    }

    /// Creates the question that the failed call leads to, if there is one to ask.
    pub(super) fn set_question(
        &self,
        consent: &mut ConsentState,
        caller: &Caller,
        request: &AskedRequest<'_>,
        mount: &Mount,
        error: &ReadError,
        decisions: &DecisionLog,
    ) {
        self.set_question_at(Instant::now(), consent, caller, request, mount, error, decisions);
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a question, and the time")]
    fn set_question_at(
        &self,
        now: Instant,
        consent: &mut ConsentState,
        caller: &Caller,
        request: &AskedRequest<'_>,
        mount: &Mount,
        error: &ReadError,
        decisions: &DecisionLog,
    ) {
        let given = &consent.given;
        let missing = || decisions.requested().iter().filter(|ask| !given.contains(ask) && may_explain(ask, error));
        if missing().next().is_none() {
            return;
        }
        consent.needs_answer = consent.cannot_ask;
        if !consent.may_ask || given.len() >= MAX_QUESTIONS {
            return;
        }
        let mut memory = self.memory();
        drop_expired(&mut memory.asked, now, CONSENT_INTERVAL.get());
        let who = caller.principal.identity();
        let own = memory.asked.keys().filter(|(identity, ..)| *identity == who);
        let (of_mount, own) =
            own.fold((0, 0), |(of_mount, own), (_, name, _)| (of_mount + usize::from(*name == mount.name), own + 1));
        // One principal cannot use up the questions of another.
        if of_mount >= CONSENTS_PER_MOUNT.get() || own >= CONSENTS_TOTAL.get() || memory.asked.len() >= MAX_ASKED {
            return;
        }
        let is_new = |ask: &&Consent| !memory.asked.contains_key(&(who.clone(), mount.name.clone(), (*ask).clone()));
        let Some(wanted) = missing().find(is_new).cloned() else { return };
        memory.asked.insert((who.clone(), mount.name.clone(), wanted.clone()), now);
        let question_state = QuestionState {
            number: self.states.number(),
            at: self.states.time(now),
            mount: mount.name.clone(),
            digest: mount.digest,
            version: self.states.mount_version(mount),
            request: request.clone().into_owned(),
            caller: caller_id(caller),
            principal: who,
            wanted,
            given: given.clone(),
            carried: consent.carried.clone(),
        };
        drop(memory);
        let state = self.seal(&question_state);
        consent.question = Some(self.question(question_state, &caller.principal, mount, state));
    }
}

impl ConsentState {
    /// The same after a provider's question: with the grants that were allowed before it.
    pub(super) fn with_given(self, given: Vec<Consent>) -> Self {
        Self { given, ..self }
    }

    /// The grants that were allowed for this request so far.
    pub(super) fn given(&self) -> &[Consent] {
        &self.given
    }

    /// The question and the answer, for the record of the call.
    pub(super) fn consented(&self) -> ConsentRecord {
        ConsentRecord {
            asked: self.question.as_ref().map(|question| question.wanted.clone()),
            answered: self.answered.as_ref().map(|(wanted, choice)| (wanted.clone(), choice.as_str())),
        }
    }
}

#[cfg(test)]
mod tests;
