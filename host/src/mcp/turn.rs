//! How far a request is: a transport that is short of places ends requests that only wait, before those that are worked on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use http::request::Parts;
use rmcp::RoleServer;
use rmcp::service::RequestContext;

/// How far one request is. The transport makes it, the handler begins it, the transport looks.
#[derive(Clone, Default)]
pub struct Turn(Arc<AtomicU8>);

/// Its call waits: for a turn, or for somebody who reads the same.
const WAITS: u8 = 0;

/// Its call has its turn.
const RUNS: u8 = 1;

/// It gave way to another request, and is answered as busy.
const GAVE_WAY: u8 = 2;

impl Turn {
    /// The turn of an HTTP request that goes through rmcp.
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Option<&Self> {
        context.extensions.get::<Parts>()?.extensions.get()
    }

    /// The call has its turn.
    pub fn begin(&self) {
        let _ = self.0.compare_exchange(WAITS, RUNS, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// True if the call has its turn.
    pub fn has_begun(&self) -> bool {
        self.0.load(Ordering::Relaxed) == RUNS
    }

    /// Has the request give way, if its call has no turn yet. Says whether it does.
    pub fn give_way(&self) -> bool {
        self.0.compare_exchange(WAITS, GAVE_WAY, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// True if the request gave way.
    pub fn gave_way(&self) -> bool {
        self.0.load(Ordering::Relaxed) == GAVE_WAY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_gives_way_while_it_waits_and_only_then() {
        let running = Turn::default();
        running.begin();
        assert!(running.has_begun() && !running.give_way() && !running.gave_way());
        let waiting = Turn::default();
        assert!(!waiting.has_begun() && waiting.give_way() && waiting.gave_way());
        waiting.begin();
        assert!(!waiting.has_begun(), "what gave way does not begin");
    }
}
