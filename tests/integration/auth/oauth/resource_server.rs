//! Black-box checks of belljar as resource server. The list is that of Cloudflare's `workers-oauth-provider`
//! (`conformance/protected-resource.test.ts`), because the official conformance suite has no such scenarios. Each test
//! names the entry of that list.

use belljar_tests::{Era, Response};
use serde_json::{Value, json};

use super::clients::challenge;
use super::protected::{CLOCK, Protected, TEXT};

/// A resource for holders of two scopes.
const TWO_SCOPES: &str = "test://watched-resource";

/// Further lines of `[auth.scopes]`, and further rules.
const MORE: &str = r#"
"offline_access" = { mounts = ["clock"], do = ["search"] }

[[allow]]
who = { scope = "fixture:read fixture:more" }
what = "test://watched-resource"
do = ["read"]
"#;

fn start() -> Option<Protected> {
    Protected::start_with(json!({}), MORE)
}

impl Protected {
    /// Sends a request without a credential.
    fn ask(&self, method: &str, path: &str) -> Response {
        let message = Era::Stateless.message(1, "resources/read", json!({ "uri": CLOCK }));
        let headers = self.server.wire(Era::Stateless).headers(&message);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let body = if method == "POST" { message.to_string() } else { String::new() };
        self.server.exchange(method, path, &headers, body.as_bytes())
    }

    /// The metadata at the URL that a challenge names.
    fn linked_metadata(&self, answer: &Response) -> Value {
        let challenge = challenge(answer.header("www-authenticate").unwrap());
        let path = challenge["resource_metadata"].strip_prefix(self.url.strip_suffix("/mcp").unwrap()).unwrap();
        let metadata = self.ask("GET", path);
        assert_eq!(metadata.status, 200, "{challenge:?}: {}", metadata.text());
        metadata.json()
    }
}

/// "Discovers the protected resource through its path-specific RFC 9728 URL."
#[test]
fn the_metadata_is_at_the_path_of_the_resource() {
    let Some(protected) = start() else { return };
    let answer = protected.ask("GET", "/.well-known/oauth-protected-resource/mcp");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let expected = json!({
        "resource": protected.url,
        "authorization_servers": [protected.issuer.issuer()],
        "scopes_supported": ["clock:read"],
        "bearer_methods_supported": ["header"],
        "resource_name": "belljar",
    });
    assert_eq!(answer.json(), expected);
    assert_eq!(protected.ask("GET", "/.well-known/oauth-protected-resource/other").status, 404);
}

/// "Returns a discoverable Bearer challenge when credentials are absent."
#[test]
fn without_a_credential_the_challenge_is_bare() {
    let Some(protected) = start() else { return };
    let expected = format!("Bearer resource_metadata=\"{}\", scope=\"clock:read\"", protected.metadata_url());
    for method in ["POST", "GET", "DELETE"] {
        let answer = protected.ask(method, "/mcp");
        assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some(expected.as_str())), "{method}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{method}");
    }
}

/// "Returns invalid_token for a malformed bearer credential."
#[test]
fn a_malformed_token_is_invalid() {
    let Some(protected) = start() else { return };
    for token in ["not-an-access-token", "a.b.c", "....", "e30.e30.e30"] {
        protected.refuse(token, token);
    }
}

/// The metadata link is in every challenge, and leads to the metadata of this very resource.
#[test]
fn every_challenge_links_the_metadata_of_the_resource() {
    let Some(protected) = start() else { return };
    let base = protected.token_with("clock:read");
    for (status, answer) in [
        (401, protected.ask("POST", "/mcp")),
        (401, protected.read(CLOCK, "not-an-access-token")),
        (400, protected.read(CLOCK, "two words")),
        (403, protected.read(TEXT, &base)),
    ] {
        assert_eq!(answer.status, status, "{}", answer.text());
        assert_eq!(protected.linked_metadata(&answer)["resource"], protected.url, "{status}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{status}");
    }
}

