//! Questions of providers and answers of people: conversion, size, masking and check.
//!
//! A form is flat: texts, numbers, choices. It must not ask for a secret (2026-07-28, client/elicitation); what looks like
//! one is refused.

use std::iter::once;

use serde_json::{Map, Value};

use super::fields::ENTRY_CHARGE;
use super::generated::call_types as wit;
use super::json_schema::Schema;
use super::redaction::mask_optional;
use crate::grants::secrets::Redactor;
use crate::model::bounds::{MAX_ASK_STATE, MAX_QUESTIONS_AT_ONCE};
use crate::model::{Answer, AnswerAction, AskContext, AskedQuestions, Guard, Question, ReadError, text};

/// The name of belljar's own question.
pub const CONSENT_KEY: &str = "consent";

/// The most bytes of a question's message, and of the name of a question or a field.
const MAX_MESSAGE: usize = 1 << 10;
const MAX_KEY: usize = 64;

/// The most bytes of a form.
const MAX_FORM: usize = 8 << 10;

/// The most fields of a form.
const MAX_FIELDS: usize = 16;

/// Keywords of a field of a form, beside `type`.
const FIELD_KEYWORDS: [&str; 16] = [
    "title",
    "description",
    "default",
    "enum",
    "enumNames",
    "oneOf",
    "const",
    "format",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "pattern",
    "items",
    "minItems",
    "maxItems",
];

/// Formats of a text.
const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];

/// Words that name a secret, as whole words and without regard to case.
const SECRETS: [&str; 17] = [
    "password",
    "passwords",
    "passwort",
    "passphrase",
    "passcode",
    "passwd",
    "secret",
    "secrets",
    "apikey",
    "token",
    "tokens",
    "credential",
    "credentials",
    "pin",
    "cvv",
    "cvc",
    "otp",
];

/// Pairs of words that name a secret.
const SECRET_PAIRS: [(&str, &str); 6] = [
    ("api", "key"),
    ("private", "key"),
    ("access", "key"),
    ("credit", "card"),
    ("card", "number"),
    ("security", "code"),
];

impl From<wit::Ask> for AskedQuestions {
    fn from(ask: wit::Ask) -> Self {
        let question = |one: wit::Question| Question { key: one.key, message: one.message, form: one.form };
        Self { questions: ask.questions.into_iter().map(question).collect(), state: ask.state }
    }
}

/// The context of a call as the guest gets it.
pub(super) fn context(context: &AskContext) -> wit::Context {
    let answer = |answer: &Answer| wit::Answer {
        key: answer.key.clone(),
        action: match answer.action {
            AnswerAction::Accept => wit::Action::Accept,
            AnswerAction::Decline => wit::Action::Decline,
            AnswerAction::Cancel => wit::Action::Cancel,
        },
        content: answer.content.clone(),
    };
    let AskContext { can_ask, answers, state } = context;
    wit::Context { can_ask: *can_ask, answers: answers.iter().map(answer).collect(), state: state.clone() }
}

/// The texts of a context that a caller chooses, for the key of the circuit breaker.
pub(super) fn input(context: &AskContext) -> impl Iterator<Item = &str> {
    let answers = context.answers.iter().flat_map(|one| [Some(one.key.as_str()), one.content.as_deref()]);
    answers.chain([context.state.as_deref()]).flatten()
}

/// The size of questions in bytes.
pub(super) fn bytes(AskedQuestions { questions, state }: &AskedQuestions) -> usize {
    let question = |one: &Question| ENTRY_CHARGE + one.key.len() + one.message.len() + one.form.len();
    questions.iter().map(question).sum::<usize>() + state.as_ref().map_or(0, String::len)
}

/// Masks the secrets in questions.
pub(super) fn mask(AskedQuestions { questions, state }: &mut AskedQuestions, redactor: &Redactor) {
    for Question { key, message, form } in questions {
        [key, message, form].into_iter().for_each(|text| redactor.mask(text));
    }
    mask_optional(state, redactor);
}

/// True unless a test switched the checks of questions and answers off.
pub fn are_questions_checked() -> bool {
    Guard::Question.is_on()
}

