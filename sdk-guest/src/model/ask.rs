//! Questions for the person in front of the client, and the answers to them.

#[cfg(feature = "tools")]
use crate::{Error, Result};

/// What a call returns: a result, or questions.
///
/// A function that never asks returns its result directly. The others end with `Ok(ask.into())` or `Ok(result.into())`.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome<T> {
    /// The result.
    Done(T),
    /// Questions. Not allowed after a request that may have changed something.
    Ask(Ask),
}

/// Questions, instead of a result.
///
/// Asking ends this instance. The answers come to a new one, which is called with the same arguments: the function runs again
/// from its beginning, and finds the answers in its [`Context`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ask {
    /// One to eight questions.
    pub questions: Vec<Question>,
    /// What the next call must know, at most 4 KiB. The host seals it, so that no client can read or change it.
    pub state: Option<String>,
}

/// A question for the person in front of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Question {
    /// The name of the question: letters, digits, `_` and `-`, at most 64. Not `consent`, which is the host's.
    pub key: String,
    /// The question, for people. It must not ask for secrets.
    pub message: String,
    /// The JSON text of a schema: `{"type": "object", "properties": {...}, "required": [...]}`. Each property is a string, a
    /// number, an integer, a boolean or an enumeration. At least one property.
    pub form: String,
}

/// What a call knows of its client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Context {
    /// True if the client can ask a person. Without it, do without an answer, or fail with [`Error::Invalid`](crate::Error).
    pub can_ask: bool,
    /// The answers to questions of an earlier call.
    pub answers: Vec<Answer>,
    /// The state of that call.
    pub state: Option<String>,
}

/// The answer to a question. The host checked that it fits the form, if the question was asked with a state.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// The name of the question.
    pub key: String,
    /// What the person did.
    pub action: Action,
    /// The JSON text of the filled form, an object. Only if the action is [`Action::Accept`].
    pub content: Option<String>,
}

/// What the person did with a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Filled the form in.
    Accept,
    /// Said no.
    Decline,
    /// Closed the question.
    Cancel,
}

impl<T> Outcome<T> {
    /// The result. `None` if these are questions.
    pub fn done(self) -> Option<T> {
        match self {
            Outcome::Done(result) => Some(result),
            Outcome::Ask(_) => None,
        }
    }

    /// The questions. `None` if this is a result.
    pub fn ask(self) -> Option<Ask> {
        match self {
            Outcome::Done(_) => None,
            Outcome::Ask(ask) => Some(ask),
        }
    }
}

impl<T> From<Ask> for Outcome<T> {
    fn from(ask: Ask) -> Self {
        Outcome::Ask(ask)
    }
}

impl<T> From<Question> for Outcome<T> {
    fn from(question: Question) -> Self {
        Outcome::Ask(question.into())
    }
}

impl Ask {
    /// These questions. For a single one, use `question.into()`.
    pub fn new(questions: impl IntoIterator<Item = Question>) -> Self {
        Ask { questions: questions.into_iter().collect(), state: None }
    }

    /// Sets what the next call must know.
    pub fn state(mut self, state: impl Into<String>) -> Self {
        self.state = Some(state.into());
        self
    }
}

impl From<Question> for Ask {
    fn from(question: Question) -> Self {
        Ask::new([question])
    }
}

impl Question {
    /// A question whose form is the JSON text of a schema.
    pub fn new(key: impl Into<String>, message: impl Into<String>, form: impl Into<String>) -> Self {
        Question { key: key.into(), message: message.into(), form: form.into() }
    }

    /// A question whose form has the fields of `T`, a struct. [`Context::accepted`] reads the answer.
    ///
    /// ```
    /// # #![cfg(feature = "tools")]
    /// use belljar_guest::Question;
    ///
    /// #[derive(schemars::JsonSchema)]
    /// struct Person {
    ///     name: String,
    /// }
    ///
    /// let question = Question::of::<Person>("person", "What is your name?");
    /// let form: serde_json::Value = serde_json::from_str(&question.form).unwrap();
    /// assert_eq!(form["properties"]["name"]["type"], "string");
    /// ```
    #[cfg(feature = "tools")]
    pub fn of<T: schemars::JsonSchema>(key: impl Into<String>, message: impl Into<String>) -> Self {
        Question::new(key, message, super::schema::form::<T>().to_string())
    }
}

impl Context {
    /// A client that can ask a person; for tests.
    pub fn asking() -> Self {
        Context { can_ask: true, ..Context::default() }
    }

    /// Adds an answer; for tests.
    pub fn answer(mut self, answer: Answer) -> Self {
        self.answers.push(answer);
        self
    }

    /// Sets the state of the earlier call; for tests.
    pub fn state(mut self, state: impl Into<String>) -> Self {
        self.state = Some(state.into());
        self
    }

    /// The answer to the question `key`. `None` if it was not asked yet.
    pub fn answer_to(&self, key: &str) -> Option<&Answer> {
        self.answers.iter().find(|answer| answer.key == key)
    }

    /// The filled form of the question `key`. `None` if it was not asked yet, or not accepted.
    ///
    /// Fails with [`Error::Invalid`] if the form does not fit `T`.
    #[cfg(feature = "tools")]
    pub fn accepted<T: serde::de::DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        let Some(content) = self.answer_to(key).and_then(|answer| answer.content.as_deref()) else {
            return Ok(None);
        };
        let wrong = |error| Error::invalid(format_args!("the answer to \"{key}\" does not fit its form: {error}"));
        serde_json::from_str(content).map(Some).map_err(wrong)
    }
}

impl Answer {
    /// A filled form: the JSON text of an object.
    pub fn accept(key: impl Into<String>, content: impl Into<String>) -> Self {
        Answer { key: key.into(), action: Action::Accept, content: Some(content.into()) }
    }

    /// The person said no.
    pub fn decline(key: impl Into<String>) -> Self {
        Answer { key: key.into(), action: Action::Decline, content: None }
    }

    /// The person closed the question.
    pub fn cancel(key: impl Into<String>) -> Self {
        Answer { key: key.into(), action: Action::Cancel, content: None }
    }
}
