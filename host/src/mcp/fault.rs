//! The one place that turns a failure into a JSON-RPC error: code, message and data.
//!
//! | kind | code |
//! |---|---|
//! | `not-found` | -32602 to 2026-07-28 peers, -32002 to older ones (rmcp selects the code by the peer's revision) |
//! | `bad-uri`, `invalid`, `bad-cursor`, `bad-state`, `bad-answer`, `bad-completion`, `bad-argument`, `no-tool`, `no-prompt`, `no-skill` | -32602 |
//! | `denied`, if consent is possible but the client cannot ask its user | -32021 |
//! | `unauthenticated`, `insufficient-scope` | -32600; over HTTP with the statuses of RFC 6750 |
//! | `busy`, `limit`, `denied`, `unavailable`, `failed`, `trap`, `bad-output`, `internal` | -32603 |
//!
//! `data` contains `kind`, and, where they are known, `uri`, `mount`, `limit`, `used`, `cap`, `scopes`, `retryAfterMs`,
//! `hint` and `said`. `said` is the provider's own text; the message ends with it in quotes. No error contains a host
//! path, a secret or unsanitised text of a guest.

use std::time::Duration;

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::{Map, Value};

use super::cursor::BadCursor;
use crate::model::{Blame, Fault, MountName, ReadError, text};
use crate::telemetry::EventError;

/// Characters of an error's message that the record keeps.
const MAX_RECORDED: usize = 500;

/// The key of `data` that names the scopes which a request needs.
const SCOPES: &str = "scopes";
/// The key of `data` with the milliseconds after which the same request can succeed.
const RETRY_AFTER: &str = "retryAfterMs";

/// The time after which the request that got `error` can succeed, if `error` says so.
pub(super) fn retry_after(error: &ErrorData) -> Option<Duration> {
    error.data.as_ref()?.get(RETRY_AFTER)?.as_u64().map(Duration::from_millis)
}

/// The error of a failed request.
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
        data.insert("limit".to_owned(), limit.kind.as_str().into());
        data.insert("used".to_owned(), limit.used.into());
        data.insert("cap".to_owned(), limit.cap.into());
    }
    if let ReadError::InsufficientScope { scopes } = &error {
        data.insert(SCOPES.to_owned(), scopes.as_slice().into());
    }
    if let Some(hint) = error.hint(mount.as_ref()) {
        data.insert("hint".to_owned(), hint.into());
    }
    if let Some(pause) = error.retry_after() {
        let ms = u64::try_from(pause.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        data.insert(RETRY_AFTER.to_owned(), ms.into());
    }
    if let Some(said) = error.provider_text() {
        data.insert("said".to_owned(), said.into());
    }
    if let ReadError::Internal(details) = &error {
        tracing::error!(mount = mount.as_ref().map(MountName::as_str), "internal error: {details}");
    }
    let data = Some(Value::Object(data));
    match error {
        ReadError::NotFound | ReadError::NotFoundWithHint { .. } => ErrorData::resource_not_found(message, data),
        ReadError::BadUri(_)
        | ReadError::Invalid(_)
        | ReadError::BadArguments(_)
        | ReadError::BadAnswer(_)
        | ReadError::BadRequestState(_) => ErrorData::invalid_params(message, data),
        ReadError::Unauthenticated(_) | ReadError::InsufficientScope { .. } => {
            ErrorData::invalid_request(message, data)
        }
        ReadError::Busy(_)
        | ReadError::Denied { .. }
        | ReadError::NoPrincipalSecret { .. }
        | ReadError::Exhausted(_)
        | ReadError::ToolExhausted(_)
        | ReadError::Unavailable(_)
        | ReadError::ProviderUnavailable(_)
        | ReadError::Quarantined(_)
        | ReadError::ProviderFailed(_)
        | ReadError::Trapped(_)
        | ReadError::BadOutput(_)
        | ReadError::CircuitOpen { .. }
        | ReadError::Cancelled
        | ReadError::Internal(_) => ErrorData::internal_error(message, data),
    }
}

