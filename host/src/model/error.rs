//! Why a call gave nothing. One type from the sandbox to the wire; `mcp::fault` alone turns it into JSON-RPC.

use std::fmt;
use std::time::Duration;

use super::{Decision, MountName, Verdict, command, limits, reference, text};

/// Whose doing a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// Who asked.
    Caller,
    /// The component.
    Provider,
    /// Who configured.
    Operator,
    /// belljar or the machine.
    Host,
}

impl Blame {
    /// One lower-case word, for records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Provider => "provider",
            Self::Operator => "operator",
            Self::Host => "host",
        }
    }
}

/// The bounds that can stop a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// Instructions, about.
    Fuel,
    /// Wall time, in milliseconds.
    Time,
    /// Wall time of a listing over all mounts, in milliseconds.
    ListTime,
    /// Bytes over all linear memories and tables.
    Memory,
    /// Bytes of the answer.
    Result,
    /// Open handles: files, streams, timers.
    Handles,
    /// The same, where the process may not have as many files open as the limit says.
    OpenFiles,
    /// Bytes of one request for random numbers.
    Random,
    /// Bytes of native stack.
    Stack,
    /// Core instances, memories or tables of one component.
    Instances,
    /// Requests by HTTP.
    Requests,
    /// Bytes sent in bodies of requests.
    Upload,
    /// Bytes received in bodies of answers.
    Download,
}

impl Bound {
    /// The name under which the operator finds it in `[limits]`.
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

    /// `amount` with the bound's unit, as people write it (and as `[limits]` reads it).
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

    /// The most that `[limits]` accepts for it, in its unit; none: it cannot be configured.
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

/// What the operator does about too few open files.
pub const MORE_OPEN_FILES: &str = "raise the limit on open files of the process (\"ulimit -Hn\", or LimitNOFILE= of a service), or set a smaller  calls  at the top of the configuration";

/// `amount` bytes as people write it: the largest binary unit that loses nothing, else one decimal.
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

/// A bound that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Which.
    pub bound: Bound,
    /// What the call used or asked for, in the bound's unit; at least `cap` unless the call was stopped while waiting.
    pub used: u64,
    /// What it may use.
    pub cap: u64,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the {} limit was reached: used {} of {}",
            self.bound.as_str(),
            self.bound.show(self.used),
            self.bound.show(self.cap)
        )
    }
}

/// Why a mount that holds grants is not loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quarantine {
    /// Its component is not the one that the grants were given to.
    Changed,
    /// It is not known which component they were given to.
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
    /// What the operator does about it.
    pub fn cure(self, mount: &str) -> String {
        match self {
            Self::Changed => format!("to see what changed and accept it, run: {}", command::line(["trust", mount])),
            Self::Unknown => format!("to see why, run: {}", command::line(["check"])),
        }
    }
}

/// Why a call gave nothing. Texts that came from a guest are sanitised and cut before they get here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// No mount, or the mount's provider, knows the resource.
    NotFound,
    /// The same, where there is something that may have been meant.
    Nowhere {
        /// What there is, or may have been meant.
        why: String,
        /// The URI that may have been meant.
        instead: Option<String>,
    },
    /// The URI breaks a rule; says which.
    BadUri(String),
    /// The provider says that the reference or an argument is malformed.
    Invalid(String),
    /// The provider refused, or missed a grant; the first refusal on the trail says what would allow it.
    Denied {
        /// The provider's words.
        message: String,
        /// What belljar itself refused during the call. With `times` 0 it refused nothing: then it is a grant that the mount
        /// does not hold, or, as "allowed", one of which another may be meant.
        denial: Option<Decision>,
    },
    /// The state that came back with the answer to a question is not one that counts; says why.
    BadState(&'static str),
    /// Too many calls at once; says where.
    Busy(String),
    /// A limit was reached.
    Exhausted(Limit),
    /// The mount or what it stands on is not there now; the same call may succeed later. Words of ours.
    Unavailable(String),
    /// The provider says that what it stands on is not there now, in its own words.
    Down(String),
    /// The mount is not loaded until the operator says so.
    Quarantined(Quarantine),
    /// The provider says that it failed, in its own words.
    Provider(String),
    /// The component trapped; says how.
    Trapped(String),
    /// The answer breaks a rule; says which.
    BadOutput(String),
    /// It failed so several times in a row, and was not asked again this time.
    Again {
        /// How it failed the last time it was asked.
        last: Box<ReadError>,
        /// How many times in a row.
        times: u32,
        /// After what time it is asked again.
        pause: Duration,
    },
    /// The caller withdrew the request, or went away.
    Cancelled,
    /// Our own fault; the text is for the log, never for the wire.
    Internal(String),
}

