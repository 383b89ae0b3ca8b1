//! Makes the settings of the HTTP endpoint from the configuration, and changes those that a running server can change.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;

use crate::auth::key_store::CurrentKeys;
use crate::auth::{AllCredentials, TokenVerifier, TokenVerifierError, TokenVerifierInput};
use crate::config::serve::PublicUrl;
use crate::config::{AuthConfig, Config};
use crate::policy::RuleOrigin;
use crate::transport::http::{Advertised, Authentication, Bounds, FrontDoor, TlsIdentity};

/// The time for the answer after the longest call.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// How requests are authenticated while belljar serves. Clones share it.
#[derive(Clone)]
pub(crate) struct LiveAuthentication {
    credentials: Arc<AllCredentials>,
    advertised: Arc<ArcSwap<Advertised>>,
    /// The public URL at the start. It is the audience of tokens, and another one takes effect after a restart only.
    url: Option<PublicUrl>,
}

impl LiveAuthentication {
    /// The authentication of the configuration, with these API keys. `None` without `[auth]`.
    ///
    /// # Errors
    /// The first issuer that cannot be used.
    pub(crate) fn new(config: &Config, keys: Option<CurrentKeys>) -> Result<Option<Self>, TokenVerifierError> {
        let (Some(auth), Some(keys)) = (&config.auth, keys) else { return Ok(None) };
        let url = config.serve.url.clone();
        let tokens = verifier((auth, url.as_ref()), config, None)?;
        let credentials = Arc::new(AllCredentials::new(keys, tokens));
        let advertised = Arc::new(ArcSwap::from_pointee(advertised(auth, config)));
        Ok(Some(Self { credentials, advertised, url }))
    }

    /// Applies a changed configuration: the scopes that its rules name, and the key sets that were read again. The issuers
    /// are those of the start, `auth`.
    ///
    /// # Errors
    /// The first issuer that cannot be used. Then the old key sets stay in force.
    pub(crate) fn apply(&self, auth: &AuthConfig, config: &Config) -> Result<(), TokenVerifierError> {
        self.advertised.store(Arc::new(advertised(auth, config)));
        let tokens = verifier((auth, self.url.as_ref()), config, Some(&self.credentials.tokens()))?;
        self.credentials.set_tokens(tokens);
        Ok(())
    }
}

/// The settings of the endpoint.
pub(crate) fn front_door(
    config: &Config,
    tls: Option<Arc<TlsIdentity>>,
    authentication: Option<LiveAuthentication>,
) -> FrontDoor {
    let authentication = authentication
        .map(|LiveAuthentication { credentials, advertised, .. }| Authentication { credentials, advertised });
    let default = Bounds::default();
    let bounds = Bounds { drain: drain(config).unwrap_or(default.drain), ..default };
    FrontDoor { serve: config.serve.clone(), tls, authentication, bounds }
}

/// How long running requests may continue after the drain delay: as long as the longest call. `None` without a delay: then
/// somebody waits for the end.
fn drain(config: &Config) -> Option<Duration> {
    let limits = config.mounts.values().map(|mount| &mount.limits).chain([&config.limits]);
    let longest = limits.map(|limits| limits.time.max(limits.of_tools().time)).max().unwrap_or_default();
    (!config.serve.drain_delay.is_zero()).then_some(longest + ANSWER_TIME)
}

/// The verifier of the issuers of `auth` for the public URL, with the files and secrets of `config`.
fn verifier(
    (auth, url): (&AuthConfig, Option<&PublicUrl>),
    config: &Config,
    previous: Option<&TokenVerifier>,
) -> Result<TokenVerifier, TokenVerifierError> {
    let url = url.map(ToString::to_string);
    let input = TokenVerifierInput {
        url: url.as_deref(),
        key_sets: &config.key_sets,
        secrets: &config.ambient.secrets,
        network: config.ambient.network.as_ref(),
    };
    TokenVerifier::new(auth, &input, previous)
}

/// What clients are told about access tokens: the issuers, and the scopes of `[auth.scopes]`. Clients ask for all of these
/// when they log in. A scope that only a rule names is asked for when a request needs it (status 403).
fn advertised(auth: &AuthConfig, config: &Config) -> Advertised {
    let issuers = auth.issuers.iter().map(|issuer| issuer.issuer.as_str().to_owned()).collect();
    let scopes = config.rules.iter().filter_map(|rule| match &rule.origin {
        RuleOrigin::Scope(scope) => Some(scope.clone()),
        RuleOrigin::Allow(_) | RuleOrigin::Deny(_) => None,
    });
    Advertised { issuers, scopes: scopes.collect() }
}
