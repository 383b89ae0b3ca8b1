//! Those who see each event.

use super::event::Event;

/// Sees each event, on the thread that records it.
pub trait EventObserver: Send + Sync {
    /// Takes note of an event. Must not block.
    fn observe(&self, event: &Event);
}
