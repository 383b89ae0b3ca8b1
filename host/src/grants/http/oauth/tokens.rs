//! The access tokens of one grant: got when they are first needed, renewed before they end, forgotten when the upstream
//! refuses them.
//!
//! All requests that need a new token wait for the same one. The task that gets it goes on if these requests are cancelled:
//! the server may already have replaced the refresh token.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use http::HeaderValue;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout_at};
use zeroize::Zeroizing;

use super::config::OAuthSettings;
use super::login_file::{LOCK_INTERVAL, LockedLogin, Login, LoginFileError, LoginPlace, LoginStamp};
use super::response::{GrantedTokens, OAuthErrorCode};
use super::token_error::AccessTokenError;
use super::token_server::TokenServer;
use crate::grants::http::wiped;
use crate::grants::network::Network;
use crate::grants::secrets::{LiveSecrets, Secret};
use crate::model::MountName;
use crate::model::bounds::TOKEN_RENEWAL_INTERVAL;

/// The time for getting one token, with the metadata of the server.
const FETCH_TIME: Duration = Duration::from_secs(10);

/// How long a token is used if the server does not say.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(300);

/// The bounds of the lifetime that a server may choose. The lower one bounds how often belljar asks for tokens.
const LIFETIMES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(24 * 3600)];

/// A token is renewed when less than this part of its lifetime is left, or less than [`MOST_LEFT`].
const LEAST_LEFT: u32 = 10;

/// See [`LEAST_LEFT`].
const MOST_LEFT: Duration = Duration::from_secs(60);

/// The pauses after failures: they double, from the first to the second one.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// The name of the tokens among the secrets.
const SECRET: &str = "access-token";

/// An access token.
pub(in crate::grants::http) struct AccessToken {
    /// The value of the header `Authorization`.
    pub(in crate::grants::http) header: HeaderValue,
    renew_at: Instant,
    ends_at: Instant,
}

/// The end of a fetch: a token, or the reason why there is none.
type FetchEnd = Result<Arc<AccessToken>, Arc<AccessTokenError>>;

/// The access tokens of one grant.
pub(in crate::grants::http) struct AccessTokens {
    server: TokenServer,
    live: Arc<LiveSecrets>,
    /// Runs the tasks that get tokens. They outlive a call.
    runtime: Handle,
    /// The directory of the logins. `None` without a configuration file.
    logins: Option<PathBuf>,
    place: OnceLock<LoginPlace>,
    state: Mutex<TokenState>,
}

#[derive(Default)]
struct TokenState {
    current: Option<Arc<AccessToken>>,
    /// The running fetch. Its channel is closed when it has ended.
    running: Option<watch::Receiver<Option<FetchEnd>>>,
    failure: Option<FetchFailure>,
    /// When the upstream last made belljar forget a token.
    forgotten: Option<Instant>,
    /// The login that the token comes from.
    login: Option<LoginInUse>,
}

/// A login, and the version of its file.
#[derive(Clone, Copy)]
struct LoginInUse {
    stamp: LoginStamp,
    since: SystemTime,
}

impl TokenState {
    /// Forgets the token and the last failure if somebody has logged in or out. If another process has only replaced the
    /// refresh token, the access token stays in use.
    fn follow(&mut self, place: &LoginPlace) {
        let stamp = place.stamp();
        if self.login.map(|login| login.stamp) == stamp {
            return;
        }
        // The file is small, and read only after a change.
        let found = place.read().ok().flatten().filter(|login| login.is_valid(SystemTime::now()));
        let is_same = self.login.zip(found.as_ref()).is_some_and(|(own, found)| own.since == found.since());
        if !is_same {
            (self.current, self.failure) = (None, None);
        }
        self.login = stamp.zip(found).map(|(stamp, found)| LoginInUse { stamp, since: found.since() });
    }
}

/// The last fetch has failed.
struct FetchFailure {
    error: Arc<AccessTokenError>,
    pause: Duration,
    until: Instant,
}

