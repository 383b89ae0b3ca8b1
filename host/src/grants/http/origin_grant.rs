//! The grant of one origin: which requests it allows, and what the host adds to them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue, Method};
use ipnet::IpNet;
use percent_encoding::{percent_decode_str, utf8_percent_encode};
use rustls::ClientConfig;
use schemars::JsonSchema;
use serde::Deserialize;
use zeroize::Zeroizing;

use super::error::{MethodError, OriginGrantError, OriginGrantProblem, TargetError};
use super::headers;
use super::oauth::config::{OAuthConfig, OAuthSettings};
use super::origin::{Origin, OriginPattern, Scheme};
use super::path::{self, Globs};
use super::wiped;
use crate::grants::network::Network;
use crate::grants::network::dial::{self, Destination};
use crate::grants::network::host::{Host, HostError};
use crate::grants::network::networks::networks;
use crate::grants::secrets::{LiveSecrets, Redactor, Secret, SecretTemplate, Secrets};
use crate::model::reference::NOT_UNRESERVED;
use crate::model::text;

/// The methods of a grant whose configuration names none.
pub(super) const DEFAULT_METHODS: [&str; 2] = ["GET", "HEAD"];

/// The configuration of a grant: one entry of `[[mounts.NAME.http]]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[serde(expecting = "a table such as { origin = \"https://api.example.com\" }")]
pub struct OriginGrantConfig {
    /// Scheme, host and port of the requests: `https://api.example.com`, `https://*.example.com`, `http://127.0.0.1:8080`.
    #[schemars(example = "https://api.example.com")]
    pub origin: String,
    /// Methods of the requests. Without this key: GET and HEAD.
    #[schemars(example = examples::METHODS, extend("default" = DEFAULT_METHODS))]
    pub methods: Option<Vec<String>>,
    /// Globs over the path of the requests: `*` is any text within a segment, `**` as a segment is any number of segments, `?`
    /// is one character, `{a,b}` is either. Without this key: every path.
    #[schemars(example = examples::PATHS, extend("x-taplo" = { "docs": { "defaultValue": "every path" } }))]
    pub paths: Option<Vec<String>>,
    /// Headers that belljar adds to the requests. The provider cannot read them. A value may contain secrets:
    /// "Bearer ${secret:NAME}".
    #[serde(default)]
    #[schemars(example = examples::headers())]
    pub headers: BTreeMap<String, SecretTemplate>,
    /// Parameters that belljar adds to the query of the requests. The provider cannot read them. A value may contain secrets.
    #[serde(default)]
    #[schemars(example = examples::query())]
    pub query: BTreeMap<String, SecretTemplate>,
    /// Addresses and networks that the requests may connect to although they are not public.
    #[serde(default)]
    #[serde(deserialize_with = "networks")]
    #[schemars(with = "Vec<String>", example = examples::NETWORKS)]
    pub networks: Vec<IpNet>,
    /// Headers with credentials that the provider may set itself.
    #[serde(default)]
    #[schemars(example = examples::ALLOWED_HEADERS)]
    pub allow_headers: Vec<String>,
    /// True if the requests may connect to a port that belljar itself listens on.
    #[serde(default)]
    #[schemars(example = true)]
    pub own_ports: bool,
    /// The authorization server whose access tokens belljar adds to the requests. The provider cannot read them.
    pub oauth: Option<OAuthConfig>,
}

/// Examples for the JSON schema.
mod examples {
    use std::collections::BTreeMap;

    pub(super) const METHODS: [&str; 2] = ["GET", "POST"];
    pub(super) const PATHS: [&str; 1] = ["/points/*"];
    pub(super) const NETWORKS: [&str; 1] = ["10.0.0.0/8"];
    pub(super) const ALLOWED_HEADERS: [&str; 1] = ["authorization"];

    pub(super) fn headers() -> BTreeMap<&'static str, &'static str> {
        BTreeMap::from([("authorization", "Bearer ${secret:weather}")])
    }

