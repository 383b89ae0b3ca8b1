//! The store of several replicas: a Redis or a Valkey.
//!
//! No answer depends on it. While it cannot be reached, each replica works alone. What comes from it is bounded and
//! authenticated, because others may write there too.

mod bounded_stream;
mod cache;
mod counts;
mod link;
mod members;
mod names;
mod news;
mod quota_key;
mod quotas;
mod rounds;
mod spent;

use std::sync::Arc;
use std::time::Duration;

use zeroize::Zeroizing;

use super::dial::StoreDialer;
use super::quota::{QuotaStore, WhenDown};
use super::spent::SpentMarks;
use cache::SharedAnswers;
pub use cache::{AnswerId, AnswerLookup, CallLead};
use counts::RedisCounts;
pub use counts::{DrawMode, SharedCounts, SharedDraw};
use link::{LinkEvent, StoreLink};
pub use link::{LinkStatus, StoreLogin};
use members::Members;
pub use members::{BEAT_INTERVAL, Generation, GenerationContents, Replicas};
use news::NewsChannel;
pub use news::{News, RoundNews, StateNews};
pub use quota_key::QuotaKey;
pub use quotas::{QuotaCounts, SharedQuotas};
use rounds::RoundLeases;
pub use rounds::{RENEW_INTERVAL, RoundRole};
use spent::SharedSpentMarks;

/// What a shared store is made of.
pub struct SharedStoreOptions {
    /// Makes connections.
    pub dialer: Arc<dyn StoreDialer>,
    /// How belljar logs in.
    pub login: StoreLogin,
    /// The key that all replicas have.
    pub key: Zeroizing<[u8; 32]>,
    /// What happens to requests with a rate while the store is down.
    pub when_down: WhenDown,
    /// Random bytes that no other replica has.
    pub replica: [u8; 16],
}

/// The state of a shared store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStatus {
    /// The connection.
    pub link: LinkStatus,
    /// The quotas.
    pub quotas: QuotaCounts,
}

/// The store that replicas share.
pub struct SharedStore {
    link: Arc<StoreLink>,
    quotas: Arc<SharedQuotas>,
    spent: Arc<SharedSpentMarks>,
    news: NewsChannel,
    rounds: RoundLeases,
    members: Members,
    answers: SharedAnswers,
}

/// What a replica hears from the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// There is a new connection: anything may have changed.
    Anything,
    /// News of another replica.
    News(News),
}

impl SharedStore {
    /// A store that is not connected yet.
    pub fn unconnected(options: SharedStoreOptions) -> Arc<Self> {
        let SharedStoreOptions { dialer, login, key, when_down, replica } = options;
        let names = names::StoreNames::new(&key);
        let link = Arc::new(StoreLink::new(dialer, login, names.news()));
        let counts = Arc::new(RedisCounts::new(Arc::clone(&link), &key));
        let quotas = Arc::new(SharedQuotas::new(counts, when_down));
        let spent = Arc::new(SharedSpentMarks::new(Arc::clone(&link), &key, replica));
        let news = NewsChannel::new(Arc::clone(&link), &key, replica);
        let rounds = RoundLeases::new(Arc::clone(&link), &key, replica);
        let members = Members::new(Arc::clone(&link), &key, replica);
        let answers = SharedAnswers::new(Arc::clone(&link), &key, replica);
        Arc::new(Self { link, quotas, spent, news, rounds, members, answers })
    }

    /// Connects, keeps the connection, and hands to `hear` what is heard, for ever.
    pub async fn run(&self, hear: impl Fn(Heard)) {
        let heard = |event| match event {
            LinkEvent::Connected => {
                self.members.write_again();
                self.rounds.tell_again();
                hear(Heard::Anything);
            }
            LinkEvent::Message(sealed) => self.news.open(&sealed).map(Heard::News).into_iter().for_each(&hear),
        };
        tokio::join!(self.link.run(heard), self.quotas.sweep());
    }

    /// Tells all other replicas.
    pub async fn tell(&self, news: &News) {
        self.news.tell(news).await;
    }

    /// Begins a round of the mount with this key, of which this replica watches `watched`. With `names`, a leader is told what
    /// all replicas watch.
    pub async fn begin_round(&self, mount: &[u8; 32], watched: &[String], names: bool) -> RoundRole {
        self.rounds.begin(mount, watched, names).await
    }

    /// Looks for an answer that replicas share. If this replica shall make the call, no other one makes it for `longest`.
    pub async fn find_answer(&self, id: AnswerId, longest: Duration) -> AnswerLookup {
        self.answers.find(id, longest).await
    }

    /// Ends a call that was made for all. `answer`: the answer and for how long it is fresh, if others may have it.
    pub async fn end_call(&self, lead: CallLead, answer: Option<(Vec<u8>, Duration)>) {
        self.answers.end(lead, answer).await;
    }

    /// Forgets all answers of a mount that replicas share.
    pub async fn change_answers(&self, mount: &[u8; 32]) {
        self.answers.change(mount).await;
    }

    /// Says that this replica lives with the configuration `own`. `None` if the store is down.
    pub async fn beat(&self, own: &Generation) -> Option<Replicas> {
        self.members.beat(own).await
    }

    /// Waits until the store is reached, or cannot be reached.
    pub async fn first_attempt(&self) {
        self.link.first_attempt().await;
    }

    /// The state now.
    pub fn status(&self) -> StoreStatus {
        StoreStatus { link: self.link.status(), quotas: self.quotas.counts() }
    }

    /// The quotas that replicas count together.
    pub fn quotas(&self) -> Arc<dyn QuotaStore> {
        self.quotas.clone()
    }

    /// The marks that replicas share.
    pub fn spent_marks(&self) -> Arc<dyn SpentMarks> {
        self.spent.clone()
    }
}
