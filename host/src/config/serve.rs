//! `[serve]`: the address, the public URL, TLS, and the hosts, pages and proxies that may use the endpoint. Checked whole.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::address::listen_address;
use super::value::Time;
use crate::grants::http::origin::{Origin, Scheme};
use crate::grants::network::host::{Host, HostError};

/// The path at which belljar serves MCP.
pub const MCP_PATH: &str = "/mcp";

/// The longest time that belljar goes on serving after SIGTERM, in milliseconds.
const MAX_DRAIN_DELAY: u64 = 10 * 60 * 1000;

/// `[serve]`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub(super) struct ServeTable {
    /// The address on which `belljar serve` serves HTTP at `/mcp`, instead of standard input and output. `--http` on the
    /// command line takes precedence. Any address but a loopback address needs `[auth]`, and `tls` or `behind`.
    #[schemars(example = "127.0.0.1:8808", example = &"0.0.0.0:8808")]
    http: Option<ListenAddress>,
    /// The URL that clients use. Its path is `/mcp`; behind a proxy, it ends in `/mcp`. Tokens must be issued for it. belljar
    /// never derives it from a request.
    #[schemars(example = "https://mcp.example/mcp")]
    url: Option<PublicUrl>,
    /// The certificate and the key of TLS. belljar reads the files again when they change.
    tls: Option<TlsTable>,
    /// Further names in the `Host` header of requests. The names of `url`, and of a loopback address, need no entry.
    #[serde(default)]
    #[schemars(example = ["mcp.example"])]
    hosts: Vec<ServedHost>,
    /// Origins of the web pages that may use the endpoint (CORS).
    #[serde(default)]
    #[schemars(example = ["https://app.example"])]
    origins: Vec<PageOrigin>,
    /// `"proxy"`: all requests come from a reverse proxy, which ends TLS and sets `X-Forwarded-For`. Needs `trusted`.
    #[schemars(example = &"proxy")]
    behind: Option<Behind>,
    /// Networks of the proxy. Connections from elsewhere are refused. Needs `behind`.
    #[serde(default)]
    #[schemars(example = ["10.0.0.0/8"])]
    trusted: Vec<TrustedNetwork>,
    /// How long belljar goes on serving after SIGTERM, while `/readyz` of `[admin]` says that it is not ready: so long that a
    /// load balancer has noticed.
    #[schemars(example = "5s")]
    drain_delay: Option<Time<0, MAX_DRAIN_DELAY>>,
}

/// `serve.tls`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct TlsTable {
    /// The file of the certificate and its intermediate certificates, in PEM.
    #[schemars(example = "cert.pem")]
    cert: PathBuf,
    /// The file of the private key, in PEM. No mount can be granted this file.
    #[schemars(example = "key.pem")]
    key: PathBuf,
}

/// `serve.behind`.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", expecting = "\"proxy\"")]
#[schemars(inline)]
enum Behind {
    Proxy,
}

/// The checked `[serve]`. The default is a missing table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServeConfig {
    /// The address to listen on. None: standard input and output, unless the command line names an address.
    pub http: Option<SocketAddr>,
    /// The public URL.
    pub url: Option<PublicUrl>,
    /// The files of TLS.
    pub tls: Option<TlsFiles>,
    /// Further values of the `Host` header.
    pub hosts: Vec<ServedHost>,
    /// The origins of web pages that may use the endpoint.
    pub origins: Vec<PageOrigin>,
    /// The networks of the proxy. None: belljar is not behind a proxy.
    pub trusted: Option<Vec<IpNet>>,
    /// How long requests are served after SIGTERM.
    pub drain_delay: Duration,
}

/// The files of TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// Why keys of `[serve]` do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServeProblem {
    /// The public URL has a path that nothing maps to belljar's.
    #[error(
        "serve.url = \"{url}\": belljar serves \"{MCP_PATH}\", and nothing maps \"{path}\" to it; write \"{fixed}\", or let a proxy map the path and add  behind = \"proxy\""
    )]
    Path {
        /// The URL.
        url: String,
        /// Its path.
        path: String,
        /// The URL with the path that is served.
        fixed: String,
    },
    /// The URL promises TLS, and nothing provides it.
    #[error(
        "serve.url = \"{0}\": belljar serves no TLS; add  tls = {{ cert = \"cert.pem\", key = \"key.pem\" }}  or  behind = \"proxy\"  to [serve]"
    )]
    NoTls(String),
    /// The URL promises no TLS, and belljar serves TLS.
    #[error("serve.url = \"{0}\": [serve] has tls; write \"https://\" in place of \"http://\"")]
    NotHttps(String),
    /// A proxy without networks.
    #[error(
        "serve.behind = \"proxy\": name the addresses of the proxy; for a proxy on this machine add  trusted = [\"127.0.0.1\", \"::1\"]  to [serve]"
    )]
    NobodyIsTrusted,
    /// Networks without a proxy.
    #[error("serve.trusted: only requests of a proxy have a trusted sender; add  behind = \"proxy\"  to [serve]")]
    NoProxy,
}

