//! The API keys that belljar accepts, and the look-up of a presented key. Knows no file.

use std::collections::HashSet;
use std::future::ready;
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;

use super::api_key::{self, KeyHash};
use super::credentials::{AuthError, Credentials};
use super::key_entry::KeyEntry;
use super::keys_file::{self, KeysFileError};
use crate::policy::{Evidence, KeyIdentity, Principal, authenticate};

/// The keys of one keys file.
#[derive(Clone, Debug, Default)]
pub struct KeyStore {
    /// In the order of [`KeyHash::prefix`].
    keys: Vec<StoredKey>,
    /// The hashes of keys that were accepted since belljar was started and are revoked.
    revoked: Vec<KeyHash>,
}

/// The most revoked keys that are remembered.
const MAX_REVOKED: usize = 1000;

/// One key, with the principal that it proves.
#[derive(Clone, Debug)]
struct StoredKey {
    entry: KeyEntry,
    /// Made once: a request then needs only a cheap clone.
    principal: Principal,
}

/// Why a presented key is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiKeyError {
    /// It does not have the form of a key, or its checksum is wrong.
    #[error("the API key is malformed")]
    Malformed,
    /// No key has its hash. It was never issued, or it was revoked.
    #[error("the API key is unknown or was revoked")]
    Unknown,
    /// It was accepted, and has been revoked while belljar runs.
    #[error("the API key is unknown or was revoked")]
    Revoked,
    /// Its time is over.
    #[error("the API key has expired")]
    Expired,
}

impl From<ApiKeyError> for AuthError {
    fn from(error: ApiKeyError) -> Self {
        match error {
            ApiKeyError::Malformed => Self::Invalid("the API key is malformed"),
            ApiKeyError::Unknown => Self::Invalid("the API key is unknown or was revoked"),
            ApiKeyError::Revoked => Self::Lapsed("the API key is unknown or was revoked"),
            ApiKeyError::Expired => Self::Lapsed("the API key has expired"),
        }
    }
}

impl KeyStore {
    /// The keys in the text of a keys file.
    ///
    /// # Errors
    /// The first problem, with its line.
    pub fn parse(source: &str) -> Result<Self, KeysFileError> {
        let stored = |entry: KeyEntry| {
            let principal = authenticate(Evidence::Key(entry.identity.clone()));
            StoredKey { entry, principal }
        };
        let mut keys: Vec<StoredKey> = keys_file::parse(source)?.into_iter().map(stored).collect();
        keys.sort_by_key(|key| key.entry.hash.prefix());
        Ok(Self { keys, revoked: Vec::new() })
    }

    /// The same keys after those of `before`: remembers which of them are gone.
    fn after(mut self, before: &Self) -> Self {
        let gone = before.keys.iter().map(|key| &key.entry.hash).chain(&before.revoked);
        let gone = gone.filter(|hash| self.stored(hash).is_none());
        self.revoked = gone.take(MAX_REVOKED).copied().collect();
        self
    }

    /// The principal whose key this is, at the time `at`.
    ///
    /// The duration of the search tells an attacker nothing of use. The attacker does not choose the hash of a key, and
    /// the search compares hashes only. It finds the place in the table by eight bytes of the hash: at most, its
    /// duration shows how many of them an accepted key has, too. The rest of the hash is compared in constant time. Who
    /// knew the whole hash would still need the key: 256 random bits.
    ///
    /// # Errors
    /// If the key is malformed, unknown or expired.
    pub fn find(&self, key: &str, at: SystemTime) -> Result<Principal, ApiKeyError> {
        if !api_key::is_well_formed(key) {
            return Err(ApiKeyError::Malformed);
        }
        let hash = KeyHash::of(key);
        match self.stored(&hash) {
            None if self.revoked.contains(&hash) => Err(ApiKeyError::Revoked),
            None => Err(ApiKeyError::Unknown),
            Some(stored) if stored.entry.is_expired(at) => Err(ApiKeyError::Expired),
            Some(stored) => Ok(stored.principal.clone()),
        }
    }

    /// The key with this hash.
    fn stored(&self, hash: &KeyHash) -> Option<&StoredKey> {
        let start = self.keys.partition_point(|stored| stored.entry.hash.prefix() < hash.prefix());
        let alike = self.keys.iter().skip(start).take_while(|stored| stored.entry.hash.prefix() == hash.prefix());
        let mut found = None;
        for stored in alike {
            if stored.entry.hash == *hash {
                found = Some(stored);
            }
        }
        found
    }

    /// The entries, by name.
    pub fn entries(&self) -> Vec<&KeyEntry> {
        let mut all: Vec<&KeyEntry> = self.keys.iter().map(|stored| &stored.entry).collect();
        all.sort_by(|one, other| one.identity.name.cmp(&other.identity.name));
        all
    }