impl AccessToken {
    /// `None` if the token cannot stand in a header.
    fn new(token: &str, lifetime: Option<Duration>, now: Instant) -> Option<Self> {
        let [least, most] = LIFETIMES;
        let lifetime = lifetime.unwrap_or(DEFAULT_LIFETIME).clamp(least, most);
        let left = (lifetime / LEAST_LEFT).min(MOST_LEFT);
        let mut header = wiped::header_value(format!("Bearer {token}"))?;
        header.set_sensitive(true);
        Some(Self { header, renew_at: now + lifetime.saturating_sub(left), ends_at: now + lifetime })
    }
}

impl AccessTokens {
    /// The tokens of a grant. `live` masks them. `runtime` runs the tasks that get them.
    pub(in crate::grants::http) fn new(
        settings: Arc<OAuthSettings>,
        live: Arc<LiveSecrets>,
        network: Arc<Network>,
        logins: Option<PathBuf>,
        runtime: Handle,
    ) -> Self {
        let server = TokenServer::new(settings, network);
        Self { server, live, runtime, logins, place: OnceLock::new(), state: Mutex::default() }
    }

    /// The settings.
    pub(in crate::grants::http) fn settings(&self) -> &OAuthSettings {
        &self.server.settings
    }

    /// A valid token for a request of `mount`. Waits for a new one until `deadline`.
    pub(in crate::grants::http) async fn get(self: &Arc<Self>, mount: &MountName, deadline: Instant) -> FetchEnd {
        let mut ended = match self.find_or_fetch(mount)? {
            Found::Token(token) => return Ok(token),
            Found::Fetch(ended) => ended,
        };
        let end = timeout_at(deadline, ended.wait_for(Option::is_some)).await;
        let end = end.map_err(|_| Arc::new(AccessTokenError::TimedOut))?;
        let end = end.ok().and_then(|end| end.clone());
        end.unwrap_or_else(|| Err(Arc::new(AccessTokenError::Stopped)))
    }

    /// The token in use, or the fetch that gets one. A token that is due for renewal is renewed while it is still used.
    fn find_or_fetch(self: &Arc<Self>, mount: &MountName) -> Result<Found, Arc<AccessTokenError>> {
        let place = self.place(mount);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let running = state.running.clone().filter(|running| running.has_changed().is_ok());
        if let Some(place) = place.filter(|_| running.is_none()) {
            state.follow(place);
        }
        let current = state.current.clone().filter(|token| now < token.ends_at);
        if let Some(token) = current.as_ref().filter(|token| now < token.renew_at) {
            return Ok(Found::Token(Arc::clone(token)));
        }
        if let Some(failure) = state.failure.as_ref().filter(|failure| now < failure.until) {
            return current.map(Found::Token).ok_or_else(|| Arc::clone(&failure.error));
        }
        let ended = running.unwrap_or_else(|| {
            let (sender, receiver) = watch::channel(None);
            state.running = Some(receiver.clone());
            let (tokens, place) = (Arc::clone(self), place.cloned());
            self.runtime.spawn(async move {
                let end = tokens.fetch(place.as_ref()).await;
                // Ignored if nobody waits any more.
                let _ = sender.send(Some(end));
            });
            receiver
        });
        Ok(current.map_or(Found::Fetch(ended), Found::Token))
    }

