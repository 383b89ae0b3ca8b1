//! News: what one replica tells all others. Sealed with the key of the replicas. News can be lost: after a new connection,
//! everything may have changed.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::link::StoreLink;
use super::names::StoreNames;
use crate::model::seal::Seal;

/// Identifies a replica: random, and new with each start.
pub(super) type ReplicaId = [u8; 16];

/// The longest news that are opened, in bytes.
const MAX_NEWS: usize = 1 << 20;

/// The kind of news among the tokens of the seal.
const KIND: u8 = 0;

/// What one replica tells all others. Mounts are named by their keys: another version of a mount is another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum News {
    /// What a round found.
    Round(RoundNews),
    /// Something may have changed: the replica that holds the lease of this mount looks at once. With `all`, it says again
    /// what it knows.
    Look {
        /// The mount.
        mount: [u8; 32],
        /// True if the sender may have missed news.
        all: bool,
    },
    /// Answers of this mount that are kept are not valid any more.
    Stale {
        /// The mount.
        mount: [u8; 32],
    },
    /// The sender has another configuration now.
    Configuration,
}

/// What a round of one mount found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundNews {
    /// The mount.
    pub mount: [u8; 32],
    /// The number of the lease. News with an older one come from a replica that has lost it.
    pub fence: u64,
    /// Resources whose state changed, or is known for the first time.
    pub states: Vec<StateNews>,
    /// True if `states` has all that is watched, also what did not change.
    pub is_whole: bool,
    /// The hash of the list, if it was looked at. `None` inside: nothing is listed.
    pub list: Option<Option<[u8; 32]>>,
}

/// The state of a watched resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateNews {
    /// Its reference.
    pub reference: String,
    /// A hash of its revision or its contents. `None`: it does not exist.
    pub state: Option<[u8; 32]>,
    /// True if the state was another one before.
    pub is_change: bool,
}

/// Sends and opens news.
pub(super) struct NewsChannel {
    link: Arc<StoreLink>,
    names: StoreNames,
    seal: Seal,
    own: ReplicaId,
}

impl NewsChannel {
    /// The channel of the replica `own`.
    pub(super) fn new(link: Arc<StoreLink>, secret: &[u8; 32], own: ReplicaId) -> Self {
        Self { link, names: StoreNames::new(secret), seal: Seal::new("belljar 2026-11 news of replicas", secret), own }
    }

    /// Tells all others. If the store is down, nobody hears it: the others then look by themselves.
    pub(super) async fn tell(&self, news: &News) {
        // Strings and numbers always serialise.
        let body = postcard::to_stdvec(&(self.own, news)).unwrap_or_default();
        let sealed = self.seal.seal(KIND, "", body);
        let mut publish = redis::cmd("PUBLISH");
        let _ = self.link.ask::<u64>(publish.arg(self.names.news()).arg(sealed)).await;
    }

    /// Opens the news of another replica. `None` for its own, and for what no replica sent.
    pub(super) fn open(&self, sealed: &[u8]) -> Option<News> {
        let sealed = std::str::from_utf8(sealed).ok().filter(|sealed| sealed.len() <= MAX_NEWS)?;
        let body = self.seal.open(KIND, "", sealed).ok()?;
        let (sender, news): (ReplicaId, News) = postcard::from_bytes(&body).ok()?;
        (sender != self.own).then_some(news)
    }
}
