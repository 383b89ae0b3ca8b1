//! Every way to be known to belljar, on each transport and in each revision of the protocol. The table in
//! `docs/reference/authentication.md` shows the same combinations.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use belljar_tests::{Client, Era, RpcError, Server, Site, Stdio};
use belljar_upstream::{TokenKey, Upstream, answer};
use serde_json::{Value, json};

use super::requests::{HttpCaller, SESSION_REVISIONS, STATELESS_REVISION, message, stdout_of};
use crate::support::stdout_and_stderr;

/// The issuer of the tokens. belljar has its keys in a file, and does not connect to it.
const ISSUER: &str = "https://login.example";

/// The URL for which the tokens are issued.
const URL: &str = "http://127.0.0.1:1/mcp";

/// A token without a form of its own.
const OPAQUE: &str = "opaque-token-of-otto";

/// The password of belljar at the issuer.
const PASSWORD: &str = "belljar:its-password";

/// The principals of this test: the name of the file that each may read, and the principal on record.
const PRINCIPALS: [(&str, &str); 5] = [
    ("local", "local"),
    ("anonymous", "anonymous"),
    ("ci", "key:ci"),
    ("alice", "alice@https://login.example"),
    ("otto", "otto@https://login.example"),
];

/// Every revision, newest first.
fn revisions() -> impl Iterator<Item = &'static str> {
    [STATELESS_REVISION].into_iter().chain(SESSION_REVISIONS)
}

/// A site in which each principal may read its own file. `more`: further configuration.
fn site(more: &str) -> Site {
    let rules: String = PRINCIPALS
        .iter()
        .map(|(name, _)| {
            let key = if *name == "ci" { "key" } else { "user" };
            format!("[[allow]]\nwho = {{ {key} = \"{name}\" }}\nwhat = \"belljar://notes/{name}.md\"\n\n")
        })
        .collect();
    let mount = "[mounts.notes]\ncomponent = \"files.wasm\"\nfs = { \"/notes\" = \"notes\" }\n";
    let site = crate::support::site(&format!("{more}\n{rules}{mount}"));
    for (name, _) in PRINCIPALS {
        site.write(format!("notes/{name}.md"), format!("The note of {name}.\n"));
    }
    site
}

/// A server with `[auth]`: keys, signed tokens and opaque tokens. Also an API key, and a token.
struct Authenticated {
    site: Site,
    server: Server,
    key: String,
    token: String,
    _introspection: Upstream,
}

impl Authenticated {
    fn start() -> Authenticated {
        let introspection = Upstream::plain(|asked| {
            let expected = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(PASSWORD));
            let claims = claims("otto");
            match asked.header("authorization") == Some(&expected) {
                true => answer("200 OK", "content-type: application/json\r\n", claims.to_string()),
                false => answer("401 Unauthorized", "", ""),
            }
        });
        let mut site = site(&format!(
            r#"
[serve]
url = "{URL}"

[secrets]
issuer = {{ env = "ISSUER_SECRET" }}

[[auth.issuers]]
issuer = "{ISSUER}"
jwks = "keys.json"
introspect = {{ url = "http://127.0.0.1:{}/introspect", client-id = "belljar", client-secret = "issuer" }}
"#,
            introspection.port()
        ));
        site.env("ISSUER_SECRET", "its-password");
        let signer = TokenKey::new();
        let public = URL_SAFE_NO_PAD.encode(signer.public());
        let key = json!({ "kty": "OKP", "crv": "Ed25519", "kid": "one", "alg": "EdDSA", "use": "sig", "x": public });
        site.write("keys.json", json!({ "keys": [key] }).to_string());
        let key = stdout_of(&site, &["key", "new", "ci"]).trim_end().to_owned();
        let server = site.http();
        Authenticated { site, server, key, token: signed(&signer), _introspection: introspection }
    }
}