/// The kinds of errors that are not those of a call.
const REQUEST_KINDS: [&str; 18] = [
    "asked-too-often",
    "bad-answer",
    "bad-argument",
    "bad-completion",
    "bad-cursor",
    "busy",
    "cancelled",
    "denied",
    "insufficient-scope",
    "internal",
    "invalid-params",
    "limit",
    "no-prompt",
    "no-skill",
    "no-tool",
    "not-found",
    "unanswered",
    "unavailable",
];

/// The error of a request, for its event.
pub(crate) fn event_error(error: &ErrorData) -> EventError {
    let kind = error.data.as_ref().and_then(|data| data.get("kind")).and_then(Value::as_str);
    let known = kind.and_then(|kind| REQUEST_KINDS.iter().find(|known| **known == kind));
    let kind = match (known, error.code) {
        (Some(kind), _) => kind,
        (None, ErrorCode::METHOD_NOT_FOUND) => "no-method",
        (None, ErrorCode::PARSE_ERROR) => "not-json",
        (None, _) => "invalid-request",
    };
    let blame = match kind {
        "internal" => Blame::Host,
        "unavailable" => Blame::Operator,
        _ => Blame::Caller,
    };
    EventError::Answer { kind, message: text::excerpt(&error.message, MAX_RECORDED), blame }
}

fn with_kind(kind: &str) -> Option<Value> {
    Some(serde_json::json!({ "kind": kind }))
}

/// The error of a read that needs consent, for a client of 2026-07-28 that cannot ask its user.
pub(super) fn consent_unavailable(fault: Fault) -> ErrorData {
    let mut error = to_error(fault);
    error.code = ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY;
    let Some(Value::Object(data)) = &mut error.data else { return error };
    // Clients drop each key of such an error's data that the specification does not name. They keep the message.
    if let Some(Value::String(hint)) = data.get("hint") {
        error.message = format!("{}; {hint}", error.message).into();
    }
    data.insert("requiredCapabilities".to_owned(), serde_json::json!({ "elicitation": { "form": {} } }));
    error
}

/// The error of a cursor that is malformed or belongs to another list.
pub(super) fn bad_cursor(why: &BadCursor) -> ErrorData {
    ErrorData::invalid_params(
        format!("the cursor {why}; list again from the start, without a cursor"),
        with_kind("bad-cursor"),
    )
}

/// The error of a malformed answer to a consent question. `why` completes "the answer to the question ...".
pub(super) fn bad_answer(why: &str) -> ErrorData {
    ErrorData::invalid_params(format!("the answer to the question {why}"), with_kind("bad-answer"))
}

/// The error of a completion for a reference that has none.
pub(super) fn bad_completion(why: &str) -> ErrorData {
    ErrorData::invalid_params(why.to_owned(), with_kind("bad-completion"))
}

/// The error of an invalid argument of a tool. The model sees it and can call again.
pub(super) fn bad_argument(why: &str) -> ErrorData {
    ErrorData::invalid_params(why.to_owned(), with_kind("bad-argument"))
}

/// The error of a call to an unknown tool.
pub(super) fn no_tool(name: &str) -> ErrorData {
    let name = text::quoted(name, 100);
    ErrorData::invalid_params(
        format!("there is no tool {name}; expected one that tools/list gives"),
        with_kind("no-tool"),
    )
}

/// The error of an unknown prompt.
pub(super) fn no_prompt(name: &str) -> ErrorData {
    let name = text::quoted(name, 100);
    let message = format!("there is no prompt {name}; expected one that prompts/list gives");
    ErrorData::invalid_params(message, with_kind("no-prompt"))
}

/// The error of a request whose questions do not end.
pub(super) fn asked_too_often(rounds: usize) -> ErrorData {
    let message = format!("the request asks more than {rounds} times, which is too often");
    ErrorData::internal_error(message, with_kind("asked-too-often"))
}

/// The error of a question of a session that the client did not answer.
pub(super) fn unanswered(why: &str) -> ErrorData {
    let message = format!("the client did not answer a question: {}", text::excerpt(why, 200));
    ErrorData::internal_error(message, with_kind("unanswered"))
}

/// The error of a request for a skill or directory that does not exist.
pub(super) fn no_skill(why: &str) -> ErrorData {
    ErrorData::invalid_params(why.to_owned(), with_kind("no-skill"))
}

/// The error of a failure of belljar itself. `details` go to the log only.
pub(crate) fn internal(details: String) -> ErrorData {
    to_error(Fault { error: ReadError::Internal(details), mount: None, uri: None })
}

