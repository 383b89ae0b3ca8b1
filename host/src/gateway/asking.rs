//! Questions of providers: the state that travels with them, and the answers that are valid.
//!
//! A call that asks has ended. The answers come in a new call with the same parameters. The state between the two is
//! sealed: the provider's own state, the questions, and the grants that a person allowed for this request. It is valid once,
//! for five minutes, for the principal, the request and the loaded component.
//!
//! Answers may also come without a state, even with the first request: then they are like arguments.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::consent::{AskedRequest, ConsentAnswer, ConsentInput, QuestionStateError};
use super::request_states::{ANSWER_TIME, RequestStates, StateNumber};
use crate::catalog::Mount;
use crate::grants::KINDS;
use crate::interfaces::asking::{are_questions_checked, check_answer};
use crate::limits::progress::ProgressSender;
use crate::model::seal::Seal;
use crate::model::{Answer, AskContext, AskedQuestions, Consent, MountName, Question, ReadError};
use crate::policy::Principal;

/// The longest state: eight forms and a URI, escaped, in base64.
const MAX_STATE: usize = 256 << 10;

/// The most bytes of all answers.
const MAX_ANSWERS: usize = 32 << 10;

/// States that are remembered as used.
const MAX_USED: usize = 64 << 10;

/// The part of a request that answers questions: belljar's own, and those of the provider.
#[derive(Debug, Default)]
pub struct AskInput<'a> {
    /// True if the client can ask a person.
    pub can_answer: bool,
    /// The state that came back, of either kind of question.
    pub state: Option<&'a str>,
    /// The answer to belljar's own question.
    pub consent: Option<ConsentAnswer>,
    /// The answers to the provider's questions.
    pub answers: Vec<Answer>,
    /// Where the call reports its progress.
    pub progress: Option<ProgressSender>,
}

/// Questions of a provider, on their way to a person.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderQuestions {
    /// The mount whose provider asks.
    pub mount: MountName,
    /// The questions.
    pub questions: Vec<Question>,
    /// The state that must come back with the answers.
    pub state: String,
}

/// What a request knows once its state was opened.
pub(super) struct OpenedInput<'a> {
    /// The state and the answer of belljar's own question, if the state is of that kind.
    pub(super) consent_input: ConsentInput<'a>,
    /// What the call knows.
    pub(super) context: AskContext,
    /// The grants that were allowed before the provider asked.
    pub(super) given: Vec<Consent>,
    /// Questions without an answer: they are asked again, without a call.
    pub(super) unanswered: Option<ProviderQuestions>,
}

/// The contents of a state.
#[derive(Serialize, Deserialize)]
struct AskState {
    number: StateNumber,
    at: u64,
    mount: String,
    digest: [u8; 32],
    version: [u8; 32],
    request: AskedRequest<'static>,
    principal: String,
    questions: Vec<Question>,
    state: Option<String>,
    given: Vec<(String, String)>,
}

/// The states of providers' questions. One for each process.
pub struct ProviderAsks {
    states: RequestStates,
    seal: Seal,
    used: Mutex<HashMap<StateNumber, Instant>>,
}

impl ProviderAsks {
    /// Without any question.
    pub(super) fn new(states: RequestStates) -> Self {
        let seal = states.seal("belljar 2026-11 questions of providers");
        Self { states, seal, used: Mutex::default() }
    }

    /// Seals the questions of a call.
    pub(super) fn ask(
        &self,
        ask: AskedQuestions,
        request: &AskedRequest<'_>,
        principal: &Principal,
        mount: &Mount,
        given: &[Consent],
    ) -> ProviderQuestions {
        let state = AskState {
            number: self.states.number(),
            at: self.states.time(Instant::now()),
            mount: mount.name.to_string(),
            digest: mount.digest.0,
            version: self.states.mount_version(mount),
            request: request.clone().into_owned(),
            principal: principal.identity(),
            questions: ask.questions.clone(),
            state: ask.state,
            given: given.iter().map(|one| (one.grant.clone().into_owned(), one.target.clone())).collect(),
        };
        // Strings and numbers always serialise.
        let state = self.seal.seal(0, "", serde_json::to_vec(&state).unwrap_or_default());
        ProviderQuestions { mount: mount.name.clone(), questions: ask.questions, state }
    }

