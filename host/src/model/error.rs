//! Errors of calls. One type from the sandbox to the gateway; `mcp::fault` alone converts it to JSON-RPC.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::busy::{BusyReason, show_pause};
use super::decision_log::{Decision, DecisionKind};
use super::name::MountName;
pub use super::quarantine::Quarantine;
pub use super::reached_limit::{Limit, LimitKind, OPEN_FILES_CURE, show_bytes};
use super::{command, reference, text};

/// The party that caused a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The caller of the request.
    Caller,
    /// The component.
    Provider,
    /// The operator who configured the mount.
    Operator,
    /// belljar or the machine it runs on.
    Host,
}

impl Blame {
    /// One lower-case word for audit records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Provider => "provider",
            Self::Operator => "operator",
            Self::Host => "host",
        }
    }
}

/// The error of a failed call. Texts from a guest are sanitised and cut before they get here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReadError {
    /// No mount knows the resource, or the provider of the mount does not.
    NotFound,
    /// No such resource, but there is a similar one or a reason to report.
    NotFoundWithHint {
        /// The reason, or the names that do exist.
        why: String,
        /// A URI that the caller may have meant.
        suggestion: Option<String>,
    },
    /// The URI breaks a rule. The text continues "the URI ...".
    BadUri(String),
    /// The provider reports a malformed reference or argument, in its own words.
    Invalid(String),
    /// The arguments of a tool or a prompt do not fit its definition. The text continues "the arguments do not fit: ...".
    BadArguments(String),
    /// An answer to a question is malformed. The text continues "the answer to the question ...".
    BadAnswer(String),
    /// The provider refused the request, or lacked a grant. The first refusal in the decision log says which grant
    /// would allow the request.
    Denied {
        /// The provider's own words.
        message: String,
        /// The first refusal by belljar during the call. `times` 0 means that belljar refused nothing. Then it names a
        /// grant that the mount lacks; or, with [`DecisionKind::Allowed`], one that it holds, where the provider may
        /// need another of the same kind.
        denial: Option<Decision>,
    },
    /// The mount needs a secret of the principal, and there is no usable one.
    NoPrincipalSecret {
        /// The name of the secret.
        secret: String,
        /// Where the file of the principal would be, below the directory of the secret.
        file: String,
        /// True if there is no file. False if it cannot be used; the log has the reason.
        is_absent: bool,
    },
    /// The request state that the client sent back is not valid. The text continues "the request state ...".
    BadRequestState(String),
    /// Too many calls at once, or a quota is used up.
    Busy(BusyReason),
    /// A limit was reached.
    Exhausted(Limit),
    /// A limit of the calls of tools was reached.
    ToolExhausted(Limit),
    /// The mount or its backend is not available now; the same call may succeed later. The text is belljar's own.
    Unavailable(String),
    /// The provider reports that its backend is not available now, in its own words.
    ProviderUnavailable(String),
    /// The mount is not loaded until the operator acts.
    Quarantined(Quarantine),
    /// The provider reports a failure, in its own words.
    ProviderFailed(String),
    /// The component trapped. The text is the reason.
    Trapped(String),
    /// The result of the provider breaks a rule. The text says which.
    BadOutput(String),
    /// The circuit breaker is open: the operation failed several times in a row, and this request was not passed on.
    CircuitOpen {
        /// The error of the last attempt.
        last: Box<ReadError>,
        /// Number of consecutive failures.
        times: u32,
        /// Time until the next attempt.
        retry_after: Duration,
    },
    /// No rule allows the request to this principal, but one would allow it to a holder of these scopes.
    InsufficientScope {
        /// All scopes that the request needs.
        scopes: Vec<String>,
    },
    /// The request was refused before anything was read: its credential is missing or not valid. The text says why.
    Unauthenticated(String),
    /// The caller cancelled the request or disconnected.
    Cancelled,
    /// An error of belljar itself. The text is for the log and never sent to a client.
    Internal(String),
}

impl ReadError {
    /// The refusal of a request as busy, if it is not known when the next one can succeed.
    pub fn busy(why: impl Into<BusyReason>) -> Self {
        Self::Busy(why.into())
    }

