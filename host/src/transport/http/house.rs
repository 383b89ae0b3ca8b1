//! Who is inside: so many connections, and when there are as many, the one that does least gives way to a newcomer.
//!
//! A client that connects and says nothing, or takes its answer drop by drop, costs nobody else their place.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::model::Guard;

/// How long a client is given to say its request before it gives way: as many as there are places come in that time.
const GRACE: Duration = Duration::from_millis(100);

/// How long an answer or a stream is left alone when there is no room: a client that reads takes what there is sooner.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// What a connection is at. The earlier ones give way first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// It has not asked anything yet.
    Silent,
    /// It was answered, and may ask again.
    Idle,
    /// It has not said its request to the end.
    Asking,
    /// It takes its answer, or listens to a stream.
    Taking,
    /// Somebody works on its answer. It never gives way.
    Served,
}

/// All connections.
pub(super) struct House {
    most: usize,
    patience: Duration,
    guests: Mutex<Guests>,
}

#[derive(Default)]
struct Guests {
    next: u64,
    inside: HashMap<u64, Arc<Guest>>,
}

/// One connection.
pub(super) struct Guest {
    stage: Mutex<(Stage, Instant)>,
    /// By when what is being written must have been taken.
    due: Mutex<Option<Instant>>,
    cut: CancellationToken,
}

/// A place inside, given back when dropped.
pub(super) struct Entry {
    house: Arc<House>,
    number: u64,
    pub(super) guest: Arc<Guest>,
}

impl House {
    /// `patience`: see [`PATIENCE`].
    pub(super) fn new(most: usize, patience: Duration) -> Arc<Self> {
        Arc::new(Self { most, patience, guests: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place; none when the house is full, and nobody gives way now.
    pub(super) fn enter(self: &Arc<Self>) -> Option<Entry> {
        let mut guests = self.lock();
        if Guard::Connections.is_on() && guests.inside.len() >= self.most && !guests.make_room(self.patience) {
            return None;
        }
        let number = guests.next;
        guests.next += 1;
        let guest = Arc::new(Guest {
            stage: Mutex::new((Stage::Silent, Instant::now())),
            due: Mutex::default(),
            cut: CancellationToken::new(),
        });
        guests.inside.insert(number, Arc::clone(&guest));
        Some(Entry { house: Arc::clone(self), number, guest })
    }

    /// Ends the connection that does least, for want of descriptors rather than of places.
    pub(super) fn make_room(&self) -> bool {
        Guard::Connections.is_on() && self.lock().make_room(self.patience)
    }
}

impl Guests {
    fn make_room(&mut self, patience: Duration) -> bool {
        let now = Instant::now();
        let least = |(number, guest): (&u64, &Arc<Guest>)| {
            let (stage, since) = *guest.lock();
            let gives_way = match stage {
                Stage::Served => false,
                Stage::Taking => now.duration_since(since) >= patience,
                Stage::Silent | Stage::Idle | Stage::Asking => now.duration_since(since) >= GRACE.min(patience),
            };
            gives_way.then_some((stage, since, *number))
        };
        let Some((_, _, number)) = self.inside.iter().filter_map(least).min() else { return false };
        if let Some(guest) = self.inside.remove(&number) {
            guest.cut.cancel();
        }
        true
    }
}

impl Guest {
    fn lock(&self) -> MutexGuard<'_, (Stage, Instant)> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what it is at now.
    pub(super) fn is_at(&self, stage: Stage) {
        *self.lock() = (stage, Instant::now());
    }

    /// Says by when what is being written must have been taken.
    pub(super) fn is_due(&self, by: Option<Instant>) {
        *self.due.lock().unwrap_or_else(PoisonError::into_inner) = by;
    }

    /// It ends before its client has taken everything: nothing is kept for it any more.
    pub(super) fn is_cut(&self) {
        self.cut.cancel();
    }

    /// Whether it ends like that.
    pub(super) fn was_cut(&self) -> bool {
        self.cut.is_cancelled()
    }

    /// Waits until the connection has to end: it gives way, or takes too long for its answer. To be polled by the task that
    /// serves the connection, after it: what is [due](Self::is_due) is said from there, and looked at here, without a wake
    /// for each answer.
    pub(super) async fn over(&self) {
        let mut late: Option<Pin<Box<Sleep>>> = None;
        let late = poll_fn(|cx| match *self.due.lock().unwrap_or_else(PoisonError::into_inner) {
            // A timer that has begun is kept: nearly every answer is taken before its time.
            None => Poll::Pending,
            Some(by) => {
                let late = late.get_or_insert_with(|| Box::pin(sleep_until(by)));
                if late.deadline() != by {
                    late.as_mut().reset(by);
                }
                late.as_mut().poll(cx)
            }
        });
        tokio::select! { biased; () = self.cut.cancelled() => {}, () = late => {} }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.house.lock().inside.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_does_least_gives_way() {
        let patience = Duration::from_millis(600);
        let house = House::new(4, patience);
        let enter = |stage| {
            let entry = house.enter().unwrap();
            entry.guest.is_at(stage);
            entry
        };
        let first = [Stage::Served, Stage::Taking, Stage::Idle, Stage::Silent].map(enter);
        assert!(house.enter().is_none(), "who has only come is left alone");
        tokio::time::sleep(GRACE).await;
        let cut = || first.each_ref().map(|entry| entry.guest.cut.is_cancelled());
        let one = enter(Stage::Served);
        assert_eq!(cut(), [false, false, false, true]);
        let _two = enter(Stage::Served);
        assert_eq!(cut(), [false, false, true, true]);
        assert!(house.enter().is_none(), "an answer is left alone for a while");
        tokio::time::sleep(patience).await;
        let _three = enter(Stage::Served);
        assert_eq!(cut(), [false, true, true, true]);
        assert!(house.enter().is_none(), "who is served does not give way");
        drop(one);
        assert!(house.enter().is_some());
    }

    #[tokio::test]
    async fn what_is_not_taken_in_time_ends_the_connection() {
        let entry = House::new(1, PATIENCE).enter().unwrap();
        let guest = &entry.guest;
        let soon = || Some(Instant::now() + Duration::from_millis(100));
        let taken = async {
            guest.is_due(soon());
            tokio::time::sleep(Duration::from_millis(50)).await;
            guest.is_due(None);
            tokio::time::sleep(Duration::from_millis(300)).await;
            guest.is_due(soon());
            std::future::pending::<()>().await;
        };
        let began = Instant::now();
        // One task, as for a connection.
        tokio::select! { biased; () = taken => {}, () = guest.over() => {} }
        assert!(began.elapsed() >= Duration::from_millis(450), "the first was taken");
    }
}