    pub(super) fn query() -> BTreeMap<&'static str, &'static str> {
        BTreeMap::from([("key", "${secret:weather}")])
    }
}

/// A checked grant that can decide on requests.
pub struct OriginGrant {
    pattern: OriginPattern,
    methods: Vec<Method>,
    paths: Globs,
    headers: Vec<(HeaderName, HeaderValue)>,
    query: Vec<(String, Zeroizing<String>)>,
    networks: Vec<IpNet>,
    own_ports: bool,
    allowed_headers: Vec<HeaderName>,
    secrets: Vec<Arc<Secret>>,
    redactor: Option<Arc<Redactor>>,
    /// Where the access tokens of the requests come from.
    oauth: Option<OAuthGrant>,
    /// Has its own session cache: no other grant may resume this grant's TLS sessions.
    pub(super) tls: Option<Arc<ClientConfig>>,
}

/// The access tokens of a grant.
pub(super) struct OAuthGrant {
    pub(super) settings: Arc<OAuthSettings>,
    /// The present tokens, to mask them.
    pub(super) live: Arc<LiveSecrets>,
}

/// The method and URI of a guest's request in canonical form. belljar decides on this form and sends this form.
#[derive(Debug)]
pub struct RequestTarget {
    /// The origin.
    pub origin: Origin,
    /// The method.
    pub method: Method,
    /// The canonical path.
    pub path: String,
    /// The canonical query.
    pub query: Option<String>,
}

impl RequestTarget {
    /// Parses the method and the URI of a request.
    ///
    /// # Errors
    /// The first problem of the URI.
    pub fn read(method: &Method, uri: &http::Uri) -> Result<Self, TargetError> {
        let scheme = match uri.scheme_str() {
            Some("http") => Scheme::Http,
            Some("https") => Scheme::Https,
            _ => return Err(TargetError::Scheme),
        };
        let origin = Origin::parse(scheme, uri.authority().ok_or(HostError::NoHost)?.as_str())?;
        let query = uri.query().map(path::normalise_query).transpose()?;
        Ok(Self { origin, method: method.clone(), path: path::normalise(uri.path())?, query })
    }
}

/// Why a grant does not match a request. Later variants are closer to a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GrantMismatch {
    /// The grant is for another origin.
    Origin,
    /// The grant is for other methods.
    Method,
    /// The grant is for other paths.
    Path,
    /// The request sets a query parameter that the host adds.
    Query,
    /// The request has a query parameter that requests another method.
    Override,
    /// The request carries the provider's own credentials.
    Credential,
}

/// A TLS configuration for HTTP.
fn tls(network: &Network) -> Arc<ClientConfig> {
    network.tls(&[b"h2", b"http/1.1"])
}

/// Methods that change the connection, or that return the request with its credentials.
const FORBIDDEN_METHODS: [Method; 2] = [Method::CONNECT, Method::TRACE];

/// Methods that change nothing on a server (RFC 9110, 9.2.1).
const SAFE_METHODS: [&str; 4] = ["GET", "HEAD", "OPTIONS", "TRACE"];

impl OriginGrantConfig {
    /// True if requests under this grant change nothing on a server, if the server keeps to the meaning of methods.
    pub(super) fn is_safe(&self) -> bool {
        self.methods.iter().flatten().all(|method| SAFE_METHODS.contains(&method.to_ascii_uppercase().as_str()))
    }
}

