//! belljar as OAuth resource server, beside the authorization server whose tokens it accepts.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU8, Ordering};

use belljar_tests::{Era, Response, Server, Site};
use serde_json::{Value, json};

use super::authorization_server::AuthorizationServer;
use super::clients;

/// A resource for holders of the scope `clock:read`.
pub(crate) const CLOCK: &str = "belljar://clock/utc";

/// A resource for holders of the scope `fixture:read`. No list of scopes names this scope: it is in a rule only, so that
/// clients learn of it from the refusal.
pub(crate) const TEXT: &str = "test://static-text";

/// A resource for the group `oncall`.
pub(crate) const PIXEL: &str = "test://static-binary";

/// A resource that does not exist.
pub(crate) const ABSENT: &str = "test://nothing-here";

/// belljar, and the authorization server whose tokens it accepts.
pub(crate) struct Protected {
    pub(crate) site: Site,
    pub(crate) server: Server,
    pub(crate) url: String,
    pub(crate) issuer: AuthorizationServer,
}

/// An address on loopback that no other program uses: its IP address is that of this test alone.
pub(crate) fn own_address() -> SocketAddr {
    static COUNT: AtomicU8 = AtomicU8::new(1);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    // 127.0.0.0/16 is for all other tests.
    let address = Ipv4Addr::new(127, 1 + high % 254, low, COUNT.fetch_add(1, Ordering::Relaxed));
    SocketAddr::from((address, 8808))
}

impl Protected {
    /// Starts both. `request` is for the authorization server. `None` if this machine lacks Node.
    pub(crate) fn start(request: Value) -> Option<Protected> {
        Self::start_with(request, "")
    }

    /// Starts both. `more` are further lines of `[auth.scopes]`, and further rules.
    pub(crate) fn start_with(mut request: Value, more: &str) -> Option<Protected> {
        // The authorization server must know the URL of belljar, and belljar the issuer, so belljar's address is chosen first.
        let address = own_address();
        let url = format!("http://{address}/mcp");
        request["resource"] = url.as_str().into();
        request["scopes"] = json!(["clock:read", "fixture:read"]);
        let issuer = AuthorizationServer::start(&request)?;

        let mut site = crate::support::empty();
        site.mount("clock");
        site.mount_as("guest_fixture", "fixture.wasm");
        let account = &issuer.description()["resource_server"];
        site.env("ISSUER_SECRET", account["client_secret"].as_str().unwrap());
        let introspect = match request["opaque"] == true {
            true => format!(
                ", introspect = {{ url = {}, client-id = {}, client-secret = \"issuer\" }}",
                issuer.description()["introspection"],
                account["client_id"]
            ),
            false => String::new(),
        };
        site.config(&format!(
            r#"
audit = "audit.jsonl"
list-time = "60s"

[serve]
http = "{address}"
url = "{url}"

[secrets]
issuer = {{ env = "ISSUER_SECRET" }}

[auth]
issuers = [{{ issuer = "{}", jwks = "discover"{introspect} }}]

[auth.scopes]
"clock:read" = {{ mounts = ["clock"], do = ["list", "read"] }}
{more}

[[allow]]
who = {{ scope = "fixture:read" }}
what = "{TEXT}"
do = ["read"]

[[allow]]
who = {{ group = "oncall" }}
what = "{PIXEL}"
do = ["read"]

[mounts.fixture]
uri = "test://"
"#,
            issuer.issuer()
        ));
        let server = Server::start(site.command(site.arguments(&["serve"])));
        assert_eq!(server.address(), address, "the address of [serve]");
        Some(Protected { site, server, url, issuer })
    }

    /// A token with these scopes.
    pub(crate) fn token_with(&self, scopes: &str) -> String {
        self.issuer.mint(&json!({ "claims": { "scope": scopes } }))
    }

    /// Reads with a token, as a client without a session does.
    pub(crate) fn read(&self, uri: &str, token: &str) -> Response {
        let message = Era::Stateless.message(1, "resources/read", json!({ "uri": uri }));
        let mut headers = self.server.wire(Era::Stateless).headers(&message);
        headers.push(("Authorization", format!("Bearer {token}")));
        self.server.post(&headers, &message)
    }

    /// Reads [`CLOCK`] with a token that must be accepted.
    pub(crate) fn accept(&self, what: &str, token: &str) {
        let answer = self.read(CLOCK, token);
        assert_eq!(answer.status, 200, "{what}: {}\n{}", answer.text(), self.server.process.stderr());
        let text = answer.json()["result"]["contents"][0]["text"].clone();
        assert!(text.as_str().is_some_and(|text| text.contains("zone: UTC")), "{what}: {}", answer.text());
    }

    /// Reads [`CLOCK`] with a token that must be refused as invalid.
    pub(crate) fn refuse(&self, what: &str, token: &str) {
        let answer = self.read(CLOCK, token);
        assert_eq!(answer.status, 401, "{what}: {}", answer.text());
        let challenge = clients::challenge(answer.header("www-authenticate").unwrap());
        assert_eq!(challenge["error"], "invalid_token", "{what}: {challenge:?}");
        assert_eq!(challenge["resource_metadata"], self.metadata_url(), "{what}: {challenge:?}");
        assert!(!answer.text().contains("zone: UTC"), "{what}: {}", answer.text());
    }

    /// The URL of the protected resource metadata.
    pub(crate) fn metadata_url(&self) -> String {
        self.url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")
    }

    /// Stops belljar. Neither its log nor its record may contain any of these tokens, or the signature of one.
    pub(crate) fn stop(self, tokens: &[String]) {
        let ended = self.server.stop();
        assert!(ended.status.success(), "the server ended with {}:\n{}", ended.status, ended.stderr);
        let record = std::fs::read_to_string(self.site.path("audit.jsonl")).unwrap();
        for token in tokens {
            let signature = token.rsplit('.').next().unwrap();
            assert!(!signature.is_empty() && !record.contains(signature), "a token is on record:\n{record}");
            assert!(!ended.stderr.contains(signature), "a token is in the log:\n{}", ended.stderr);
        }
    }
}