    /// The party that caused the failure.
    pub fn blame(&self) -> Blame {
        match self {
            Self::NotFound
            | Self::NotFoundWithHint { .. }
            | Self::BadUri(_)
            | Self::Invalid(_)
            | Self::BadArguments(_)
            | Self::BadAnswer(_)
            | Self::BadRequestState(_)
            | Self::Busy(_)
            | Self::InsufficientScope { .. }
            | Self::Unauthenticated(_)
            | Self::Cancelled => Blame::Caller,
            Self::Denied { .. } | Self::NoPrincipalSecret { .. } | Self::Quarantined(_) => Blame::Operator,
            Self::Exhausted(_)
            | Self::ToolExhausted(_)
            | Self::Unavailable(_)
            | Self::ProviderUnavailable(_)
            | Self::ProviderFailed(_)
            | Self::Trapped(_)
            | Self::BadOutput(_) => Blame::Provider,
            Self::Internal(_) => Blame::Host,
            Self::CircuitOpen { last, .. } => last.blame(),
        }
    }

    /// One lower-case word for each kind of error: `data.kind` in responses, `outcome` in records.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotFound | Self::NotFoundWithHint { .. } => "not-found",
            Self::BadUri(_) => "bad-uri",
            Self::Invalid(_) => "invalid",
            Self::BadArguments(_) => "bad-argument",
            Self::BadAnswer(_) => "bad-answer",
            Self::Denied { .. } | Self::NoPrincipalSecret { .. } => "denied",
            Self::BadRequestState(_) => "bad-state",
            Self::Busy(_) => "busy",
            Self::Exhausted(_) | Self::ToolExhausted(_) => "limit",
            Self::Unavailable(_) | Self::ProviderUnavailable(_) | Self::Quarantined(_) => "unavailable",
            Self::ProviderFailed(_) => "failed",
            Self::Trapped(_) => "trap",
            Self::BadOutput(_) => "bad-output",
            Self::InsufficientScope { .. } => "insufficient-scope",
            Self::Unauthenticated(_) => "unauthenticated",
            Self::Cancelled => "cancelled",
            Self::Internal(_) => "internal",
            Self::CircuitOpen { last, .. } => last.kind(),
        }
    }

    /// The limit that was reached, if the error is about one.
    pub fn limit(&self) -> Option<&Limit> {
        match self {
            Self::Exhausted(limit) | Self::ToolExhausted(limit) => Some(limit),
            Self::CircuitOpen { last, .. } => last.limit(),
            _ => None,
        }
    }

    /// The time after which the same request can succeed, if it is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy(busy) => busy.retry_after,
            Self::CircuitOpen { retry_after, .. } => Some(*retry_after),
            _ => None,
        }
    }

    /// The cure: the step that the operator or the caller takes next.
    pub fn hint(&self, mount: Option<&MountName>) -> Option<String> {
        if let Self::CircuitOpen { last, .. } = self {
            return last.hint(mount);
        }
        let mount = mount.map_or("NAME", MountName::as_str);
        match self {
            Self::Exhausted(Limit { kind: LimitKind::OpenFiles, .. }) => {
                Some(format!("to allow more, {OPEN_FILES_CURE}"))
            }
            Self::Exhausted(limit) | Self::ToolExhausted(limit) => {
                let max = limit.kind.max()?;
                if limit.used > max || limit.cap >= max {
                    return Some(format!("no setting allows more than {}", limit.kind.show(max)));
                }
                let name = limit.kind.as_str();
                let value = raised(limit, max);
                let is_of_tools = matches!(self, Self::ToolExhausted(_)) && limit.kind.is_of_tools();
                let table = if is_of_tools { "limits.tools" } else { "limits" };
                let (place, key) = match limit.kind {
                    LimitKind::ListTime => ("at the top of the configuration".to_owned(), name.to_owned()),
                    _ => (format!("under [mounts.{mount}.{table}]"), format!("mounts.{mount}.{table}.{name}")),
                };
                let run = command::line(["set", &format!("{key} = {value}")]);
                Some(format!("to allow more, set {name} = {value} {place}, or run: {run}"))
            }
            Self::NotFoundWithHint { suggestion, .. } => suggestion.as_ref().map(|uri| format!("read \"{uri}\"")),
            Self::Denied { denial, .. } => denial.as_ref().and_then(|d| d.cure.clone()),
            Self::NoPrincipalSecret { secret, file, is_absent: true } => Some(format!(
                "put your secret into the file \"{file}\", below the directory of secrets.{secret} in the configuration; only belljar's user may have access to it"
            )),
            Self::NoPrincipalSecret { secret, file, is_absent: false } => Some(format!(
                "correct the file \"{file}\", below the directory of secrets.{secret} in the configuration; the operator's log has the reason"
            )),
            Self::BadRequestState(_) => Some("send the request again, without a request state".to_owned()),
            Self::Busy(BusyReason { retry_after: Some(pause), .. }) => {
                Some(format!("try again in {}", show_pause(*pause)))
            }
            Self::Busy(_) => Some("try again shortly".to_owned()),
            Self::InsufficientScope { .. } => {
                Some("get a token with these scopes, or ask the operator for a key that has them".to_owned())
            }
            Self::Quarantined(why) => Some(why.cure(mount)),
            _ => None,
        }
    }
}

