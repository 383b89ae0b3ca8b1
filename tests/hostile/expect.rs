//! What must come of one request, judged strictly: an error that does not say what was reached, how far, and what helps is
//! as bad as none.

use belljar_tests::client::INTERNAL;
use belljar_tests::{RpcError, steers};
use serde_json::Value;

/// An answer: the result, or the error that came instead.
pub(crate) type Answer = Result<Value, RpcError>;

/// JSON-RPC's "invalid parameters".
pub(crate) const INVALID_PARAMS: i64 = -32602;

/// What must come of a request.
pub(crate) enum Expect {
    /// An error that names one of these limits, what was used, the cap, and the cure.
    Limit(&'static [&'static str]),
    /// An error of one of these kinds.
    Kind(&'static [&'static str]),
    /// Contents that have this text, whole.
    Text(&'static str),
    /// Contents whose text contains all of these.
    Contains(&'static [&'static str]),
    /// Whatever this says of it: what the client saw, or why that may not be.
    That(Judge),
}

/// See [`Expect::That`].
pub(crate) type Judge = Box<dyn Fn(&Answer) -> Result<String, String> + Send + Sync>;

/// An error of one limit.
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

/// A trap.
pub(crate) fn trap() -> Expect {
    Expect::Kind(&["trap"])
}

/// An answer that is refused.
pub(crate) fn bad_output() -> Expect {
    Expect::Kind(&["bad-output"])
}

/// Whatever `check` says.
pub(crate) fn that(check: impl Fn(&Answer) -> Result<String, String> + Send + Sync + 'static) -> Expect {
    Expect::That(Box::new(check))
}

impl Expect {
    /// Judges an answer of `mount`: what the client saw, or why that may not be.
    pub(crate) fn judge(&self, answer: &Answer, mount: &str) -> Result<String, String> {
        let unexpected = || match answer {
            Ok(result) => format!("answered with {}", cut(&result.to_string())),
            Err(error) => format!("failed with {}", cut(&error.to_string())),
        };
        match self {
            Expect::Limit(names) => {
                let error = answer.as_ref().err().ok_or_else(unexpected)?;
                reached(error, mount, names)
            }
            Expect::Kind(kinds) => {
                let error = answer.as_ref().err().ok_or_else(unexpected)?;
                error_of(error, mount, kinds)
            }
            Expect::Text(wanted) => match text(answer) {
                Some(text) if text == *wanted => Ok(format!("answer \"{}\"", cut(wanted))),
                _ => Err(unexpected()),
            },
            Expect::Contains(parts) => match text(answer) {
                Some(text) if parts.iter().all(|part| text.contains(part)) => Ok(format!("answer \"{}\"", cut(text))),
                _ => Err(format!("{} and not with {parts:?}", unexpected())),
            },
            Expect::That(check) => check(answer),
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

/// Whether an answer says that there is no turn just now.
pub(crate) fn is_busy(answer: &Answer) -> bool {
    answer.as_ref().is_err_and(|error| kind(error) == "busy")
}

/// An error of one of `kinds`, in `mount`, that carries nothing which steers a terminal.
pub(crate) fn error_of(error: &RpcError, mount: &str, kinds: &[&str]) -> Result<String, String> {
    let wrong = |what: &str| Err(format!("{what}: {}", cut(&error.to_string())));
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

/// An error of one of these limits: mount, limit, used, cap and cure (R17).
fn reached(error: &RpcError, mount: &str, names: &[&str]) -> Result<String, String> {
    let wrong = |what: &str| Err(format!("{what}: {}", cut(&error.to_string())));
    error_of(error, mount, &["limit"])?;
    let data = &error.data;
    let Some(name) = data["limit"].as_str().filter(|name| names.contains(name)) else {
        return wrong(&format!("not a limit of {names:?}"));
    };
    let (Some(used), Some(cap)) = (data["used"].as_u64(), data["cap"].as_u64()) else {
        return wrong("does not tell what was used and the cap");
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
    // The stack and the number of instances are no settings.
    if !cured && !["stack", "instances"].contains(&name) {
        return wrong("does not say what helps");
    }
    Ok(format!("limit {name}"))
}

/// Whether a text has nothing that steers a terminal, reorders or hides.
pub(crate) fn is_clean(text: &str) -> bool {
    !text.chars().any(steers)
}

/// The beginning of a text that is told.
pub(crate) fn cut(text: &str) -> String {
    let mut short: String = text.chars().take(300).collect();
    if short.len() < text.len() {
        short += " ...";
    }
    short
}
