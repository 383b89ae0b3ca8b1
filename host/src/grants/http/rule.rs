//! One HTTP grant: which requests it is for, and what the host adds to them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderName, HeaderValue, Method};
use ipnet::IpNet;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rustls::ClientConfig;
use serde::Deserialize;
use zeroize::Zeroizing;

use super::address;
use super::dial::Network;
use super::heads;
use super::origin::{Host, Origin, Pattern, Scheme};
use super::path::{self, Globs};
use crate::grants::secrets::{Redactor, Secret, Secrets, Template};
use crate::model::{Guard, text};

/// A grant as the operator writes it: one entry of `[[mounts.NAME.http]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[serde(expecting = "a table such as { origin = \"https://api.example.com\" }")]
pub struct Written {
    /// Scheme, host and port: `https://api.example.com`, `https://*.example.com`, `http://127.0.0.1:8080`.
    pub origin: String,
    /// Methods; none written: GET and HEAD.
    pub methods: Option<Vec<String>>,
    /// Globs over the path; none written: every path.
    pub paths: Option<Vec<String>>,
    /// Headers that the host adds.
    #[serde(default)]
    pub headers: BTreeMap<String, Template>,
    /// Parameters that the host adds to the query.
    #[serde(default)]
    pub query: BTreeMap<String, Template>,
    /// Networks that are not public and may be connected to.
    #[serde(default)]
    #[serde(deserialize_with = "networks")]
    pub networks: Vec<IpNet>,
    /// Headers that carry credentials and that the provider may set itself.
    #[serde(default)]
    pub allow_headers: Vec<String>,
    /// Whether the port may be one that belljar itself listens on.
    #[serde(default)]
    pub own_ports: bool,
}

/// A grant, ready to decide.
pub struct Rule {
    pattern: Pattern,
    methods: Vec<Method>,
    paths: Globs,
    headers: Vec<(HeaderName, HeaderValue)>,
    query: Vec<(String, Zeroizing<String>)>,
    networks: Vec<IpNet>,
    own_ports: bool,
    allowed_headers: Vec<HeaderName>,
    secrets: Vec<Arc<Secret>>,
    redactor: Option<Arc<Redactor>>,
    /// A session cache of its own, so that no other grant goes on with this one's sessions.
    pub(super) tls: Option<Arc<ClientConfig>>,
}

/// What a guest asks for, in the one spelling in which it is decided and sent.
#[derive(Debug)]
pub struct Target {
    /// Whom.
    pub origin: Origin,
    /// How.
    pub method: Method,
    /// The normalised path.
    pub path: String,
    /// The normalised query.
    pub query: Option<String>,
}

impl Target {
    /// Reads a request's method and URI.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn read(method: &Method, uri: &http::Uri) -> Result<Self, &'static str> {
        let scheme = match uri.scheme_str() {
            Some("http") => Scheme::Http,
            Some("https") => Scheme::Https,
            _ => return Err("its scheme is neither \"https\" nor \"http\""),
        };
        let origin = Origin::of(scheme, uri.authority().ok_or("the host is missing")?.as_str())?;
        let query = uri.query().map(path::normalise_query).transpose()?;
        Ok(Self { origin, method: method.clone(), path: path::normalise(uri.path())?, query })
    }
}

/// Why a grant is not for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unfit {
    /// It is for another origin.
    Origin,
    /// It is for other methods.
    Method,
    /// It is for other paths.
    Path,
    /// The request sets a parameter of the query that is the host's.
    Query,
    /// The request has a parameter that asks for another method than its own.
    Override,
    /// The request carries credentials of the provider's own.
    Credential,
}

/// Networks, a single address being one as well.
fn networks<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    let read = |text: String| {
        let address = text.parse::<IpAddr>().map(IpNet::from);
        text.parse::<IpNet>().or(address).map_err(|_| {
            serde::de::Error::custom(format!(
                "networks: \"{}\" is neither an address nor a network such as \"10.0.0.0/8\"",
                text::excerpt(&text, 80)
            ))
        })
    };
    Vec::<String>::deserialize(deserializer)?.into_iter().map(read).collect()
}

/// What is percent-encoded in a parameter (RFC 3986, 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Methods that change what a connection is, or give back what was sent.
const NEVER: [Method; 2] = [Method::CONNECT, Method::TRACE];

