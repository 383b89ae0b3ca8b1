//! A login of a person at an authorization server (RFC 8628): belljar shows a code, the person enters it in a browser, and
//! belljar asks until the server gives the tokens.

use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep_until};

use super::endpoints::EndpointError;
use super::login_file::{Login, LoginPlace};
use super::response::{self, DeviceGrant, GrantedTokens, OAuthErrorCode};
use super::token_error::AccessTokenError;
use super::token_server::TokenServer;
use super::tokens;

/// The time for one request.
const ASK_TIME: Duration = Duration::from_secs(10);

/// How often belljar asks, if the server does not say, and by how much it slows down (RFC 8628, 3.2 and 3.5).
const INTERVAL: Duration = Duration::from_secs(5);

/// The bounds of the interval that a server may choose.
const INTERVALS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// The longest time that a person gets.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// The grant type of a device.
const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// A login that waits for a person.
pub struct PendingLogin {
    grant: DeviceGrant,
    interval: Duration,
    ends_at: Instant,
}

/// Why a login did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum DeviceLoginError {
    /// The person refused.
    #[error("the login was refused in the browser")]
    Denied,
    /// The person was too late.
    #[error("nobody entered the code in time; run the command again")]
    Expired,
    /// The server knows no logins of devices.
    #[error(
        "the authorization server has no \"device_authorization_endpoint\" in its metadata; if it has one elsewhere, add  device-endpoint = \"URL\"  to oauth"
    )]
    NoDeviceEndpoint,
    /// The server cannot be asked, or refuses.
    #[error(transparent)]
    Server(#[from] AccessTokenError),
}

impl From<EndpointError> for DeviceLoginError {
    fn from(error: EndpointError) -> Self {
        Self::Server(error.into())
    }
}

impl PendingLogin {
    /// Begins a login.
    ///
    /// # Errors
    /// If the server cannot be asked, or refuses.
    pub async fn begin(server: &TokenServer) -> Result<Self, DeviceLoginError> {
        let began = Instant::now();
        let endpoints = server.endpoints(began + ASK_TIME).await?;
        let device = endpoints.device.ok_or(DeviceLoginError::NoDeviceEndpoint)?;
        let scope = server.settings.scopes.join(" ");
        let form = [("scope", scope.as_str())];
        let form = if scope.is_empty() { &[] } else { form.as_slice() };
        // RFC 8628, 3.1: `client_id` stands in the form, whatever the client proves.
        let client = ("client_id", server.settings.client.as_str());
        let with_client = [form, &[client]].concat();
        let needs_client = matches!(endpoints.proof, super::endpoints::ClientProof::Basic);
        let form = if needs_client { with_client.as_slice() } else { form };
        let object = server.ask(&device, endpoints.proof, form, began + ASK_TIME).await?;
        let grant = response::device(&object).map_err(|error| AccessTokenError::Malformed(device, error))?;
        let [least, most] = INTERVALS;
        let interval = grant.interval.unwrap_or(INTERVAL).clamp(least, most);
        Ok(Self { ends_at: began + grant.lifetime.min(LONGEST), grant, interval })
    }

    /// The page that the person opens.
    pub fn page(&self) -> String {
        self.grant.page.to_string()
    }

    /// The page that already has the code, if the server has one.
    pub fn whole_page(&self) -> Option<String> {
        self.grant.whole_page.as_ref().map(ToString::to_string)
    }

    /// The code that the person enters.
    pub fn user_code(&self) -> &str {
        &self.grant.user_code
    }

    /// How long the person has.
    pub fn time_left(&self) -> Duration {
        self.ends_at.saturating_duration_since(Instant::now())
    }

    /// Waits for the person, and stores the login at `place`.
    ///
    /// # Errors
    /// If the person refuses or is too late, or the server or the file fails.
    pub async fn finish(self, server: &TokenServer, place: &LoginPlace) -> Result<Login, DeviceLoginError> {
        let tokens = self.wait(server).await?;
        let now = SystemTime::now();
        let login = Login::new(&server.settings, &tokens, now, now);
        // A server that uses the old login right now stores it first.
        let locked = match tokens::lock(place, Instant::now() + ASK_TIME).await {
            Ok((locked, _)) => Some(locked),
            Err(AccessTokenError::TimedOut) => return Err(AccessTokenError::TimedOut.into()),
            // There is no old login, or it is not usable.
            Err(_) => None,
        };
        place.replace(&login, locked.as_ref()).map_err(AccessTokenError::from)?;
        Ok(login)
    }

    async fn wait(&self, server: &TokenServer) -> Result<GrantedTokens, DeviceLoginError> {
        let mut interval = self.interval;
        let form = [("grant_type", GRANT_TYPE), ("device_code", self.grant.device_code.as_str())];
        loop {
            let next = Instant::now() + interval;
            if next >= self.ends_at {
                return Err(DeviceLoginError::Expired);
            }
            sleep_until(next).await;
            match server.tokens(&form, Instant::now() + ASK_TIME).await {
                Ok(tokens) => return Ok(tokens),
                Err(AccessTokenError::Refused(OAuthErrorCode::AuthorizationPending)) => {}
                Err(AccessTokenError::Refused(OAuthErrorCode::SlowDown)) => interval += INTERVAL,
                Err(AccessTokenError::Refused(OAuthErrorCode::AccessDenied)) => return Err(DeviceLoginError::Denied),
                Err(AccessTokenError::Refused(OAuthErrorCode::ExpiredToken)) => return Err(DeviceLoginError::Expired),
                // RFC 8628, 3.5: a client backs off if the server does not answer.
                Err(error) if error.is_temporary() => interval *= 2,
                Err(error) => return Err(error.into()),
            }
        }
    }
}
