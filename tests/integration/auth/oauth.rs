//! OAuth with real parts: a real authorization server, real clients, and belljar as resource server.
//!
//! A client goes all the way: status 401, protected resource metadata (RFC 9728), metadata of the authorization server
//! (RFC 8414), registration, authorization code with PKCE, token, read, status 403 with the missing scope, a further
//! authorization, read. Other tests send tokens that no client would send.

pub(crate) mod authorization_server;
pub(crate) mod clients;
pub(crate) mod protected;

mod issuer;
mod resource_server;

use std::collections::BTreeSet;

use belljar_tests::Era;
use clients::{LoginClient, LoginReport, Registration, Sdk};
use protected::{ABSENT, CLOCK, PIXEL, Protected, TEXT};
use serde_json::{Value, json};

use super::requests::{HttpCaller, SESSION_REVISIONS, message, stdout_of};

/// The HTTP exchanges of a client that logs in, reads two resources, steps up, and reads a third one.
fn expected_exchanges(protected: &Protected, registration: Registration) -> Vec<(String, String, u16)> {
    let (url, issuer) = (protected.url.as_str(), protected.issuer.issuer());
    let post = |url: &str, status| ("POST".to_owned(), url.to_owned(), status);
    let get = |url: String| ("GET".to_owned(), url, 200);
    let token = post(&format!("{issuer}/token"), 200);
    let mut all = vec![
        post(url, 401),
        get(protected.metadata_url()),
        get(format!("{issuer}/.well-known/oauth-authorization-server")),
    ];
    if registration == Registration::Dynamic {
        all.push(post(&format!("{issuer}/reg"), 201));
    }
    // `server/discover`, two reads, and the refused one.
    all.extend([token.clone(), post(url, 200), post(url, 200), post(url, 200), post(url, 403)]);
    all.extend([token, post(url, 200)]);
    all
}

/// The scopes of a text, without `offline_access`, which clients add to get a refresh token.
fn scopes(text: &Value) -> BTreeSet<&str> {
    text.as_str().unwrap().split(' ').filter(|scope| *scope != "offline_access").collect()
}

/// Checks the way of a client through status 401, both authorizations, and status 403.
fn check_way(protected: &Protected, client: LoginClient, report: &LoginReport) {
    let expected = match client.sdk {
        Sdk::Python => "python mcp 2.3.0",
        Sdk::TypeScript => "@modelcontextprotocol/client 2.4.0",
        Sdk::Rust => "rmcp 3.11.0",
    };
    assert_eq!((report.client.as_str(), report.protocol.as_str()), (expected, client.era.version()));
    assert!(report.text(CLOCK).contains("\nzone: UTC\n"));
    assert_eq!(report.text(TEXT), "This is the content of the static text resource.");
    assert_eq!(report.reads[PIXEL]["contents"][0]["mimeType"], "image/png", "{}", report.reads[PIXEL]);

    let exchanges: Vec<_> =
        report.exchanges.iter().map(|one| (one.method.clone(), one.url.clone(), one.status)).collect();
    assert_eq!(exchanges, expected_exchanges(protected, client.registration));

    let metadata = protected.metadata_url();
    let unauthenticated = report.only(401).challenge();
    assert_eq!(unauthenticated["resource_metadata"], metadata);
    assert_eq!(unauthenticated["scope"], "clock:read");
    assert_eq!(unauthenticated.get("error"), None, "an error without a credential");
    let insufficient = report.only(403).challenge();
    assert_eq!(insufficient["resource_metadata"], metadata);
    assert_eq!((insufficient["error"], insufficient["scope"]), ("insufficient_scope", "fixture:read"));

    let [first, second] = report.authorizations.as_slice() else { panic!("{:?}", report.authorizations) };
    assert_eq!(scopes(&first["scope"]), ["clock:read"].into());
    assert_eq!(scopes(&second["scope"]), ["clock:read", "fixture:read"].into());
    for authorization in [first, second] {
        let expected = json!([protected.url, "S256", true, protected.issuer.issuer(), null, report.client_id]);
        let seen = ["resource", "code_challenge_method", "has_challenge", "iss", "error", "client_id"];
        assert_eq!(Value::from_iter(seen.map(|name| authorization[name].clone())), expected);
    }
    assert_eq!(scopes(&report.scope.as_str().into()), ["clock:read", "fixture:read"].into());
    let registered = &protected.issuer.description()["registered"]["client_id"];
    let document = &protected.issuer.description()["document"];
    let own = Value::from(report.client_id.as_str());
    assert_eq!(own == *registered, client.registration == Registration::Before, "{own}");
    assert_eq!(own == *document, client.registration == Registration::Document, "{own}");
}

