//! RoundLeases: one replica at a time looks whether the watched resources of a mount changed, and tells the others.
//!
//! A lease says which one. It lasts for seconds and is renewed, so another replica takes over when its holder dies. Each
//! holder has a higher number than the one before: news of a former holder are recognised.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use redis::Script;
use tokio::time::Instant;

use super::link::StoreLink;
use super::names::StoreNames;
use super::news::ReplicaId;
use crate::model::seal::Seal;

/// How often a replica renews its lease, or asks for one.
pub const RENEW_INTERVAL: Duration = Duration::from_millis(1500);

/// A lease that is not renewed ends after this time.
const LEASE_TIME: Duration = Duration::from_secs(5);

/// What a replica watches is remembered for this time. It says so again at half of it.
const KEEP_TIME: Duration = Duration::from_secs(20);

/// The most names of other replicas that are taken.
const MAX_NAMES: usize = 20_000;

/// The most names in one message.
const MAX_NAMES_AT_ONCE: usize = 2_000;

/// The longest name that is opened, in bytes.
const MAX_NAME: usize = 8 << 10;

static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("round.lua")));

/// What this replica does in a round of a mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoundRole {
    /// The store is down: it looks for itself.
    Alone,
    /// It looks for all.
    Leader {
        /// The number of its lease.
        fence: u64,
        /// What any replica watches.
        watched: Vec<String>,
    },
    /// Another replica looks.
    Follower,
}

/// Asks for leases.
pub(super) struct RoundLeases {
    link: Arc<StoreLink>,
    names: StoreNames,
    seal: Seal,
    own: String,
    /// What the store was told of each mount: a hash of the names, and when.
    told: Mutex<HashMap<[u8; 32], (blake3::Hash, Instant)>>,
}

impl RoundLeases {
    /// The rounds of the replica `own`.
    pub(super) fn new(link: Arc<StoreLink>, secret: &[u8; 32], own: ReplicaId) -> Self {
        let seal = Seal::new("belljar 2026-11 watched names of replicas", secret);
        Self {
            link,
            names: StoreNames::new(secret),
            seal,
            own: data_encoding::HEXLOWER.encode(&own),
            told: Mutex::default(),
        }
    }

    /// True if the store must be told what this replica watches of `mount`: something else than before, or before
    /// [`KEEP_TIME`] is over.
    fn must_tell(&self, mount: &[u8; 32], watched: &[String]) -> bool {
        let mut names: Vec<&str> = watched.iter().map(String::as_str).collect();
        names.sort_unstable();
        let hash = blake3::hash(names.join("\0").as_bytes());
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.retain(|_, (_, at)| at.elapsed() < KEEP_TIME / 2);
        match told.get(mount) {
            Some((known, _)) if *known == hash => false,
            _ => {
                told.insert(*mount, (hash, Instant::now()));
                true
            }
        }
    }

    /// Forgets what the store was told: another store may have taken the place of the one before.
    pub(super) fn tell_again(&self) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Begins a round of `mount`, of which this replica watches `watched`. With `names`, a leader is told what all replicas
    /// watch.
    pub(super) async fn begin(&self, mount: &[u8; 32], watched: &[String], names: bool) -> RoundRole {
        let watched = if self.must_tell(mount, watched) { watched } else { &[] };
        let (all, lease) = self.names.round(mount);
        let holder = data_encoding::HEXLOWER.encode(mount);
        let mut parts = watched.chunks(MAX_NAMES_AT_ONCE);
        let mut part = parts.next().unwrap_or_default();
        loop {
            let mut script = SCRIPT.prepare_invoke();
            script.key(&all).key(&lease);
            let [lease_time, keep_time] =
                [LEASE_TIME, KEEP_TIME].map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
            script.arg(&self.own).arg(lease_time).arg(keep_time).arg(if names { MAX_NAMES } else { 0 });
            for name in part {
                script.arg(self.seal.seal(0, &holder, name.as_bytes().to_vec()));
            }
            let Ok(reply) = self.link.run_script::<Vec<String>>(&script).await else {
                self.tell_again();
                return RoundRole::Alone;
            };
            let mut reply = reply.into_iter();
            let role = match reply.next().and_then(|fence| fence.parse().ok()).unwrap_or(0) {
                0 => RoundRole::Follower,
                fence => {
                    let open = |name: String| {
                        let name = (name.len() <= MAX_NAME).then(|| self.seal.open(0, &holder, &name).ok())??;
                        String::from_utf8(name).ok()
                    };
                    RoundRole::Leader { fence, watched: reply.take(MAX_NAMES).filter_map(open).collect() }
                }
            };
            match parts.next() {
                Some(next) => part = next,
                None => return role,
            }
        }
    }
}