/// The claims of a token for belljar.
fn claims(subject: &str) -> Value {
    // The year 2100.
    json!({ "iss": ISSUER, "sub": subject, "aud": URL, "exp": 4_102_444_800_u64, "iat": 0, "client_id": "test",
        "active": true })
}

/// A signed token of alice.
fn signed(key: &TokenKey) -> String {
    let encode = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let header = json!({ "alg": "EdDSA", "typ": "at+jwt", "kid": "one" });
    let signed = format!("{}.{}", encode(header), encode(claims("alice")));
    let signature = URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

/// Checks that this principal is on record for a read of its note.
fn check_record(site: &Site, name: &str, what: &str) {
    let (_, principal) = PRINCIPALS.iter().find(|(own, _)| own == &name).unwrap();
    let reference = format!("{name}.md");
    site.await_record(what, |line| {
        line["reference"] == *reference && line["outcome"] == "ok" && line["caller"]["principal"] == *principal
    });
}

/// Checks that an HTTP client sees its own note, and that the others look like one that does not exist.
fn check_http(site: &Site, caller: &HttpCaller<'_>, name: &str, what: &str) {
    let uri = |name: &str| format!("belljar://notes/{name}.md");
    let own = caller.read(&uri(name));
    let text = message(&own)["result"]["contents"][0]["text"].clone();
    assert_eq!(text, format!("The note of {name}.\n"), "{what}: HTTP {} {}", own.status, own.text());
    assert_eq!(caller.uris(), [uri(name)], "{what}");
    let absent = caller.read(&uri("nobody"));
    assert!(message(&absent)["error"]["code"].is_i64(), "{what}: {}", absent.text());
    for (other, _) in PRINCIPALS.iter().filter(|(other, _)| *other != name) {
        let hidden = caller.read(&uri(other));
        assert_eq!(hidden.status, absent.status, "{what}, {other}");
        let hidden = message(&hidden).to_string().replace(other, "nobody");
        assert_eq!(hidden, message(&absent).to_string(), "{what}, {other}");
    }
    check_record(site, name, what);
}

#[test]
fn a_key_and_each_kind_of_token_are_known_in_every_revision() {
    let Authenticated { site, server, key, token, .. } = &Authenticated::start();
    for (name, credential) in [("ci", key.as_str()), ("alice", token), ("otto", OPAQUE)] {
        for revision in revisions() {
            let what = format!("{name} in {revision}");
            let caller = HttpCaller::connect(server, revision, Some(credential))
                .unwrap_or_else(|answer| panic!("{what}: {} {}", answer.text(), server.process.stderr()));
            check_http(site, &caller, name, &what);
        }
    }
    let log = server.process.stderr();
    let record = std::fs::read_to_string(site.path("audit.jsonl")).unwrap();
    for credential in [key, token, OPAQUE] {
        assert!(!log.contains(credential) && !record.contains(credential), "a credential was written");
    }
}

#[test]
fn nobody_is_anonymous_where_credentials_are_needed() {
    let Authenticated { server, .. } = &Authenticated::start();
    for revision in SESSION_REVISIONS {
        let refused = HttpCaller::connect(server, revision, None).err().expect("no session");
        assert_eq!(refused.status, 401, "{revision}: {}", refused.text());
    }
    let refused = HttpCaller::stateless(server, None).read("belljar://notes/anonymous.md");
    assert_eq!(refused.status, 401, "{}", refused.text());
    let challenge = refused.header("www-authenticate").unwrap();
    assert!(challenge.contains("resource_metadata=\"http://127.0.0.1:1/.well-known/"), "{challenge}");
}

#[test]
fn a_session_belongs_to_the_principal_that_opened_it() {
    let Authenticated { server, key, token, .. } = &Authenticated::start();
    for revision in SESSION_REVISIONS {
        let owner = HttpCaller::connect(server, revision, Some(key))
            .unwrap_or_else(|answer| panic!("no session: {}", answer.text()));
        let thief = owner.with_credential(token);
        let unknown = owner.with_session("00000000-0000-4000-8000-000000000000");
        let (refused, absent) = (thief.read("belljar://notes/alice.md"), unknown.read("belljar://notes/ci.md"));
        assert_eq!((refused.status, refused.text()), (404, absent.text()), "{revision}");
        assert_eq!(owner.read("belljar://notes/ci.md").status, 200, "{revision}: the session is still there");
    }
}

#[test]
fn without_authentication_every_http_client_is_anonymous() {
    let site = site("");
    let server = site.http();
    for revision in revisions() {
        let caller = HttpCaller::connect(&server, revision, None)
            .unwrap_or_else(|answer| panic!("no session: {}", answer.text()));
        check_http(&site, &caller, "anonymous", revision);
        // A credential that nobody asked for proves nothing.
        let caller = HttpCaller::connect(&server, revision, Some("bj_anything"))
            .unwrap_or_else(|answer| panic!("no session: {}", answer.text()));
        check_http(&site, &caller, "anonymous", revision);
    }
}

/// Connects a client of this revision on standard input and output.
fn on_stdio(site: &Site, revision: &str) -> Client<Stdio> {
    if revision == STATELESS_REVISION {
        return site.stdio(Era::Stateless);
    }
    let mut client = Client::connect_silently(site.silent_stdio(), Era::Session);
    let identity = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": identity });
    assert_eq!(client.request("initialize", params).unwrap()["protocolVersion"], revision);
    client.notify("notifications/initialized", json!({}));
    client
}

#[test]
fn on_stdio_the_client_is_the_own_user() {
    // Also with `[auth]`, which is about HTTP.
    for auth in ["", "[auth]\n"] {
        let site = site(auth);
        if !auth.is_empty() {
            stdout_of(&site, &["key", "new", "ci"]);
        }
        for revision in revisions() {
            let what = format!("{revision} with \"{auth}\"");
            let mut client = on_stdio(&site, revision);
            let own = client.read("belljar://notes/local.md").unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(own["contents"][0]["text"], "The note of local.\n", "{what}");
            assert_eq!(client.uris(), ["belljar://notes/local.md"], "{what}");
            let mut refused = |name: &str| {
                let RpcError { code, message, .. } = client.read(&format!("belljar://notes/{name}.md")).unwrap_err();
                (code, message.replace(name, "nobody"))
            };
            let absent = refused("nobody");
            for (other, _) in PRINCIPALS.iter().filter(|(other, _)| *other != "local") {
                assert_eq!(refused(other), absent, "{what}, {other}");
            }
            check_record(&site, "local", &what);
            client.close();
        }
    }
}

#[test]
fn at_the_command_line_the_caller_is_the_own_user() {
    let site = site("");
    let shown = stdout_of(&site, &["read", "belljar://notes/local.md"]);
    assert_eq!(shown, "The note of local.\n");
    for other in ["anonymous", "ci"] {
        let output = site.run(&["read", &format!("belljar://notes/{other}.md")]);
        assert_eq!(output.status.code(), Some(1), "{}", stdout_and_stderr(&output));
    }
    check_record(&site, "local", "the read of the command line");
}

/// `check` does what `serve` does before it serves. Both need connections to issuers, and one also to granted origins.
#[test]
fn check_accepts_issuers_and_granted_origins() {
    let origin = "[mounts.web]\nhttp = [{ origin = \"https://api.example\" }]\n";
    let issuer =
        "[serve]\nurl = \"http://127.0.0.1:1/mcp\"\n[auth]\nissuers = [{ issuer = \"https://login.example\" }]\n";
    for config in [issuer.to_owned(), format!("{issuer}{origin}"), format!("[auth]\n{origin}")] {
        let site = crate::support::site(&format!("{config}# web.wasm\n"));
        stdout_of(&site, &["key", "new", "ci"]);
        stdout_of(&site, &["check"]);
        let server = site.http();
        assert_eq!(HttpCaller::stateless(&server, None).read("belljar://clock/utc").status, 401, "{config}");
    }
}