/// Checks that the record has the principal of each read.
fn check_record(protected: &Protected, account: &str, client_id: &str) {
    let issuer = protected.issuer.issuer();
    for (reference, outcome) in [("utc", "ok"), ("static-binary", "ok"), ("static-text", "ok")] {
        let what = format!("the read of \"{reference}\"");
        let record =
            protected.site.await_record(&what, |line| line["reference"] == reference && line["outcome"] == outcome);
        let caller = &record["caller"];
        assert_eq!(caller["principal"], format!("{account}@{issuer}"), "{record}");
        assert_eq!((&caller["issuer"], &caller["client_id"]), (&issuer.into(), &client_id.into()), "{record}");
    }
    protected.site.await_record("the refused read", |line| {
        line["outcome"] == "insufficient-scope" && line["caller"]["principal"] == format!("{account}@{issuer}")
    });
}

/// Runs a client against a new pair of servers, and checks all of it.
fn check_login(sdk: Sdk, registration: Registration, request: Value) {
    let Some(protected) = Protected::start(request) else { return };
    let client = LoginClient { sdk, registration, era: Era::Stateless, account: "alice" };
    // `None`: `cargo xtask test` has already reported that this machine lacks the client.
    let Some(report) = client.run(&protected.url, &protected.issuer, &[CLOCK, PIXEL, TEXT]) else { return };
    check_way(&protected, client, &report);
    check_record(&protected, client.account, &report.client_id);
    assert_eq!(report.access_tokens.len(), 2);
    protected.stop(&report.access_tokens);
}

/// Declares one test for each client and registration.
macro_rules! logins {
    ($($name:ident: $sdk:ident, $registration:ident;)*) => {$(
        #[test]
        fn $name() {
            check_login(Sdk::$sdk, Registration::$registration, json!({}));
        }
    )*};
}

logins! {
    python_logs_in_with_a_client_that_registered_before: Python, Before;
    python_logs_in_with_dynamic_registration: Python, Dynamic;
    python_logs_in_with_a_metadata_document: Python, Document;
    typescript_logs_in_with_a_client_that_registered_before: TypeScript, Before;
    typescript_logs_in_with_dynamic_registration: TypeScript, Dynamic;
    typescript_logs_in_with_a_metadata_document: TypeScript, Document;
    rust_logs_in_with_a_client_that_registered_before: Rust, Before;
    rust_logs_in_with_dynamic_registration: Rust, Dynamic;
    rust_logs_in_with_a_metadata_document: Rust, Document;
}

#[test]
fn opaque_tokens_are_introspected() {
    for sdk in Sdk::ALL {
        check_login(sdk, Registration::Dynamic, json!({ "opaque": true }));
    }
}

/// The client goes on with its session: it initializes once.
#[test]
fn a_client_of_a_session_logs_in_again_for_a_missing_scope() {
    let Some(protected) = Protected::start(json!({})) else { return };
    for sdk in Sdk::ALL {
        let client = LoginClient { sdk, registration: Registration::Dynamic, era: Era::Session, account: "alice" };
        let Some(report) = client.run(&protected.url, &protected.issuer, &[CLOCK, TEXT]) else { continue };
        assert_eq!(report.protocol, Era::Session.version());
        assert!(report.text(CLOCK).contains("\nzone: UTC\n"));
        assert_eq!(report.text(TEXT), "This is the content of the static text resource.", "{sdk:?}");
        assert_eq!(report.only(401).challenge()["scope"], "clock:read");
        let insufficient = report.only(403).challenge();
        assert_eq!((insufficient["error"], insufficient["scope"]), ("insufficient_scope", "fixture:read"), "{sdk:?}");
        assert_eq!((report.authorizations.len(), report.access_tokens.len()), (2, 2), "{sdk:?}");
        // The answer to `notifications/initialized`.
        let opened = report.exchanges.iter().filter(|one| one.method == "POST" && one.status == 202).count();
        assert_eq!(opened, 1, "{sdk:?}: {:?}", report.exchanges);
    }
    protected.stop(&[]);
}

/// No login adds scopes to a key. A session of a key gets the error, and goes on.
#[test]
fn a_session_of_a_key_is_told_a_missing_scope_with_status_200() {
    let Some(protected) = Protected::start(json!({})) else { return };
    let key = stdout_of(&protected.site, &["key", "new", "ci", "--scope", "clock:read"]);
    for revision in SESSION_REVISIONS {
        let session = HttpCaller::connect(&protected.server, revision, Some(key.trim()))
            .unwrap_or_else(|answer| panic!("no session: {}", answer.text()));
        let refused = session.read(TEXT);
        assert_eq!((refused.status, refused.header("www-authenticate")), (200, None), "{revision}: {}", refused.text());
        assert_eq!(message(&refused)["error"]["data"]["scopes"], json!(["fixture:read"]), "{revision}");
        assert_eq!(session.read(CLOCK).status, 200, "{revision}");
    }
    assert_eq!(HttpCaller::stateless(&protected.server, Some(key.trim())).read(TEXT).status, 403);
    protected.stop(&[]);
}

