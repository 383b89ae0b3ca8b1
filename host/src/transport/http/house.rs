//! Who is inside: so many connections, and when there are as many, the one that does least gives way to a newcomer.
//!
//! A client that connects and says nothing, takes its answer drop by drop, waits for reads that do not end, listens, or asks
//! without a pause costs nobody else their place. Who gives way, when every place is taken:
//!
//! | it | after | how it ends |
//! |---|---|---|
//! | has not asked, or was answered | [`GRACE`] | closed |
//! | has not said its request to the end | [`GRACE`] | told that belljar is busy |
//! | waits: its call has no turn | [`WAIT`] | told that belljar is busy |
//! | listens to a stream | [`WAIT`] | the stream ends |
//! | takes its answer | [`PATIENCE`] | closed |
//! | has its turn | [`PATIENCE`] | told that belljar is busy |
//!
//! The first lines go first; within a line, connections of the address that has most of them, then those that have been at
//! it for longest. Calls that have their turn are bounded by admission, far below the number of places, so that the last line
//! is for odd configurations. When nobody gives way, the connection that has been inside for longest is closed after its
//! present answer. Waiting and listening take half of all places at most once it becomes tight.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::mcp::turn::Turn;
use crate::model::Guard;

/// How long a client is given to say its request before it gives way: as many as there are places come in that time.
const GRACE: Duration = Duration::from_millis(100);

/// How long a request may wait for its turn, and a stream for news, before it gives way: longer than a burst of short reads
/// takes, and short for a newcomer.
const WAIT: Duration = Duration::from_millis(250);

/// How long an answer or a stream is left alone when there is no room: a client that reads takes what there is sooner.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// How long a connection that gave way has to take the word about it.
const FAREWELL: Duration = Duration::from_millis(500);

/// What a connection is at. The earlier ones give way first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// It has not asked anything yet.
    Silent,
    /// It was answered, and may ask again.
    Idle,
    /// It has not said its request to the end.
    Asking,
    /// Somebody works on its answer, or will: its call may wait for a turn.
    Served,
    /// It listens to a stream.
    Listening,
    /// It takes its answer.
    Taking,
    /// Its call has its turn. Never said by anyone: see [`Guest::at`].
    Running,
}

impl Stage {
    /// How long it is left alone.
    fn grace(self, patience: Duration) -> Duration {
        match self {
            Self::Silent | Self::Idle | Self::Asking => GRACE.min(patience),
            Self::Served | Self::Listening => WAIT.min(patience),
            Self::Taking | Self::Running => patience,
        }
    }

    /// Whether it waits for what may never come.
    fn waits(self) -> bool {
        matches!(self, Self::Served | Self::Listening)
    }

    /// Whether there is a request to answer, or a stream to end.
    fn is_answered(self) -> bool {
        matches!(self, Self::Asking | Self::Served | Self::Listening | Self::Running)
    }
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
    /// Those that gave way and are being told so.
    leaving: HashMap<u64, Arc<Guest>>,
}

/// One connection.
pub(super) struct Guest {
    peer: IpAddr,
    entered: Instant,
    stage: Mutex<(Stage, Instant, Turn)>,
    /// By when what is being written must have been taken.
    due: Mutex<Option<Instant>>,
    cut: CancellationToken,
    /// It gives way: what it asked is answered as busy.
    gives_way: AtomicBool,
    /// It is closed after its present answer.
    is_last: AtomicBool,
    /// What it did not take is forgotten.
    is_reset: AtomicBool,
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

    /// Takes a place for a connection from `peer`; none when the house is full, and nobody gives way now.
    pub(super) fn enter(self: &Arc<Self>, peer: IpAddr) -> Option<Entry> {
        let mut guests = self.lock();
        if Guard::Connections.is_on() {
            let present = guests.inside.len();
            if present >= self.most && !guests.make_room(self.most, self.patience) {
                return None;
            }
            // While it is tight, the next one to come shall find a place at once.
            if present < self.most && present >= self.most / 4 * 3 {
                guests.thin_out(self.most, self.patience);
            }
        }
        let number = guests.next;
        guests.next += 1;
        let now = Instant::now();
        let guest = Arc::new(Guest {
            peer,
            entered: now,
            stage: Mutex::new((Stage::Silent, now, Turn::default())),
            due: Mutex::default(),
            cut: CancellationToken::new(),
            gives_way: AtomicBool::new(false),
            is_last: AtomicBool::new(false),
            is_reset: AtomicBool::new(false),
        });
        guests.inside.insert(number, Arc::clone(&guest));
        Some(Entry { house: Arc::clone(self), number, guest })
    }