impl ServeTable {
    /// The checked table. `place` makes paths absolute.
    ///
    /// # Errors
    /// The keys do not fit together.
    pub(super) fn checked(self, place: impl Fn(PathBuf) -> PathBuf) -> Result<ServeConfig, ServeProblem> {
        let Self { http, url, tls, hosts, origins, behind, trusted, drain_delay } = self;
        let drain_delay = drain_delay.map_or(Duration::ZERO, |delay| delay.0);
        let trusted: Vec<IpNet> = trusted.into_iter().map(|network| network.0).collect();
        let trusted = match behind {
            Some(Behind::Proxy) if trusted.is_empty() => return Err(ServeProblem::NobodyIsTrusted),
            Some(Behind::Proxy) => Some(trusted),
            None if trusted.is_empty() => None,
            None => return Err(ServeProblem::NoProxy),
        };
        if let Some(url) = &url {
            check_url(url, tls.is_some(), trusted.is_some())?;
        }
        let tls = tls.map(|TlsTable { cert, key }| TlsFiles { cert: place(cert), key: place(key) });
        Ok(ServeConfig { http: http.map(|address| address.0), url, tls, hosts, origins, trusted, drain_delay })
    }
}

/// Checks the public URL against the other keys.
fn check_url(url: &PublicUrl, has_tls: bool, has_proxy: bool) -> Result<(), ServeProblem> {
    if has_proxy {
        return Ok(());
    }
    if url.path() != MCP_PATH {
        let fixed = format!("{}{MCP_PATH}", url.origin());
        return Err(ServeProblem::Path { url: url.to_string(), path: url.path().to_owned(), fixed });
    }
    match (url.scheme(), has_tls) {
        (Scheme::Https, false) => Err(ServeProblem::NoTls(url.to_string())),
        (Scheme::Http, true) => Err(ServeProblem::NotHttps(url.to_string())),
        _ => Ok(()),
    }
}

/// The public URL: `https`, a host, and a path that ends in `/mcp`. `http` for this machine only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    origin: Origin,
    path: String,
}

impl PublicUrl {
    /// Its scheme.
    pub fn scheme(&self) -> Scheme {
        self.origin.scheme
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> String {
        self.origin.to_string()
    }

    /// Host and port, as in a `Host` header.
    pub fn authority(&self) -> String {
        self.origin.authority()
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.origin.port
    }

    /// The host.
    pub fn host(&self) -> &Host {
        &self.origin.host
    }

    /// The path. It ends in `/mcp`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The path of the metadata of this resource (RFC 9728, section 3.1).
    pub fn metadata_path(&self) -> String {
        format!("{METADATA_PATH}{}", self.path)
    }

    /// The URL of the metadata of this resource.
    pub fn metadata_url(&self) -> String {
        format!("{}{}", self.origin(), self.metadata_path())
    }
}

/// The path of the metadata of a protected resource (RFC 9728, section 3).
pub const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

impl std::fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.origin, self.path)
    }
}

/// Why a text is no URL of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// The scheme is another one.
    #[error("expected a URL that begins with \"https://\"; \"http://\" is for this machine only")]
    Scheme,
    /// Without TLS, and not for this machine.
    #[error("\"http://\" is for this machine only: tokens would cross the network unencrypted; write \"https://\"")]
    Unencrypted,
    /// It has a query or a fragment.
    #[error("the URL names a resource (RFC 8707), so it has no \"?\" and no \"#\"")]
    Query,
    /// Its path has another end, or characters that servers write in several ways.
    #[error(
        "expected a path of letters, digits, \"-\", \"_\" and \".\" that ends in \"/mcp\", such as \"https://mcp.example/mcp\""
    )]
    Path,
    /// The authority is malformed.
    #[error(transparent)]
    Authority(#[from] HostError),
    /// The URL is not written in the usual way. Clients and issuers compare URLs as text.
    #[error("clients compare URLs as text; write \"{0}\"")]
    Spelling(String),
}

impl std::str::FromStr for PublicUrl {
    type Err = UrlError;