/// A resource to which holders of the scope `fixture:subscribe` can subscribe.
const WATCHED: &str = "test://watched-resource";

/// A subscription is judged for the scopes that the session has now. A token with fewer scopes does not get into it.
#[test]
fn a_session_goes_on_with_more_scopes_and_not_with_fewer() {
    let rule =
        format!("[[allow]]\nwho = {{ scope = \"fixture:subscribe\" }}\nwhat = \"{WATCHED}\"\ndo = [\"subscribe\"]\n");
    let Some(protected) = Protected::start_with(json!({}), &rule) else { return };
    let all = "clock:read fixture:read fixture:subscribe";
    let (few, more) = (protected.token_with("clock:read"), protected.token_with(all));
    let of_bob = protected.issuer.mint(&json!({ "claims": { "scope": all, "sub": "bob" } }));
    let others = [protected.token_with("fixture:read fixture:subscribe"), of_bob];
    for revision in SESSION_REVISIONS {
        let session = HttpCaller::connect(&protected.server, revision, Some(&few))
            .unwrap_or_else(|answer| panic!("no session: {}", answer.text()));
        let refused = session.read(TEXT);
        assert_eq!(refused.status, 403, "{revision}: {}", refused.text());
        let challenge = clients::challenge(refused.header("www-authenticate").unwrap());
        assert_eq!((challenge["error"], challenge["scope"]), ("insufficient_scope", "fixture:read"), "{revision}");
        assert_eq!(message(&refused)["error"]["data"]["kind"], "insufficient-scope", "{revision}");
        for other in &others {
            assert_eq!(session.with_credential(other).read(CLOCK).status, 404, "{revision}");
        }
        assert_eq!(session.read(CLOCK).status, 200, "{revision}: the session is still there");

        let subscribe = |session: &HttpCaller<'_>| {
            let answer = message(&session.request("resources/subscribe", json!({ "uri": WATCHED })));
            answer["error"]["data"]["kind"].as_str().map(str::to_owned)
        };
        assert_eq!(subscribe(&session), Some("insufficient-scope".to_owned()), "{revision}");
        let wider = session.with_credential(&more);
        assert_eq!(wider.read(TEXT).status, 200, "{revision}");
        assert_eq!(subscribe(&wider), None, "{revision}");
        assert_eq!(session.read(CLOCK).status, 404, "{revision}: the old token");
        assert_eq!(wider.read(CLOCK).status, 200, "{revision}: the session is still there");
    }
    protected.stop(&[]);
}

/// The person logs in again, but refuses the further scope.
#[test]
fn a_refused_scope_gives_no_access() {
    let Some(protected) = Protected::start(json!({ "refused": ["fixture:read"] })) else { return };
    for sdk in Sdk::ALL {
        let client = LoginClient { sdk, registration: Registration::Dynamic, era: Era::Stateless, account: "alice" };
        let Some(report) = client.run(&protected.url, &protected.issuer, &[CLOCK, TEXT]) else { continue };
        assert!(report.text(CLOCK).contains("\nzone: UTC\n"));
        let seen = &report.reads[TEXT];
        match sdk {
            Sdk::Python => assert_eq!(seen["error"]["data"]["kind"], "insufficient-scope", "{seen}"),
            // This SDK asks for a third authorization, which the program refuses.
            Sdk::TypeScript => assert_eq!(seen["failure"], "UnauthorizedError: Unauthorized"),
            // This program steps up once for each read.
            Sdk::Rust => assert_eq!(clients::challenge(seen["failure"].as_str().unwrap())["scope"], "fixture:read"),
        }
        let refusals = report.exchanges.iter().filter(|exchange| exchange.status == 403).count();
        assert_eq!((refusals, report.scope.as_str()), (2, "clock:read"), "{sdk:?}");
        assert_eq!(report.access_tokens.len(), 2, "{sdk:?}");
    }
    protected.stop(&[]);
}

/// bob is not in the group `oncall`. For him, the resource of the group looks like one that does not exist.
#[test]
fn a_resource_of_another_group_looks_absent() {
    let Some(protected) = Protected::start(json!({})) else { return };
    for (sdk, registration) in
        Sdk::ALL.into_iter().zip([Registration::Document, Registration::Before, Registration::Dynamic])
    {
        let client = LoginClient { sdk, registration, era: Era::Stateless, account: "bob" };
        let Some(report) = client.run(&protected.url, &protected.issuer, &[CLOCK, PIXEL, ABSENT]) else { continue };
        assert!(report.text(CLOCK).contains("\nzone: UTC\n"));
        let hidden = &report.reads[PIXEL];
        assert_eq!(hidden["error"]["data"]["kind"], "not-found", "{hidden}");
        assert_eq!(hidden.to_string().replace(PIXEL, ABSENT), report.reads[ABSENT].to_string());
        assert_eq!(report.authorizations.len(), 1);
    }
    protected.stop(&[]);
}