impl OriginGrant {
    /// Checks the configuration of a grant.
    ///
    /// # Errors
    /// The first problem: names the key, the problem and the cure.
    pub fn new(
        config: &OriginGrantConfig,
        secrets: &Secrets,
        network: Option<&Network>,
    ) -> Result<Self, OriginGrantError> {
        let malformed = |error| OriginGrantError::Origin { written: text::excerpt(&config.origin, 200), error };
        let pattern = OriginPattern::parse(&config.origin).map_err(malformed)?;
        let in_grant = |problem| OriginGrantError::In { pattern: pattern.clone(), problem: Box::new(problem) };
        let methods = match &config.methods {
            None => vec![Method::GET, Method::HEAD],
            Some(names) => names
                .iter()
                .map(|name| parse_method(name))
                .collect::<Result<_, _>>()
                .map_err(|error| in_grant(error.into()))?,
        };
        if methods.is_empty() {
            return Err(in_grant(OriginGrantProblem::NoMethods));
        }
        let paths = config.paths.as_deref().map(Globs::new).transpose().map_err(|error| in_grant(error.into()))?;
        let paths = paths.unwrap_or_default();
        if config.paths.is_some() && paths.is_any() {
            return Err(in_grant(OriginGrantProblem::NoPaths));
        }
        let mut used_secrets = Vec::new();
        let mut headers = Vec::new();
        for (name, value) in &config.headers {
            let (name, value) = header(name, value, secrets, &mut used_secrets).map_err(in_grant)?;
            headers.push((name, value));
        }
        let mut query = Vec::new();
        for (name, value) in &config.query {
            let (value, of) = value.fill(secrets).map_err(|error| in_grant(error.into()))?;
            used_secrets.extend(of);
            query.push((name.clone(), value));
        }
        let oauth = config.oauth.as_ref().map(|written| written.checked(secrets)).transpose();
        let oauth = oauth.map_err(|error| in_grant(error.into()))?.map(Arc::new);
        used_secrets.extend(oauth.iter().filter_map(|settings| settings.secret.clone()));
        if (!used_secrets.is_empty() || oauth.is_some())
            && pattern.scheme() == Scheme::Http
            && !pattern.host().is_some_and(Host::is_this_machine)
        {
            return Err(in_grant(OriginGrantProblem::Unencrypted));
        }
        let allowed_headers =
            config.allow_headers.iter().map(|name| parse_header_name(name)).collect::<Result<Vec<_>, _>>();
        let allowed_headers = allowed_headers.map_err(in_grant)?;
        let own_authorization = headers.iter().map(|(name, _)| name).chain(&allowed_headers);
        if oauth.is_some() && own_authorization.into_iter().any(|name| headers::is_same(name, &AUTHORIZATION)) {
            return Err(in_grant(OriginGrantProblem::TwoAuthorizations));
        }
        let oauth = oauth.map(|settings| OAuthGrant { settings, live: Arc::default() });
        let live = oauth.iter().map(|oauth| Arc::clone(&oauth.live)).collect();
        let redactor = Redactor::with_live(&used_secrets, live).map(Arc::new);
        Ok(Self {
            methods,
            paths,
            headers,
            query,
            networks: config.networks.clone(),
            own_ports: config.own_ports,
            allowed_headers,
            secrets: used_secrets,
            redactor,
            oauth,
            tls: network.filter(|_| pattern.scheme() == Scheme::Https).map(tls),
            pattern,
        })
    }

    /// The grant of a consent for one call: reading, with no headers or parameters added.
    pub fn consented(pattern: OriginPattern, network: Option<&Network>) -> Self {
        Self::bare(pattern, Vec::new(), network)
    }

    /// The grant of a request of belljar itself to `origin`, which may have an address in `networks`.
    pub(super) fn own(origin: Origin, networks: &[IpNet], network: &Network) -> Self {
        Self::bare(origin.into(), networks.to_vec(), Some(network))
    }

    /// A grant for reading, with no headers or parameters added.
    fn bare(pattern: OriginPattern, networks: Vec<IpNet>, network: Option<&Network>) -> Self {
        Self {
            methods: vec![Method::GET, Method::HEAD],
            paths: Globs::default(),
            headers: Vec::new(),
            query: Vec::new(),
            networks,
            own_ports: false,
            allowed_headers: Vec::new(),
            secrets: Vec::new(),
            redactor: None,
            oauth: None,
            tls: network.filter(|_| pattern.scheme() == Scheme::Https).map(tls),
            pattern,
        }
    }