/// A configuration value that lets the call succeed: twice the used amount, at least twice the cap, at most `max`.
fn raised(limit: &Limit, max: u64) -> String {
    let wanted = limit.used.max(limit.cap).saturating_mul(2).min(max);
    match limit.kind {
        LimitKind::Fuel | LimitKind::Handles | LimitKind::OpenFiles | LimitKind::Instances | LimitKind::Requests => {
            wanted.to_string()
        }
        // One mount may take two thirds of the time of a listing.
        LimitKind::ListTime => format!("\"{}s\"", (wanted / 2 * 3).div_ceil(1000)),
        LimitKind::Time => format!("\"{}s\"", wanted.div_ceil(1000)),
        LimitKind::Memory
        | LimitKind::Result
        | LimitKind::Random
        | LimitKind::Stack
        | LimitKind::Upload
        | LimitKind::Download => {
            format!("\"{}MiB\"", wanted.div_ceil(1 << 20))
        }
    }
}

impl ReadError {
    /// The error in belljar's own words, without any text from the provider.
    pub fn summary(&self) -> String {
        match self {
            Self::NotFound => "resource not found".to_owned(),
            Self::NotFoundWithHint { why, .. } => format!("resource not found: {why}"),
            Self::BadUri(why) => format!("the URI {why}"),
            Self::BadArguments(why) => format!("the arguments do not fit: {why}"),
            Self::BadAnswer(why) => format!("the answer to the question {why}"),
            Self::Invalid(_) => "the provider refused the request as invalid".to_owned(),
            Self::Denied { denial, .. } => match denial {
                None => "denied".to_owned(),
                Some(advice) if advice.verdict == DecisionKind::Allowed => "denied".to_owned(),
                Some(missing) if missing.times == 0 && missing.target.is_empty() => {
                    format!("denied; the mount holds no \"{}\" grant", missing.grant)
                }
                Some(missing) if missing.times == 0 => {
                    format!(
                        "denied; the mount was not granted {} {}",
                        missing.grant,
                        text::quoted(&missing.target, MAX_PROVIDER_TEXT)
                    )
                }
                Some(denial) => {
                    format!(
                        "denied; belljar refused {}: {}",
                        denial.grant,
                        text::quoted(&denial.target, MAX_PROVIDER_TEXT)
                    )
                }
            },
            Self::NoPrincipalSecret { secret, is_absent, .. } => {
                let why = if *is_absent { "has none" } else { "cannot use it" };
                format!("denied; the mount needs a secret \"{secret}\" of your own, and belljar {why}")
            }
            Self::BadRequestState(why) => format!("the request state {why}"),
            Self::Busy(busy) => format!("busy: {}", busy.why),
            Self::Exhausted(limit) | Self::ToolExhausted(limit) => limit.to_string(),
            Self::Unavailable(why) => format!("unavailable: {why}"),
            Self::ProviderUnavailable(_) => "unavailable".to_owned(),
            Self::Quarantined(why) => format!("unavailable: the mount is {why}"),
            Self::ProviderFailed(_) => "the provider failed".to_owned(),
            Self::Trapped(how) => format!("the provider trapped: {how}"),
            Self::BadOutput(why) => format!("the provider's answer was refused: {why}"),
            Self::CircuitOpen { last, times, retry_after: pause } => {
                let pause = humantime::format_duration(*pause);
                format!("{}; failed {times} times in a row; next attempt in {pause}", last.summary())
            }
            Self::InsufficientScope { scopes } => {
                let scopes: Vec<_> = scopes.iter().map(|scope| text::quoted(scope, MAX_SCOPE_TEXT)).collect();
                format!("the credential lacks a scope; the request needs {}", scopes.join(" and "))
            }
            Self::Unauthenticated(why) => format!("not authenticated: {why}"),
            Self::Cancelled => "the caller withdrew the request".to_owned(),
            Self::Internal(_) => "internal error; the operator's log has the details".to_owned(),
        }
    }

