//! One replica: its connection to the store, its beats, its rounds and its requests. Policy, quotas, leases and news are the
//! code of belljar; this file has the loops around them, which belong to a server with real providers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use belljar::limits::Admission;
use belljar::store::{
    AnswerId, AnswerLookup, BEAT_INTERVAL, Generation, GenerationContents, Heard, News, RENEW_INTERVAL, RoundNews,
    RoundRole, SharedStore, StateNews,
};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::load::{Crowd, Rules, pause};
use crate::observer::Observer;
use crate::scenario::{Incident, Leases, Scenario};

/// How often watched resources are polled: the default of the key `poll`.
const POLL: Duration = Duration::from_secs(2);

/// How long a call of a provider takes.
const CALL: Duration = Duration::from_millis(20);

/// The bytes of an answer.
const ANSWER: usize = 4096;

/// The answers that replicas share, and for how long they are fresh.
const ANSWERS: usize = 1000;
const FRESH: Duration = Duration::from_secs(60);

/// The share of looks that find a change.
const CHANGES: f64 = 0.1;

/// A replica, and what it shares with the others: nothing but the store, except for the observer.
pub(crate) struct Replica {
    pub(crate) number: usize,
    pub(crate) store: Arc<SharedStore>,
    pub(crate) admission: Admission,
    pub(crate) rules: Arc<Rules>,
    pub(crate) crowd: Arc<Crowd>,
    pub(crate) scenario: Arc<Scenario>,
    pub(crate) observer: Arc<Observer>,
    /// Notified when the configuration of another replica changed.
    pub(crate) changed: Notify,
    pub(crate) watches: Vec<Watch>,
    /// False before the first connection.
    pub(crate) was_connected: AtomicBool,
}

/// One mount of which this replica watches resources.
#[derive(Default)]
pub(crate) struct Watch {
    /// Notified when this replica shall ask for the lease at once, and look if it has it.
    wake: Notify,
    is_leader: AtomicBool,
    /// True if the others may have missed news: the leader says again what it knows.
    must_repeat: AtomicBool,
    /// News that came and had everything.
    wholes: AtomicU64,
}

/// The key of a mount.
fn mount_key(mount: usize) -> [u8; 32] {
    let mut key = [7; 32];
    key.iter_mut().zip(mount.to_le_bytes()).for_each(|(to, from)| *to = from);
    key
}

impl Replica {
    fn random(&self, purpose: u64) -> fastrand::Rng {
        fastrand::Rng::with_seed((self.scenario.seed << 40) ^ ((self.number as u64) << 16) ^ purpose)
    }

    /// Runs for ever.
    pub(crate) async fn run(self: Arc<Self>) {
        tokio::time::sleep(Duration::from_secs_f64(self.random(1).f64() * 2.0)).await;
        let hearing = Arc::clone(&self);
        let connection = self.store.run(move |heard| hearing.hear(heard));
        let work = async {
            self.store.first_attempt().await;
            let rounds = (0..self.scenario.mounts).map(|mount| self.rounds(mount));
            tokio::join!(self.beats(), futures_util::future::join_all(rounds), self.requests());
        };
        tokio::join!(connection, work);
    }

    fn hear(self: &Arc<Self>, heard: Heard) {
        match heard {
            Heard::Anything => {
                self.changed.notify_one();
                // Before the first connection, nothing was watched.
                let is_first = !self.was_connected.swap(true, Ordering::Relaxed);
                for (mount, watch) in self.watches.iter().enumerate().filter(|_| !is_first) {
                    watch.must_repeat.store(true, Ordering::Relaxed);
                    watch.wake.notify_one();
                    let own = Arc::clone(self);
                    tokio::spawn(async move {
                        own.store.change_answers(&mount_key(mount)).await;
                        own.ask_after_loss(mount).await;
                    });
                }
            }
            Heard::News(News::Configuration) => self.changed.notify_one(),
            Heard::News(News::Look { mount, all }) => {
                let found = self.watches.iter().enumerate().find(|(number, _)| mount_key(*number) == mount);
                if let Some((_, watch)) = found.filter(|(_, watch)| watch.is_leader.load(Ordering::Relaxed)) {
                    watch.must_repeat.fetch_or(all, Ordering::Relaxed);
                    watch.wake.notify_one();
                }
            }
            Heard::News(News::Round(news)) => {
                let number = news.states.first().and_then(|state| state.reference.parse().ok());
                number.into_iter().for_each(|number| self.observer.seen().heard(number));
                let found = self.watches.iter().enumerate().find(|(number, _)| mount_key(*number) == news.mount);
                if let Some((_, watch)) = found.filter(|_| news.is_whole) {
                    watch.wholes.fetch_add(1, Ordering::Relaxed);
                }
            }
            Heard::News(News::Stale { .. }) => {}
        }
    }

    /// As `gateway::replicas` does.
    async fn ask_after_loss(&self, mount: usize) {
        let Some(watch) = self.watches.get(mount) else { return };
        let before = watch.wholes.load(Ordering::Relaxed);
        let longest = Duration::from_millis(5 * self.scenario.replicas as u64).min(Duration::from_secs(1));
        let part = self.random(1000 + mount as u64).f64();
        tokio::time::sleep(longest.mul_f64(part)).await;
        if watch.wholes.load(Ordering::Relaxed) == before {
            self.store.tell(&News::Look { mount: mount_key(mount), all: true }).await;
        }
    }