    /// Ends the connection that does least, for want of descriptors rather than of places.
    pub(super) fn make_room(&self) -> bool {
        Guard::Connections.is_on() && self.lock().make_room(self.most, self.patience)
    }
}

impl Guests {
    /// Has one connection give way; false if none does now.
    fn make_room(&mut self, most: usize, patience: Duration) -> bool {
        let least = self.least(patience, |_| true);
        if let Some(number) = least {
            return self.dismiss(number, most);
        }
        // All are busy: somebody who has been here for longest may not ask again.
        let now = Instant::now();
        let can_be_last = |guest: &&Arc<Guest>| {
            now.duration_since(guest.entered) >= GRACE.min(patience) && !guest.is_last.load(Ordering::Relaxed)
        };
        if let Some(longest) = self.inside.values().filter(can_be_last).min_by_key(|guest| guest.entered) {
            longest.is_last.store(true, Ordering::Relaxed);
        }
        false
    }

    /// Has one of those that wait or listen give way, if they take more than half of all places.
    fn thin_out(&mut self, most: usize, patience: Duration) {
        let waiting = self.inside.values().filter(|guest| guest.at().0.waits()).count();
        if waiting > most / 2
            && let Some(number) = self.least(patience, Stage::waits)
        {
            self.dismiss(number, most);
        }
    }

    /// The connection that gives way first among those at a stage that `is_meant`.
    fn least(&self, patience: Duration, is_meant: impl Fn(Stage) -> bool) -> Option<u64> {
        let now = Instant::now();
        let mut of_peer: HashMap<IpAddr, usize> = HashMap::new();
        self.inside.values().for_each(|guest| *of_peer.entry(guest.peer).or_default() += 1);
        let gives_way = |(number, guest): (&u64, &Arc<Guest>)| {
            let (stage, since) = guest.at();
            let is_over = is_meant(stage) && now.duration_since(since) >= stage.grace(patience);
            is_over.then(|| (stage, Reverse(of_peer.get(&guest.peer).copied()), since, *number))
        };
        self.inside.iter().filter_map(gives_way).min().map(|(.., number)| number)
    }

    /// Ends a connection. One that asked something is told so first; of those there are not too many at once.
    fn dismiss(&mut self, number: u64, most: usize) -> bool {
        let Some(guest) = self.inside.get(&number) else { return false };
        if guest.at().0.is_answered() {
            if self.leaving.len() >= (most / 4).max(1) {
                return false;
            }
            guest.gives_way.store(true, Ordering::Relaxed);
            self.leaving.insert(number, Arc::clone(guest));
        }
        guest.cut.cancel();
        self.inside.remove(&number);
        true
    }
}

impl Guest {
    fn lock(&self) -> MutexGuard<'_, (Stage, Instant, Turn)> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it is at, and since when.
    fn at(&self) -> (Stage, Instant) {
        let stage = self.lock();
        match *stage {
            (Stage::Served, since, ref turn) if turn.has_begun() => (Stage::Running, since),
            (stage, since, _) => (stage, since),
        }
    }

    /// Says what it is at now.
    pub(super) fn is_at(&self, stage: Stage) {
        let mut own = self.lock();
        (own.0, own.1) = (stage, Instant::now());
    }

    /// Says that somebody works on its answer from now on; gives what says that its call has its turn.
    pub(super) fn is_served(&self) -> Turn {
        let turn = Turn::default();
        *self.lock() = (Stage::Served, Instant::now(), turn.clone());
        turn
    }

    /// True if it gives way: whatever it asked is answered as busy.
    pub(super) fn gives_way(&self) -> bool {
        self.gives_way.load(Ordering::Relaxed)
    }

    /// True if nothing is read from it after its present answer.
    pub(super) fn is_last(&self) -> bool {
        self.is_last.load(Ordering::Relaxed) || self.gives_way()
    }

    /// Says by when what is being written must have been taken.
    pub(super) fn is_due(&self, by: Option<Instant>) {
        *self.due.lock().unwrap_or_else(PoisonError::into_inner) = by;
    }

    /// It ends before its client has taken everything: nothing is kept for it any more.
    pub(super) fn is_cut(&self) {
        self.is_reset.store(true, Ordering::Relaxed);
    }

    /// Whether it ends like that.
    pub(super) fn was_cut(&self) -> bool {
        self.is_reset.load(Ordering::Relaxed)
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
        let cut = async {
            self.cut.cancelled().await;
            if self.gives_way() {
                sleep(FAREWELL).await;
            }
        };
        tokio::select! { biased; () = cut => {}, () = late => {} }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut guests = self.house.lock();
        if guests.inside.remove(&self.number).is_none() {
            guests.leaving.remove(&self.number);
        }
    }
}

#[cfg(test)]
mod tests;
