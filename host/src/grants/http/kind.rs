//! The run-time part of the grant `http`.

use std::path::PathBuf;
use std::sync::Arc;

use ::http::HeaderName;
use ::http::header::AUTHORIZATION;
use tokio::runtime::Handle;
use wasmtime::component::Linker;
use wasmtime_wasi::WasiCtxBuilder;

use super::call_state::HttpCallState;
use super::error::HttpError;
use super::headers::CREDENTIALS;
use super::mount_state::HttpMountState;
use super::name::{Http, NAME};
use super::oauth::config::OAuthConfig;
use super::oauth::tokens::AccessTokens;
use super::origin::OriginPattern;
use super::origin_grant::{OAuthGrant, OriginGrant, OriginGrantConfig};
use crate::grants::ambient::Ambient;
use crate::grants::grant::{CallScope, Grant, HasCallState, Powers};
use crate::grants::network::ResolverError;
use crate::grants::network::connection_slots::ConnectionSlots;
use crate::grants::network::upstream_breaker::UpstreamBreaker;
use crate::grants::secrets::{LiveSecrets, Secret};

impl Grant for Http {
    const NAME: &'static str = NAME;
    const IMPORTS: &'static [&'static str] = &["wasi:http/"];
    // Consent covers only origins on these ports: see `allows_consent`.
    const CONSENT_PORTS: &'static [u16] = &[80, 443];
    type Config = Vec<OriginGrantConfig>;
    type MountState = Arc<HttpMountState>;
    type CallState = HttpCallState;
    type Error = HttpError;

    fn link<T: HasCallState<Self>>(_: &mut Linker<T>) -> wasmtime::Result<()> {
        Ok(())
    }

    fn configure(config: &Vec<OriginGrantConfig>, ambient: &Ambient) -> Result<Arc<HttpMountState>, HttpError> {
        let network = ambient.network.as_ref();
        let read = |written| OriginGrant::new(written, &ambient.secrets, network.map(Arc::as_ref)).map(Arc::new);
        let grants: Vec<Arc<OriginGrant>> = config.iter().map(read).collect::<Result<_, _>>()?;
        let allowed = |name: &HeaderName| grants.iter().any(|grant| grant.allowed_headers().contains(name));
        // Other headers that the host adds replace the guest's headers and stay visible in responses: they hold no
        // secret.
        let secret = grants.iter().flat_map(|grant| grant.headers()).filter(|(_, value)| value.is_sensitive());
        let added = secret.map(|(name, _)| name.clone());
        let mut tokens = Vec::new();
        for grant in &grants {
            if let (Some(OAuthGrant { settings, live }), Some(network)) = (grant.oauth(), network) {
                let runtime = Handle::try_current().map_err(ResolverError::NoRuntime)?;
                let (settings, live, network) = (Arc::clone(settings), Arc::clone(live), Arc::clone(network));
                let own = AccessTokens::new(settings, live, network, ambient.logins.clone(), runtime);
                tokens.push((Arc::clone(grant), Arc::new(own)));
            }
        }
        let added = added.chain(tokens.iter().map(|_| AUTHORIZATION));
        let hidden_headers = CREDENTIALS.into_iter().filter(|name| !allowed(name)).chain(added).collect();
        let resolver = network.map(|network| network.resolver()).transpose()?;
        let network = network.cloned();
        Ok(Arc::new(HttpMountState {
            grants,
            tokens,
            network,
            resolver,
            connection_slots: ConnectionSlots::default(),
            upstreams: UpstreamBreaker::default(),
            hidden_headers,
        }))
    }

    fn share(own: &mut Arc<HttpMountState>, base: &Arc<HttpMountState>) {
        if let Some(own) = Arc::get_mut(own) {
            own.connection_slots = base.connection_slots.clone();
        }
    }

    fn ports(config: &Vec<OriginGrantConfig>) -> Vec<u16> {
        let origins = config.iter().filter_map(|written| Some(OriginPattern::parse(&written.origin).ok()?.port()));
        origins.chain(config.iter().flat_map(|written| &written.oauth).flat_map(OAuthConfig::ports)).collect()
    }

    fn own_directories(config: &Vec<OriginGrantConfig>, ambient: &Ambient) -> Vec<PathBuf> {
        let needs_login = config.iter().flat_map(|written| &written.oauth).any(OAuthConfig::needs_login);
        ambient.logins.iter().filter(|_| needs_login).cloned().collect()
    }

    fn powers(config: &Vec<OriginGrantConfig>) -> Powers {
        Powers { can_change: config.iter().any(|grant| !grant.is_safe()), can_reach_out: !config.is_empty() }
    }

    fn is_granted(mount: &Arc<HttpMountState>) -> bool {
        !mount.grants.is_empty()
    }

    fn warnings(mount: &Arc<HttpMountState>) -> Vec<String> {
        mount.grants.iter().flat_map(|grant| grant.warnings()).collect()
    }

    fn secrets(mount: &Arc<HttpMountState>) -> Vec<Arc<Secret>> {
        mount.grants.iter().flat_map(|grant| grant.secrets()).cloned().collect()
    }

    fn live_secrets(mount: &Arc<HttpMountState>) -> Vec<Arc<LiveSecrets>> {
        mount.grants.iter().filter_map(|grant| grant.oauth()).map(|oauth| Arc::clone(&oauth.live)).collect()
    }

    fn open(mount: &Arc<HttpMountState>, _: &mut WasiCtxBuilder, scope: &CallScope<'_>) -> HttpCallState {
        HttpCallState::new(mount, scope)
    }
}
