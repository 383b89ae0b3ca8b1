//! The limits that a call can reach.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::limits;

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

    /// True if calls of tools can have another limit of this kind than other calls.
    pub fn is_of_tools(self) -> bool {
        matches!(
            self,
            Self::Time | Self::Fuel | Self::Memory | Self::Result | Self::Requests | Self::Upload | Self::Download
        )
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
