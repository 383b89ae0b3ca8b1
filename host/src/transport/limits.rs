//! The times of the shutdown, the same for each transport.

use std::time::Duration;

/// Running requests may continue for this time after a shutdown begins. Then they are stopped and answered with an
/// error.
pub const DRAIN: Duration = Duration::from_millis(800);

/// The answers of stopped requests must be written within this time. They usually take a fraction of it.
pub const LAST_ANSWERS_TIME: Duration = Duration::from_millis(500);

/// Clients may take this time to read the last answers after that.
pub(super) const LAST_READ_TIME: Duration = Duration::from_millis(150);