    /// Checks that the grant allows `target`.
    ///
    /// # Errors
    /// The first mismatch.
    pub fn check_target(&self, target: &RequestTarget) -> Result<(), GrantMismatch> {
        if !self.pattern.matches(&target.origin) {
            return Err(GrantMismatch::Origin);
        }
        if !self.methods.contains(&target.method) {
            return Err(GrantMismatch::Method);
        }
        if !self.paths.allow(&target.path) {
            return Err(GrantMismatch::Path);
        }
        // Compare decoded names: for the upstream, another spelling is the same name.
        let names = target.query.iter().flat_map(|query| query.split(['&', ';']));
        for name in names.map(|pair| pair.split('=').next().unwrap_or(pair).replace('+', " ")) {
            let once = percent_decode_str(&name).decode_utf8_lossy();
            // Some servers decode twice.
            let twice = percent_decode_str(&once).decode_utf8_lossy();
            for name in [&once, &twice] {
                let lenient = headers::parameter_name(name);
                if self.query.iter().any(|(own, _)| headers::parameter_name(own) == lenient) {
                    return Err(GrantMismatch::Query);
                }
                if headers::overrides_method(name) {
                    return Err(GrantMismatch::Override);
                }
            }
        }
        Ok(())
    }

    /// Checks that a provider may set these headers with this grant. Another grant of the mount may allow more.
    ///
    /// # Errors
    /// [`GrantMismatch::Credential`].
    pub fn check_headers(&self, headers: &http::HeaderMap) -> Result<(), GrantMismatch> {
        let has = |name: &HeaderName| headers.keys().any(|own| headers::is_same(own, name));
        let own = |name: &HeaderName| has(name) && !self.allowed_headers.contains(name);
        match headers::carries_credential(headers::CREDENTIALS.iter().any(own)) {
            true => Err(GrantMismatch::Credential),
            false => Ok(()),
        }
    }

    /// True if the host may connect to `address`, which was found for `host`.
    pub fn allows_address(&self, address: IpAddr, host: &Host) -> bool {
        dial::allows_address(address, host, &self.networks)
    }

    /// Where a request to `origin` under this grant may connect.
    pub(super) fn destination<'a>(&'a self, origin: &'a Origin) -> Destination<'a> {
        Destination { host: &origin.host, port: origin.port, networks: &self.networks, own_ports: self.own_ports }
    }

    /// The origins of the grant.
    pub(super) fn pattern(&self) -> &OriginPattern {
        &self.pattern
    }

    /// The methods of the grant.
    pub(super) fn methods(&self) -> &[Method] {
        &self.methods
    }

    /// The paths of the grant.
    pub(super) fn paths(&self) -> &Globs {
        &self.paths
    }

    /// The path and the query of the outgoing request. The host's parameters come last.
    pub fn path_and_query(&self, target: &RequestTarget) -> Zeroizing<String> {
        let mut out = Zeroizing::new(String::with_capacity(path::MAX_BYTES));
        out.push_str(&target.path);
        let mut parameters = target.query.iter().map(|query| Zeroizing::new(query.clone())).collect::<Vec<_>>();
        parameters.extend(self.query.iter().map(|(name, value)| {
            let [name, value] = [name.as_str(), value.as_str()].map(|text| utf8_percent_encode(text, NOT_UNRESERVED));
            Zeroizing::new(format!("{name}={value}"))
        }));
        for (at, parameter) in parameters.iter().enumerate() {
            out.push(if at == 0 { '?' } else { '&' });
            out.push_str(parameter);
        }
        out
    }

