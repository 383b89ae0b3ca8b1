//! Standard output: one event on each line.

use std::io::Write as _;

use belljar_fetch_protocol::{Event, MAX_LINE};

/// Writes events. After a write that fails, nobody reads any more: all later events are dropped.
#[derive(Default)]
pub(crate) struct Output {
    is_closed: bool,
}

impl Output {
    /// True if nobody reads any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Writes one event.
    pub(crate) fn event(&mut self, event: &Event) {
        if self.is_closed {
            return;
        }
        let mut line = serde_json::to_vec(event).unwrap_or_default();
        debug_assert!(line.len() < MAX_LINE, "the bounds of texts and lists keep every event small");
        line.push(b'\n');
        let mut out = std::io::stdout().lock();
        self.is_closed = out.write_all(&line).and_then(|()| out.flush()).is_err();
    }
}