    /// The provider's own words. They must be shown last, behind a label and in quotation marks; see
    /// [`with_provider_text`].
    pub fn provider_text(&self) -> Option<&str> {
        match self {
            Self::Invalid(words)
            | Self::ProviderUnavailable(words)
            | Self::ProviderFailed(words)
            | Self::Denied { message: words, .. } => Some(words).filter(|words| !words.is_empty()).map(String::as_str),
            Self::CircuitOpen { last, .. } => last.provider_text(),
            _ => None,
        }
    }

    /// The whole error on one line: belljar's summary, the cure, and last the provider's words.
    pub fn with_cure(&self, mount: Option<&MountName>) -> String {
        let cure = self.hint(mount).map(|cure| format!("; {cure}")).unwrap_or_default();
        with_provider_text(format!("{}{cure}", self.summary()), self.provider_text())
    }
}

/// Characters of a scope that are shown.
const MAX_SCOPE_TEXT: usize = 200;

/// The label in front of a provider's words, wherever they are shown.
pub const PROVIDER_SAYS: &str = "the provider says: ";

/// Characters of a provider's own words that are shown.
pub const MAX_PROVIDER_TEXT: usize = 1024;

/// `ours`, followed by the provider's words with a label and in quotation marks. Escaping keeps the words inside the
/// marks.
pub fn with_provider_text(ours: String, said: Option<&str>) -> String {
    match said {
        Some(words) => format!("{ours}; {PROVIDER_SAYS}{}", text::quoted(words, MAX_PROVIDER_TEXT)),
        None => ours,
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&with_provider_text(self.summary(), self.provider_text()))
    }
}

impl std::error::Error for ReadError {}

/// A failed request: the error, with its mount and URI if they are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The error.
    pub error: ReadError,
    /// The mount in which the request failed.
    pub mount: Option<MountName>,
    /// The requested URI, if there is one.
    pub uri: Option<String>,
}

impl Fault {
    /// The error in belljar's own words, without any text from the provider.
    pub fn summary(&self) -> String {
        let Some(uri) = &self.uri else { return self.error.summary() };
        let uri = text::quoted(uri, reference::MAX_URI);
        match &self.error {
            ReadError::NotFound => format!("resource not found: {uri}"),
            ReadError::NotFoundWithHint { why, .. } => format!("resource not found: {uri}; {why}"),
            ReadError::BadUri(why) => format!("the URI {uri} {why}"),
            error => format!("cannot read {uri}: {}", error.summary()),
        }
    }

    /// The whole error, one line each: belljar's summary, the cure, and last the provider's words.
    pub fn multi_line(&self) -> String {
        let mut lines = self.summary();
        if let Some(hint) = self.error.hint(self.mount.as_ref()) {
            lines.push_str(&format!("\n  {hint}"));
        }
        if let Some(words) = self.error.provider_text() {
            lines.push_str(&format!("\n  {PROVIDER_SAYS}{}", text::quoted(words, MAX_PROVIDER_TEXT)));
        }
        lines
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&with_provider_text(self.summary(), self.error.provider_text()))
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests;
