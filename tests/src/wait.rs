//! Waits for an event that no blocking call reports: a record, a log line, or a state of a process.

use std::fmt::Display;
use std::thread;
use std::time::{Duration, Instant};

/// The longest wait of a test for an event that must come. Even with ten other builds on the machine, no event takes
/// this long. A test must not assert that an event comes within a shorter time.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// The time between two polls.
const INTERVAL: Duration = Duration::from_millis(10);

/// Calls `poll` until it returns `Ok`, and returns the value.
///
/// `Err` holds the observed state. After [`DEADLINE`] the test fails. The message names the test, `what` (the event),
/// and the last state.
pub fn wait_until<T, S: Display>(what: &str, poll: impl FnMut() -> Result<T, S>) -> T {
    wait_until_within(DEADLINE, what, poll)
}

/// Like [`wait_until`], with another deadline. For events that may take longer, such as the compilation of large
/// components.
pub fn wait_until_within<T, S: Display>(deadline: Duration, what: &str, mut poll: impl FnMut() -> Result<T, S>) -> T {
    let began = Instant::now();
    loop {
        match poll() {
            Ok(found) => return found,
            Err(seen) if began.elapsed() >= deadline => {
                let thread = thread::current();
                let test = thread.name().unwrap_or("a test");
                panic!("{test}: waited {deadline:?} for {what}; last seen: {seen}")
            }
            Err(_) => thread::sleep(INTERVAL),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_the_first_successful_poll_is_returned() {
        let mut polls = 0;
        let found = wait_until("the third poll", || {
            polls += 1;
            (polls == 3).then_some(polls).ok_or("too early")
        });
        assert_eq!(found, 3);
    }

    #[test]
    #[should_panic(expected = "for a word; last seen: another word")]
    fn a_failure_names_the_event_and_the_last_state() {
        wait_until_within::<(), _>(Duration::from_millis(20), "a word", || Err("another word"));
    }
}
