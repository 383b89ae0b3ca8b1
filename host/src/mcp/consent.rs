//! Questions and answers on the wire: a question is an `input_required` result with one form, an answer comes with a retry.
//!
//! What a question says is written in `gateway::consent`.

use rmcp::RoleServer;
use rmcp::model::{
    ConstTitle, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, EnumSchema,
    ErrorData, InputRequest, InputRequiredResult, InputResponses, SingleSelectEnumSchema, TitledSingleSelectEnumSchema,
};
use rmcp::service::RequestContext;

use super::{Asked, fault, identity};
use crate::gateway::consent::{Asking, Choice, Question};
use crate::model::{Fault, ReadError};

/// What the question is called among the requests for input, and its only field.
const KEY: &str = "consent";

/// Whether the client can be asked, and what it answered with the request's state. Older clients cannot.
///
/// # Errors
/// When the answer has no shape that was asked for.
pub(super) fn asking<'r>(
    asked: &Asked,
    state: Option<&'r str>,
    answers: Option<&InputResponses>,
    context: &RequestContext<RoleServer>,
) -> Result<Asking<'r>, ErrorData> {
    if !asked.is_modern {
        return Ok(Asking::default());
    }
    // A client that names no mode has the one with forms.
    let elicitation = context.client_capabilities().and_then(|capabilities| capabilities.elicitation);
    let can_answer = elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none());
    let answered = match (state, answers) {
        (None, None) => None,
        // What did not come is asked for again; what came and is no answer is an error.
        (Some(state), answers) => match answers.and_then(|answers| answers.get(KEY)) {
            None => Some((state, None)),
            Some(answer) => {
                let answer = serde_json::from_value(answer.clone()).map_err(|_| fault::bad_answer(EXPECTED))?;
                Some((state, Some(choice(&answer)?)))
            }
        },
        (None, Some(_)) => {
            let error = ReadError::BadState("is missing; send the one that came with the question");
            return Err(fault::to_error(Fault { error, mount: None, uri: None }));
        }
    };
    Ok(Asking { can_answer, answered })
}

/// What an answer that is none ends with.
const EXPECTED: &str = "is malformed; expected inputResponses with { \"consent\": { \"action\": \"accept\", \"content\": { \"consent\": \"once\" } } }, or another of the choices that were offered, or the action \"decline\" or \"cancel\"";

fn choice(answer: &ElicitResult) -> Result<Choice, ErrorData> {
    let chosen = answer.content.as_ref().and_then(|content| content.get(KEY)?.as_str());
    match (&answer.action, chosen) {
        (ElicitationAction::Accept, Some("once")) => Ok(Choice::Once),
        (ElicitationAction::Accept, Some("always")) => Ok(Choice::Always),
        (ElicitationAction::Accept, Some("deny")) => Ok(Choice::Deny),
        (ElicitationAction::Decline, _) => Ok(Choice::Decline),
        (ElicitationAction::Cancel, _) => Ok(Choice::Cancel),
        _ => Err(fault::bad_answer(EXPECTED)),
    }
}

/// The result that asks.
pub(super) fn question(question: Question) -> InputRequiredResult {
    let message = question.to_string();
    let mut choices = vec![ConstTitle::new("once", "Allow once, for this read")];
    if question.can_last {
        choices.push(ConstTitle::new("always", "Always allow; this changes belljar\u{2019}s configuration"));
    }
    choices.push(ConstTitle::new("deny", "Deny"));
    let mut field = TitledSingleSelectEnumSchema::new(choices);
    field.title = Some("Your answer".into());
    let field = EnumSchema::Single(SingleSelectEnumSchema::Titled(field));
    let requested_schema = ElicitationSchema::builder().required_enum_schema(KEY, field).build_unchecked();
    let params = ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema };
    let request = InputRequest::Elicitation(ElicitRequest::new(params));
    let mut result = InputRequiredResult::new(Some([(KEY.to_owned(), request)].into()), Some(question.state));
    // Only peers of that revision are asked.
    identity::sign(&mut result.meta, true);
    result
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::{Consent, Digest, MountName};

    fn asked(wanted: Consent, can_last: bool) -> Value {
        let mount = MountName::new("notes").unwrap();
        let (digest, uri) = (Digest([0xab; 32]), "belljar://notes/x".to_owned());
        let question = Question { mount, digest, uri, wanted, can_last, state: "sealed".to_owned() };
        serde_json::to_value(super::question(question)).unwrap()
    }

    #[test]
    fn a_question_says_who_wants_what_for_which_read() {
        let result = asked(Consent { grant: "http", what: "https://api.example".to_owned() }, false);
        assert_eq!((&result["resultType"], &result["requestState"]), (&json!("input_required"), &json!("sealed")));
        let request = &result["inputRequests"]["consent"];
        assert_eq!((&request["method"], &request["params"]["mode"]), (&json!("elicitation/create"), &json!("form")));
        let message = request["params"]["message"].as_str().unwrap();
        for part in ["\"notes\"", "sha256:abababababab)", "\"https://api.example\"", "\"belljar://notes/x\"", "GET"] {
            assert!(message.contains(part), "{part}: {message}");
        }
        let schema = &request["params"]["requestedSchema"];
        assert_eq!(schema["required"], json!(["consent"]));
        let offered = |schema: &Value| -> Vec<String> {
            let all = schema["properties"]["consent"]["oneOf"].as_array().unwrap().iter();
            all.map(|one| one["const"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(offered(schema), ["once", "deny"]);
        let lasting = asked(Consent { grant: "fs", what: "/notes".to_owned() }, true);
        let params = &lasting["inputRequests"]["consent"]["params"];
        assert_eq!(offered(&params["requestedSchema"]), ["once", "always", "deny"]);
        assert!(params["message"].as_str().unwrap().contains("the directory that its operator calls \"/notes\""));
    }

    #[test]
    fn an_answer_is_one_of_those_that_were_asked_for() {
        let read = |answer: Value| serde_json::from_value(answer).ok().and_then(|answer| choice(&answer).ok());
        for (word, expected) in [("once", Choice::Once), ("always", Choice::Always), ("deny", Choice::Deny)] {
            assert_eq!(read(json!({ "action": "accept", "content": { "consent": word } })), Some(expected));
        }
        assert_eq!(read(json!({ "action": "decline" })), Some(Choice::Decline));
        // What is refused stays refused, whatever comes with it.
        assert_eq!(read(json!({ "action": "cancel", "content": { "consent": "once" } })), Some(Choice::Cancel));
        for none in [
            json!({ "action": "accept" }),
            json!({ "action": "accept", "content": { "consent": "ONCE" } }),
            json!({ "action": "accept", "content": { "consent": true } }),
            json!({ "action": "accept", "content": ["once"] }),
            json!({ "action": "yes", "content": { "consent": "once" } }),
            json!("once"),
        ] {
            assert_eq!(read(none.clone()), None, "{none}");
        }
    }
}