    fn from_str(written: &str) -> Result<Self, UrlError> {
        let (scheme, rest) = match written.split_once("://") {
            Some(("https", rest)) => (Scheme::Https, rest),
            Some(("http", rest)) => (Scheme::Http, rest),
            _ => return Err(UrlError::Scheme),
        };
        if rest.contains(['?', '#']) {
            return Err(UrlError::Query);
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let origin = Origin::parse(scheme, authority)?;
        if scheme == Scheme::Http && !origin.host.is_this_machine() {
            return Err(UrlError::Unencrypted);
        }
        let is_plain = |segment: &str| {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
            !segment.is_empty() && segment != "." && segment != ".." && segment.bytes().all(fits)
        };
        if !path.ends_with(MCP_PATH) || !path.split('/').skip(1).all(is_plain) {
            return Err(UrlError::Path);
        }
        let url = Self { origin, path: path.to_owned() };
        let usual = url.to_string();
        if usual == written { Ok(url) } else { Err(UrlError::Spelling(usual)) }
    }
}

/// A name of this server in a `Host` header, with or without a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedHost {
    /// The host.
    pub host: Host,
    /// The port. None: the usual ports, and the one on which belljar listens.
    pub port: Option<u16>,
}

/// Why a text is no name of this server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServedHostError {
    /// It is a URL.
    #[error("expected a name such as \"mcp.example\" or \"mcp.example:8443\", without \"https://\" and without a path")]
    Url,
    /// It is malformed.
    #[error(transparent)]
    Authority(#[from] HostError),
}

impl std::str::FromStr for ServedHost {
    type Err = ServedHostError;

    fn from_str(written: &str) -> Result<Self, ServedHostError> {
        if written.contains('/') {
            return Err(ServedHostError::Url);
        }
        // Ports 80 and 443 would be taken for missing ones.
        let origins = [Origin::parse(Scheme::Http, written)?, Origin::parse(Scheme::Https, written)?];
        let [Origin { host, port, .. }, other] = origins;
        Ok(Self { host, port: (port == other.port).then_some(port) })
    }
}

/// The origin of a web page, as browsers write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageOrigin(String);

impl PageOrigin {
    /// Scheme, host and port.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for PageOrigin {
    type Err = PageOriginError;

    fn from_str(written: &str) -> Result<Self, PageOriginError> {
        if written.contains('*') {
            return Err(PageOriginError::Star);
        }
        let (scheme, authority) = match written.split_once("://") {
            Some(("https", rest)) => (Scheme::Https, rest),
            Some(("http", rest)) => (Scheme::Http, rest),
            _ => return Err(PageOriginError::Scheme),
        };
        if authority.contains(['/', '?', '#']) {
            return Err(PageOriginError::More);
        }
        let usual = Origin::parse(scheme, authority)?.to_string();
        if usual == written { Ok(Self(usual)) } else { Err(PageOriginError::Spelling(usual)) }
    }
}

/// Why a text is no origin of a web page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageOriginError {
    /// The scheme is another one.
    #[error("expected an origin such as \"https://app.example\"")]
    Scheme,
    /// It has a path.
    #[error("an origin is scheme, host and port, without a path and without a \"/\" at its end")]
    More,
    /// It has a star.
    #[error("\"*\" would let every web page use the endpoint; name each origin")]
    Star,
    /// The authority is malformed.
    #[error(transparent)]
    Authority(#[from] HostError),
    /// Browsers write it in another way.
    #[error("browsers write it as \"{0}\"")]
    Spelling(String),
}

/// `serve.http`.
pub(super) struct ListenAddress(pub(super) SocketAddr);

/// One of `serve.trusted`: a network, or a single address.
struct TrustedNetwork(IpNet);

/// The text is not a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a network such as \"10.0.0.0/8\", or an address")]
pub struct NetworkError;

impl std::str::FromStr for TrustedNetwork {
    type Err = NetworkError;

    fn from_str(written: &str) -> Result<Self, NetworkError> {
        let address = || written.parse::<IpAddr>().ok().map(IpNet::from);
        written.parse().ok().or_else(address).map(Self).ok_or(NetworkError)
    }
}

impl std::str::FromStr for ListenAddress {
    type Err = super::address::AddressError;

    fn from_str(written: &str) -> Result<Self, Self::Err> {
        listen_address(written).map(Self)
    }
}

/// Implements `Deserialize` by `FromStr`, and the schema by a pattern.
macro_rules! texts {
    ($($name:ident: $pattern:literal,)+) => {
        $(
            impl<'de> Deserialize<'de> for $name {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    let written = String::deserialize(deserializer)?;
                    written.parse().map_err(D::Error::custom)
                }
            }

            impl JsonSchema for $name {
                fn schema_name() -> Cow<'static, str> {
                    stringify!($name).into()
                }

                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    json_schema!({ "type": "string", "pattern": $pattern })
                }
            }
        )+
    };
}

texts! {
    ListenAddress: "^([0-9A-Za-z.\\[\\]:]*:)?[0-9]+$",
    PublicUrl: "^https?://[^?#]+/mcp$",
    ServedHost: "^[0-9A-Za-z._\\[\\]:-]+$",
    PageOrigin: "^https?://[^/?#*]+$",
    TrustedNetwork: "^[0-9A-Fa-f.:]+(/[0-9]+)?$",
}

#[cfg(test)]
mod tests;
