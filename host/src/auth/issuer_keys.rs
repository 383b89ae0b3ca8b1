//! The keys of one issuer: fetched, cached, and fetched again.
//!
//! Keys are fetched when there are none, when they are old, and when a token has an unknown key. Anyone can send such a
//! token, so for the last reason a fetch begins at most once in [`KEY_FETCH_INTERVAL`]. All requests that need a fetch wait
//! for the same one. The last good set stays in use while the issuer is down.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::discovery::{self, DiscoveryError};
use super::key_set::{KeySet, KeySetError};
use super::signature::PublicKey;
use super::token_error::TokenError;
use crate::config::{IssuerConfig, KeySetSource, TokenAlgorithm};
use crate::grants::http::service_client::{ServiceClient, ServiceError, ServiceRequest};
use crate::grants::http::service_url::ServiceUrl;
use crate::model::bounds::KEY_FETCH_INTERVAL;

/// The time for one fetch, with the fetch of the metadata.
const FETCH_TIME: Duration = Duration::from_secs(10);

/// The least time between two fetches while there are no keys at all.
const FIRST_FETCH_INTERVAL: Duration = Duration::from_secs(5);

/// How long a request waits for new keys before it uses the old ones. The old ones may be the last good ones.
const STALE_WAIT: Duration = Duration::from_secs(1);

/// How long keys are used before they are fetched again, if the issuer does not say.
const DEFAULT_AGE: Duration = Duration::from_secs(15 * 60);

/// The bounds of the age that an issuer may choose.
const AGES: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(24 * 3600)];

/// The keys of one issuer.
pub(super) struct IssuerKeys {
    issuer: IssuerConfig,
    /// `None`: the keys are in a file and never fetched.
    client: Option<Arc<ServiceClient>>,
    current: ArcSwapOption<CurrentKeys>,
    fetches: Mutex<Fetches>,
}

/// The keys in use.
struct CurrentKeys {
    set: KeySet,
    /// Changes whenever the set changes.
    version: u64,
    /// `None`: the keys do not age.
    fresh_until: Option<Instant>,
}

/// The fetches of an issuer's keys.
#[derive(Default)]
struct Fetches {
    last_begun: Option<Instant>,
    /// When the last fetch for an unknown key began. A fetch for another reason does not count: the issuer may change its
    /// keys right after it.
    last_for_unknown: Option<Instant>,
    /// Closed when the running fetch has ended.
    running: Option<watch::Receiver<()>>,
    is_failing: bool,
}

/// Why keys are fetched.
#[derive(Clone, Copy)]
enum FetchReason {
    /// There are none, or they are old.
    Age,
    /// A token has an unknown key.
    UnknownKey,
}

/// The keys that may have signed a token, and the version of their set.
pub(super) struct FoundKeys {
    pub(super) keys: Vec<PublicKey>,
    pub(super) version: u64,
}

