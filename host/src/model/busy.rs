//! The reason of a refusal as busy, and the time after which the caller may come again.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Why a request was refused as busy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusyReason {
    /// Says where there are too many calls.
    pub why: String,
    /// The time after which the same request can succeed. `None`: not known.
    pub retry_after: Option<Duration>,
}

impl BusyReason {
    /// The same reason, for a request that can succeed after `pause`.
    #[must_use]
    pub fn retry_after(self, pause: Duration) -> Self {
        Self { retry_after: Some(pause), ..self }
    }
}

impl From<String> for BusyReason {
    fn from(why: String) -> Self {
        Self { why, retry_after: None }
    }
}

impl From<&str> for BusyReason {
    fn from(why: &str) -> Self {
        why.to_owned().into()
    }
}

/// `pause` as people read it: rounded up to milliseconds, and to seconds from 10 s on.
pub fn show_pause(pause: Duration) -> String {
    let ms = pause.as_nanos().div_ceil(1_000_000).max(1);
    let ms = if ms >= 10_000 { ms.div_ceil(1000).saturating_mul(1000) } else { ms };
    humantime::format_duration(Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX))).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_rounded_up() {
        for (pause, shown) in [
            (Duration::ZERO, "1ms"),
            (Duration::from_nanos(1_000_001), "2ms"),
            (Duration::from_millis(1500), "1s 500ms"),
            (Duration::from_millis(10_001), "11s"),
            (Duration::from_secs(3600), "1h"),
        ] {
            assert_eq!(show_pause(pause), shown);
        }
    }
}