    /// Forgets a token that the upstream has refused. True if another one may help. A hostile upstream refuses every token,
    /// so this happens once in [`TOKEN_RENEWAL_INTERVAL`].
    pub(in crate::grants::http) fn forget(&self, refused: &Arc<AccessToken>) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.current.as_ref().is_some_and(|current| Arc::ptr_eq(current, refused)) {
            // Another request has already forgotten it.
            return true;
        }
        let now = Instant::now();
        if state.forgotten.is_some_and(|last| now < last + TOKEN_RENEWAL_INTERVAL.get()) {
            return false;
        }
        (state.current, state.forgotten) = (None, Some(now));
        true
    }

    /// The place of the login. `None` if the tokens need no login.
    fn place(&self, mount: &MountName) -> Option<&LoginPlace> {
        let settings = self.settings();
        let directory = self.logins.as_ref().filter(|_| settings.needs_login())?;
        Some(self.place.get_or_init(|| LoginPlace::new(directory, mount, settings)))
    }

    /// Gets a token, and takes it into use.
    async fn fetch(&self, place: Option<&LoginPlace>) -> FetchEnd {
        let deadline = Instant::now() + FETCH_TIME;
        let got = match (self.settings().needs_login(), place) {
            (false, _) => self.server.client_credentials(deadline).await.map(|tokens| (tokens, None)),
            (true, None) => Err(LoginFileError::NoConfiguration.into()),
            (true, Some(place)) => self.renew(place, deadline).await.map(|(tokens, login)| (tokens, Some(login))),
        };
        let now = Instant::now();
        let made = got.map(|(tokens, login)| (self.token(&tokens, now), login));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match made {
            Ok((Some(token), login)) => {
                if state.failure.take().is_some() {
                    tracing::info!("the authorization server \"{}\" gives tokens again", self.settings().server());
                }
                (state.current, state.login) = (Some(Arc::clone(&token)), login);
                Ok(token)
            }
            // The characters of a token were checked, so this does not happen.
            Ok((None, _)) => Err(Arc::new(AccessTokenError::Stopped)),
            Err(error) => {
                let error = Arc::new(error);
                let [first, longest] = PAUSES;
                let before = state.failure.take();
                if before.is_none() && !matches!(*error, AccessTokenError::NoLogin) {
                    // Logged once, not at every try. Who asks without a login reads it in the answer.
                    tracing::warn!("no token of the authorization server \"{}\": {error}", self.settings().server());
                }
                let pause = before.map_or(first, |failure| (failure.pause * 2).min(longest));
                // A login that is missing costs no request.
                let is_free = matches!(*error, AccessTokenError::NoLogin | AccessTokenError::LoginEnded);
                let until = if is_free { now } else { now + pause };
                state.failure = Some(FetchFailure { error: Arc::clone(&error), pause, until });
                Err(error)
            }
        }
    }

    /// A token for headers. From now on it is masked.
    fn token(&self, tokens: &GrantedTokens, now: Instant) -> Option<Arc<AccessToken>> {
        for text in tokens.refresh_token.iter().chain([&tokens.access_token]) {
            self.mask(text);
        }
        AccessToken::new(&tokens.access_token, tokens.lifetime, now).map(Arc::new)
    }

    fn mask(&self, text: &Zeroizing<String>) {
        // Fails for short refresh tokens, which could not be told from ordinary text. They go to the server only.
        if let Ok(secret) = Secret::new(SECRET, text.clone()) {
            self.live.add(&Arc::new(secret));
        }
    }

    /// Gets a token for the login, and stores the new refresh token, if the server gives one.
    async fn renew(
        &self,
        place: &LoginPlace,
        deadline: Instant,
    ) -> Result<(GrantedTokens, LoginInUse), AccessTokenError> {
        let (locked, login) = lock(place, deadline).await?;
        let now = SystemTime::now();
        if !login.is_valid(now) {
            return Err(AccessTokenError::LoginEnded);
        }
        let since = login.since();
        let unchanged = || place.stamp().map(|stamp| LoginInUse { stamp, since }).ok_or(AccessTokenError::NoLogin);
        let Some(refresh_token) = login.refresh_token() else {
            let (access_token, lifetime) = login.access_token(now).ok_or(AccessTokenError::LoginEnded)?;
            let access_token = access_token.clone();
            let tokens = GrantedTokens { access_token, lifetime, refresh_token: None, refresh_lifetime: None };
            return Ok((tokens, unchanged()?));
        };
        self.mask(refresh_token);
        match self.server.refresh(refresh_token, deadline).await {
            Ok(tokens) if tokens.refresh_token.is_some() => {
                let next = Login::new(self.settings(), &tokens, since, SystemTime::now());
                let stamp = store(place, next, locked).await?;
                Ok((tokens, LoginInUse { stamp, since }))
            }
            Ok(tokens) => Ok((tokens, unchanged()?)),
            Err(AccessTokenError::Refused(OAuthErrorCode::InvalidGrant)) => {
                store(place, login.ended(), locked).await?;
                Err(AccessTokenError::LoginEnded)
            }
            Err(error) => Err(error),
        }
    }
}