impl Rule {
    /// Reads a grant.
    ///
    /// # Errors
    /// Names the key, and says what is wrong with it and the cure.
    pub fn new(written: &Written, secrets: &Secrets, network: Option<&Network>) -> Result<Self, String> {
        let shown = text::excerpt(&written.origin, 200);
        let pattern = Pattern::parse(&written.origin).map_err(|why| format!("origin = \"{shown}\": {why}"))?;
        let at = |why: String| format!("\"{pattern}\": {why}");
        let methods = match &written.methods {
            None => vec![Method::GET, Method::HEAD],
            Some(names) => names.iter().map(|name| method(name)).collect::<Result<_, _>>().map_err(at)?,
        };
        if methods.is_empty() {
            return Err(at("methods is empty; remove it for GET and HEAD".to_owned()));
        }
        let paths = written.paths.as_deref().map(Globs::new).transpose().map_err(at)?.unwrap_or_default();
        if written.paths.is_some() && paths.is_any() {
            return Err(at("paths is empty; remove it for every path".to_owned()));
        }
        let mut used = Vec::new();
        let mut headers = Vec::new();
        for (name, value) in &written.headers {
            let (name, value) = header(name, value, secrets, &mut used).map_err(at)?;
            headers.push((name, value));
        }
        let mut query = Vec::new();
        for (name, value) in &written.query {
            let (value, of) = value.fill(secrets).map_err(at)?;
            used.extend(of);
            query.push((name.clone(), value));
        }
        if !used.is_empty() && pattern.scheme() == Scheme::Http && !pattern.host().is_some_and(is_here) {
            return Err(at("a secret is not sent without TLS to another machine; write \"https://\"".to_owned()));
        }
        let allowed_headers = written.allow_headers.iter().map(|name| header_name(name)).collect::<Result<Vec<_>, _>>();
        let redactor = Redactor::new(&used).map(Arc::new);
        Ok(Self {
            methods,
            paths,
            headers,
            query,
            networks: written.networks.clone(),
            own_ports: written.own_ports,
            allowed_headers: allowed_headers.map_err(at)?,
            secrets: used,
            redactor,
            tls: network.filter(|_| pattern.scheme() == Scheme::Https).map(Network::tls),
            pattern,
        })
    }

    /// What a person may allow for one call: reading, with nothing added.
    pub fn consented(pattern: Pattern, network: Option<&Network>) -> Self {
        Self {
            methods: vec![Method::GET, Method::HEAD],
            paths: Globs::default(),
            headers: Vec::new(),
            query: Vec::new(),
            networks: Vec::new(),
            own_ports: false,
            allowed_headers: Vec::new(),
            secrets: Vec::new(),
            redactor: None,
            tls: network.filter(|_| pattern.scheme() == Scheme::Https).map(Network::tls),
            pattern,
        }
    }

    /// Whether the grant is for `target`.
    ///
    /// # Errors
    /// The first thing that keeps it from being.
    pub fn fits(&self, target: &Target) -> Result<(), Unfit> {
        if !self.pattern.matches(&target.origin) {
            return Err(Unfit::Origin);
        }
        if !self.methods.contains(&target.method) {
            return Err(Unfit::Method);
        }
        if !self.paths.allow(&target.path) {
            return Err(Unfit::Path);
        }
        // Names are compared decoded: another spelling of the same name is the same name for the upstream.
        let names = target.query.iter().flat_map(|query| query.split(['&', ';']));
        for name in names.map(|pair| pair.split('=').next().unwrap_or(pair).replace('+', " ")) {
            let once = percent_decode_str(&name).decode_utf8_lossy();
            // Some servers decode twice.
            let twice = percent_decode_str(&once).decode_utf8_lossy();
            for name in [&once, &twice] {
                let read = heads::parameter_name(name);
                if self.query.iter().any(|(own, _)| heads::parameter_name(own) == read) {
                    return Err(Unfit::Query);
                }
                if heads::is_override(name) {
                    return Err(Unfit::Override);
                }
            }
        }
        Ok(())
    }

    /// Whether a provider may set these headers with this grant: another one of its mount may allow more.
    ///
    /// # Errors
    /// [`Unfit::Credential`].
    pub fn carries(&self, headers: &http::HeaderMap) -> Result<(), Unfit> {
        let has = |name: &HeaderName| headers.keys().any(|own| heads::is_same(own, name));
        let own = |name: &HeaderName| has(name) && !self.allowed_headers.contains(name);
        match heads::CREDENTIALS.iter().any(own) && Guard::Credential.is_on() {
            true => Err(Unfit::Credential),
            false => Ok(()),
        }
    }

    /// Whether a connection to `address`, found for the host that the request names, may be made.
    pub fn reaches(&self, address: IpAddr, host: &Host) -> bool {
        if address::is_public(address) || !Guard::Address.is_on() {
            return true;
        }
        let plain = address::plain(address);
        // The operator named the address itself, this machine by its name, or the network.
        *host == Host::Ip(address)
            || (host.is_localhost() && plain.is_loopback())
            || self.networks.iter().any(|net| net.contains(&address) || net.contains(&plain))
    }

    /// Which origins it is for.
    pub(super) fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// Which methods it is for.
    pub(super) fn methods(&self) -> &[Method] {
        &self.methods
    }

    /// Which paths it is for.
    pub(super) fn paths(&self) -> &Globs {
        &self.paths
    }

