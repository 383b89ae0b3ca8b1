//! What a connection still owes its client: so many requests at once, and room for one more all the same.
//!
//! Reads that only wait could take every place for as long as they like. So the one that has waited for longest gives way to
//! a newcomer, answered as busy; and requests that run no guest have places of their own.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{ClientRequest, RequestId};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::mcp::exchange::Exchange;
use crate::mcp::turn::Turn;
use crate::model::Guard;

/// How many requests may be pending; for one more, another gives way, or it is refused as busy. Notifications are always read,
/// so that what is pending can be withdrawn.
pub(super) const MAX_PENDING: usize = 512;

/// Places for requests that run no guest, beyond these: they are answered at once.
const RESERVE: usize = 32;

/// How long a read may wait for its turn before it gives way: a burst of more reads than there are places is over by then, or
/// is refused.
const WAIT: Duration = Duration::from_millis(250);

/// What the client of a read that gave way is told.
pub(super) const GAVE_WAY: &str = "too many requests are pending, and this one waited for longest";

/// Requests that were read, and neither answered nor withdrawn.
#[derive(Default)]
pub(super) struct Pending {
    ids: Mutex<HashMap<RequestId, Owed>>,
    /// What the answers of those that are rmcp's are charged to.
    exchanges: Mutex<HashMap<RequestId, Exchange>>,
    changed: Notify,
}

/// One request.
struct Owed {
    begun: Begun,
    since: Instant,
    can_give_way: bool,
}

/// What a request is begun with.
#[derive(Clone)]
pub(super) struct Begun {
    /// Withdraws it, unless it is rmcp's, which rmcp withdraws.
    pub(super) withdrawn: CancellationToken,
    /// How far it is.
    pub(super) turn: Turn,
}

/// Which places a request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It goes the short way, and gives way while it waits.
    Plain,
    /// It may run guests.
    Other,
    /// It runs none.
    Guestless,
}

impl Kind {
    /// The kind of a request that rmcp serves.
    pub(super) fn of(request: &ClientRequest) -> Self {
        match request {
            ClientRequest::InitializeRequest(_)
            | ClientRequest::DiscoverRequest(_)
            | ClientRequest::PingRequest(_)
            | ClientRequest::ListToolsRequest(_)
            | ClientRequest::UnsubscribeRequest(_) => Self::Guestless,
            _ => Self::Other,
        }
    }
}

/// Why a request is not begun.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turned {
    /// There are too many.
    TooMany,
    /// Another one has its id.
    Taken,
}

impl Pending {
    fn with<T>(&self, work: impl FnOnce(&mut HashMap<RequestId, Owed>) -> T) -> T {
        work(&mut self.ids.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What the answers of requests that are rmcp's are charged to.
    pub(super) fn exchanges(&self) -> MutexGuard<'_, HashMap<RequestId, Exchange>> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request, if it may be begun.
    pub(super) fn add(&self, id: &RequestId, kind: Kind) -> Result<Begun, Turned> {
        let most = if kind == Kind::Guestless { MAX_PENDING + RESERVE } else { MAX_PENDING };
        self.with(|ids| {
            if Guard::Pending.is_on() {
                if ids.contains_key(id) {
                    return Err(Turned::Taken);
                }
                if ids.len() >= most && !make_room(ids) {
                    return Err(Turned::TooMany);
                }
            }
            let begun = Begun { withdrawn: CancellationToken::new(), turn: Turn::default() };
            let owed = Owed { begun: begun.clone(), since: Instant::now(), can_give_way: kind == Kind::Plain };
            ids.insert(id.clone(), owed);
            Ok(begun)
        })
    }

    /// A request was answered.
    pub(super) fn remove(&self, id: &RequestId) {
        self.take(id);
    }

    /// A request was withdrawn.
    pub(super) fn withdraw(&self, id: &RequestId) {
        if let Some(begun) = self.take(id) {
            begun.withdrawn.cancel();
        }
    }

    fn take(&self, id: &RequestId) -> Option<Begun> {
        let removed = self.with(|ids| ids.remove(id));
        self.exchanges().remove(id);
        if removed.is_some() {
            self.changed.notify_waiters();
        }
        removed.map(|owed| owed.begun)
    }

    /// Waits until every request is answered.
    pub(super) async fn answered(&self) {
        loop {
            let changed = self.changed.notified();
            if self.with(|ids| ids.is_empty()) {
                return;
            }
            changed.await;
        }
    }
}

/// Has the read give way that has waited for longest; false if none waits for long.
fn make_room(ids: &mut HashMap<RequestId, Owed>) -> bool {
    let now = Instant::now();
    let waits =
        |owed: &Owed| owed.can_give_way && !owed.begun.turn.has_begun() && now.duration_since(owed.since) >= WAIT;
    let longest = ids.iter().filter(|(_, owed)| waits(owed)).min_by_key(|(_, owed)| owed.since);
    let Some(id) = longest.map(|(id, _)| id.clone()) else { return false };
    if !ids.get(&id).is_some_and(|owed| owed.begun.turn.give_way()) {
        return false;
    }
    if let Some(owed) = ids.remove(&id) {
        owed.begun.withdrawn.cancel();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> RequestId {
        RequestId::Number(i64::try_from(number).unwrap())
    }

    #[tokio::test]
    async fn who_waited_for_longest_gives_way_and_who_runs_does_not() {
        let pending = Pending::default();
        let all: Vec<_> = (0..MAX_PENDING).map(|at| pending.add(&id(at), Kind::Plain).ok().unwrap()).collect();
        all[0].turn.begin();
        assert_eq!(pending.add(&id(1000), Kind::Plain).err(), Some(Turned::TooMany), "a burst is refused");
        tokio::time::sleep(WAIT).await;
        assert!(pending.add(&id(1000), Kind::Plain).is_ok());
        let gone = |at: usize| (all[at].turn.gave_way(), all[at].withdrawn.is_cancelled());
        assert_eq!((gone(0), gone(1)), ((false, false), (true, true)));
        // It is answered as busy by whoever has it, and counts no more.
        assert!(pending.add(&id(1), Kind::Other).is_ok());
        assert_eq!(gone(2), (true, true));
    }

    #[tokio::test]
    async fn requests_without_a_guest_have_places_of_their_own() {
        let pending = Pending::default();
        for at in 0..MAX_PENDING {
            assert!(pending.add(&id(at), Kind::Other).is_ok());
        }
        assert_eq!(pending.add(&id(1000), Kind::Other).err(), Some(Turned::TooMany));
        for at in 0..RESERVE {
            assert!(pending.add(&id(2000 + at), Kind::Guestless).is_ok());
        }
        assert_eq!(pending.add(&id(3000), Kind::Guestless).err(), Some(Turned::TooMany));
    }
}