    /// The headers that the host adds.
    pub fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.headers
    }

    /// Headers with credentials that the provider may set itself.
    pub fn allowed_headers(&self) -> &[HeaderName] {
        &self.allowed_headers
    }

    /// The secrets in the headers and parameters that the host adds.
    pub fn secrets(&self) -> &[Arc<Secret>] {
        &self.secrets
    }

    /// Where the access tokens of the requests come from.
    pub(super) fn oauth(&self) -> Option<&OAuthGrant> {
        self.oauth.as_ref()
    }

    /// Masks these secrets in responses. `None`: the grant has no secrets.
    pub fn redactor(&self) -> Option<&Arc<Redactor>> {
        self.redactor.as_ref()
    }

    /// True if the host may connect to a port on which belljar itself listens.
    pub fn own_ports(&self) -> bool {
        self.own_ports
    }

    /// Warnings about a grant that is wider than usual.
    pub fn warnings(&self) -> Vec<String> {
        let mut all = Vec::new();
        let pattern = &self.pattern;
        if pattern.is_wildcard() {
            all.push(format!("\"{pattern}\" allows every host of that domain; name only the needed hosts"));
        }
        if pattern.scheme() == Scheme::Http && !pattern.host().is_some_and(Host::is_this_machine) {
            all.push(format!(
                "\"{pattern}\" is not encrypted: anyone on the network path can read and change the traffic"
            ));
        }
        let wide = |net: &&IpNet| net.prefix_len() < if net.addr().is_ipv4() { 8 } else { 16 };
        all.extend(
            self.networks
                .iter()
                .filter(wide)
                .map(|net| format!("\"{pattern}\": the network {net} is very large; name only the needed addresses")),
        );
        if self.own_ports {
            all.push(format!("\"{pattern}\": the provider may connect to belljar's own ports (own-ports = true)"));
        }
        all
    }
}

impl OriginGrantConfig {
    /// One line for people, without the values of headers and parameters.
    pub fn describe(&self) -> String {
        let methods = self.methods.as_ref().map_or("GET, HEAD".to_owned(), |methods| methods.join(", "));
        let mut line = format!("{} ({methods})", text::excerpt(&self.origin, 200));
        if let Some(paths) = &self.paths {
            line.push_str(&format!(" paths {}", paths.join(" ")));
        }
        for (kind, added) in [("header", &self.headers), ("query", &self.query)] {
            for (name, value) in added {
                let secrets =
                    value.secret_names().iter().map(|name| format!(" from secret \"{name}\"")).collect::<String>();
                line.push_str(&format!(" + {kind} {name}{secrets}"));
            }
        }
        if let Some(oauth) = &self.oauth {
            line.push_str(&format!(" + {}", oauth.describe()));
        }
        for network in &self.networks {
            line.push_str(&format!(" network {network}"));
        }
        text::excerpt(&line, 500)
    }
}

pub(super) fn parse_method(name: &str) -> Result<Method, MethodError> {
    let shown = || text::quoted(name, 40);
    let is_token = !name.is_empty() && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'-');
    let method = Method::from_bytes(name.as_bytes()).ok().filter(|_| is_token);
    let method = method.ok_or_else(|| MethodError::Unknown(shown()))?;
    if FORBIDDEN_METHODS.contains(&method) {
        return Err(MethodError::Never(shown()));
    }
    Ok(method)
}

fn parse_header_name(name: &str) -> Result<HeaderName, OriginGrantProblem> {
    let name: HeaderName = name.parse().map_err(|_| OriginGrantProblem::HeaderName(text::excerpt(name, 80)))?;
    let framing =
        ["host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "keep-alive"];
    if framing.contains(&name.as_str()) {
        return Err(OriginGrantProblem::OwnHeader(name));
    }
    Ok(name)
}

fn header(
    name: &str,
    value: &SecretTemplate,
    secrets: &Secrets,
    used: &mut Vec<Arc<Secret>>,
) -> Result<(HeaderName, HeaderValue), OriginGrantProblem> {
    let name = parse_header_name(name)?;
    let (mut text, of) = value.fill(secrets)?;
    let value = wiped::header_value(std::mem::take(&mut *text));
    let mut value = value.ok_or_else(|| OriginGrantProblem::HeaderValue(name.clone()))?;
    // The header is neither printed nor put into a compression table.
    value.set_sensitive(!of.is_empty());
    used.extend(of);
    Ok((name, value))
}
