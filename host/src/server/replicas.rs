//! What `[replicas]` makes: the key that all replicas have, and the store that they share.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use futures_util::future::OptionFuture;
use tokio::sync::Notify;
use zeroize::Zeroizing;

use super::files::{self, FileError};
use super::keys;
use crate::auth::key_store::CurrentKeys;
use crate::config::{Config, ReplicasConfig};
use crate::gateway::Gateway;
use crate::grants::network::store_dialer::TcpStoreDialer;
use crate::grants::secrets::{SecretError, SecretTemplate};
use crate::store::{BEAT_INTERVAL, Generation, LinkStatus, Replicas, SharedStore, SharedStoreOptions, StoreLogin};

/// The digits of the key.
const DIGITS: usize = 64;

/// Why the key of the replicas cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("replicas.key: \"{}\": {problem}", path.display())]
pub(crate) struct ReplicaKeyError {
    /// The file.
    path: PathBuf,
    /// The reason.
    problem: ReplicaKeyProblem,
}

/// The problem of the file of the key.
#[derive(Debug, thiserror::Error)]
enum ReplicaKeyProblem {
    /// The file cannot be read, or other users can change it.
    #[error(transparent)]
    Unreadable(#[from] FileError),
    /// Every user of the machine knows the key.
    #[error("every user of this machine can read it; run: chmod o= FILE")]
    Open,
    /// It does not exist.
    #[error("it does not exist; to make one for all replicas, run: openssl rand -hex 32 > FILE")]
    Absent,
    /// It has something else.
    #[error("expected 64 hexadecimal digits and nothing else; to make a key, run: openssl rand -hex 32 > FILE")]
    NotAKey,
}

/// Reads the key of the replicas.
///
/// # Errors
/// If the file cannot be read, everybody can read it, or it has no key.
pub(crate) fn read_key(replicas: &ReplicasConfig) -> Result<Zeroizing<[u8; 32]>, ReplicaKeyError> {
    let fail = |problem| ReplicaKeyError { path: replicas.key.clone(), problem };
    let text = files::read_protected(&replicas.key).map_err(|error| fail(error.into()))?;
    let text = Zeroizing::new(text.ok_or_else(|| fail(ReplicaKeyProblem::Absent))?);
    if files::is_readable_by_all(&replicas.key) {
        return Err(fail(ReplicaKeyProblem::Open));
    }
    let digits = text.trim_end();
    let key = data_encoding::HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok().map(Zeroizing::new);
    let key = key.filter(|_| digits.len() == DIGITS).and_then(|key| <[u8; 32]>::try_from(key.as_slice()).ok());
    key.map(Zeroizing::new).ok_or_else(|| fail(ReplicaKeyProblem::NotAKey))
}

/// The store of the configuration, not connected yet. `None` if it names none.
///
/// # Errors
/// If the password cannot be read.
pub(crate) fn store(config: &Config) -> Result<Option<Arc<SharedStore>>, SecretError> {
    let (Some(store), Some(key), Some(network)) = (config.store(), &config.replica_key, &config.ambient.network) else {
        return Ok(None);
    };
    let secret = |name: &String| Ok(SecretTemplate::of(name).fill(&config.ambient.secrets)?.0);
    let password = store.password.as_ref().map(secret).transpose()?;
    let login = StoreLogin { user: store.user.clone(), password, database: store.url.database };
    if login.password.is_some() && !store.url.has_tls && !store.url.host.is_this_machine() {
        tracing::warn!(
            "the password for the store \"{}\" crosses the network unencrypted; to encrypt it, write \"rediss://\"",
            store.url
        );
    }
    let (place, networks) = ((store.url.host.clone(), store.url.port), store.networks.clone());
    let dialer = Arc::new(TcpStoreDialer::new(Arc::clone(network), place, store.url.has_tls, networks));
    let mut replica = [0; 16];
    replica.iter_mut().zip(keys::fresh_key().iter()).for_each(|(to, from)| *to = *from);
    let options = SharedStoreOptions { dialer, login, key: key.clone(), when_down: store.when_down, replica };
    Ok(Some(SharedStore::unconnected(options)))
}

/// The store of the configuration, after one attempt to reach it.
pub(crate) struct ProbedStore {
    /// Its URL. It has no password.
    pub(crate) url: String,
    /// Why it cannot be used. The text continues "the store ...".
    pub(crate) why_down: Option<String>,
}

/// Tries once to reach the store. `None` if the configuration names none.
///
/// # Errors
/// If the password cannot be read.
pub(crate) async fn probe_store(config: &Config) -> Result<Option<ProbedStore>, SecretError> {
    let (Some(store), Some(written)) = (store(config)?, config.store()) else { return Ok(None) };
    tokio::select! {
        () = store.run(|_| ()) => {}
        () = store.first_attempt() => {}
    }
    let LinkStatus { is_up, why, .. } = store.status().link;
    let why_down = (!is_up).then(|| why.unwrap_or_else(|| "does not answer".to_owned()));
    Ok(Some(ProbedStore { url: written.url.to_string(), why_down }))
}

/// Follows the generation of the configuration, and the other replicas.
pub(crate) struct ReplicaFollower {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) store: Option<Arc<SharedStore>>,
    /// The API keys. `None`: requests carry none.
    pub(crate) keys: Option<CurrentKeys>,
    /// The replicas that live, for the pages of the endpoint.
    pub(crate) replicas: Arc<ArcSwap<Replicas>>,
}