impl ReadError {
    /// Whose doing it is.
    pub fn blame(&self) -> Blame {
        match self {
            Self::NotFound
            | Self::Nowhere { .. }
            | Self::BadUri(_)
            | Self::Invalid(_)
            | Self::BadState(_)
            | Self::Busy(_)
            | Self::Cancelled => Blame::Caller,
            Self::Denied { .. } | Self::Quarantined(_) => Blame::Operator,
            Self::Exhausted(_)
            | Self::Unavailable(_)
            | Self::Down(_)
            | Self::Provider(_)
            | Self::Trapped(_)
            | Self::BadOutput(_) => Blame::Provider,
            Self::Internal(_) => Blame::Host,
            Self::Again { last, .. } => last.blame(),
        }
    }

    /// One lower-case word a kind: `data.kind` on the wire, `outcome` in records.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotFound | Self::Nowhere { .. } => "not-found",
            Self::BadUri(_) => "bad-uri",
            Self::Invalid(_) => "invalid",
            Self::Denied { .. } => "denied",
            Self::BadState(_) => "bad-state",
            Self::Busy(_) => "busy",
            Self::Exhausted(_) => "limit",
            Self::Unavailable(_) | Self::Down(_) | Self::Quarantined(_) => "unavailable",
            Self::Provider(_) => "failed",
            Self::Trapped(_) => "trap",
            Self::BadOutput(_) => "bad-output",
            Self::Cancelled => "cancelled",
            Self::Internal(_) => "internal",
            Self::Again { last, .. } => last.kind(),
        }
    }

    /// The limit that was reached, if it was one.
    pub fn limit(&self) -> Option<&Limit> {
        match self {
            Self::Exhausted(limit) => Some(limit),
            Self::Again { last, .. } => last.limit(),
            _ => None,
        }
    }

    /// What the operator or the caller can do about it.
    pub fn hint(&self, mount: Option<&MountName>) -> Option<String> {
        if let Self::Again { last, .. } = self {
            return last.hint(mount);
        }
        let mount = mount.map_or("NAME", MountName::as_str);
        match self {
            Self::Exhausted(Limit { bound: Bound::OpenFiles, .. }) => Some(format!("to allow more, {MORE_OPEN_FILES}")),
            Self::Exhausted(limit) => {
                let max = limit.bound.max()?;
                if limit.used > max || limit.cap >= max {
                    return Some(format!("no setting allows more than {}", limit.bound.show(max)));
                }
                let name = limit.bound.as_str();
                let value = raised(limit, max);
                let (place, key) = match limit.bound {
                    Bound::ListTime => ("at the top of the configuration".to_owned(), name.to_owned()),
                    _ => (format!("under [mounts.{mount}.limits]"), format!("mounts.{mount}.limits.{name}")),
                };
                let run = command::line(["set", &format!("{key} = {value}")]);
                Some(format!("to allow more, set {name} = {value} {place}, or run: {run}"))
            }
            Self::Nowhere { instead, .. } => instead.as_ref().map(|uri| format!("read \"{uri}\"")),
            Self::Denied { denial, .. } => denial.as_ref().and_then(|d| d.cure.clone()),
            Self::BadState(_) => Some("read again, without a request state".to_owned()),
            Self::Busy(_) => Some("try again shortly".to_owned()),
            Self::Quarantined(why) => Some(why.cure(mount)),
            _ => None,
        }
    }
}

/// A value for the configuration that lets the call go on: twice what was used, at least twice the cap, at most `max`.
fn raised(limit: &Limit, max: u64) -> String {
    let wanted = limit.used.max(limit.cap).saturating_mul(2).min(max);
    match limit.bound {
        Bound::Fuel | Bound::Handles | Bound::OpenFiles | Bound::Instances | Bound::Requests => wanted.to_string(),
        // A mount has two thirds of a listing's time.
        Bound::ListTime => format!("\"{}s\"", (wanted / 2 * 3).div_ceil(1000)),
        Bound::Time => format!("\"{}s\"", wanted.div_ceil(1000)),
        Bound::Memory | Bound::Result | Bound::Random | Bound::Stack | Bound::Upload | Bound::Download => {
            format!("\"{}MiB\"", wanted.div_ceil(1 << 20))
        }
    }
}

