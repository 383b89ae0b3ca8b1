//! `oauth` of an HTTP grant: the authorization server, and belljar's identity there.

use std::sync::Arc;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::grants::http::service_url::{ServiceUrl, ServiceUrlError};
use crate::grants::network::networks::networks;
use crate::grants::secrets::{Secret, SecretError, SecretTemplate, Secrets};
use crate::model::{Digest, text};

/// The longest name of a client, in bytes.
const MAX_CLIENT: usize = 512;

/// The configuration of the access tokens of a grant.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[serde(
    expecting = "a table such as { issuer = \"https://login.example\", client = \"NAME\", secret = \"${secret:NAME}\" }"
)]
pub struct OAuthConfig {
    /// The URL of the authorization server, exactly as in its metadata. belljar finds its endpoints there.
    #[schemars(example = "https://login.example")]
    pub issuer: Option<String>,
    /// The name under which the authorization server knows belljar (client id).
    #[schemars(example = &"belljar")]
    pub client: String,
    /// belljar's password there: "${secret:NAME}". Without this key, a person logs in: `belljar login`.
    #[schemars(example = "${secret:weather}")]
    pub secret: Option<SecretTemplate>,
    /// The scopes of the tokens. Without this key, the authorization server chooses them.
    #[serde(default)]
    #[schemars(example = ["forecast:read"])]
    pub scopes: Vec<String>,
    /// Whether a person logs in although there is a `secret`.
    #[schemars(example = true, extend("default" = false))]
    pub login: Option<bool>,
    /// The URL that issues tokens, for a server without metadata, or with its endpoint on another port.
    #[schemars(example = "https://login.example/token")]
    pub token_endpoint: Option<String>,
    /// The URL at which a login begins (RFC 8628), for the same servers.
    #[schemars(example = "https://login.example/device")]
    pub device_endpoint: Option<String>,
    /// Addresses and networks of the authorization server that are not public.
    #[serde(default)]
    #[serde(deserialize_with = "networks")]
    #[schemars(with = "Vec<String>", example = ["10.0.0.0/8"])]
    pub networks: Vec<IpNet>,
}

/// Why a table `oauth` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OAuthProblem {
    /// No authorization server is named.
    #[error("name the authorization server:  issuer = \"https://login.example\"")]
    NoServer,
    /// A URL is malformed. Holds the key.
    #[error("{0}: {1}")]
    Url(&'static str, #[source] ServiceUrlError),
    /// The URL of the issuer has a query (RFC 8414, section 2).
    #[error("issuer: it has a query, and issuers have none; remove \"?\" and what follows")]
    IssuerQuery,
    /// The name of the client is empty or malformed.
    #[error("client: expected the client id of belljar at the authorization server, of visible ASCII characters")]
    Client,
    /// A scope is malformed (RFC 6749, 3.3).
    #[error("scopes: \"{0}\" is not a scope; write each scope as an entry of its own:  scopes = [\"a\", \"b\"]")]
    Scope(String),
    /// The secret stands in the configuration itself.
    #[error(
        "secret: expected \"${{secret:NAME}}\"; put the value into a file that only you can read, and add  NAME = {{ file = \"FILE\" }}  to [secrets]"
    )]
    PlainSecret,
    /// The secret cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// There is neither a secret nor a login.
    #[error("without  secret , belljar gets a token by a login only; add  secret , or remove  login = false")]
    NoSecret,
    /// A login has no place to begin.
    #[error("a login needs  issuer  or  device-endpoint")]
    NoDeviceEndpoint,
}

/// A checked table `oauth`.
pub struct OAuthSettings {
    /// The issuer as written, and as a URL.
    pub(super) issuer: Option<(String, ServiceUrl)>,
    /// The name of the server in messages: the issuer, or the token endpoint.
    pub(super) server: String,
    pub(super) client: String,
    /// The password of the client, to mask it.
    pub(in crate::grants::http) secret: Option<Arc<Secret>>,
    pub(super) password: Option<Zeroizing<String>>,
    pub(super) scopes: Vec<String>,
    pub(super) needs_login: bool,
    pub(super) token_endpoint: Option<ServiceUrl>,
    pub(super) device_endpoint: Option<ServiceUrl>,
    pub(super) networks: Vec<IpNet>,
}

