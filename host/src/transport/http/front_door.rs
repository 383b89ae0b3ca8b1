//! The settings of the endpoint: who may connect, by which names, and how requests are authenticated.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::bounds::Bounds;
use super::tls::TlsIdentity;
use crate::auth::Credentials;
use crate::config::serve::ServeConfig;

/// The settings of the endpoint. The default is an endpoint on loopback, without authentication.
#[derive(Clone, Default)]
pub struct FrontDoor {
    /// Caps and time-outs.
    pub bounds: Bounds,
    /// Names, pages and proxies.
    pub serve: ServeConfig,
    /// The certificate and its key. `None`: without TLS.
    pub tls: Option<Arc<TlsIdentity>>,
    /// How requests are authenticated. `None`: every request is from `anonymous`.
    pub authentication: Option<Authentication>,
}

/// How requests are authenticated.
#[derive(Clone)]
pub struct Authentication {
    /// Checks API keys and access tokens.
    pub credentials: Arc<dyn Credentials>,
    /// The scopes and issuers that clients are told about. Replaced when the configuration changes.
    pub advertised: Arc<ArcSwap<Advertised>>,
}

/// What clients are told about access tokens, in challenges and in the metadata of RFC 9728.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advertised {
    /// The issuers of access tokens. Empty: API keys only, and no metadata is served.
    pub issuers: Vec<String>,
    /// The scopes that a client asks for when it logs in.
    pub scopes: Vec<String>,
}

impl Advertised {
    /// The scopes that a client should ask for: all that can be written in a challenge (RFC 6750, section 3), without
    /// `offline_access`, which is for clients and their issuer only.
    pub(super) fn scopes(&self) -> Vec<&str> {
        let is_token = |scope: &str| {
            let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
            !scope.is_empty() && scope.bytes().all(fits)
        };
        let usable = |scope: &&str| is_token(scope) && *scope != "offline_access";
        self.scopes.iter().map(String::as_str).filter(usable).collect()
    }
}
