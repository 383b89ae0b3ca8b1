//! The expected outcome of one request, and the check of its answer. An error of a limit must name the limit, the usage,
//! the cap and the cure.

use belljar_tests::client::INTERNAL;
use belljar_tests::{RpcError, is_deceptive};
use serde_json::Value;

/// The answer to a request: a result or an error.
pub(crate) type Answer = Result<Value, RpcError>;

/// JSON-RPC's "invalid parameters".
pub(crate) const INVALID_PARAMS: i64 = -32602;

/// The expected outcome of a request.
pub(crate) enum Expect {
    /// An error that names one of these limits, the usage, the cap, and the cure.
    Limit(&'static [&'static str]),
    /// An error of one of these kinds.
    Kind(&'static [&'static str]),
    /// Contents with exactly this text.
    Text(&'static str),
    /// Contents whose text contains all of these.
    Contains(&'static [&'static str]),
    /// An answer that a function accepts.
    Matching(Judge),
}

/// Checks an answer. Returns a description of the answer, or the reason why the answer is wrong.
pub(crate) type Judge = Box<dyn Fn(&Answer) -> Result<String, String> + Send + Sync>;

/// Expects an error of the limit `name`.
pub(crate) fn limit(name: &'static str) -> Expect {
    match name {
        "fuel" => Expect::Limit(&["fuel"]),
        "time" => Expect::Limit(&["time"]),
        "memory" => Expect::Limit(&["memory"]),
        "result" => Expect::Limit(&["result"]),
        "handles" => Expect::Limit(&["handles"]),
        "random" => Expect::Limit(&["random"]),
        "stack" => Expect::Limit(&["stack"]),
        "instances" => Expect::Limit(&["instances"]),
        "requests" => Expect::Limit(&["requests"]),
        "download" => Expect::Limit(&["download"]),
        _ => panic!("no limit {name:?}"),
    }
}

/// Expects a trap.
pub(crate) fn trap() -> Expect {
    Expect::Kind(&["trap"])
}

/// Expects an error because belljar refused the guest's answer.
pub(crate) fn bad_output() -> Expect {
    Expect::Kind(&["bad-output"])
}

/// Expects an answer that `check` accepts.
pub(crate) fn matching(check: impl Fn(&Answer) -> Result<String, String> + Send + Sync + 'static) -> Expect {
    Expect::Matching(Box::new(check))
}

impl Expect {
    /// Checks an answer of `mount`. Returns a description of the answer, or the reason why the answer is wrong.
    pub(crate) fn judge(&self, answer: &Answer, mount: &str) -> Result<String, String> {
        let unexpected = || match answer {
            Ok(result) => format!("answered with {}", cut(&result.to_string())),
            Err(error) => format!("failed with {}", cut(&error.to_string())),
        };
        match self {
            Expect::Limit(names) => {
                let error = answer.as_ref().err().ok_or_else(unexpected)?;
                check_limit(error, mount, names)
            }
            Expect::Kind(kinds) => {
                let error = answer.as_ref().err().ok_or_else(unexpected)?;
                check_error(error, mount, kinds)
            }
            Expect::Text(wanted) => match text(answer) {
                Some(text) if text == *wanted => Ok(format!("answer \"{}\"", cut(wanted))),
                _ => Err(unexpected()),
            },
            Expect::Contains(parts) => match text(answer) {
                Some(text) if parts.iter().all(|part| text.contains(part)) => Ok(format!("answer \"{}\"", cut(text))),
                _ => Err(format!("{} and not with {parts:?}", unexpected())),
            },
            Expect::Matching(check) => check(answer),
        }
    }
}

/// The text of an answer with one content.
pub(crate) fn text(answer: &Answer) -> Option<&str> {
    answer.as_ref().ok()?.pointer("/contents/0/text")?.as_str()
}

/// The kind of an error.
pub(crate) fn kind(error: &RpcError) -> &str {
    error.data["kind"].as_str().unwrap_or("none")
}

/// True if the answer is the error `busy`.
pub(crate) fn is_busy(answer: &Answer) -> bool {
    answer.as_ref().is_err_and(|error| kind(error) == "busy")
}

/// Checks that an error has one of `kinds`, names `mount`, and has no characters that control a terminal.
pub(crate) fn check_error(error: &RpcError, mount: &str, kinds: &[&str]) -> Result<String, String> {
    let wrong = |problem: &str| Err(format!("{problem}: {}", cut(&error.to_string())));
    if !kinds.contains(&kind(error)) {
        return wrong(&format!("not one of {kinds:?}"));
    }
    let unrouted = matches!(kind(error), "bad-uri" | "not-found");
    if error.data["mount"] != mount && !(unrouted && error.data["mount"].is_null()) {
        return wrong(&format!("names another mount than \"{mount}\""));
    }
    if !is_clean(&error.message) {
        return wrong("its message is not clean");
    }
    Ok(kind(error).to_owned())
}

/// Checks that an error names one of these limits, its mount, the usage, the cap and the cure.
fn check_limit(error: &RpcError, mount: &str, names: &[&str]) -> Result<String, String> {
    let wrong = |problem: &str| Err(format!("{problem}: {}", cut(&error.to_string())));
    check_error(error, mount, &["limit"])?;
    let data = &error.data;
    let Some(name) = data["limit"].as_str().filter(|name| names.contains(name)) else {
        return wrong(&format!("not a limit of {names:?}"));
    };
    let (Some(used), Some(cap)) = (data["used"].as_u64(), data["cap"].as_u64()) else {
        return wrong("does not give the usage and the cap");
    };
    if error.code != INTERNAL || used < cap {
        return wrong("stopped before its limit, or with another code");
    }
    if !error.message.contains(&format!("the {name} limit was reached")) {
        return wrong("its message does not name the limit");
    }
    let cured = data["hint"].as_str().is_some_and(|hint| {
        hint.contains(&format!("set {name} = ")) && hint.contains(&format!("[mounts.{mount}.limits]"))
            || hint.starts_with("no setting allows more than")
    });
    // No setting changes the limits `stack` and `instances`, so their errors name no cure.
    if !cured && !["stack", "instances"].contains(&name) {
        return wrong("does not name the cure");
    }
    Ok(format!("limit {name}"))
}

/// True if the text has no character that controls a terminal, or hides or reorders text.
pub(crate) fn is_clean(text: &str) -> bool {
    !text.chars().any(is_deceptive)
}

/// The first 300 characters of a text, for a message.
pub(crate) fn cut(text: &str) -> String {
    let mut short: String = text.chars().take(300).collect();
    if short.len() < text.len() {
        short += " ...";
    }
    short
}