/// Reads the URL of the key `key`.
fn url(key: &'static str, written: Option<&String>) -> Result<Option<ServiceUrl>, OAuthProblem> {
    written.map(|text| text.parse().map_err(|error| OAuthProblem::Url(key, error))).transpose()
}

impl OAuthConfig {
    /// Checks the table.
    ///
    /// # Errors
    /// The first problem: names the key and the cure.
    pub fn checked(&self, secrets: &Secrets) -> Result<OAuthSettings, OAuthProblem> {
        let issuer = url("issuer", self.issuer.as_ref())?;
        if issuer.as_ref().is_some_and(|url| url.query.is_some()) {
            return Err(OAuthProblem::IssuerQuery);
        }
        let issuer = self.issuer.clone().zip(issuer);
        let token_endpoint = url("token-endpoint", self.token_endpoint.as_ref())?;
        let device_endpoint = url("device-endpoint", self.device_endpoint.as_ref())?;
        let server = self.issuer.clone().or_else(|| self.token_endpoint.clone()).ok_or(OAuthProblem::NoServer)?;
        let is_client = (1..=MAX_CLIENT).contains(&self.client.len());
        if !is_client || !self.client.bytes().all(|b| matches!(b, b'!'..=b'~')) {
            return Err(OAuthProblem::Client);
        }
        let is_scope =
            |scope: &String| !scope.is_empty() && scope.bytes().all(|b| matches!(b, b'!' | b'#'..=b'[' | b']'..=b'~'));
        if let Some(wrong) = self.scopes.iter().find(|scope| !is_scope(scope)) {
            return Err(OAuthProblem::Scope(text::excerpt(wrong, 80)));
        }
        let filled = match &self.secret {
            None => None,
            Some(template) if template.secret_names().len() == 1 => Some(template.fill(secrets)?),
            Some(_) => return Err(OAuthProblem::PlainSecret),
        };
        let (password, secret) = match filled {
            None => (None, None),
            Some((password, used)) => (Some(password), used.into_iter().next()),
        };
        let needs_login = self.needs_login();
        if !needs_login && password.is_none() {
            return Err(OAuthProblem::NoSecret);
        }
        if needs_login && issuer.is_none() && device_endpoint.is_none() {
            return Err(OAuthProblem::NoDeviceEndpoint);
        }
        Ok(OAuthSettings {
            issuer,
            server: text::excerpt(&server, 300),
            client: self.client.clone(),
            secret,
            password,
            scopes: self.scopes.clone(),
            needs_login,
            token_endpoint,
            device_endpoint,
            networks: self.networks.clone(),
        })
    }

    /// True if a person must log in.
    pub fn needs_login(&self) -> bool {
        self.login.unwrap_or(self.secret.is_none())
    }

    /// The TCP ports to which belljar connects for tokens.
    pub fn ports(&self) -> Vec<u16> {
        let urls = [&self.issuer, &self.token_endpoint, &self.device_endpoint].into_iter().flatten();
        urls.filter_map(|url| Some(url.parse::<ServiceUrl>().ok()?.origin.port)).collect()
    }

    /// What belljar adds to the requests, in a few words.
    pub fn describe(&self) -> String {
        let server = self.issuer.as_ref().or(self.token_endpoint.as_ref()).map_or("", String::as_str);
        let scopes = if self.scopes.is_empty() { String::new() } else { format!(" for {}", self.scopes.join(" ")) };
        let way = if self.needs_login() { "after a login" } else { "by client credentials" };
        text::excerpt(&format!("token of {server} as \"{}\"{scopes} ({way})", self.client), 300)
    }
}

impl OAuthSettings {
    /// The name of the server in messages.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// True if a person must log in.
    pub fn needs_login(&self) -> bool {
        self.needs_login
    }