/// The error of malformed parameters.
pub(super) fn invalid_params(method: &str, expected: &str) -> ErrorData {
    ErrorData::invalid_params(
        format!("malformed parameters of \"{method}\"; expected {expected}"),
        with_kind("invalid-params"),
    )
}

/// The error of an unknown method.
pub(super) fn method_not_found(method: &str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method {}", text::quoted(method, 100)), None)
}

/// The scopes that an error names as missing. `None` for any other error.
pub(super) fn missing_scopes(error: &ErrorData) -> Option<Vec<String>> {
    let scopes = error.data.as_ref()?.get(SCOPES)?.as_array()?;
    Some(scopes.iter().filter_map(|scope| scope.as_str().map(str::to_owned)).collect())
}

/// The error of a request whose credential is missing or not valid.
pub(crate) fn unauthenticated(why: String) -> ErrorData {
    to_error(Fault { error: ReadError::Unauthenticated(why), mount: None, uri: None })
}

/// The error of a request that cannot be served now, and may be served later.
pub(crate) fn unavailable(why: String) -> ErrorData {
    to_error(Fault { error: ReadError::Unavailable(why), mount: None, uri: None })
}

/// The error of a request that belljar has no capacity for.
pub(crate) fn busy(why: &str) -> ErrorData {
    to_error(Fault { error: ReadError::busy(why), mount: None, uri: None })
}

/// The error of a request that was evicted for another one of its connection.
pub(super) fn evicted() -> ErrorData {
    busy("too many requests are pending, and this one waited for longest")
}

/// The error of a request that the shutdown stopped or refused.
pub(super) fn shutting_down() -> ErrorData {
    unavailable(belljar_join::SHUTTING_DOWN.to_owned())
}

/// The error of a request that the client cancelled.
pub(super) fn cancelled() -> ErrorData {
    ErrorData::internal_error(ReadError::Cancelled.to_string(), with_kind(ReadError::Cancelled.kind()))
}

/// The error of a request whose handler panicked. The panic hook has logged the message of the panic.
pub(super) fn panicked() -> ErrorData {
    to_error(Fault { error: ReadError::Internal("a request handler panicked".to_owned()), mount: None, uri: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::error::{Limit, LimitKind};

    #[test]
    fn the_error_of_a_limit_names_mount_limit_used_cap_and_cure() {
        let fault = Fault {
            error: ReadError::Exhausted(Limit { kind: LimitKind::Fuel, used: 12, cap: 10 }),
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
    fn an_error_for_missing_scopes_names_all_of_them() {
        let scopes = vec!["notes:read".to_owned(), "logs:read".to_owned()];
        let error = ReadError::InsufficientScope { scopes: scopes.clone() };
        let error = to_error(Fault { error, mount: None, uri: Some("belljar://notes/a".to_owned()) });
        assert_eq!((error.code, missing_scopes(&error)), (ErrorCode::INVALID_REQUEST, Some(scopes)));
        assert!(error.message.ends_with("the request needs \"notes:read\" and \"logs:read\""), "{}", error.message);
        assert_eq!(missing_scopes(&busy("x")), None);
    }

    /// `belljar_join` is a small crate, and writes and knows these errors without this one.
    #[test]
    fn a_process_that_joins_knows_these_errors() {
        let value = |error: ErrorData| serde_json::to_value(error).unwrap();
        let own: serde_json::Value = serde_json::from_slice(&belljar_join::refusal("7", "why")).unwrap();
        assert_eq!((&own["id"], &own["error"]), (&7.into(), &value(unavailable("why".to_owned()))));
        assert!(belljar_join::is_shutting_down(&value(shutting_down()).to_string()));
        assert!(!belljar_join::is_shutting_down(&value(unavailable("why".to_owned())).to_string()));
        assert_eq!(belljar_join::READING_TOOLS, crate::gateway::definitions::OWN_TOOLS);
    }

    #[test]
    fn internal_details_are_not_sent() {
        let fault = Fault { error: ReadError::Internal("/home/x/secret".to_owned()), mount: None, uri: None };
        assert!(!serde_json::to_string(&to_error(fault)).unwrap().contains("secret"));
    }
}
