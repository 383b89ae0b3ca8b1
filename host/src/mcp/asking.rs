//! Questions on the wire: those of providers, and how a client of each era is asked.
//!
//! From 2026-07-28 on, a question is an `input_required` result, and its answer comes with a retry of the request. A
//! client of a session is asked with `elicitation/create` while its request is open. No call runs meanwhile: the request is
//! then made again with the answer, as a client of the newer era makes it.

use std::time::Duration;

use rmcp::model::{
    CallToolResponse, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
    ErrorData, GetPromptResponse, InputRequest, InputRequiredResult, InputResponses,
};

use super::consent::{self, CONSENT_KEY, can_answer};
use super::context::RequestContext;
use super::era::Era;
use super::{fault, identity};
use crate::gateway::asking::{AskInput, ProviderQuestions};
use crate::model::error::PROVIDER_SAYS;
use crate::model::{Answer, AnswerAction};

/// How often a client of a session is asked for one request.
const MAX_ROUNDS: usize = 3;

/// Time in which a person must answer a question of a session. Some clients declare that they can ask, and do not.
const ANSWER_TIME: Duration = Duration::from_secs(120);

/// The answers in a request for a tool or a prompt.
///
/// # Errors
/// If one of them is malformed.
pub(super) fn ask_input<'r>(
    context: &RequestContext<'_>,
    state: Option<&'r str>,
    responses: Option<&InputResponses>,
) -> Result<AskInput<'r>, ErrorData> {
    let consent = match responses.and_then(|all| all.get(CONSENT_KEY)) {
        Some(answer) => Some(consent::answer(answer)?),
        None => None,
    };
    let own = responses.into_iter().flatten().filter(|(key, _)| *key != CONSENT_KEY);
    let answers = own.map(|(key, value)| {
        // Unknown questions are ignored, so the name is not checked here.
        let answer: ElicitResult = serde_json::from_value(value.clone()).map_err(|_| fault::bad_answer(MALFORMED))?;
        let action = match answer.action {
            ElicitationAction::Accept => AnswerAction::Accept,
            ElicitationAction::Decline => AnswerAction::Decline,
            _ => AnswerAction::Cancel,
        };
        let content = match (action, answer.content) {
            (AnswerAction::Accept, Some(content)) if content.is_object() => Some(content.to_string()),
            (AnswerAction::Accept, Some(_)) => return Err(fault::bad_answer(MALFORMED)),
            _ => None,
        };
        Ok(Answer { key: key.clone(), action, content })
    });
    let answers = answers.collect::<Result<Vec<_>, ErrorData>>()?;
    Ok(AskInput { can_answer: can_answer(context), state, consent, answers, progress: None })
}

/// The end of the error for a malformed answer.
const MALFORMED: &str = "is malformed; expected inputResponses with { \"NAME\": { \"action\": \"accept\", \"content\": { ... } } }, or the action \"decline\" or \"cancel\"";

/// The `input_required` result that asks the questions of a provider.
///
/// # Errors
/// If a form is not one of the protocol's. The check of the provider's reply prevents that.
pub(super) fn questions(asked: ProviderQuestions) -> Result<InputRequiredResult, ErrorData> {
    let ProviderQuestions { mount, questions, state } = asked;
    let requests = questions.into_iter().map(|question| {
        let requested_schema: ElicitationSchema = serde_json::from_str(&question.form)
            .map_err(|error| fault::internal(format!("a form of mount \"{mount}\": {error}")))?;
        let message = format!("{mount}: {PROVIDER_SAYS}{}", question.message);
        let params = ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema };
        Ok((question.key, InputRequest::Elicitation(ElicitRequest::new(params))))
    });
    let requests = requests.collect::<Result<_, ErrorData>>()?;
    let mut result = InputRequiredResult::new(Some(requests), Some(state));
    identity::add_server_info(&mut result.meta, Era::Stateless);
    Ok(result)
}

/// A response that may ask for input.
pub(super) trait MayAsk: Sized {
    /// The questions. `Err`: the response is complete.
    fn input_required(self) -> Result<InputRequiredResult, Self>;
}

macro_rules! may_ask {
    ($($response:ident),+) => {$(
        impl MayAsk for $response {
            fn input_required(self) -> Result<InputRequiredResult, Self> {
                match self {
                    Self::InputRequired(asked) => Ok(asked),
                    complete => Err(complete),
                }
            }
        }
    )+};
}

may_ask!(CallToolResponse, GetPromptResponse);

/// The state and the answers of a request, from one question to the next. Asks the client of a session itself.
pub(super) struct AskRounds {
    state: Option<String>,
    answers: Option<InputResponses>,
    asked: usize,
}

impl AskRounds {
    /// The first round: with the state and the answers that the client sent.
    pub(super) fn new(context: &RequestContext<'_>, state: Option<String>, answers: Option<InputResponses>) -> Self {
        // Sessions have no states: what such a client sends in this place belongs to no question.
        match context.era.is_stateless() {
            true => Self { state, answers, asked: 0 },
            false => Self { state: None, answers: None, asked: 0 },
        }
    }

    /// The state and the answers for the next call.
    pub(super) fn input(&self) -> (Option<&str>, Option<&InputResponses>) {
        (self.state.as_deref(), self.answers.as_ref())
    }

    /// The response for the client. `None`: the client of a session was asked, and the call must be made again.
    ///
    /// # Errors
    /// If the client does not answer, or is asked too often.
    pub(super) async fn finish<R: MayAsk>(
        &mut self,
        context: &RequestContext<'_>,
        response: R,
    ) -> Result<Option<R>, ErrorData> {
        if context.era.is_stateless() {
            return Ok(Some(response));
        }
        let asked = match response.input_required() {
            Ok(asked) => asked,
            Err(complete) => return Ok(Some(complete)),
        };
        self.ask(context, asked).await.map(|()| None)
    }

    /// Asks the client of a session. The call must be made again.
    ///
    /// # Errors
    /// As [`AskRounds::finish`].
    pub(super) async fn ask(
        &mut self,
        context: &RequestContext<'_>,
        asked: InputRequiredResult,
    ) -> Result<(), ErrorData> {
        if self.asked >= MAX_ROUNDS {
            return Err(fault::asked_too_often(MAX_ROUNDS));
        }
        self.asked += 1;
        self.answers = Some(ask(context, asked.input_requests.unwrap_or_default()).await?);
        self.state = asked.request_state;
        Ok(())
    }
}

/// Asks the client of a session, one question after the other.
async fn ask(context: &RequestContext<'_>, requests: rmcp::model::InputRequests) -> Result<InputResponses, ErrorData> {
    let mut answers = InputResponses::new();
    for (key, request) in requests {
        let InputRequest::Elicitation(request) = request else { continue };
        let answer = context.peer.create_elicitation_with_timeout(request.params, Some(ANSWER_TIME)).await;
        let answer = answer.map_err(|error| fault::unanswered(&error.to_string()))?;
        let answer = serde_json::to_value(answer).map_err(|error| fault::internal(error.to_string()))?;
        answers.insert(key, answer);
    }
    Ok(answers)
}
