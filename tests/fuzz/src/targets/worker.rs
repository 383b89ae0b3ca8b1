//! The socket between the front and a worker process, with a side that sends any bytes: `sandbox::worker`.

use belljar::sandbox::worker_fuzzing;

/// Bytes of the smallest frame.
const SMALLEST: usize = 6;

/// A worker that was taken over. Without a call that runs, nothing that it says about a call is taken.
pub(super) fn worker(bytes: &[u8]) {
    assert!(worker_fuzzing::front_hears(bytes) <= bytes.len() / SMALLEST, "more messages than frames");
}

/// A front that sends what is no message.
pub(super) fn front(bytes: &[u8]) {
    assert!(worker_fuzzing::worker_hears(bytes) <= 2 * bytes.len() / SMALLEST, "more messages than frames");
}

/// Messages of both sides.
pub(super) fn seeds() -> Vec<(String, Vec<u8>)> {
    worker_fuzzing::seeds().into_iter().enumerate().map(|(at, bytes)| (format!("message-{at}"), bytes)).collect()
}