    /// A digest of what a login is for: another server, client or set of scopes needs another login.
    pub(super) fn digest(&self) -> Digest {
        let mut scopes = self.scopes.clone();
        scopes.sort_unstable();
        let endpoint = self.token_endpoint.as_ref().map(ToString::to_string);
        let parts = [Some(self.server.clone()), endpoint, Some(self.client.clone()), Some(scopes.join(" "))];
        // No part has a line break.
        Digest::of(parts.map(Option::unwrap_or_default).join("\n").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(toml: &str) -> OAuthConfig {
        toml::from_str(toml).unwrap_or_else(|error| panic!("{toml}: {error}"))
    }

    fn secrets() -> Secrets {
        let secret = Secret::new("s", Zeroizing::new("a-long-secret".to_owned())).unwrap_or_else(|why| panic!("{why}"));
        Secrets::from_secrets([Arc::new(secret)])
    }

    #[test]
    fn a_table_without_a_secret_needs_a_login() {
        let issuer = "issuer = 'https://login.example'\nclient = 'c'\n";
        for (more, needs_login) in [
            ("", true),
            ("secret = '${secret:s}'", false),
            ("secret = '${secret:s}'\nlogin = true", true),
            ("login = true", true),
        ] {
            let settings = read(&format!("{issuer}{more}")).checked(&secrets()).unwrap_or_else(|why| panic!("{why}"));
            assert_eq!(settings.needs_login, needs_login, "{more}");
            assert_eq!(settings.server, "https://login.example");
        }
    }

    #[test]
    fn a_malformed_table_says_what_is_wrong() {
        for (table, says) in [
            ("client = 'c'", "name the authorization server"),
            ("issuer = 'login.example'\nclient = 'c'", "issuer: expected a URL"),
            ("issuer = 'http://login.example'\nclient = 'c'", "issuer: it is not encrypted"),
            ("issuer = 'https://login.example?x'\nclient = 'c'", "it has a query"),
            ("issuer = 'https://a.example'\nclient = ''", "client: expected"),
            ("issuer = 'https://a.example'\nclient = \"a\\nb\"", "client: expected"),
            ("issuer = 'https://a.example'\nclient = 'c'\nscopes = ['a b']", "\"a b\" is not a scope"),
            (
                "issuer = 'https://a.example'\nclient = 'c'\nsecret = 'plain-text'",
                "secret: expected \"${secret:NAME}\"",
            ),
            ("issuer = 'https://a.example'\nclient = 'c'\nsecret = '${secret:x}'", "no secret \"x\""),
            ("issuer = 'https://a.example'\nclient = 'c'\nlogin = false", "without  secret"),
            ("token-endpoint = 'https://a.example/t'\nclient = 'c'", "a login needs"),
            ("token-endpoint = 'http://10.0.0.1/t'\nclient = 'c'", "token-endpoint: it is not encrypted"),
        ] {
            let why = read(table).checked(&secrets()).err().unwrap_or_else(|| panic!("{table}")).to_string();
            assert!(why.contains(says) && !why.contains("plain-text"), "{table}: {why}");
        }
        assert!(toml::from_str::<OAuthConfig>("client = 'c'\nnetworks = ['x']").is_err());
        assert!(toml::from_str::<OAuthConfig>("client = 'c'\npassword = 'x'").is_err());
    }

    #[test]
    fn the_ports_of_all_endpoints_are_named() {
        let table = "issuer = 'https://a.example:8443'\nclient = 'c'\ntoken-endpoint = 'https://b.example/t'\ndevice-endpoint = 'http://127.0.0.1:99/d'";
        assert_eq!(read(table).ports(), [8443, 443, 99]);
    }

    #[test]
    fn another_set_of_scopes_needs_another_login() {
        let digest = |more: &str| {
            let table = format!("issuer = 'https://a.example'\nclient = 'c'\n{more}");
            read(&table).checked(&secrets()).unwrap_or_else(|why| panic!("{why}")).digest()
        };
        assert_eq!(digest("scopes = ['a', 'b']"), digest("scopes = ['b', 'a']"));
        for other in ["", "scopes = ['a']", "scopes = ['a', 'b']\ntoken-endpoint = 'https://a.example/t'"] {
            assert_ne!(digest("scopes = ['a', 'b']"), digest(other), "{other}");
        }
    }
}
