//! A real authorization server on loopback for belljar as client: `tests/clients/node/upstream_authorization.mjs`, which runs
//! npm's `oidc-provider`.
//!
//! The program gets one JSON request as its argument:
//!
//! ```json
//! {"seconds": 3600, "methods": ["client_secret_basic", "none"]}
//! ```
//!
//! `seconds` is the lifetime of access tokens, `methods` are the ways in which clients may prove their identity. There are
//! two clients: `confidential` has a secret and gets client credentials; `public` has none, and gets tokens after a login
//! of a person. Each use of a refresh token gives a new one, and the second use of an old one ends the login.
//!
//! The program prints one line when it listens: `issuer`, `confidential` (id and secret), `public` (id), and `scope`, the
//! scope that both may have. It ends when its input ends.
//!
//! Only tests use the endpoints below `/test/`. Each takes and returns JSON:
//!  - `asked`: the grant type and the status of each request for a token, and whether it had `Authorization`.
//!  - `seconds`: sets the lifetime of the next access tokens.
//!  - `knows`: whether the server issued a token that is valid, and its scope.
//!  - `revoke`: revokes all refresh tokens.
//!  - `enter`: opens the page `page` like a browser, enters `code`, logs in and agrees, or refuses.

use serde_json::{Value, json};

use crate::auth::oauth::authorization_server::AuthorizationServer;

/// A running server.
pub(crate) struct Provider(AuthorizationServer);

impl Provider {
    /// Starts the program. `None` if this machine lacks Node.
    pub(crate) fn start(request: &Value) -> Option<Provider> {
        AuthorizationServer::start_script("node/upstream_authorization.mjs", request).map(Provider)
    }

    /// The URL of the issuer.
    pub(crate) fn issuer(&self) -> &str {
        self.0.issuer()
    }

    /// The secret of the client `belljar-service`.
    pub(crate) fn secret(&self) -> &str {
        self.0.description()["confidential"]["client_secret"].as_str().unwrap()
    }

    /// The requests for tokens so far: grant type, `Authorization` or not, and status.
    pub(crate) fn asked(&self) -> Vec<(String, bool, u64)> {
        let asked = self.0.call("asked", &json!({}));
        let one = |one: &Value| {
            let grant = one["grant"].as_str().unwrap().rsplit(':').next().unwrap().to_owned();
            (grant, one["basic"].as_bool().unwrap(), one["status"].as_u64().unwrap_or(0))
        };
        asked.as_array().unwrap().iter().map(one).collect()
    }

    /// Sets the lifetime of the next access tokens.
    pub(crate) fn set_seconds(&self, seconds: u64) {
        self.0.call("seconds", &json!({ "seconds": seconds }));
    }

    /// True if the server issued this access token, for its scope.
    pub(crate) fn knows(&self, token: &str) -> bool {
        let found = self.0.call("knows", &json!({ "token": token }));
        found["scope"].as_str().is_some_and(|scope| scope.ends_with("forecast:read"))
    }

    /// Revokes all refresh tokens.
    pub(crate) fn revoke(&self) {
        self.0.call("revoke", &json!({}));
    }

    /// Does what a person does in a browser: opens the page, enters the code, and agrees.
    pub(crate) fn enter(&self, page: &str, code: &str) {
        let shown = self.0.call("enter", &json!({ "page": page, "code": code }));
        assert_eq!(shown["shows"], "the device may continue");
    }
}