/// Checks the questions that `function` gave, and cleans their texts.
pub(super) fn check(mut ask: AskedQuestions, function: &str) -> Result<AskedQuestions, ReadError> {
    if !are_questions_checked() {
        return Ok(ask);
    }
    let refuse = |why: String| ReadError::BadOutput(format!("{function} asks {why}"));
    let (count, most) = (ask.questions.len(), MAX_QUESTIONS_AT_ONCE.get());
    if count == 0 || count > most {
        return Err(refuse(format!("{count} questions; expected 1 to {most}")));
    }
    if let Some(state) = ask.state.as_ref().filter(|state| state.len() > MAX_ASK_STATE.get()) {
        return Err(refuse(format!("with a state of {} bytes; the limit is {}", state.len(), MAX_ASK_STATE.get())));
    }
    let mut keys: Vec<String> = Vec::new();
    for question in &mut ask.questions {
        let shown = text::quoted(&question.key, MAX_KEY);
        if !is_key(&question.key) {
            return Err(refuse(format!("a question named {shown}; expected letters, digits, \"_\" and \"-\"")));
        }
        if question.key == CONSENT_KEY || keys.contains(&question.key) {
            return Err(refuse(format!("a question named {shown}, a name that is taken")));
        }
        keys.push(question.key.clone());
        if question.message.trim().is_empty() || question.message.len() > MAX_MESSAGE {
            return Err(refuse(format!(
                "the question {shown} in {} bytes; expected 1 to {MAX_MESSAGE}",
                question.message.len()
            )));
        }
        question.message = text::cleaned(std::mem::take(&mut question.message), MAX_MESSAGE);
        let form =
            check_form(&question.form).map_err(|why| refuse(format!("the question {shown}, whose form {why}")))?;
        let fields = form.get("properties").and_then(Value::as_object).into_iter().flatten();
        let of_fields =
            fields.flat_map(|(name, field)| once(name.as_str()).chain(field.as_object().into_iter().flat_map(titles)));
        let of_form = once(question.key.as_str()).chain(titles(&form)).chain(of_fields);
        if let Some(secret) = of_form.chain(once(question.message.as_str())).find_map(secret_in) {
            return Err(refuse(format!(
                "the question {shown}, which asks for a secret ({}); the protocol forbids that",
                text::quoted(secret, 40)
            )));
        }
        // The form as it was checked: its texts were cleaned.
        question.form = Value::Object(form).to_string();
    }
    Ok(ask)
}

/// The title and the description of a schema.
fn titles(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    ["title", "description"].into_iter().filter_map(|key| schema.get(key)?.as_str())
}

fn is_key(key: &str) -> bool {
    (1..=MAX_KEY).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

/// The word in `text` that names a secret.
fn secret_in(text: &str) -> Option<&str> {
    // `apiKey` and `api_key` are two words.
    let mut words: Vec<&str> = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let starts = word.char_indices().zip(word.chars().skip(1));
        let humps = starts.filter(|((_, before), after)| before.is_lowercase() && after.is_uppercase());
        let mut start = 0;
        for ((at, before), _) in humps {
            let end = at + before.len_utf8();
            words.extend(word.get(start..end));
            start = end;
        }
        words.extend(word.get(start..));
    }
    let is = |word: &str, other: &str| word.eq_ignore_ascii_case(other);
    let single = words.iter().find(|word| SECRETS.iter().any(|secret| is(word, secret)));
    let pair = || {
        let pairs = words.iter().zip(words.iter().skip(1));
        let mut found = pairs.filter(|(a, b)| SECRET_PAIRS.iter().any(|(x, y)| is(a, x) && is(b, y)));
        found.next().map(|(first, _)| first)
    };
    single.or_else(pair).copied()
}

/// Why a form is refused. The text continues "the form ...".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FormError(String);

/// Checks a form. The error continues "whose form ...".
///
/// # Errors
/// The rule that it breaks.
pub fn check_form(form: &str) -> Result<Map<String, Value>, FormError> {
    if form.len() > MAX_FORM {
        return Err(FormError(format!("has {} bytes; the limit is {MAX_FORM}", form.len())));
    }
    let schema = Schema::parse(form).map_err(|error| FormError(error.to_string()))?;
    let object = schema.object();
    let unknown = |known: &[&str], fields: &Map<String, Value>| {
        fields.keys().find(|key| !known.contains(&key.as_str())).map(|key| text::quoted(key, MAX_KEY))
    };
    if let Some(key) = unknown(&["$schema", "type", "title", "description", "properties", "required"], object) {
        return Err(FormError(format!("has the keyword {key}; expected \"type\", \"properties\" and \"required\"")));
    }
    let fields = object.get("properties").and_then(Value::as_object).filter(|fields| !fields.is_empty());
    let fields = fields.filter(|fields| fields.len() <= MAX_FIELDS);
    let fields = fields.ok_or_else(|| FormError(format!("has no properties, or more than {MAX_FIELDS}")))?;
    for (name, field) in fields {
        let shown = text::quoted(name, MAX_KEY);
        let field = field.as_object().filter(|_| is_key(name));
        let field = field
            .ok_or_else(|| FormError(format!("has the field {shown}; expected a name of letters and a schema")))?;
        let known: Vec<&str> = FIELD_KEYWORDS.iter().copied().chain(["type"]).collect();
        if let Some(key) = unknown(&known, field) {
            return Err(FormError(format!("has the keyword {key} in the field {shown}; a form is flat")));
        }
        let is_fine = match field.get("type").and_then(Value::as_str) {
            Some("string") => {
                field.get("format").is_none_or(|format| format.as_str().is_some_and(|format| FORMATS.contains(&format)))
            }
            Some("number" | "integer" | "boolean") => true,
            Some("array") => field.get("items").is_some_and(is_choice),
            _ => false,
        };
        if !is_fine {
            return Err(FormError(format!(
                "has the field {shown}, which is no text, number, choice or boolean; a form is flat"
            )));
        }
    }
    Ok(object.clone())
}

