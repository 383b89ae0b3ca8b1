//! The replicas that live, and the generation of the configuration that each has.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use redis::Script;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::link::StoreLink;
use super::names::StoreNames;
use super::news::ReplicaId;
use crate::model::seal::Seal;

/// How often a replica says that it lives.
pub const BEAT_INTERVAL: Duration = Duration::from_secs(1);

/// A replica that was silent for this time counts as gone.
const GONE_AFTER: Duration = Duration::from_millis(3500);

/// A generation that no replica had for this time counts as a new one when it comes back.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// What a generation grants is kept in the store for this time, and written again at half of it.
const KEPT_FOR: Duration = Duration::from_secs(3600);

/// The most replicas and generations that are believed.
const MAX_REPLICAS: usize = 10_000;

/// The longest description of a generation, in bytes.
const MAX_CONTENTS: usize = 8 << 20;

/// The generations whose contents are remembered.
const MAX_REMEMBERED: usize = 16;

static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("beat.lua")));

/// What a generation of the configuration grants, as hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenerationContents {
    /// The grants of each mount, by the hash of the mount's name.
    pub mounts: BTreeMap<u64, Vec<u64>>,
    /// The API keys.
    pub keys: Vec<u64>,
}

/// One generation of the configuration: replicas with the same have the same components, grants, rules and keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generation {
    /// Its name: a hash in hexadecimal digits.
    pub name: String,
    /// What it grants.
    pub contents: Arc<GenerationContents>,
}

/// The replicas that live.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replicas {
    /// How many have each generation.
    pub generations: BTreeMap<String, usize>,
    /// What the newest generation grants, if it is newer than that of this replica.
    pub newer: Option<Arc<GenerationContents>>,
}

/// Says that this replica lives.
pub(super) struct Members {
    link: Arc<StoreLink>,
    names: StoreNames,
    seal: Seal,
    own: String,
    memory: Mutex<MembersMemory>,
}

#[derive(Default)]
struct MembersMemory {
    /// The generation of the last beat.
    beaten: Option<String>,
    /// The last change of what all say, and how many have each generation since then.
    known: Option<(String, BTreeMap<String, usize>)>,
    /// The own generation that was written last, and when.
    written: Option<(String, Instant)>,
    contents: HashMap<String, Arc<GenerationContents>>,
}

impl Members {
    /// The beats of the replica `own`.
    pub(super) fn new(link: Arc<StoreLink>, secret: &[u8; 32], own: ReplicaId) -> Self {
        let seal = Seal::new("belljar 2026-11 generations of replicas", secret);
        let own = data_encoding::HEXLOWER.encode(&own);
        Self { link, names: StoreNames::new(secret), seal, own, memory: Mutex::default() }
    }

    /// Says that this replica lives with the generation `own`. `None` if the store is down.
    pub(super) async fn beat(&self, own: &Generation) -> Option<Replicas> {
        self.write_contents(own).await?;
        let mut script = SCRIPT.prepare_invoke();
        for name in self.names.beat() {
            script.key(name);
        }
        let said = format!("{}:{}", self.own, self.seal.seal(0, &self.own, own.name.as_bytes().to_vec()));
        let [gone, forgotten] =
            [GONE_AFTER, FORGOTTEN_AFTER].map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let is_changed = self.memory().beaten.as_ref().is_some_and(|before| *before != own.name);
        let known = self.memory().known.clone().unwrap_or_default();
        script.arg(&self.own).arg(said).arg(&own.name).arg(gone).arg(forgotten);
        script.arg(if is_changed { "changed" } else { "" }).arg(&known.0);
        let reply: Vec<String> = self.link.run_script(&script).await.ok()?;
        self.memory().beaten = Some(own.name.clone());
        let mut reply = reply.into_iter().take(MAX_REPLICAS * 2);
        let mut orders = HashMap::new();
        while let Some(generation) = reply.next().filter(|generation| !generation.is_empty()) {
            orders.insert(generation, reply.next()?.parse::<u64>().unwrap_or(0));
        }
        let change = reply.next()?;
        let generations = match change == known.0 {
            true => known.1,
            false => {
                let generations = self.counted(reply);
                self.memory().known = Some((change, generations.clone()));
                generations
            }
        };
        let order = |generation: &String| orders.get(generation).copied().unwrap_or(0);
        let newest = generations.keys().max_by_key(|generation| order(generation)).cloned();
        let newer = newest.filter(|newest| *newest != own.name && order(newest) > order(&own.name));
        let newer = match newer {
            Some(newer) => self.contents(&newer).await,
            None => None,
        };
        Some(Replicas { generations, newer })
    }