/// What a request that needs a token finds.
enum Found {
    Token(Arc<AccessToken>),
    Fetch(watch::Receiver<Option<FetchEnd>>),
}

/// Locks the file of a login. Waits while another process has locked it.
pub(super) async fn lock(place: &LoginPlace, deadline: Instant) -> Result<(LockedLogin, Login), AccessTokenError> {
    loop {
        let own = place.clone();
        let tried = spawn_blocking(move || own.try_lock()).await.map_err(|_| AccessTokenError::Stopped)?;
        match tried {
            Ok(Some(locked)) => return Ok(locked),
            Ok(None) if Instant::now() < deadline => sleep(LOCK_INTERVAL).await,
            Ok(None) => return Err(AccessTokenError::TimedOut),
            Err(LoginFileError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(AccessTokenError::NoLogin);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Replaces the file of a login.
async fn store(place: &LoginPlace, login: Login, locked: LockedLogin) -> Result<LoginStamp, AccessTokenError> {
    let place = place.clone();
    let written = spawn_blocking(move || place.replace(&login, Some(&locked))).await;
    Ok(written.map_err(|_| AccessTokenError::Stopped)??)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grants::http::oauth::config::OAuthConfig;
    use crate::grants::secrets::Secrets;

    #[test]
    fn a_token_stays_in_use_until_somebody_logs_in_or_out() {
        let temp = tempfile::tempdir().unwrap();
        let config: OAuthConfig = toml::from_str("issuer = 'https://a.example'\nclient = 'c'").unwrap();
        let settings = config.checked(&Secrets::default()).unwrap();
        let place = LoginPlace::new(temp.path(), &MountName::new("web").unwrap(), &settings);
        let store = |refresh_token: &str, since: u64| {
            let text = |text: &str| Zeroizing::new(text.to_owned());
            let tokens = GrantedTokens {
                access_token: text("12345678"),
                lifetime: None,
                refresh_token: Some(text(refresh_token)),
                refresh_lifetime: None,
            };
            let since = SystemTime::UNIX_EPOCH + Duration::from_secs(since);
            place.replace(&Login::new(&settings, &tokens, since, SystemTime::now()), None).unwrap();
        };
        let token = || Some(Arc::new(AccessToken::new("12345678", None, Instant::now()).unwrap()));
        let mut state = TokenState::default();
        let mut keeps_token = || {
            state.current = token();
            state.follow(&place);
            state.current.is_some()
        };
        store("one", 1);
        assert!(!keeps_token(), "somebody has logged in");
        assert!(keeps_token());
        store("two", 1);
        assert!(keeps_token(), "another process has only replaced the refresh token");
        store("three", 2);
        assert!(!keeps_token(), "somebody has logged in again");
        place.remove().unwrap();
        assert!(!keeps_token(), "somebody has logged out");
    }

    #[test]
    fn a_token_is_renewed_before_it_ends() {
        let now = Instant::now();
        for (lifetime, renewed, ends) in [
            (Some(3600), 3540, 3600),
            (Some(100), 90, 100),
            (Some(0), 0, 1),
            (Some(u64::MAX), 24 * 3600 - 60, 24 * 3600),
            (None, 270, 300),
        ] {
            let token = AccessToken::new("12345678", lifetime.map(Duration::from_secs), now).unwrap();
            let times = [token.renew_at, token.ends_at].map(|at| (at - now).as_secs());
            assert_eq!(times, [renewed, ends], "{lifetime:?}");
            assert!(token.header.is_sensitive());
        }
    }
}