    /// As `server::replicas` does.
    async fn beats(&self) {
        let contents = GenerationContents {
            mounts: (0..self.scenario.mounts as u64).map(|mount| (mount, vec![mount; 4])).collect(),
            keys: (0..100).collect(),
        };
        let generation = |name: &str| Generation { name: name.to_owned(), contents: Arc::new(contents.clone()) };
        let [old, new] = ["36b91a8de5ff3440", "a4418ff3d5e8b963"].map(generation);
        let start = Instant::now();
        let new_at = match self.scenario.incident {
            Incident::Rollout(time) => {
                let share = self.number as f64 / self.scenario.replicas as f64;
                self.scenario.span.start + time.mul_f64(share)
            }
            _ => Duration::MAX,
        };
        let mut is_told = false;
        loop {
            let is_new = start.elapsed() >= new_at;
            let is_heard = self.store.beat(if is_new { &new } else { &old }).await.is_some();
            if is_heard && is_new && !is_told {
                self.store.tell(&News::Configuration).await;
                is_told = true;
            }
            let until_new = new_at.checked_sub(start.elapsed()).unwrap_or(Duration::MAX);
            tokio::select! {
                () = tokio::time::sleep(BEAT_INTERVAL.min(until_new)) => {}
                () = self.changed.notified() => {}
            }
        }
    }

    /// As `gateway::poller` does: asks for the lease at each renewal and at each poll, and looks if it has it.
    async fn rounds(&self, mount: usize) {
        let (key, mut random) = (mount_key(mount), self.random(100 + mount as u64));
        let watched: Vec<String> = (0..self.scenario.watched)
            .map(|_| format!("2026/notes/page-{}.md", random.usize(0..self.scenario.watched * 2)))
            .collect();
        let mut own_fence = 0;
        let mut poll_at = Instant::now();
        let Some(watch) = self.watches.get(mount) else { return };
        loop {
            let mut is_due = Instant::now() >= poll_at;
            let mut role = self.store.begin_round(&key, &watched, is_due).await;
            #[cfg(test)]
            if self.scenario.leases == Leases::Everyone {
                role = RoundRole::Leader { fence: 1 + self.number as u64, watched: watched.clone() };
            }
            let fence = match &role {
                RoundRole::Leader { fence, .. } => *fence,
                RoundRole::Alone | RoundRole::Follower => 0,
            };
            if fence != 0 && fence != own_fence {
                is_due = true;
                watch.must_repeat.store(true, Ordering::Relaxed);
                if self.scenario.leases == Leases::Asked {
                    role = self.store.begin_round(&key, &watched, true).await;
                }
            }
            own_fence = fence;
            watch.is_leader.store(fence != 0, Ordering::Relaxed);
            if is_due {
                let must_repeat = watch.must_repeat.swap(false, Ordering::Relaxed);
                self.look(mount, role, must_repeat, &mut random).await;
                poll_at = Instant::now() + POLL.mul_f64(0.8 + 0.4 * random.f64());
            }
            tokio::select! {
                () = tokio::time::sleep_until(poll_at.min(Instant::now() + RENEW_INTERVAL)) => {}
                () = watch.wake.notified() => poll_at = Instant::now(),
            }
        }
    }

    async fn look(&self, mount: usize, role: RoundRole, must_repeat: bool, random: &mut fastrand::Rng) {
        let (fence, watched) = match role {
            RoundRole::Follower => return,
            RoundRole::Alone => return tokio::time::sleep(CALL).await,
            RoundRole::Leader { fence, watched } => (fence, watched),
        };
        self.observer.seen().looked(mount, self.number);
        tokio::time::sleep(CALL).await;
        let is_change = random.f64() < CHANGES;
        if is_change {
            self.store.change_answers(&mount_key(mount)).await;
        }
        let number = self.observer.seen().told(self.scenario.replicas - 1);
        let state = |reference: String| StateNews { reference, state: Some([3; 32]), is_change };
        // The first one carries the number of these news.
        let mut states = vec![state(number.to_string())];
        states.extend(watched.into_iter().filter(|_| must_repeat).map(state));
        let news = RoundNews { mount: mount_key(mount), fence, states, is_whole: must_repeat, list: None };
        self.store.tell(&News::Round(news)).await;
    }

    async fn requests(self: &Arc<Self>) {
        let mut random = self.random(2);
        let mut next = Instant::now();
        loop {
            next += pause(self.scenario.requests, &mut random);
            tokio::time::sleep_until(next).await;
            let (own, principal) = (Arc::clone(self), self.crowd.next(&mut random));
            let answer = (random.f64() < self.scenario.shared).then(|| random.usize(0..ANSWERS));
            tokio::spawn(async move { own.request(principal, answer).await });
        }
    }

    async fn request(&self, principal: usize, answer: Option<usize>) {
        let Some(access) = self.rules.access(principal) else { return };
        let counted = self.admission.count_rules(access.principal(), access.rates().iter()).await;
        self.observer.seen().decided(principal, self.rules.allowed, counted.is_ok());
        let Ok(quota) = counted else { return };
        match answer {
            Some(answer) => self.shared_answer(answer).await,
            None => tokio::time::sleep(CALL).await,
        }
        quota.charge(ANSWER).await;
    }

    /// As `gateway::shared_answers` does.
    async fn shared_answer(&self, answer: usize) {
        let id = AnswerId { mount: mount_key(answer % self.scenario.mounts.max(1)), answer: mount_key(answer) };
        let mut pause = Duration::from_millis(5);
        loop {
            match self.store.find_answer(id, Duration::from_secs(10)).await {
                AnswerLookup::Found(..) => return,
                AnswerLookup::Lead(lead) => {
                    self.observer.seen().call_began(answer);
                    tokio::time::sleep(CALL).await;
                    self.observer.seen().call_ended(answer);
                    return self.store.end_call(lead, Some((vec![b'x'; ANSWER], FRESH))).await;
                }
                AnswerLookup::Down => return tokio::time::sleep(CALL).await,
                AnswerLookup::Wait => {}
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(100));
        }
    }
}
