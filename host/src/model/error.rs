//! Errors of calls. One type from the sandbox to the gateway; `mcp::fault` alone converts it to JSON-RPC.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::decision_log::{Decision, DecisionKind};
use super::name::MountName;
use super::{command, limits, reference, text};

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

/// The limits that can stop a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LimitKind {
    /// Fuel: about one unit an instruction.
    Fuel,
    /// Wall time, in milliseconds.
    Time,
    /// Wall time of a listing over all mounts, in milliseconds.
    ListTime,
    /// Bytes over all linear memories and tables.
    Memory,
    /// Bytes of the result.
    Result,
    /// Open handles: files, streams, timers.
    Handles,
    /// Open handles, if the process may open fewer files than the handle limit says.
    OpenFiles,
    /// Bytes of one request for random numbers.
    Random,
    /// Bytes of native stack.
    Stack,
    /// Core instances, memories or tables of one component.
    Instances,
    /// HTTP requests.
    Requests,
    /// Bytes sent in request bodies.
    Upload,
    /// Bytes received in response bodies.
    Download,
}

impl LimitKind {
    /// The name of the limit in `[limits]`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fuel => "fuel",
            Self::Time => "time",
            Self::ListTime => "list-time",
            Self::Memory => "memory",
            Self::Result => "result",
            Self::Handles => "handles",
            Self::OpenFiles => "open-files",
            Self::Random => "random",
            Self::Stack => "stack",
            Self::Instances => "instances",
            Self::Requests => "requests",
            Self::Upload => "upload",
            Self::Download => "download",
        }
    }

    /// `amount` with its unit, in the spelling that `[limits]` accepts.
    pub fn show(self, amount: u64) -> String {
        match self {
            Self::Time | Self::ListTime => {
                humantime::format_duration(std::time::Duration::from_millis(amount)).to_string()
            }
            Self::Memory | Self::Result | Self::Random | Self::Stack | Self::Upload | Self::Download => {
                show_bytes(amount)
            }
            Self::Fuel | Self::Handles | Self::OpenFiles | Self::Instances | Self::Requests => amount.to_string(),
        }
    }

    /// The largest value that `[limits]` accepts, in the unit of the limit. `None` if the limit cannot be configured.
    pub fn max(self) -> Option<u64> {
        match self {
            Self::Time | Self::ListTime => u64::try_from(limits::MAX_TIME.as_millis()).ok(),
            Self::Fuel => Some(limits::MAX_FUEL),
            Self::Memory => Some(limits::MAX_MEMORY),
            Self::Result => Some(limits::MAX_RESULT),
            Self::Handles => Some(limits::MAX_HANDLES),
            Self::Random => Some(limits::MAX_RANDOM),
            Self::Requests => Some(limits::MAX_REQUESTS),
            Self::Upload | Self::Download => Some(limits::MAX_TRAFFIC),
            Self::Stack | Self::Instances | Self::OpenFiles => None,
        }
    }
}

/// The cure for too few open files.
pub const OPEN_FILES_CURE: &str = "raise the limit on open files of the process (\"ulimit -Hn\", or LimitNOFILE= of a service), or set a smaller  calls  at the top of the configuration";

/// `amount` bytes in the largest binary unit that divides it, otherwise with one decimal.
pub fn show_bytes(amount: u64) -> String {
    for (unit, name) in [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if amount >= unit {
            return if amount.is_multiple_of(unit) {
                format!("{}{name}", amount / unit)
            } else {
                #[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
                let value = amount as f64 / unit as f64;
                format!("{value:.1}{name}")
            };
        }
    }
    format!("{amount}B")
}

/// A limit that a call reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// The limit.
    pub kind: LimitKind,
    /// The amount that the call used or requested, in the unit of the limit. At least `cap`, unless the call was
    /// stopped while it waited.
    pub used: u64,
    /// The largest allowed amount.
    pub cap: u64,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the {} limit was reached: used {} of {}",
            self.kind.as_str(),
            self.kind.show(self.used),
            self.kind.show(self.cap)
        )
    }
}

/// Why a mount with grants is not loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Quarantine {
    /// The component is not the one that the grants were given to.
    Changed,
    /// The lock does not say to which component the grants were given.
    Unknown,
}

impl fmt::Display for Quarantine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Changed => "in quarantine: its component is not the one that its grants were given to",
            Self::Unknown => "in quarantine: its component could not be bound to its grants",
        })
    }
}

impl Quarantine {
    /// The command that the operator runs next.
    pub fn cure(self, mount: &str) -> String {
        match self {
            Self::Changed => format!("to see what changed and accept it, run: {}", command::line(["trust", mount])),
            Self::Unknown => format!("to see why, run: {}", command::line(["check"])),
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
    /// The request state that the client sent back is not valid. The text continues "the request state ...".
    BadRequestState(String),
    /// Too many calls at once. The text says where.
    Busy(String),
    /// A limit was reached.
    Exhausted(Limit),
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
    /// The caller cancelled the request or disconnected.
    Cancelled,
    /// An error of belljar itself. The text is for the log and never sent to a client.
    Internal(String),
}

impl ReadError {
    /// The party that caused the failure.
    pub fn blame(&self) -> Blame {
        match self {
            Self::NotFound
            | Self::NotFoundWithHint { .. }
            | Self::BadUri(_)
            | Self::Invalid(_)
            | Self::BadRequestState(_)
            | Self::Busy(_)
            | Self::Cancelled => Blame::Caller,
            Self::Denied { .. } | Self::Quarantined(_) => Blame::Operator,
            Self::Exhausted(_)
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
            Self::Denied { .. } => "denied",
            Self::BadRequestState(_) => "bad-state",
            Self::Busy(_) => "busy",
            Self::Exhausted(_) => "limit",
            Self::Unavailable(_) | Self::ProviderUnavailable(_) | Self::Quarantined(_) => "unavailable",
            Self::ProviderFailed(_) => "failed",
            Self::Trapped(_) => "trap",
            Self::BadOutput(_) => "bad-output",
            Self::Cancelled => "cancelled",
            Self::Internal(_) => "internal",
            Self::CircuitOpen { last, .. } => last.kind(),
        }
    }

    /// The limit that was reached, if the error is about one.
    pub fn limit(&self) -> Option<&Limit> {
        match self {
            Self::Exhausted(limit) => Some(limit),
            Self::CircuitOpen { last, .. } => last.limit(),
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
            Self::Exhausted(limit) => {
                let max = limit.kind.max()?;
                if limit.used > max || limit.cap >= max {
                    return Some(format!("no setting allows more than {}", limit.kind.show(max)));
                }
                let name = limit.kind.as_str();
                let value = raised(limit, max);
                let (place, key) = match limit.kind {
                    LimitKind::ListTime => ("at the top of the configuration".to_owned(), name.to_owned()),
                    _ => (format!("under [mounts.{mount}.limits]"), format!("mounts.{mount}.limits.{name}")),
                };
                let run = command::line(["set", &format!("{key} = {value}")]);
                Some(format!("to allow more, set {name} = {value} {place}, or run: {run}"))
            }
            Self::NotFoundWithHint { suggestion, .. } => suggestion.as_ref().map(|uri| format!("read \"{uri}\"")),
            Self::Denied { denial, .. } => denial.as_ref().and_then(|d| d.cure.clone()),
            Self::BadRequestState(_) => Some("read again, without a request state".to_owned()),
            Self::Busy(_) => Some("try again shortly".to_owned()),
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
            Self::BadRequestState(why) => format!("the request state {why}"),
            Self::Busy(what) => format!("busy: {what}"),
            Self::Exhausted(limit) => limit.to_string(),
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
