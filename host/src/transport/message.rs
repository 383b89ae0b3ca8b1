//! Messages that rmcp would take for something else or not answer, judged alike on both transports.

use rmcp::model::{ErrorCode, RequestId};

use crate::model::text;

/// A message that cannot be served: the code, why, and which request it was.
pub(super) type Refused = (ErrorCode, String, Option<RequestId>);

/// Which request a message is; none for anything that is not answered.
pub(super) fn id(message: &[u8]) -> Option<RequestId> {
    #[derive(serde::Deserialize)]
    struct Request {
        id: RequestId,
        #[serde(rename = "method")]
        _method: String,
    }
    serde_json::from_slice(message).ok().map(|Request { id, .. }| id)
}

/// What is said to a request whose id another one has, which is not answered yet.
pub(super) fn is_taken(id: &RequestId) -> String {
    format!("a request with the id {} is in flight already", text::excerpt(&id.to_string(), 100))
}

/// Refuses a list request whose cursor is not a string. rmcp takes such parameters for absent ones, and the client would
/// get the first page again and again.
pub(super) fn check_cursor(message: &[u8]) -> Result<(), Refused> {
    #[derive(serde::Deserialize)]
    struct Request {
        method: String,
        id: Option<RequestId>,
        params: Option<serde_json::Value>,
    }
    // Nearly no message gets past this look.
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

/// Why a message that rmcp cannot read is none of MCP's, and which request it was; none for a notification, which has no
/// answer.
pub(super) fn explain(line: &[u8], error: &serde_json::Error) -> Option<Refused> {
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