impl ReadError {
    /// What belljar knows of it, in belljar's words alone.
    pub fn summary(&self) -> String {
        match self {
            Self::NotFound => "resource not found".to_owned(),
            Self::Nowhere { why, .. } => format!("resource not found: {why}"),
            Self::BadUri(why) => format!("the URI {why}"),
            Self::Invalid(_) => "the provider refused the request as invalid".to_owned(),
            Self::Denied { denial, .. } => match denial {
                None => "denied".to_owned(),
                Some(advice) if advice.verdict == Verdict::Allowed => "denied".to_owned(),
                Some(missing) if missing.times == 0 && missing.what.is_empty() => {
                    format!("denied; the mount holds no \"{}\" grant", missing.grant)
                }
                Some(missing) if missing.times == 0 => {
                    format!(
                        "denied; the mount was not granted {} {}",
                        missing.grant,
                        text::quoted(&missing.what, WORDS)
                    )
                }
                Some(denial) => {
                    format!("denied; belljar refused {}: {}", denial.grant, text::quoted(&denial.what, WORDS))
                }
            },
            Self::BadState(why) => format!("the request state {why}"),
            Self::Busy(what) => format!("busy: {what}"),
            Self::Exhausted(limit) => limit.to_string(),
            Self::Unavailable(why) => format!("unavailable: {why}"),
            Self::Down(_) => "unavailable".to_owned(),
            Self::Quarantined(why) => format!("unavailable: the mount is {why}"),
            Self::Provider(_) => "the provider failed".to_owned(),
            Self::Trapped(how) => format!("the provider trapped: {how}"),
            Self::BadOutput(why) => format!("the provider's answer was refused: {why}"),
            Self::Again { last, times, pause } => {
                let pause = humantime::format_duration(*pause);
                format!("{}; so it was {times} times in a row, and it is not asked again for {pause}", last.summary())
            }
            Self::Cancelled => "the caller withdrew the request".to_owned(),
            Self::Internal(_) => "internal error; the operator's log has the details".to_owned(),
        }
    }

    /// What the provider says of it, in its own words: never to be shown but behind its label, in quotation marks and last;
    /// see [`told`].
    pub fn said(&self) -> Option<&str> {
        match self {
            Self::Invalid(words) | Self::Down(words) | Self::Provider(words) | Self::Denied { message: words, .. } => {
                Some(words).filter(|words| !words.is_empty()).map(String::as_str)
            }
            Self::Again { last, .. } => last.said(),
            _ => None,
        }
    }

    /// All of it on one line: what belljar knows, what to do about it, and last what the provider says.
    pub fn with_cure(&self, mount: Option<&MountName>) -> String {
        let cure = self.hint(mount).map(|cure| format!("; {cure}")).unwrap_or_default();
        told(format!("{}{cure}", self.summary()), self.said())
    }
}

/// What stands before a provider's words, wherever they are shown.
pub const SAYS: &str = "the provider says: ";

/// Characters of a provider's own words that are passed on.
pub const WORDS: usize = 1024;

/// A sentence of ours, and behind it what a provider says: labelled, and in quotation marks that it cannot leave.
pub fn told(ours: String, said: Option<&str>) -> String {
    match said {
        Some(words) => format!("{ours}; {SAYS}{}", text::quoted(words, WORDS)),
        None => ours,
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&told(self.summary(), self.said()))
    }
}

impl std::error::Error for ReadError {}

/// A failed request: the error and, when one was found, the mount that it happened in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Why.
    pub error: ReadError,
    /// Where.
    pub mount: Option<MountName>,
    /// The URI that was asked for, when there was one.
    pub uri: Option<String>,
}

impl Fault {
    /// What belljar knows of it, in belljar's words alone.
    pub fn summary(&self) -> String {
        let Some(uri) = &self.uri else { return self.error.summary() };
        let uri = text::quoted(uri, reference::MAX_URI);
        match &self.error {
            ReadError::NotFound => format!("resource not found: {uri}"),
            ReadError::Nowhere { why, .. } => format!("resource not found: {uri}; {why}"),
            ReadError::BadUri(why) => format!("the URI {uri} {why}"),
            error => format!("cannot read {uri}: {}", error.summary()),
        }
    }

    /// All of it, a line each: what belljar knows, what to do about it, and last what the provider says.
    pub fn in_lines(&self) -> String {
        let mut lines = self.summary();
        if let Some(hint) = self.error.hint(self.mount.as_ref()) {
            lines.push_str(&format!("\n  {hint}"));
        }
        if let Some(words) = self.error.said() {
            lines.push_str(&format!("\n  {SAYS}{}", text::quoted(words, WORDS)));
        }
        lines
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&told(self.summary(), self.error.said()))
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests;