    /// The path with the query, the host's parameters last.
    pub fn path_and_query(&self, target: &Target) -> Zeroizing<String> {
        let mut out = Zeroizing::new(String::with_capacity(path::MAX));
        out.push_str(&target.path);
        let mut parameters = target.query.iter().map(|query| Zeroizing::new(query.clone())).collect::<Vec<_>>();
        parameters.extend(self.query.iter().map(|(name, value)| {
            let [name, value] = [name.as_str(), value.as_str()].map(|text| utf8_percent_encode(text, RESERVED));
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

    /// Headers that carry credentials and that the provider may set itself.
    pub fn allowed_headers(&self) -> &[HeaderName] {
        &self.allowed_headers
    }

    /// The secrets that the host adds.
    pub fn secrets(&self) -> &[Arc<Secret>] {
        &self.secrets
    }

    /// Masks them in what comes back.
    pub fn redactor(&self) -> Option<&Arc<Redactor>> {
        self.redactor.as_ref()
    }

    /// Whether belljar's own ports may be connected to.
    pub fn own_ports(&self) -> bool {
        self.own_ports
    }

    /// What is wider than it usually needs to be.
    pub fn warnings(&self) -> Vec<String> {
        let mut all = Vec::new();
        let pattern = &self.pattern;
        if pattern.is_wide() {
            all.push(format!("\"{pattern}\" is every host of that domain; name those that are needed"));
        }
        if pattern.scheme() == Scheme::Http && !pattern.host().is_some_and(is_here) {
            all.push(format!("\"{pattern}\" is not encrypted: whoever is on the way can read and change it"));
        }
        let wide = |net: &&IpNet| net.prefix_len() < if net.addr().is_ipv4() { 8 } else { 16 };
        all.extend(
            self.networks.iter().filter(wide).map(|net| {
                format!("\"{pattern}\": the network {net} is very large; name the addresses that are needed")
            }),
        );
        if self.own_ports {
            all.push(format!("\"{pattern}\": belljar's own ports may be asked (own-ports = true)"));
        }
        all
    }
}

impl Written {
    /// One line for people: no value of a header is in it.
    pub fn describe(&self) -> String {
        let methods = self.methods.as_ref().map_or("GET, HEAD".to_owned(), |methods| methods.join(", "));
        let mut line = format!("{} ({methods})", text::excerpt(&self.origin, 200));
        if let Some(paths) = &self.paths {
            line.push_str(&format!(" paths {}", paths.join(" ")));
        }
        for (kind, added) in [("header", &self.headers), ("query", &self.query)] {
            for (name, value) in added {
                let secrets = value.names().iter().map(|name| format!(" from secret \"{name}\"")).collect::<String>();
                line.push_str(&format!(" + {kind} {name}{secrets}"));
            }
        }
        for network in &self.networks {
            line.push_str(&format!(" network {network}"));
        }
        text::excerpt(&line, 500)
    }
}

/// Whether a host can only be this machine.
fn is_here(host: &Host) -> bool {
    host.is_localhost() || matches!(host, Host::Ip(address) if address::plain(*address).is_loopback())
}

pub(super) fn method(name: &str) -> Result<Method, String> {
    let shown = text::quoted(name, 40);
    let is_token = !name.is_empty() && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'-');
    let method = Method::from_bytes(name.as_bytes()).ok().filter(|_| is_token);
    let method =
        method.ok_or_else(|| format!("methods: {shown} is not a method; write it in capitals, as in \"GET\""))?;
    if NEVER.contains(&method) {
        return Err(format!("methods: {shown} is never allowed"));
    }
    Ok(method)
}

fn header_name(name: &str) -> Result<HeaderName, String> {
    let shown = text::excerpt(name, 80);
    let name: HeaderName = name.parse().map_err(|_| format!("\"{shown}\" is not the name of a header"))?;
    let framing =
        ["host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "keep-alive"];
    if framing.contains(&name.as_str()) {
        return Err(format!("the header \"{name}\" is made by belljar; remove it"));
    }
    Ok(name)
}

fn header(
    name: &str,
    value: &Template,
    secrets: &Secrets,
    used: &mut Vec<Arc<Secret>>,
) -> Result<(HeaderName, HeaderValue), String> {
    let name = header_name(name)?;
    let (mut text, of) = value.fill(secrets)?;
    let bytes = bytes::Bytes::from_owner(Wiped(std::mem::take(&mut *text).into_bytes().into()));
    let mut value = HeaderValue::from_maybe_shared(bytes)
        .map_err(|_| format!("the header \"{name}\" has a character that no header can have"))?;
    // Neither printed nor put into a compression table.
    value.set_sensitive(!of.is_empty());
    used.extend(of);
    Ok((name, value))
}

/// Bytes that are wiped when the last header that shares them is dropped.
struct Wiped(Zeroizing<Vec<u8>>);

impl AsRef<[u8]> for Wiped {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
