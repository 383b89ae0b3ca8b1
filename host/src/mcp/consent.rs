//! Consent on the wire: a question is an `input_required` result with one form; its answer comes with a retry of the
//! request. `gateway::consent` writes the text of the question.

use rmcp::RoleServer;
use rmcp::model::{
    ConstTitle, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
    ElicitationSchema, EnumSchema, ErrorData, InputRequest, InputRequiredResult, InputResponses,
    SingleSelectEnumSchema, TitledSingleSelectEnumSchema,
};
use rmcp::service::Peer;

use serde_json::Value;

use super::context::RequestContext;
use super::era::Era;
use super::{fault, identity};
use crate::gateway::consent::{ConsentAnswer, ConsentInput, ConsentQuestion, QuestionStateError};
pub(super) use crate::interfaces::asking::CONSENT_KEY;
use crate::model::Fault;

/// Whether the client can be asked, and its answer together with the request's state.
///
/// # Errors
/// The answer is malformed, or it comes without the state.
pub(super) fn consent_input<'r>(
    context: &RequestContext<'_>,
    state: Option<&'r str>,
    answers: Option<&InputResponses>,
) -> Result<ConsentInput<'r>, ErrorData> {
    let can_answer = can_answer(context);
    let answered = match (state, answers) {
        (None, None) => None,
        // A missing answer makes the gateway ask again. A malformed answer is an error.
        (Some(state), answers) => match answers.and_then(|answers| answers.get(CONSENT_KEY)) {
            None => Some((state, None)),
            Some(given) => Some((state, Some(answer(given)?))),
        },
        (None, Some(_)) => {
            return Err(fault::to_error(Fault { error: QuestionStateError::Missing.into(), mount: None, uri: None }));
        }
    };
    Ok(ConsentInput { can_answer, answered })
}

/// The answer to the question, in the client's JSON.
///
/// # Errors
/// If it is malformed.
pub(super) fn answer(given: &Value) -> Result<ConsentAnswer, ErrorData> {
    choice(&serde_json::from_value(given.clone()).map_err(|_| fault::bad_answer(MALFORMED))?)
}

/// True if the client can show a form to a person.
pub(super) fn can_answer(context: &RequestContext<'_>) -> bool {
    match context.era {
        Era::Stateless => context.meta.elicitation.as_ref().is_some_and(supports_forms),
        // Such a client names its capabilities once, and nothing in a request changes them.
        Era::Session => can_be_asked(context.peer),
    }
}

/// True if the client of a session can show a form to a person.
pub(super) fn can_be_asked(client: &Peer<RoleServer>) -> bool {
    client.peer_info().is_some_and(|info| info.capabilities.elicitation.as_ref().is_some_and(supports_forms))
}

/// Specification: a client that names no mode supports forms.
fn supports_forms(modes: &ElicitationCapability) -> bool {
    modes.form.is_some() || modes.url.is_none()
}

/// The end of the error for a malformed answer.
const MALFORMED: &str = "is malformed; expected inputResponses with { \"consent\": { \"action\": \"accept\", \"content\": { \"consent\": \"once\" } } }, or another of the choices that were offered, or the action \"decline\" or \"cancel\"";

fn choice(answer: &ElicitResult) -> Result<ConsentAnswer, ErrorData> {
    let chosen = answer.content.as_ref().and_then(|content| content.get(CONSENT_KEY)?.as_str());
    match (&answer.action, chosen) {
        (ElicitationAction::Accept, Some("once")) => Ok(ConsentAnswer::Once),
        (ElicitationAction::Accept, Some("always")) => Ok(ConsentAnswer::Always),
        (ElicitationAction::Accept, Some("deny")) => Ok(ConsentAnswer::Deny),
        (ElicitationAction::Decline, _) => Ok(ConsentAnswer::Decline),
        (ElicitationAction::Cancel, _) => Ok(ConsentAnswer::Cancel),
        _ => Err(fault::bad_answer(MALFORMED)),
    }
}

/// The `input_required` result that asks `question`.
pub(super) fn question(question: ConsentQuestion) -> InputRequiredResult {
    let message = question.to_string();
    let mut choices = vec![ConstTitle::new("once", "Allow once, for this request")];
    if question.can_be_permanent {
        choices.push(ConstTitle::new("always", "Always allow; this changes belljar\u{2019}s configuration"));
    }
    choices.push(ConstTitle::new("deny", "Deny"));
    let mut field = TitledSingleSelectEnumSchema::new(choices);
    field.title = Some("Your answer".into());
    let field = EnumSchema::Single(SingleSelectEnumSchema::Titled(field));
    let requested_schema = ElicitationSchema::builder().required_enum_schema(CONSENT_KEY, field).build_unchecked();
    let params = ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema };
    let request = InputRequest::Elicitation(ElicitRequest::new(params));
    let mut result = InputRequiredResult::new(Some([(CONSENT_KEY.to_owned(), request)].into()), Some(question.state));
    // Only clients of that era are asked.
    identity::add_server_info(&mut result.meta, Era::Stateless);
    result
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::gateway::consent::AskedRequest;
    use crate::model::{Consent, Digest, MountName};

    fn asked(wanted: Consent, can_last: bool) -> Value {
        let mount = MountName::new("notes").unwrap();
        let (digest, request) = (Digest([0xab; 32]), AskedRequest::read("belljar://notes/x"));
        let question =
            ConsentQuestion { mount, digest, request, wanted, can_be_permanent: can_last, state: "sealed".to_owned() };
        serde_json::to_value(super::question(question)).unwrap()
    }

    #[test]
    fn a_question_names_mount_grant_target_and_resource() {
        let result = asked(Consent { grant: "http".into(), target: "https://api.example".to_owned() }, false);
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
        let lasting = asked(Consent { grant: "fs".into(), target: "/notes".to_owned() }, true);
        let params = &lasting["inputRequests"]["consent"]["params"];
        assert_eq!(offered(&params["requestedSchema"]), ["once", "always", "deny"]);
        assert!(params["message"].as_str().unwrap().contains("the directory that its operator calls \"/notes\""));
    }

    #[test]
    fn an_answer_is_one_of_the_offered_choices() {
        let read = |answer: Value| serde_json::from_value(answer).ok().and_then(|answer| choice(&answer).ok());
        for (word, expected) in
            [("once", ConsentAnswer::Once), ("always", ConsentAnswer::Always), ("deny", ConsentAnswer::Deny)]
        {
            assert_eq!(read(json!({ "action": "accept", "content": { "consent": word } })), Some(expected));
        }
        assert_eq!(read(json!({ "action": "decline" })), Some(ConsentAnswer::Decline));
        // The content of a refusal is ignored.
        assert_eq!(read(json!({ "action": "cancel", "content": { "consent": "once" } })), Some(ConsentAnswer::Cancel));
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
