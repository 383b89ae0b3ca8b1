//! What is known of a client's request when it arrives.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::text;
use super::trace_context::TraceContext;

/// Characters of the name of a tool or prompt that are kept.
const MAX_NAME: usize = 200;

/// What is known of a client's request when it arrives. Exactly one event has it, however many calls the request causes.
#[derive(Debug)]
pub struct RequestInfo {
    /// The method, or [`RequestInfo::UNKNOWN`].
    pub method: &'static str,
    /// The revision of the protocol, if the client named a known one.
    pub revision: Option<&'static str>,
    /// The size of the message in bytes. `None` if the transport does not count it.
    pub bytes: Option<usize>,
    /// The span of the request, if it is traced.
    pub trace: Option<TraceContext>,
    name: OnceLock<String>,
    began: Instant,
    is_recorded: AtomicBool,
}

impl RequestInfo {
    /// The method of a request that belljar does not know.
    pub const UNKNOWN: &str = "unknown";

    /// A request that arrived now.
    pub fn new(method: &'static str, revision: Option<&'static str>, bytes: Option<usize>) -> Self {
        let (name, began, is_recorded) = (OnceLock::new(), Instant::now(), AtomicBool::new(false));
        Self { method, revision, bytes, trace: None, name, began, is_recorded }
    }

    /// The same request with this span.
    #[must_use]
    pub fn traced(self, trace: Option<TraceContext>) -> Self {
        Self { trace, ..self }
    }

    /// Stores the public name of the tool or prompt that the request asks for. At most 200 characters are kept.
    pub fn set_name(&self, name: &str) {
        let _ = self.name.set(text::excerpt(name, MAX_NAME));
    }

    /// The public name of the tool or prompt that the request asks for, as the client gave it.
    pub fn name(&self) -> Option<&str> {
        self.name.get().map(String::as_str)
    }

    /// The time since the request arrived.
    pub fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// Gives the request to the first event that asks for it, and to no other.
    pub fn claim(self: &Arc<Self>) -> Option<Arc<Self>> {
        (!self.is_recorded.swap(true, Ordering::Relaxed)).then(|| Arc::clone(self))
    }

    /// True if an event has the request.
    pub fn is_recorded(&self) -> bool {
        self.is_recorded.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_event_has_the_request() {
        let request = Arc::new(RequestInfo::new("ping", None, None));
        assert!(!request.is_recorded());
        assert!(request.claim().is_some() && request.claim().is_none());
        assert!(request.is_recorded());
    }
}