/// True if the items of a list are a choice among given texts.
fn is_choice(items: &Value) -> bool {
    let Some(items) = items.as_object() else { return false };
    let has_choices = ["enum", "anyOf", "oneOf"].iter().any(|key| items.get(*key).is_some_and(Value::is_array));
    has_choices && items.keys().all(|key| ["type", "enum", "anyOf", "oneOf"].contains(&key.as_str()))
}

/// Why an answer does not fit its question. The text continues "the answer to the question ...".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The content does not fit the form.
    #[error("{key} does not fit its form: {why}")]
    Form {
        /// The name of the question, quoted.
        key: String,
        /// The violations.
        why: String,
    },
}

/// Checks an answer against the form of its question.
///
/// # Errors
/// If the answer accepts and its content does not fit.
pub fn check_answer(answer: &Answer, question: &Question) -> Result<(), AnswerError> {
    if answer.action != AnswerAction::Accept || !are_questions_checked() {
        return Ok(());
    }
    let content = answer.content.as_deref().unwrap_or("{}");
    let check = || -> Result<(), String> {
        let schema = Schema::parse(&question.form).map_err(|error| error.to_string())?;
        let content = serde_json::from_str(content).map_err(|error: serde_json::Error| error.to_string())?;
        schema.check(&content).map_err(|error| error.to_string())
    };
    check().map_err(|why| AnswerError::Form { key: text::quoted(&answer.key, MAX_KEY), why })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ask(key: &str, message: &str, form: &Value) -> Result<AskedQuestions, ReadError> {
        let question = Question { key: key.to_owned(), message: message.to_owned(), form: form.to_string() };
        check(AskedQuestions { questions: vec![question], state: None }, "call")
    }

    fn form(fields: Value) -> Value {
        json!({ "type": "object", "properties": fields })
    }

    #[test]
    fn forms_are_flat() {
        for good in [
            json!({ "name": { "type": "string", "title": "Your name", "minLength": 1 } }),
            json!({ "mail": { "type": "string", "format": "email", "default": "a@b.example" } }),
            json!({ "age": { "type": "integer", "minimum": 0 }, "ratio": { "type": "number" }, "ok": { "type": "boolean" } }),
            json!({ "colour": { "type": "string", "enum": ["red", "green"], "enumNames": ["Red", "Green"] } }),
            json!({ "colour": { "type": "string", "oneOf": [{ "const": "r", "title": "Red" }] } }),
            json!({ "colours": { "type": "array", "items": { "type": "string", "enum": ["red"] }, "maxItems": 2 } }),
            json!({ "colours": { "type": "array", "items": { "anyOf": [{ "const": "r", "title": "Red" }] } } }),
        ] {
            assert!(
                ask("q", "Which?", &form(good.clone())).is_ok(),
                "{good}: {:?}",
                ask("q", "Which?", &form(good.clone()))
            );
        }
        for bad in [
            json!({}),
            json!({ "a": { "type": "object" } }),
            json!({ "a": { "type": "array", "items": { "type": "string" } } }),
            json!({ "a": { "type": "string", "format": "password" } }),
            json!({ "a": { "$ref": "#" } }),
            json!({ "a b": { "type": "string" } }),
            json!({ "a": true }),
        ] {
            assert!(ask("q", "Which?", &form(bad.clone())).is_err(), "{bad}");
        }
        let fine = form(json!({ "a": { "type": "string" } }));
        for key in ["", "a b", CONSENT_KEY, &"k".repeat(65)] {
            assert!(ask(key, "Which?", &fine).is_err(), "{key}");
        }
        assert!(ask("q", " ", &fine).is_err());
    }

    #[test]
    fn nobody_asks_for_a_secret() {
        let fine = form(json!({ "a": { "type": "string" } }));
        for message in ["Your password?", "The API key, please", "Enter the CVV", "Give me your secret", "PIN:"] {
            assert!(ask("q", message, &fine).is_err(), "{message}");
        }
        for field in ["password", "apiKey", "api_key", "accessToken", "credit-card"] {
            assert!(ask("q", "Which?", &form(json!({ field: { "type": "string" } }))).is_err(), "{field}");
        }
        for message in ["Which pinboard?", "How many secretaries?", "Which key of the piano?", "Pick a card"] {
            assert!(ask("q", message, &fine).is_ok(), "{message}");
        }
    }

    #[test]
    fn an_answer_fits_its_form() {
        let form = form(json!({ "age": { "type": "integer", "minimum": 0 } })).to_string();
        let question = Question { key: "q".to_owned(), message: "?".to_owned(), form };
        let answer = |action, content: &str| Answer { key: "q".to_owned(), action, content: Some(content.to_owned()) };
        assert_eq!(check_answer(&answer(AnswerAction::Accept, "{\"age\":3}"), &question), Ok(()));
        assert!(check_answer(&answer(AnswerAction::Accept, "{\"age\":\"x\"}"), &question).is_err());
        assert!(check_answer(&answer(AnswerAction::Accept, "[]"), &question).is_err());
        assert_eq!(check_answer(&answer(AnswerAction::Decline, "[]"), &question), Ok(()));
    }
}
