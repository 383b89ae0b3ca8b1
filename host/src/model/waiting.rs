//! How tests wait for events.

use std::time::Duration;

use tokio::time::{sleep, timeout};

/// Longer than any event takes on a busy machine.
pub(crate) const EVENT_TIME: Duration = Duration::from_secs(60);

/// Waits until `condition` is true.
///
/// # Panics
/// With `what`, if that takes longer than [`EVENT_TIME`].
pub(crate) async fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let polls = async {
        while !condition() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(timeout(EVENT_TIME, polls).await.is_ok(), "it did not happen: {what}");
}