/// "Rejects a valid token at a resource outside its audience." The issuer, the key and the scopes are the right ones.
#[test]
fn a_token_for_another_resource_is_refused() {
    let Some(protected) = start() else { return };
    let (url, mint) = (&protected.url, |aud: Value| protected.issuer.mint(&json!({ "claims": { "aud": aud } })));
    for other in ["http://127.0.0.1:1/mcp", "https://other.example/mcp"] {
        protected.refuse(other, &mint(json!(other)));
        protected.refuse(other, &mint(json!([other, protected.issuer.issuer()])));
    }
    protected.refuse("no audience", &mint(Value::Null));
    protected.refuse("an empty list", &mint(json!([])));
    protected.accept("one of several audiences", &mint(json!(["https://other.example/mcp", url])));
}

/// "Rejects resource expansion." A token for a resource is not one for those above, below and beside it.
#[test]
fn a_token_for_a_resource_near_by_is_refused() {
    let Some(protected) = start() else { return };
    let url = protected.url.as_str();
    let origin = url.strip_suffix("/mcp").unwrap();
    for near in [
        origin.to_owned(),
        format!("{origin}/"),
        format!("{url}/"),
        format!("{url}/notes"),
        format!("{url}2"),
        format!("{url}?all"),
        format!("{origin}/MCP"),
        url.replace("http:", "https:"),
        url.replace(protected.server.address().ip().to_string().as_str(), "localhost"),
    ] {
        assert_ne!(near, url);
        protected.refuse(&near, &protected.issuer.mint(&json!({ "claims": { "aud": near } })));
    }
    protected.accept("the resource itself", &protected.issuer.mint(&json!({})));
}

/// "Publishes baseline resource scopes without offline_access." `[auth.scopes]` names it in this configuration.
#[test]
fn offline_access_is_no_scope_of_the_resource() {
    let Some(protected) = start() else { return };
    let answer = protected.ask("POST", "/mcp");
    assert_eq!(challenge(answer.header("www-authenticate").unwrap())["scope"], "clock:read");
    assert_eq!(protected.linked_metadata(&answer)["scopes_supported"], json!(["clock:read"]));
    let invalid = protected.read(CLOCK, "not-an-access-token");
    assert_eq!(challenge(invalid.header("www-authenticate").unwrap())["scope"], "clock:read");
}

/// "Returns a 403 insufficient_scope challenge with operation-specific scopes."
#[test]
fn a_refused_operation_names_its_own_scopes() {
    let Some(protected) = start() else { return };
    for (uri, scopes, needed) in [
        (CLOCK, "", "clock:read"),
        (CLOCK, "fixture:read", "clock:read"),
        (TEXT, "clock:read", "fixture:read"),
        // All scopes of the operation, each once, also those that the token has.
        (TWO_SCOPES, "clock:read", "fixture:read fixture:more"),
        (TWO_SCOPES, "clock:read fixture:read", "fixture:read fixture:more"),
    ] {
        let row = format!("{uri} with \"{scopes}\"");
        let refused = protected.read(uri, &protected.token_with(scopes));
        assert_eq!(refused.status, 403, "{row}: {}", refused.text());
        let challenge = challenge(refused.header("www-authenticate").unwrap());
        assert_eq!((challenge["error"], challenge["scope"]), ("insufficient_scope", needed), "{row}");
        let error = &refused.json()["error"]["data"];
        assert_eq!(error["kind"], "insufficient-scope", "{row}: {error}");
        assert_eq!(error["scopes"], Value::from_iter(needed.split(' ')), "{row}: {error}");
        let allowed = protected.read(uri, &protected.token_with(needed));
        assert_eq!(allowed.status, 200, "{row}, then \"{needed}\": {}", allowed.text());
    }
    // Far more refusals than failed authentications are allowed: a missing scope is no failure.
    let base = protected.token_with("clock:read");
    for _ in 0..20 {
        assert_eq!(protected.read(TEXT, &base).status, 403);
    }
}