impl ReplicaFollower {
    /// Says from time to time that this replica lives, and applies what is heard of the others, for ever.
    pub(crate) async fn run(self) {
        let changed = Arc::new(Notify::new());
        let (gateway, notified) = (Arc::clone(&self.gateway), Arc::clone(&changed));
        let hear = move |heard| {
            if gateway.hear(heard) {
                notified.notify_one();
            }
        };
        let heard = self.store.clone().map(|store| async move { store.run(hear).await });
        tokio::join!(OptionFuture::from(heard), self.follow(&changed));
    }

    async fn follow(&self, changed: &Notify) {
        let mut catalog = self.gateway.catalog_changes();
        let mut told = String::new();
        loop {
            let keys = self.keys.as_ref().map(CurrentKeys::prefixes).unwrap_or_default();
            if let Some(generation) = self.gateway.find_generation(keys) {
                let is_new = generation.name != told;
                if self.beat(&generation).await && is_new {
                    // After the beat: the others look for what it said.
                    self.gateway.tell_configuration().await;
                    told.clone_from(&generation.name);
                }
            }
            tokio::select! {
                () = tokio::time::sleep(BEAT_INTERVAL) => {}
                () = changed.notified() => {}
                // The sender lives as long as the gateway.
                _ = catalog.changed() => {}
            }
        }
    }

    /// Says that this replica lives. False if nobody heard it.
    async fn beat(&self, own: &Generation) -> bool {
        let Some(store) = &self.store else { return false };
        let Some(replicas) = store.beat(own).await else { return false };
        self.gateway.follow_replicas(own, &replicas);
        if let Some(keys) = &self.keys {
            let revoked = replicas.newer.iter().flat_map(|newer| newer.revoked_keys(&own.contents).collect::<Vec<_>>());
            keys.withhold(revoked.collect());
        }
        self.replicas.store(Arc::new(replicas));
        true
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_is_64_digits_that_not_everybody_can_read() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("key");
        let read = || read_key(&ReplicasConfig { key: path.clone(), store: None });
        let error = || read().unwrap_err().to_string();
        assert!(error().contains("openssl rand -hex 32"), "{}", error());
        let write = |text: &str, mode| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        write(&format!("{}\n", "0A".repeat(32)), 0o640);
        assert_eq!(*read().unwrap(), [10; 32]);
        for wrong in ["", "0a", &"0g".repeat(32), &"0a".repeat(33), &format!("{} {}", "0a".repeat(16), "0a".repeat(16))]
        {
            write(wrong, 0o600);
            assert!(error().contains("64 hexadecimal digits"), "{wrong}");
        }
        write(&"0a".repeat(32), 0o644);
        assert!(error().contains("chmod o="), "{}", error());
    }
}
