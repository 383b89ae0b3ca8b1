//! The one place where a failure becomes a JSON-RPC error: kind to code, message and data.
//!
//! | kind | code |
//! |---|---|
//! | `not-found` | -32602 to 2026-07-28 peers, -32002 to older ones (rmcp decides by the peer) |
//! | `bad-uri`, `invalid`, `bad-cursor`, `bad-state`, `bad-answer`, `bad-completion`, `bad-argument`, `no-tool` | -32602 |
//! | `denied`, where a person could allow it and the client cannot be asked | -32021 |
//! | `busy`, `limit`, `denied`, `unavailable`, `failed`, `trap`, `bad-output`, `internal` | -32603 |
//!
//! `data` has `kind`, and where they are known `uri`, `mount`, `limit`, `used`, `cap`, `hint`, `said` (the
//! provider's own words, which the message ends with, quoted). No host path, secret or
//! unsanitised word of a guest is in it.

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::{Map, Value};

use crate::model::{Fault, MountName, ReadError, text};

/// The error of a failed read.
pub(super) fn to_error(fault: Fault) -> ErrorData {
    let message = fault.to_string();
    let Fault { error, mount, uri } = fault;
    let mut data = Map::new();
    data.insert("kind".to_owned(), error.kind().into());
    if let Some(uri) = uri {
        data.insert("uri".to_owned(), uri.into());
    }
    if let Some(mount) = &mount {
        data.insert("mount".to_owned(), mount.as_str().into());
    }
    if let Some(limit) = error.limit() {
        data.insert("limit".to_owned(), limit.bound.as_str().into());
        data.insert("used".to_owned(), limit.used.into());
        data.insert("cap".to_owned(), limit.cap.into());
    }
    if let Some(hint) = error.hint(mount.as_ref()) {
        data.insert("hint".to_owned(), hint.into());
    }
    if let Some(said) = error.said() {
        data.insert("said".to_owned(), said.into());
    }
    if let ReadError::Internal(details) = &error {
        tracing::error!(mount = mount.as_ref().map(MountName::as_str), "internal error: {details}");
    }
    let data = Some(Value::Object(data));
    match error {
        ReadError::NotFound | ReadError::Nowhere { .. } => ErrorData::resource_not_found(message, data),
        ReadError::BadUri(_) | ReadError::Invalid(_) | ReadError::BadState(_) => {
            ErrorData::invalid_params(message, data)
        }
        ReadError::Busy(_)
        | ReadError::Denied { .. }
        | ReadError::Exhausted(_)
        | ReadError::Unavailable(_)
        | ReadError::Down(_)
        | ReadError::Quarantined(_)
        | ReadError::Provider(_)
        | ReadError::Trapped(_)
        | ReadError::BadOutput(_)
        | ReadError::Again { .. }
        | ReadError::Cancelled
        | ReadError::Internal(_) => ErrorData::internal_error(message, data),
    }
}

fn with_kind(kind: &str) -> Option<Value> {
    Some(serde_json::json!({ "kind": kind }))
}

/// The error of a read that a person could allow, for a client of 2026-07-28 that cannot be asked.
pub(super) fn cannot_ask(fault: Fault) -> ErrorData {
    let mut error = to_error(fault);
    error.code = ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY;
    let Some(Value::Object(data)) = &mut error.data else { return error };
    // Clients keep the message of such an error, and of its data only what the specification names.
    if let Some(Value::String(hint)) = data.get("hint") {
        error.message = format!("{}; {hint}", error.message).into();
    }
    data.insert("requiredCapabilities".to_owned(), serde_json::json!({ "elicitation": { "form": {} } }));
    error
}

/// A cursor that this server did not give, or not for this list.
pub(super) fn bad_cursor(why: &str) -> ErrorData {
    ErrorData::invalid_params(
        format!("the cursor {why}; list again from the start, without a cursor"),
        with_kind("bad-cursor"),
    )
}

/// An answer to a question that is not one of those that were offered, or not there.
pub(super) fn bad_answer(why: &str) -> ErrorData {
    ErrorData::invalid_params(format!("the answer to the question {why}"), with_kind("bad-answer"))
}

/// Something that cannot be completed.
pub(super) fn bad_completion(why: &str) -> ErrorData {
    ErrorData::invalid_params(why.to_owned(), with_kind("bad-completion"))
}

/// An argument of a tool that it cannot take; told to the model, which can call again.
pub(super) fn bad_argument(why: &str) -> ErrorData {
    ErrorData::invalid_params(why.to_owned(), with_kind("bad-argument"))
}

/// A tool that is not there.
pub(super) fn no_tool(name: &str, names: &[&str]) -> ErrorData {
    let names = names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let name = text::quoted(name, 100);
    ErrorData::invalid_params(format!("there is no tool {name}; there are {names}"), with_kind("no-tool"))
}

/// Something that cannot be; what it was is for the log.
pub(super) fn internal(details: String) -> ErrorData {
    to_error(Fault { error: ReadError::Internal(details), mount: None, uri: None })
}

/// Parameters that do not have the shape of their method.
pub(super) fn invalid_params(method: &str, expected: &str) -> ErrorData {
    ErrorData::invalid_params(
        format!("malformed parameters of \"{method}\"; expected {expected}"),
        with_kind("invalid-params"),
    )
}

/// A method that is not there.
pub(super) fn method_not_found(method: &str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method {}", text::quoted(method, 100)), None)
}

/// Too many requests at once.
pub(crate) fn busy(why: &str) -> ErrorData {
    to_error(Fault { error: ReadError::Busy(why.to_owned()), mount: None, uri: None })
}

/// belljar shuts down, before the request was done or could begin.
pub(super) fn stopping() -> ErrorData {
    let why = "belljar is shutting down; ask again once it serves".to_owned();
    to_error(Fault { error: ReadError::Unavailable(why), mount: None, uri: None })
}

/// The request was withdrawn.
pub(super) fn cancelled() -> ErrorData {
    ErrorData::internal_error(ReadError::Cancelled.to_string(), with_kind(ReadError::Cancelled.kind()))
}

/// A handler panicked; what it said is in the log, by the panic hook.
pub(super) fn panicked() -> ErrorData {
    to_error(Fault { error: ReadError::Internal("a request handler panicked".to_owned()), mount: None, uri: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::error::{Bound, Limit};

    #[test]
    fn a_limit_names_mount_limit_used_cap_and_cure() {
        let fault = Fault {
            error: ReadError::Exhausted(Limit { bound: Bound::Fuel, used: 12, cap: 10 }),
            mount: Some(MountName::new("m").unwrap()),
            uri: Some("belljar://m/x".to_owned()),
        };
        let error = to_error(fault);
        assert_eq!(error.code, ErrorCode::INTERNAL_ERROR);
        let expected = serde_json::json!({
            "kind": "limit", "uri": "belljar://m/x", "mount": "m", "limit": "fuel", "used": 12, "cap": 10,
            "hint": "to allow more, set fuel = 24 under [mounts.m.limits], or run: belljar set 'mounts.m.limits.fuel = 24'"
        });
        assert_eq!(error.data.unwrap(), expected);
    }

    #[test]
    fn internal_details_stay_inside() {
        let fault = Fault { error: ReadError::Internal("/home/x/secret".to_owned()), mount: None, uri: None };
        assert!(!serde_json::to_string(&to_error(fault)).unwrap().contains("secret"));
    }
}