    /// Opens the state of a request, and checks its answers.
    ///
    /// # Errors
    /// [`ReadError::BadRequestState`] when the state is not valid for this request, or [`ReadError::BadAnswer`] when an
    /// answer does not fit.
    pub(super) async fn open<'a>(
        &self,
        input: AskInput<'a>,
        request: &AskedRequest<'_>,
        principal: &Principal,
        mount: &Mount,
    ) -> Result<OpenedInput<'a>, ReadError> {
        let AskInput { can_answer, state, consent, answers, progress: _ } = input;
        let bytes: usize = answers.iter().map(|one| one.key.len() + one.content.as_ref().map_or(0, String::len)).sum();
        if bytes > MAX_ANSWERS {
            return Err(ReadError::BadAnswer(format!("has {bytes} bytes; the limit is {MAX_ANSWERS}")));
        }
        let context = AskContext { can_ask: can_answer, answers, state: None };
        let plain = |answered| OpenedInput {
            consent_input: ConsentInput { can_answer, answered },
            context: context.clone(),
            given: Vec::new(),
            unanswered: None,
        };
        let Some(sealed) = state else {
            return match consent {
                // belljar's own question is worth nothing without its state.
                Some(_) => Err(QuestionStateError::Missing.into()),
                None => Ok(plain(None)),
            };
        };
        if sealed.len() > MAX_STATE {
            return Err(QuestionStateError::TooLong.into());
        }
        let Ok(body) = self.seal.open(0, "", sealed) else {
            // A state of belljar's own question, or of nobody: `ConsentManager` decides.
            return Ok(plain(Some((sealed, consent))));
        };
        let opened: AskState = serde_json::from_slice(&body).map_err(|_| QuestionStateError::Foreign)?;
        self.check(&opened, request, principal, mount)?;
        let AskState { number, questions, state, given, .. } = opened;
        let find = |question: &Question| context.answers.iter().find(|answer| answer.key == question.key);
        if questions.iter().any(|question| find(question).is_none()) {
            let unanswered = ProviderQuestions { mount: mount.name.clone(), questions, state: sealed.to_owned() };
            return Ok(OpenedInput { unanswered: Some(unanswered), ..plain(None) });
        }
        for (question, answer) in questions.iter().filter_map(|question| Some((question, find(question)?))) {
            check_answer(answer, question).map_err(|error| ReadError::BadAnswer(error.to_string()))?;
        }
        Box::pin(self.redeem(number)).await?;
        let answers = questions.iter().filter_map(find).cloned().collect();
        let known = |name: &str| KINDS.iter().find(|kind| kind.name == name).map(|kind| kind.name);
        let given =
            given.into_iter().filter_map(|(grant, target)| Some(Consent { grant: known(&grant)?.into(), target }));
        Ok(OpenedInput {
            consent_input: ConsentInput { can_answer, answered: None },
            context: AskContext { can_ask: can_answer, answers, state },
            given: given.collect(),
            unanswered: None,
        })
    }

    fn check(
        &self,
        opened: &AskState,
        request: &AskedRequest<'_>,
        principal: &Principal,
        mount: &Mount,
    ) -> Result<(), QuestionStateError> {
        if self.states.is_expired(opened.at, Instant::now()) {
            return Err(QuestionStateError::Expired);
        }
        let is_bound = are_questions_checked();
        match () {
            () if !is_bound => Ok(()),
            () if opened.request != *request => Err(QuestionStateError::OtherRequest),
            () if opened.principal != principal.identity() => Err(QuestionStateError::OtherClient),
            () if opened.mount != mount.name.as_str() => Err(QuestionStateError::OtherMount),
            () if opened.digest != mount.digest.0 => Err(QuestionStateError::OtherBytes),
            () if opened.version != self.states.mount_version(mount) => Err(QuestionStateError::OtherConfiguration),
            () => Ok(()),
        }
    }

    /// Marks a state as used.
    async fn redeem(&self, number: StateNumber) -> Result<(), ReadError> {
        let is_used = {
            let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
            if used.len() >= MAX_USED {
                used.retain(|_, at| at.elapsed() < ANSWER_TIME);
            }
            used.insert(number, Instant::now()).is_some()
        };
        match is_used && are_questions_checked() {
            true => Err(QuestionStateError::Used.into()),
            false => self.redeem_among_replicas(number).await,
        }
    }

    async fn redeem_among_replicas(&self, number: StateNumber) -> Result<(), ReadError> {
        match self.states.is_spent(number).await {
            Ok(false) => Ok(()),
            Ok(true) => Err(QuestionStateError::Used.into()),
            Err(unknown) => {
                // The client may send the same answer again.
                self.used.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
                Err(unknown)
            }
        }
    }
}
