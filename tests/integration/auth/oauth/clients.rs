//! Starts the real clients with OAuth. Each is a small program in `tests/clients/` that uses the OAuth of a published SDK.
//!
//! A program gets one JSON request as its argument:
//!
//! ```json
//! {"url": "http://127.0.0.1:1/mcp", "mode": "auto", "account": "alice", "reads": ["belljar://clock/utc"],
//!  "registration": "pre", "registered": {"client_id": "...", "client_secret": "...", "issuer": "http://127.0.0.1:2"},
//!  "document": "https://..."}
//! ```
//!
//! `registration` is `pre` (the client is `registered`), `dynamic` (RFC 7591), or `cimd` (the client's id is the URL
//! `document` of its metadata). The program is also the browser of the person `account`.
//!
//! The program prints one line, a [`LoginReport`] in JSON. `reads` maps each URI to its `contents`, to the `error` of the
//! server, or to the `failure` of the client. `authorizations` holds the parameters of each request in the browser, and the
//! `iss` of its answer. `exchanges` holds each HTTP exchange of the SDK. `scope` and `client_id` are those of the last token,
//! and `access_tokens` holds all tokens.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use belljar_tests::{Era, places, process};
use serde_json::{Map, Value, json};

use super::authorization_server::AuthorizationServer;

/// The longest accepted time of a client program.
const PATIENCE: Duration = Duration::from_secs(120);

/// The SDK of a client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sdk {
    /// Python `mcp` 2.3.
    Python,
    /// TypeScript client 2.4.
    TypeScript,
    /// rmcp 3.11, with its feature `auth`.
    Rust,
}

impl Sdk {
    /// All of them.
    pub(crate) const ALL: [Sdk; 3] = [Sdk::Python, Sdk::TypeScript, Sdk::Rust];
}

/// How the authorization server knows the client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Registration {
    /// The client registered before.
    Before,
    /// The client registers now (RFC 7591).
    Dynamic,
    /// The client does not register: its id is the URL of its metadata.
    Document,
}

/// One client: its SDK, its registration, its protocol era, and the person who uses it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoginClient {
    pub(crate) sdk: Sdk,
    pub(crate) registration: Registration,
    pub(crate) era: Era,
    pub(crate) account: &'static str,
}

/// The report of a client.
#[derive(Debug)]
pub(crate) struct LoginReport {
    /// The client's name and version.
    pub(crate) client: String,
    /// The agreed protocol version.
    pub(crate) protocol: String,
    /// The result of each read.
    pub(crate) reads: Map<String, Value>,
    /// Each authorization.
    pub(crate) authorizations: Vec<Value>,
    /// Each HTTP exchange of the SDK.
    pub(crate) exchanges: Vec<Exchange>,
    /// The id of the client at the authorization server.
    pub(crate) client_id: String,
    /// The scopes of the last token.
    pub(crate) scope: String,
    /// Every access token.
    pub(crate) access_tokens: Vec<String>,
}

/// An HTTP exchange.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) method: String,
    /// The URL, without a query.
    pub(crate) url: String,
    pub(crate) status: u16,
    /// `WWW-Authenticate`.
    pub(crate) challenge: Option<String>,
}

impl LoginClient {
    /// Runs the client. It reads `reads` from the server at `url`. `None` if this machine lacks its interpreter.
    pub(crate) fn run(self, url: &str, issuer: &AuthorizationServer, reads: &[&str]) -> Option<LoginReport> {
        let (program, script) = match self.sdk {
            Sdk::Python => (places::python(2)?, Some("py/oauth_2.py")),
            Sdk::TypeScript => (places::node()?, Some("node/oauth_2.mjs")),
            Sdk::Rust => (places::rust_client(), None),
        };
        let description = issuer.description();
        let request = json!({
            "url": url,
            "mode": match self.era {
                Era::Session => "legacy",
                Era::Stateless => "auto",
            },
            "account": self.account,
            "reads": reads,
            "registration": match self.registration {
                Registration::Before => "pre",
                Registration::Dynamic => "dynamic",
                Registration::Document => "cimd",
            },
            "registered": description["registered"],
            "document": description["document"],
        });
        let mut command = Command::new(program);
        command.args(script.map(places::client_script)).arg(request.to_string()).env("PYTHONDONTWRITEBYTECODE", "1");
        let output = process::run(command, PATIENCE);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{self:?} failed with {}:\n{stdout}\n{stderr}", output.status);
        let seen: Value = serde_json::from_str(stdout.trim())
            .unwrap_or_else(|error| panic!("no report ({error}):\n{stdout}\n{stderr}"));
        Some(LoginReport::of(&seen))
    }
}

impl LoginReport {
    fn of(seen: &Value) -> LoginReport {
        assert_eq!(seen["server"], "belljar", "the name of the server, as the client reports it");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let list = |key: &str| seen[key].as_array().unwrap();
        let exchange = |entry: &Value| Exchange {
            method: text(&entry["method"]),
            url: text(&entry["url"]),
            status: entry["status"].as_u64().unwrap().try_into().unwrap(),
            challenge: entry["challenge"].as_str().map(str::to_owned),
        };
        LoginReport {
            client: text(&seen["client"]),
            protocol: text(&seen["protocol"]),
            reads: seen["reads"].as_object().unwrap().clone(),
            authorizations: list("authorizations").clone(),
            exchanges: list("exchanges").iter().map(exchange).collect(),
            client_id: text(&seen["client_id"]),
            scope: text(&seen["scope"]),
            access_tokens: list("access_tokens").iter().map(text).collect(),
        }
    }

    /// The only exchange with this status.
    pub(crate) fn only(&self, status: u16) -> &Exchange {
        let mut all = self.exchanges.iter().filter(|exchange| exchange.status == status);
        let (first, second) = (all.next(), all.next());
        let only = first.filter(|_| second.is_none());
        only.unwrap_or_else(|| panic!("not exactly one exchange with status {status}: {:?}", self.exchanges))
    }

    /// The text of a resource that the client read.
    pub(crate) fn text(&self, uri: &str) -> &str {
        let text = self.reads[uri]["contents"][0]["text"].as_str();
        text.unwrap_or_else(|| panic!("{uri} was not read: {}", self.reads[uri]))
    }
}

impl Exchange {
    /// The parameters of its challenge.
    pub(crate) fn challenge(&self) -> BTreeMap<&str, &str> {
        challenge(self.challenge.as_deref().unwrap_or_else(|| panic!("no challenge: {self:?}")))
    }
}

/// The parameters of a Bearer challenge. Accepts quoted values only, without escapes.
pub(crate) fn challenge(header: &str) -> BTreeMap<&str, &str> {
    let parameters = header.strip_prefix("Bearer ").and_then(|rest| rest.strip_suffix('"'));
    let parameters = parameters.unwrap_or_else(|| panic!("another form: {header}"));
    let mut all = BTreeMap::new();
    for parameter in parameters.split("\", ") {
        let (name, value) = parameter.split_once("=\"").unwrap_or_else(|| panic!("no value: {parameter}: {header}"));
        assert!(!value.contains(['"', '\\']), "{header}");
        assert!(all.insert(name, value).is_none(), "a parameter is repeated: {header}");
    }
    all
}