    /// How many replicas have each generation.
    fn counted(&self, said: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
        let mut generations = BTreeMap::new();
        for said in said {
            let Some((replica, sealed)) = said.split_once(':') else { continue };
            // A replica that is sealed for another name was copied by somebody else.
            let Ok(generation) = self.seal.open(0, replica, sealed) else { continue };
            let Ok(generation) = String::from_utf8(generation) else { continue };
            *generations.entry(generation).or_insert(0) += 1;
        }
        generations
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, MembersMemory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write_contents(&self, own: &Generation) -> Option<()> {
        let is_written = |(name, at): &(String, Instant)| *name == own.name && at.elapsed() < KEPT_FOR / 2;
        if self.memory().written.as_ref().is_some_and(is_written) {
            return Some(());
        }
        let body = postcard::to_stdvec(&*own.contents).unwrap_or_default();
        let sealed = self.seal.seal(1, &own.name, body);
        let mut set = redis::cmd("SET");
        set.arg(self.names.generation(&own.name)).arg(sealed).arg("EX").arg(KEPT_FOR.as_secs());
        self.link.ask::<()>(&set).await.ok()?;
        self.memory().written = Some((own.name.clone(), Instant::now()));
        Some(())
    }

    /// Forgets what was written: another store may have taken the place of the one before.
    pub(super) fn write_again(&self) {
        let mut memory = self.memory();
        (memory.written, memory.known) = (None, None);
    }

    async fn contents(&self, generation: &str) -> Option<Arc<GenerationContents>> {
        if let Some(known) = self.memory().contents.get(generation) {
            return Some(Arc::clone(known));
        }
        let mut get = redis::cmd("GET");
        let sealed: Option<String> = self.link.ask(get.arg(self.names.generation(generation))).await.ok()?;
        let sealed = sealed.filter(|sealed| sealed.len() <= MAX_CONTENTS)?;
        let body = self.seal.open(1, generation, &sealed).ok()?;
        let contents = Arc::new(postcard::from_bytes::<GenerationContents>(&body).ok()?);
        let mut memory = self.memory();
        if memory.contents.len() >= MAX_REMEMBERED {
            memory.contents.clear();
        }
        memory.contents.insert(generation.to_owned(), Arc::clone(&contents));
        Some(contents)
    }
}

impl GenerationContents {
    /// The mounts of `own` of which this newer generation does not have every grant.
    pub fn taken_back<'a>(&'a self, own: &'a Self) -> impl Iterator<Item = u64> + 'a {
        let has_all = |mount: &u64, grants: &[u64]| {
            let left = self.mounts.get(mount).map(Vec::as_slice).unwrap_or_default();
            grants.iter().all(|grant| left.contains(grant))
        };
        own.mounts.iter().filter(move |(mount, grants)| !has_all(mount, grants)).map(|(mount, _)| *mount)
    }

    /// The API keys of `own` that this newer generation does not have.
    pub fn revoked_keys<'a>(&'a self, own: &'a Self) -> impl Iterator<Item = u64> + 'a {
        own.keys.iter().copied().filter(|key| !self.keys.contains(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(mounts: &[(u64, &[u64])], keys: &[u64]) -> GenerationContents {
        let mounts = mounts.iter().map(|(mount, grants)| (*mount, grants.to_vec())).collect();
        GenerationContents { mounts, keys: keys.to_vec() }
    }

    #[test]
    fn a_newer_generation_takes_back_what_it_lacks() {
        let old = contents(&[(1, &[10, 11]), (2, &[20]), (3, &[])], &[7, 8]);
        let taken = |new: &GenerationContents| new.taken_back(&old).collect::<Vec<u64>>();
        assert_eq!(taken(&old), [0; 0]);
        assert_eq!(
            taken(&contents(&[(1, &[11, 10, 12]), (2, &[20])], &[])),
            [0; 0],
            "more is granted, and a mount without grants left"
        );
        assert_eq!(taken(&contents(&[(1, &[10]), (2, &[20])], &[])), [1], "one grant is missing");
        assert_eq!(taken(&contents(&[(1, &[10, 11])], &[])), [2], "a mount is gone");
        assert_eq!(contents(&[], &[8, 9]).revoked_keys(&old).collect::<Vec<_>>(), [7]);
    }
}
