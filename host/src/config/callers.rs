//! The table `[callers]`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::settings::MAX_CALLS;
use super::value::Count;
use crate::limits::CallerLimits;
use crate::limits::caller_quotas::{MAX_RATE, Rate};

/// `[callers]`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
#[schemars(default = "CallersTable::documented")]
pub(super) struct CallersTable {
    /// Requests of one client in a second, over time.
    #[schemars(example = 10)]
    rate: Option<Count<1, MAX_RATE>>,
    /// Requests that one client may send at once, after a pause.
    #[schemars(example = 50)]
    burst: Option<Count<1, MAX_RATE>>,
    /// Calls of the holder of one key, or of the subject of one token, that run at once over all mounts. Default: half of
    /// `calls`. Does not apply without authentication.
    #[schemars(example = 8)]
    concurrency: Option<Count<1, MAX_CALLS>>,
}

impl CallersTable {
    /// The defaults that the schema shows.
    fn documented() -> Self {
        let Rate { rate, burst } = Rate::default();
        Self { rate: Some(Count(rate.into())), burst: Some(Count(burst.into())), concurrency: None }
    }

    /// The limits, with the defaults of missing values.
    pub(super) fn limits(self) -> CallerLimits {
        let or = |value: Option<Count<1, MAX_RATE>>, default: u32| {
            value.map_or(default, |value| u32::try_from(value.0).unwrap_or(u32::MAX))
        };
        let default = Rate::default();
        let rate = Rate { rate: or(self.rate, default.rate), burst: or(self.burst, default.burst) };
        let concurrency = self.concurrency.map(|calls| usize::try_from(calls.0).unwrap_or(usize::MAX));
        CallerLimits { rate, concurrency }
    }
}
