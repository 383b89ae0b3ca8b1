//! Questions of a provider to the person in front of the client, and their answers.

use serde::{Deserialize, Serialize};

/// A question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Its name, unique in its [`AskedQuestions`].
    pub key: String,
    /// The text for the person, in the provider's words.
    pub message: String,
    /// The JSON Schema of the form, as JSON text.
    pub form: String,
}

/// Questions that a call gives instead of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedQuestions {
    /// The questions, at least one.
    pub questions: Vec<Question>,
    /// What the call with the answers must know.
    pub state: Option<String>,
}

/// What the person did with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnswerAction {
    /// Filled the form in.
    Accept,
    /// Said no.
    Decline,
    /// Closed the question.
    Cancel,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The name of the question.
    pub key: String,
    /// What the person did.
    pub action: AnswerAction,
    /// The filled form: the JSON text of an object.
    pub content: Option<String>,
}

/// What a call of a tool or a prompt knows of its client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskContext {
    /// True if the client can ask a person.
    pub can_ask: bool,
    /// The answers to the questions of an earlier call.
    pub answers: Vec<Answer>,
    /// The state of that call.
    pub state: Option<String>,
}

/// The outcome of a call that may ask.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum AskOutcome<T> {
    /// The result.
    Done(T),
    /// Questions.
    Ask(AskedQuestions),
}