/// Why keys cannot be fetched.
#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    #[error("its key set at \"{0}\" cannot be fetched: {1}")]
    Unreachable(ServiceUrl, #[source] ServiceError),
    #[error("its key set at \"{0}\" cannot be fetched: the status is {1}")]
    Status(ServiceUrl, u16),
    #[error("its key set at \"{0}\" cannot be used: {1}")]
    KeySet(ServiceUrl, #[source] KeySetError),
}

impl IssuerKeys {
    /// Keys that `client` fetches when they are first needed.
    pub(super) fn fetched(issuer: IssuerConfig, client: Arc<ServiceClient>) -> Self {
        Self { issuer, client: Some(client), current: ArcSwapOption::empty(), fetches: Mutex::default() }
    }

    /// Keys from a file.
    pub(super) fn fixed(issuer: IssuerConfig, set: KeySet) -> Self {
        let current = CurrentKeys { set, version: 1, fresh_until: None };
        let current = ArcSwapOption::new(Some(Arc::new(current)));
        Self { issuer, client: None, current, fetches: Mutex::default() }
    }

    /// The issuer.
    pub(super) fn issuer(&self) -> &IssuerConfig {
        &self.issuer
    }

    /// The version of the keys in use. 0: there are none yet.
    pub(super) fn version(&self) -> u64 {
        self.current.load().as_ref().map_or(0, |current| current.version)
    }

    /// True if `other` has the same keys: from the same file contents, or fetched in the same way.
    pub(super) fn has_same_source(&self, other: &Self) -> bool {
        let fixed = |keys: &Self| keys.current.load_full().filter(|_| keys.client.is_none());
        let is_same_file = match (fixed(self), fixed(other)) {
            (None, None) => true,
            (Some(own), Some(other)) => own.set == other.set,
            _ => false,
        };
        is_same_file && self.issuer == other.issuer
    }

    /// The keys that may have signed a token with this header.
    ///
    /// # Errors
    /// If there is no such key, or there are no keys at all because the issuer cannot be reached.
    pub(super) async fn find(
        self: &Arc<Self>,
        kid: Option<&str>,
        algorithm: TokenAlgorithm,
    ) -> Result<FoundKeys, TokenError> {
        let is_stale = |until: Option<Instant>| until.is_some_and(|until| until <= Instant::now());
        let is_fetched = match self.current.load_full() {
            None => self.fetch(FetchReason::Age, FETCH_TIME).await,
            Some(current) if is_stale(current.fresh_until) => self.fetch(FetchReason::Age, STALE_WAIT).await,
            Some(_) => false,
        };
        let current = self.current.load_full().ok_or(TokenError::Unavailable)?;
        if let Some(found) = current.find(kid, algorithm) {
            return Ok(found);
        }
        // The issuer may have changed its keys, unless they have just been fetched.
        if !is_fetched {
            self.fetch(FetchReason::UnknownKey, FETCH_TIME).await;
        }
        let current = self.current.load_full().ok_or(TokenError::Unavailable)?;
        current.find(kid, algorithm).ok_or(TokenError::UnknownKey)
    }

    /// Waits for the running fetch, or begins one if it may. Returns when it has ended, after `longest` at the latest. True
    /// if it has ended.
    async fn fetch(self: &Arc<Self>, reason: FetchReason, longest: Duration) -> bool {
        let Some(mut ended) = self.join_or_begin(reason) else { return false };
        // The fetch goes on when the time is over or this request is cancelled. The channel carries no value.
        timeout(longest, ended.changed()).await.is_ok()
    }

    /// A receiver that is closed when the running fetch ends. `None`: no fetch runs, and none may begin now.
    fn join_or_begin(self: &Arc<Self>, reason: FetchReason) -> Option<watch::Receiver<()>> {
        let client = Arc::clone(self.client.as_ref()?);
        let mut fetches = self.fetches.lock().unwrap_or_else(PoisonError::into_inner);
        // The channel of an ended fetch is closed.
        if let Some(running) = fetches.running.as_ref().filter(|running| running.has_changed().is_ok()) {
            return Some(running.clone());
        }
        let (last, interval) = match (reason, self.current.load().is_some()) {
            (FetchReason::UnknownKey, _) => (fetches.last_for_unknown, KEY_FETCH_INTERVAL.get()),
            (FetchReason::Age, true) => (fetches.last_begun, KEY_FETCH_INTERVAL.get()),
            (FetchReason::Age, false) => (fetches.last_begun, FIRST_FETCH_INTERVAL.min(KEY_FETCH_INTERVAL.get())),
        };
        let now = Instant::now();
        if last.is_some_and(|last| now < last + interval) {
            return None;
        }
        if matches!(reason, FetchReason::UnknownKey) {
            fetches.last_for_unknown = Some(now);
        }
        let (sender, receiver) = watch::channel(());
        fetches.last_begun = Some(now);
        fetches.running = Some(receiver.clone());
        let keys = Arc::clone(self);
        tokio::spawn(async move {
            let fetched = keys.fetch_set(&client, now + FETCH_TIME).await;
            keys.apply(fetched);
            drop(sender);
        });
        Some(receiver)
    }

    async fn fetch_set(&self, client: &ServiceClient, deadline: Instant) -> Result<(KeySet, Duration), FetchError> {
        let url = match &self.issuer.keys {
            KeySetSource::Url(url) => url.clone(),
            KeySetSource::Discover | KeySetSource::File(_) => {
                discovery::key_set_url(client, &self.issuer, deadline).await?
            }
        };
        let networks = &self.issuer.networks;
        let request = ServiceRequest { url: &url, networks, body: None, authorization: None, deadline };
        let response = match client.send(request).await {
            Ok(response) => response,
            Err(error) => return Err(FetchError::Unreachable(url, error)),
        };
        if response.status != http::StatusCode::OK {
            return Err(FetchError::Status(url, response.status.as_u16()));
        }
        let [least, most] = AGES;
        let age = response.max_age.unwrap_or(DEFAULT_AGE).clamp(least, most);
        let set = KeySet::parse(&response.body).map_err(|error| FetchError::KeySet(url, error))?;
        Ok((set, age))
    }

    /// Takes new keys into use. After a failure, the old ones stay.
    fn apply(&self, fetched: Result<(KeySet, Duration), FetchError>) {
        let issuer = self.issuer.issuer.as_str();
        let is_failing = fetched.is_err();
        let was_failing = {
            let mut fetches = self.fetches.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut fetches.is_failing, is_failing)
        };
        let old = self.current.load_full();
        match fetched {
            Ok((set, age)) => {
                let old_version = old.as_ref().map_or(0, |old| old.version);
                let is_new = old.is_none_or(|old| old.set != set);
                let version = old_version + u64::from(is_new);
                let fresh_until = Some(Instant::now() + age);
                self.current.store(Some(Arc::new(CurrentKeys { set, version, fresh_until })));
                if was_failing {
                    tracing::info!("the keys of the issuer \"{issuer}\" are there again");
                }
            }
            // Logged once, not at every try.
            Err(_) if was_failing => {}
            Err(error) => {
                let result = match old {
                    Some(_) => "the last good keys stay in use",
                    None => "its tokens cannot be checked",
                };
                tracing::warn!("the issuer \"{issuer}\": {error}; {result}");
            }
        }
    }
}

impl CurrentKeys {
    fn find(&self, kid: Option<&str>, algorithm: TokenAlgorithm) -> Option<FoundKeys> {
        let keys: Vec<_> = self.set.candidates(kid, algorithm).into_iter().cloned().collect();
        (!keys.is_empty()).then_some(FoundKeys { keys, version: self.version })
    }
}