    /// The key with this name, whether it has expired or not.
    pub fn identity(&self, name: &str) -> Option<KeyIdentity> {
        let mut identities = self.keys.iter().map(|stored| &stored.entry.identity);
        identities.find(|identity| identity.name == name).cloned()
    }

    /// How many keys there are at the time `at`, for logs.
    pub fn count(&self, at: SystemTime) -> KeyCount {
        let expired = self.keys.iter().filter(|stored| stored.entry.is_expired(at)).count();
        KeyCount { valid: self.keys.len() - expired, expired }
    }
}

/// The number of keys of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyCount {
    /// Keys that are accepted.
    pub valid: usize,
    /// Keys that are refused because they have expired.
    pub expired: usize,
}

impl std::fmt::Display for KeyCount {
    /// `3 API keys, 1 of them expired`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = self.valid + self.expired;
        write!(f, "{all} API key{}", if all == 1 { "" } else { "s" })?;
        match self.expired {
            0 => Ok(()),
            expired => write!(f, ", {expired} of them expired"),
        }
    }
}

/// The keys in force. A change of the keys file replaces them for the next request.
#[derive(Clone, Default)]
pub struct CurrentKeys {
    keys: Arc<ArcSwap<KeyStore>>,
    /// The beginnings of the hashes of keys that a newer configuration of another replica revoked.
    withheld: Arc<ArcSwap<HashSet<u64>>>,
}

impl CurrentKeys {
    /// These keys, until they are replaced.
    pub fn new(keys: KeyStore) -> Self {
        Self { keys: Arc::new(ArcSwap::from_pointee(keys)), withheld: Arc::default() }
    }

    /// Replaces the keys, for all clones of this value.
    pub fn replace(&self, keys: KeyStore) {
        self.keys.rcu(|before| Arc::new(keys.clone().after(before)));
    }

    /// The principal whose key this is, at the time `at`. See [`KeyStore::find`].
    ///
    /// # Errors
    /// If the key is malformed, unknown or expired.
    pub fn find(&self, key: &str, at: SystemTime) -> Result<Principal, ApiKeyError> {
        let principal = self.keys.load().find(key, at)?;
        let withheld = self.withheld.load();
        match !withheld.is_empty() && withheld.contains(&KeyHash::of(key).prefix()) {
            true => Err(ApiKeyError::Revoked),
            false => Ok(principal),
        }
    }

    /// The beginnings of the hashes of all keys, in order.
    pub fn prefixes(&self) -> Vec<u64> {
        self.keys.load().keys.iter().map(|stored| stored.entry.hash.prefix()).collect()
    }

    /// Refuses the keys whose hashes begin so, until this is called again.
    pub fn withhold(&self, prefixes: HashSet<u64>) {
        self.withheld.store(Arc::new(prefixes));
    }
}

impl Credentials for CurrentKeys {
    fn find_known(&self, credential: &str, at: SystemTime) -> Option<Principal> {
        self.find(credential, at).ok()
    }

