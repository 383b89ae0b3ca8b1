//! Messages that rmcp would misinterpret or leave unanswered. Both transports check them here.

use rmcp::model::{ErrorCode, RequestId};

use crate::model::{Guard, text};

/// The reason to refuse a message: the JSON-RPC code, the text, and the id of the request if it is known.
pub(super) type RefusedMessage = (ErrorCode, String, Option<RequestId>);

/// The id of a request. `None` for a message that is not a request.
pub(super) fn request_id(message: &[u8]) -> Option<RequestId> {
    #[derive(serde::Deserialize)]
    struct Request {
        id: RequestId,
        #[serde(rename = "method")]
        _method: String,
    }
    serde_json::from_slice(message).ok().map(|Request { id, .. }| id)
}

/// The id of the request that a message cancels. `None` for any other message.
pub(super) fn cancelled_id(message: &[u8]) -> Option<RequestId> {
    #[derive(serde::Deserialize)]
    struct Cancellation {
        method: String,
        params: CancelledParams,
    }
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct CancelledParams {
        request_id: RequestId,
    }
    let Cancellation { method, params } = serde_json::from_slice(message).ok()?;
    (method == "notifications/cancelled").then_some(params.request_id)
}

/// True if a request must be refused. `is_there`: another request with its id is in flight.
pub(super) fn is_duplicate(is_there: bool) -> bool {
    is_there && Guard::Pending.is_on()
}

/// The id of a request is that of another one, which is not answered yet.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a request with the id {} is in flight already", text::excerpt(&.0.to_string(), 100))]
pub(super) struct IdInFlight(pub(super) RequestId);

/// Refuses a list request whose cursor is not a string. rmcp treats such parameters as absent, so that the client
/// would get the first page again and again.
pub(super) fn check_cursor(message: &[u8]) -> Result<(), RefusedMessage> {
    #[derive(serde::Deserialize)]
    struct Request {
        method: String,
        id: Option<RequestId>,
        params: Option<serde_json::Value>,
    }
    // A cheap test that nearly every message passes without being parsed.
    if !std::str::from_utf8(message).is_ok_and(|text| text.contains("\"cursor\"")) {
        return Ok(());
    }
    let Ok(Request { method, id, params }) = serde_json::from_slice(message) else { return Ok(()) };
    let cursor = params.as_ref().and_then(|params| params.get("cursor"));
    if method.ends_with("/list") && cursor.is_some_and(|cursor| !cursor.is_string()) {
        let why =
            format!("malformed parameters of \"{}\"; expected the cursor to be a string", text::excerpt(&method, 100));
        return Err((ErrorCode::INVALID_PARAMS, why, id));
    }
    Ok(())
}

/// The reason why rmcp cannot parse a message. `None` for a notification, which has no answer.
pub(super) fn explain(line: &[u8], error: &serde_json::Error) -> Option<RefusedMessage> {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(line) else {
        return Some((ErrorCode::PARSE_ERROR, format!("not JSON: {}", text::excerpt(&error.to_string(), 200)), None));
    };
    let id = value.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
    let why = match &value {
        serde_json::Value::Array(_) => "batches are not part of MCP; send one message at a time".to_owned(),
        serde_json::Value::Object(object) if object.get("jsonrpc").and_then(|v| v.as_str()) != Some("2.0") => {
            "expected \"jsonrpc\": \"2.0\"".to_owned()
        }
        serde_json::Value::Object(object)
            if object.contains_key("method") && object.contains_key("id") && id.is_none() =>
        {
            "expected an \"id\" that is a string or an integer".to_owned()
        }
        serde_json::Value::Object(object) if object.contains_key("method") => {
            "expected \"method\" to be a string and \"params\" an object".to_owned()
        }
        serde_json::Value::Object(_) => "expected a \"method\"".to_owned(),
        _ => "expected a JSON-RPC 2.0 request".to_owned(),
    };
    let is_notification = value.get("method").is_some() && value.get("id").is_none();
    (!is_notification).then_some((ErrorCode::INVALID_REQUEST, why, id))
}