    fn check<'a>(&'a self, credential: &'a str, at: SystemTime) -> BoxFuture<'a, Result<Principal, AuthError>> {
        Box::pin(ready(self.find(credential, at).map_err(AuthError::from)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::auth::api_key::ApiKey;
    use crate::policy::PrincipalKind;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    /// 2027-01-31T12:00:00Z
    fn expiry() -> SystemTime {
        NOW + Duration::from_secs(1_801_396_800)
    }

    fn file(keys: &[(&str, &ApiKey, &str)]) -> String {
        let table = |(name, key, rest): &(&str, &ApiKey, &str)| {
            format!("[[key]]\nname = \"{name}\"\nsha256 = \"{}\"\n{rest}\n", key.hash())
        };
        keys.iter().map(table).collect()
    }

    #[test]
    fn a_key_proves_its_principal() {
        let keys: Vec<ApiKey> = (0..100).map(|_| ApiKey::generate().unwrap()).collect();
        let names: Vec<String> = (0..100).map(|n| format!("key-{n}")).collect();
        let rest = "scopes = [\"notes:read\"]\ngroups = [\"oncall\"]";
        let all: Vec<_> = names.iter().zip(&keys).map(|(name, key)| (name.as_str(), key, rest)).collect();
        let store = KeyStore::parse(&file(&all)).unwrap();
        for (name, key) in names.iter().zip(&keys) {
            let principal = store.find(key.reveal(), NOW).unwrap();
            assert_eq!((principal.kind(), principal.subject()), (PrincipalKind::Key, name.as_str()));
            assert_eq!(principal.to_string(), format!("key:{name}"));
            assert_eq!(
                (principal.groups(), principal.scopes()),
                (&["oncall".to_owned()][..], &["notes:read".to_owned()][..])
            );
        }
        let mut sorted = names.clone();
        sorted.sort();
        assert_eq!(store.entries().iter().map(|entry| entry.identity.name.clone()).collect::<Vec<_>>(), sorted);
    }

    #[test]
    fn other_keys_are_refused() {
        let (known, other) = (ApiKey::generate().unwrap(), ApiKey::generate().unwrap());
        let store = KeyStore::parse(&file(&[("ci", &known, "")])).unwrap();
        assert_eq!(store.find(other.reveal(), NOW), Err(ApiKeyError::Unknown));
        assert_eq!(KeyStore::default().find(known.reveal(), NOW), Err(ApiKeyError::Unknown));
        // The hash is no key, in any spelling.
        for wrong in [known.hash().to_string(), format!("bj_{}", known.hash()), String::new(), "bj_".to_owned()] {
            assert_eq!(store.find(&wrong, NOW), Err(ApiKeyError::Malformed), "{wrong}");
        }
        for wrong in [format!("{} ", known.reveal()), known.reveal().to_lowercase(), known.reveal().repeat(1000)] {
            assert_eq!(store.find(&wrong, NOW), Err(ApiKeyError::Malformed), "{wrong}");
        }
    }

    #[test]
    fn hashes_that_begin_alike_are_told_apart() {
        let (known, mut alike) = (ApiKey::generate().unwrap(), String::new());
        let hash = known.hash().to_string();
        for last in ["0", "1", "2"].into_iter().filter(|last| !hash.ends_with(last)) {
            let other = format!("{}{last}", &hash[..63]);
            alike += &format!("[[key]]\nname = \"other-{last}\"\nsha256 = \"{other}\"\n");
        }
        let store = KeyStore::parse(&alike).unwrap();
        assert_eq!(store.find(known.reveal(), NOW), Err(ApiKeyError::Unknown));
        let store = KeyStore::parse(&format!("{alike}{}", file(&[("ci", &known, "")]))).unwrap();
        assert_eq!(store.find(known.reveal(), NOW).unwrap().subject(), "ci");
    }

    #[test]
    fn a_key_ends_at_its_time() {
        let key = ApiKey::generate().unwrap();
        let text = file(&[("ci", &key, "expires = \"2027-01-31T12:00:00Z\"")]);
        let store = KeyStore::parse(&text).unwrap();
        let find = |store: &KeyStore, at| store.find(key.reveal(), at).map(|one| one.subject().to_owned());
        let second = Duration::from_secs(1);
        assert_eq!(find(&store, expiry() - second), Ok("ci".to_owned()));
        assert_eq!(find(&store, expiry()), Err(ApiKeyError::Expired));
        assert_eq!(store.count(expiry()), KeyCount { valid: 0, expired: 1 });
        assert_eq!(store.count(expiry() - second).to_string(), "1 API key");
        assert_eq!(store.count(expiry()).to_string(), "1 API key, 1 of them expired");
        // The same time in another time zone.
        let store = KeyStore::parse(&text.replace("12:00:00Z", "13:00:00+01:00")).unwrap();
        assert_eq!(find(&store, expiry() - second), Ok("ci".to_owned()));
        assert_eq!(find(&store, expiry()), Err(ApiKeyError::Expired));
    }

    #[tokio::test]
    async fn replaced_keys_are_in_force_for_every_clone() {
        let (old, new) = (ApiKey::generate().unwrap(), ApiKey::generate().unwrap());
        let current = CurrentKeys::new(KeyStore::parse(&file(&[("ci", &old, "")])).unwrap());
        let clone: Box<dyn Credentials> = Box::new(current.clone());
        assert_eq!(clone.check(old.reveal(), NOW).await.unwrap().subject(), "ci");
        current.replace(KeyStore::parse(&file(&[("ci", &new, "")])).unwrap());
        assert_eq!(
            clone.check(old.reveal(), NOW).await,
            Err(AuthError::Lapsed("the API key is unknown or was revoked")),
            "its holder does not guess"
        );
        assert_eq!(
            clone.check(ApiKey::generate().unwrap().reveal(), NOW).await,
            Err(AuthError::Invalid("the API key is unknown or was revoked"))
        );
        assert_eq!(clone.check(new.reveal(), NOW).await.unwrap().subject(), "ci");
    }

    #[test]
    fn the_client_gets_the_text_of_the_error() {
        for error in [ApiKeyError::Malformed, ApiKeyError::Unknown, ApiKeyError::Revoked, ApiKeyError::Expired] {
            assert_eq!(AuthError::from(error).to_string(), error.to_string());
        }
    }
}
