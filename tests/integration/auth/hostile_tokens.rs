//! Hostile rows about access tokens and the key sets of issuers. Every token is signed here; the issuers are files and a
//! real server on loopback. Each row runs the real `belljar` binary on HTTP.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use belljar_tests::{DEADLINE, wait_until};
use belljar_upstream::{ReceivedRequest, Upstream, answer};
use serde_json::{Value, json};

use crate::cases::{Case, row, run, site_row};
use crate::mint::{
    EC, ISSUER, OTHER_ISSUER, RSA, TestKey, URL, claims, encode, header, hmac, key_set, now, sign, sign_text, token,
};
use crate::prove;
use crate::row::{Row, RunMode};
use crate::running_site::RowContext;

/// Tokens with unknown keys in the flood.
const FLOOD: usize = 120;

pub(crate) fn rows() -> Vec<Row> {
    vec![
        row("MCP-13", "tokens without a signature, or with one by a secret that everybody knows", "")
            .act(|context| run_with_good(context, &algorithms()))
            .stopped_by(&["token"]),
        row(
            "MCP-13",
            "tokens with a key of their own, of another issuer, of another kind, or with a wrong signature",
            "",
        )
        .act(|context| run_with_good(context, &keys()))
        .stopped_by(&["token"]),
        row("MCP-13", "tokens for others, of others, of another time, or of another type", "")
            .act(|context| run_with_good(context, &wrong_claims()))
            .stopped_by(&["token"]),
        row("MCP-13", "tokens that two parsers would read differently, and tokens in other forms", "")
            .act(|context| run_with_good(context, &malformed()))
            .stopped_by(&["authentication"]),
        key_sets(),
        flood(),
        rotation(),
    ]
}

/// Runs the cases. Before and after them, a good token must be accepted.
fn run_with_good(context: &RowContext<'_>, cases: &[Case]) -> String {
    let accept = |at: usize| {
        let answer = Case::bearer("good", &token(|_| ())).send(context, context.server(), at);
        assert_eq!(answer.status, 200, "a good token is refused: {}", answer.text());
    };
    accept(9000);
    let refused = run(context, cases);
    accept(9001);
    refused
}

fn algorithms() -> Vec<Case> {
    let unsigned =
        |alg: &str| format!("{}.{}.", encode(header(alg, "es").to_string()), encode(claims(ISSUER).to_string()));
    let mut all: Vec<Case> = ["none", "None", "NONE", "nOnE", "none ", ""]
        .into_iter()
        .map(|alg| Case::bearer(format!("alg \"{alg}\" and no signature"), &unsigned(alg)))
        .collect();
    let good = token(|_| ());
    let signature = good.rsplit('.').next().unwrap_or_default();
    let jwk = EC.jwk();
    let (x, jwk, rsa) = (jwk["x"].as_str().unwrap_or_default().to_owned(), jwk.to_string(), RSA.jwk().to_string());
    let set = key_set(&[&EC, &RSA]);
    all.extend([
        Case::bearer("alg none with the signature of another token", &format!("{}{signature}", unsigned("none"))),
        Case::bearer("HMAC with the public key", &hmac("HS256", jwk.as_bytes())),
        Case::bearer("HMAC with a coordinate of the public key", &hmac("HS256", x.as_bytes())),
        Case::bearer("HMAC with the public RSA key", &hmac("HS256", rsa.as_bytes())),
        Case::bearer("HMAC with the key set", &hmac("HS256", set.as_bytes())),
        Case::bearer("HMAC of another length", &hmac("HS512", jwk.as_bytes())),
        Case::bearer("HMAC with an empty secret", &hmac("HS256", b"")),
        Case::bearer("HMAC with the word secret", &hmac("HS256", b"secret")),
        Case::bearer("alg in small letters", &sign(&EC, &header("es256", "es"), &claims(ISSUER))),
        Case::bearer("an algorithm that the issuer does not use", &sign(&RSA, &header("RS384", "rs"), &claims(ISSUER))),
        Case::bearer("an algorithm that nobody knows", &sign(&EC, &header("ES256K", "es"), &claims(ISSUER))),
    ]);
    all
}

fn keys() -> Vec<Case> {
    let thief = TestKey::ec("es");
    let with = |more: Value| {
        let mut header = header("ES256", "es");
        if let (Some(header), Value::Object(more)) = (header.as_object_mut(), more) {
            header.extend(more);
        }
        sign(&thief, &header, &claims(ISSUER))
    };
    let named = |kid: &str| sign(&EC, &header("ES256", kid), &claims(ISSUER));
    let good = token(|_| ());
    let (message, signature) = good.rsplit_once('.').unwrap_or_default();
    let (first, _) = message.split_once('.').unwrap_or_default();
    let other = token(|claims| claims["sub"] = json!("mallory"));
    let (other_message, _) = other.rsplit_once('.').unwrap_or_default();
    let mut flipped = EC.signature(message);
    flipped[40] ^= 1;
    let signed = |signature: &[u8]| format!("{message}.{}", encode(signature));
    let x = json!({ "alg": "ES256", "kid": "es", "typ": "at+jwt", "x": 1 }).to_string();
    vec![
        Case::bearer("the key of a thief", &with(json!({}))),
        Case::bearer("jwk: the key of a thief in the header", &with(json!({ "jwk": thief.jwk() }))),
        Case::bearer("jku: a key set of a thief", &with(json!({ "jku": "https://evil.example/jwks" }))),
        Case::bearer("jku: a key set on this machine", &with(json!({ "jku": "http://127.0.0.1:80/jwks" }))),
        Case::bearer(
            "x5u and x5c: a certificate of a thief",
            &with(json!({ "x5u": "https://evil.example", "x5c": ["MIIB"] })),
        ),
        Case::bearer("crit: an extension that nobody knows", &{
            let header = json!({ "alg": "ES256", "kid": "es", "typ": "at+jwt", "crit": ["x"], "x": 1 });
            sign(&EC, &header, &claims(ISSUER))
        }),
        Case::bearer("the kid of another issuer", &named("other")),
        Case::bearer(
            "another issuer than the one of the key",
            &sign(&EC, &header("ES256", "es"), &claims(OTHER_ISSUER)),
        ),
        Case::bearer("an unknown kid", &named("x")),
        Case::bearer("an empty kid", &named("")),
        Case::bearer("a kid that is a path", &named("../../../../dev/null")),
        Case::bearer("a kid that is a question to a database", &named("es' OR '1'='1")),
        Case::bearer("a kid that is a URL", &named("http://127.0.0.1/jwks")),
        Case::bearer("the algorithm of RSA with an EC key", &sign(&EC, &header("RS256", "es"), &claims(ISSUER))),
        Case::bearer("an RSA token with the kid of an EC key", &sign(&RSA, &header("RS256", "es"), &claims(ISSUER))),
        Case::bearer("the algorithm of EC with an RSA key", &sign(&RSA, &header("ES256", "rs"), &claims(ISSUER))),
        Case::bearer("another curve", &sign(&EC, &header("ES384", "es"), &claims(ISSUER))),
        Case::bearer("no signature", &format!("{message}.")),
        Case::bearer("a signature of zeros", &signed(&[0; 64])),
        Case::bearer("one wrong bit", &signed(&flipped)),
        Case::bearer("half a signature", &signed(&flipped[..32])),
        Case::bearer("the signature of other claims", &format!("{other_message}.{signature}")),
        Case::bearer(
            "the signature of another header",
            &format!("{}.{}.{signature}", encode(x), message.trim_start_matches(first).trim_start_matches('.')),
        ),
    ]
}

fn wrong_claims() -> Vec<Case> {
    let set =
        |name: &str, claim: &'static str, value: Value| Case::bearer(name, &token(move |claims| claims[claim] = value));
    let without = |name: &str, claim: &'static str| {
        Case::bearer(name, &token(move |claims| drop(claims.as_object_mut().map(|claims| claims.remove(claim)))))
    };
    let typed = |name: &str, typ: Value| {
        Case::bearer(name, &sign(&EC, &json!({ "alg": "ES256", "kid": "es", "typ": typ }), &claims(ISSUER)))
    };
    vec![
        set("a foreign aud", "aud", json!("https://other.example/mcp")),
        set("the aud cut off", "aud", json!("https://mcp.example")),
        set("the aud and more", "aud", json!(format!("{URL}/x"))),
        set("the aud with a slash", "aud", json!(format!("{URL}/"))),
        set("the aud in capitals", "aud", json!("https://MCP.example/mcp")),
        set("the aud without TLS", "aud", json!("http://mcp.example/mcp")),
        set("two audiences in one text", "aud", json!(format!("{URL} https://other.example"))),
        set("audiences of others", "aud", json!(["https://mcp.example", "mcp"])),
        set("a star as aud", "aud", json!("*")),
        set("no audiences", "aud", json!([])),
        without("without aud", "aud"),
        set("a foreign iss", "iss", json!("https://evil.example")),
        set("the iss with a slash more", "iss", json!("https://login.example/")),
        set("the iss in capitals", "iss", json!("https://LOGIN.example")),
        set("the iss with its port", "iss", json!("https://login.example:443")),
        set("the iss as a prefix", "iss", json!("https://login.example.evil")),
        without("without iss", "iss"),
        set("expired an hour ago", "exp", json!(now() - 3600)),
        set("expired by the skew", "exp", json!(now() - 61)),
        without("without exp", "exp"),
        set("not yet valid", "nbf", json!(now() + 3600)),
        set("issued in the future", "iat", json!(now() + 3600)),
        set("bound to a key of the client", "cnf", json!({ "jkt": "x" })),
        typed("an ID token", json!("JWT")),
        typed("a proof", json!("dpop+jwt")),
        typed("a logout token", json!("logout+jwt")),
        Case::bearer("no type", &sign(&EC, &json!({ "alg": "ES256", "kid": "es" }), &claims(ISSUER))),
    ]
}

fn malformed() -> Vec<Case> {
    let good = token(|_| ());
    let parts: Vec<&str> = good.split('.').collect();
    let [first, second, third] = parts[..] else { panic!("three parts") };
    let text = claims(ISSUER).to_string();
    let with_header = |header: &str| sign_text(&EC, header, &text);
    let with_claims = |claims: &str| sign_text(&EC, &header("ES256", "es").to_string(), claims);
    let set = |claim: &'static str, value: Value| token(move |claims| claims[claim] = value);
    let json = json!({ "payload": second, "signatures": [{ "protected": first, "signature": third }] }).to_string();
    let bearer = |name: &str, token: &str| Case::bearer(name, token);
    vec![
        bearer("a word", "abcdefghijklmnop"),
        bearer("two parts", &format!("{first}.{second}")),
        bearer("two signatures", &format!("{good}.{third}")),
        bearer("five parts, as an encrypted token", &format!("{good}.{third}.{third}")),
        bearer("empty parts", ".."),
        bearer("two signatures in JSON", &json).malformed(),
        bearer("padding at the end", &format!("{good}==")),
        bearer("padding after the header", &format!("{first}=.{second}.{third}")).malformed(),
        bearer("the other alphabet", &format!("{first}.{second}.+{}", &third[1..])),
        bearer("a token of 17 KiB", &set("x", json!("x".repeat(13 << 10)))).malformed(),
        bearer("a header that is no JSON", &with_header("alg=ES256")),
        bearer("a header that is an array", &with_header("[\"ES256\"]")),
        bearer("alg twice", &with_header(r#"{"alg":"none","alg":"ES256","kid":"es","typ":"at+jwt"}"#)),
        bearer(
            "alg twice, once escaped",
            &with_header(r#"{"alg":"ES256","\u0061lg":"none","kid":"es","typ":"at+jwt"}"#),
        ),
        bearer("kid twice", &with_header(r#"{"alg":"ES256","kid":"es","kid":"x","typ":"at+jwt"}"#)),
        bearer("alg is an array", &with_header(r#"{"alg":["ES256"],"kid":"es","typ":"at+jwt"}"#)),
        bearer("text after the header", &with_header(r#"{"alg":"ES256","kid":"es","typ":"at+jwt"} {}"#)),
        bearer("iss twice", &with_claims(&text.replacen('{', &format!("{{\"iss\":\"{ISSUER}\","), 1))),
        bearer("aud twice", &with_claims(&text.replacen('{', r#"{"aud":"https://other.example","#, 1))),
        bearer("sub twice, once escaped", &with_claims(&text.replacen('{', r#"{"s\u0075b":"root","#, 1))),
        bearer("claims that are an array", &with_claims(&format!("[{text}]"))),
        bearer("claims that are deep", &with_claims(&"[".repeat(5000))),
        bearer("a token as the claims of a token", &sign_text(&EC, &header("ES256", "es").to_string(), &good)),
        bearer("an exp in words", &set("exp", json!("2099-01-01"))),
        bearer("an exp at the end of time", &set("exp", json!(1e300))),
        bearer("an exp in milliseconds", &set("exp", json!(now() * 1000))),
        bearer("an empty sub", &set("sub", json!(""))),
        bearer("a sub with a line break", &set("sub", json!("a\nlevel=info"))),
        bearer("a sub of 256 bytes", &set("sub", json!("x".repeat(256)))),
        bearer("a scope with a line break", &set("scope", json!("a\r\nX-Y: z"))),
        bearer("a group that is a number", &set("groups", json!(["a", 1]))),
    ]
}

/// The key of the issuers on loopback, and a key that they have later.
static SERVED: LazyLock<TestKey> = LazyLock::new(|| TestKey::ec("served"));
static LATER: LazyLock<TestKey> = LazyLock::new(|| TestKey::ec("later"));

fn json_answer(body: impl AsRef<[u8]>) -> Vec<u8> {
    answer("200 OK", "content-type: application/json\r\n", body)
}

/// A row with these issuers. Each is below `server`, and named by its path.
fn issuers_row(attack: &'static str, server: &Upstream, issuers: &[(&'static str, bool)]) -> Row {
    let base = format!("http://127.0.0.1:{}", server.port());
    let table = |(name, is_named): &(&str, bool)| {
        let keys = if *is_named { format!(", jwks = \"{base}/{name}/jwks\"") } else { String::new() };
        format!("{{ issuer = \"{base}/{name}\"{keys} }}")
    };
    let issuers: Vec<String> = issuers.iter().map(table).collect();
    let serve = format!("[serve]\nurl = \"{URL}\"\nbehind = \"proxy\"\ntrusted = [\"127.0.0.1\"]");
    let auth = format!("[auth]\nkeys = \"keys.toml\"\nissuers = [{}]", issuers.join(", "));
    site_row("MCP-13", attack).settings(&format!("{serve}\n{auth}")).run_mode(RunMode::Http)
}

/// A token of the issuer `name` on `server`.
fn token_of(server: &Upstream, name: &str, key: &TestKey, kid: &str) -> String {
    sign(key, &header("ES256", kid), &claims(&format!("http://127.0.0.1:{}/{name}", server.port())))
}

/// How many requests for `path` the server received.
fn count(server: &Upstream, path: &str) -> usize {
    server.requests().iter().filter(|request| request.path() == path).count()
}

/// The issuers of [`key_sets`]. The second value: the configuration names the key set.
const ISSUERS: [(&str, bool); 8] = [
    ("huge", true),
    ("moved", true),
    ("failing", true),
    ("symmetric", true),
    ("slow", true),
    ("private", false),
    ("metadata", false),
    ("elsewhere", false),
];

/// The answer of the issuers of [`key_sets`].
fn hostile_key_set(request: &ReceivedRequest) -> Vec<u8> {
    let host = request.header("host").unwrap_or_default();
    let metadata = |name: &str, keys: &str| {
        json_answer(json!({ "issuer": format!("http://{host}/{name}"), "jwks_uri": keys }).to_string())
    };
    match request.path() {
        "/huge/jwks" => json_answer([key_set(&[&SERVED]).into_bytes(), vec![b' '; 10 << 20]].concat()),
        "/moved/jwks" => answer("302 Found", &format!("location: http://{host}/good/jwks\r\n"), ""),
        "/good/jwks" => json_answer(key_set(&[&SERVED])),
        "/symmetric/jwks" => json_answer(r#"{"keys":[{"kty":"oct","kid":"served","k":"c2VjcmV0"}]}"#),
        "/slow/jwks" => {
            thread::sleep(Duration::from_secs(15));
            json_answer(key_set(&[&SERVED]))
        }
        "/.well-known/oauth-authorization-server/private" => metadata("private", "http://169.254.169.254/latest/jwks"),
        "/.well-known/oauth-authorization-server/metadata" => metadata("other", &format!("http://{host}/good/jwks")),
        "/.well-known/oauth-authorization-server/elsewhere" => metadata("elsewhere", "http://127.0.0.1:9/jwks"),
        _ => answer("500 Internal Server Error", "", "{}"),
    }
}

/// Issuers whose key sets are too large, elsewhere, private, slow or useless. Their tokens are right.
fn key_sets() -> Row {
    let server = Upstream::plain(hostile_key_set);
    let row = issuers_row(
        "key sets of 10 MiB, that redirect, are on a private address, are slow or useless",
        &server,
        &ISSUERS,
    );
    row.act(move |context| {
        let case = |(name, _): &(&str, bool)| {
            let token = token_of(&server, name, &SERVED, "served");
            Case::bearer(format!("the issuer \"{name}\""), &token).status(503)
        };
        let cases: Vec<Case> = ISSUERS.iter().map(case).collect();
        let saw = run(context, &cases);
        assert_eq!(count(&server, "/good/jwks"), 0, "a redirect, or the metadata of another issuer, is followed");
        let answer = cases[0].send(context, context.server(), 9000);
        assert!(answer.header("retry-after").is_some(), "no time to wait: {:?}", answer.headers);
        assert_eq!(answer.json()["error"]["data"]["kind"], "unavailable", "{}", answer.text());
        saw
    })
    .stopped_by(&["token"])
    .peak(224)
}

/// A flood of tokens with unknown kids must not become a flood of fetches.
fn flood() -> Row {
    let server = Upstream::plain(|_| json_answer(key_set(&[&SERVED])));
    let row = issuers_row(
        "120 tokens, each with another unknown kid, and 120 with a wrong signature",
        &server,
        &[("flood", true)],
    );
    row.act(move |context| {
        let thief = TestKey::ec("served");
        let unknown = |at: usize| {
            let token = token_of(&server, "flood", &SERVED, &format!("kid-{at}"));
            Case::bearer(format!("the unknown kid {at}"), &token)
        };
        let forged = |at: usize| {
            let mut claims = claims(&format!("http://127.0.0.1:{}/flood", server.port()));
            claims["jti"] = json!(at);
            Case::bearer(format!("the forged token {at}"), &sign(&thief, &header("ES256", "served"), &claims))
        };
        let cases: Vec<Case> = (0..FLOOD).flat_map(|at| [unknown(at), forged(at)]).collect();
        run(context, &cases);
        let fetches = count(&server, "/flood/jwks");
        // The flood may last longer than the minute between two fetches.
        assert!((1..=3).contains(&fetches), "{} tokens lead to {fetches} fetches", cases.len());
        let good = token_of(&server, "flood", &SERVED, "served");
        assert_eq!(Case::bearer("good", &good).send(context, context.server(), 9000).status, 200, "after the flood");
        format!("{} tokens refused, {fetches} fetch of the key set", cases.len())
    })
    .stopped_by(&["token"])
}

/// The issuer changes its keys while belljar fetches them. The old key counts no more.
fn rotation() -> Row {
    let is_rotated = Arc::new(AtomicBool::new(false));
    let rotated = Arc::clone(&is_rotated);
    let server = Upstream::plain(move |_| {
        // belljar waits for this answer while the issuer changes its keys.
        for _ in 0..DEADLINE.as_millis() / 10 {
            if rotated.load(Ordering::SeqCst) {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        json_answer(key_set(&[&LATER]))
    });
    let row = issuers_row(
        "tokens of a key that its issuer withdraws while the key set is fetched",
        &server,
        &[("new", true)],
    );
    row.act(move |context| {
        is_rotated.store(false, Ordering::SeqCst);
        server.forget();
        let token = |key: &TestKey| token_of(&server, "new", key, key.kid);
        let send = |token: &str, at: usize| Case::bearer("a token", token).send(context, context.server(), at);
        let first = thread::scope(|scope| {
            let first = scope.spawn(|| send(&token(&SERVED), 8000));
            if !prove::is_running() {
                let asked = || if count(&server, "/new/jwks") > 0 { Ok(()) } else { Err("no fetch".to_owned()) };
                wait_until("the fetch of the key set", asked);
            }
            is_rotated.store(true, Ordering::SeqCst);
            first.join().expect("an answer")
        });
        let cases = [
            Case::bearer("a key that was withdrawn", &token(&SERVED)),
            Case::bearer("a withdrawn key under the kid of the new one", &token_of(&server, "new", &SERVED, "later")),
        ];
        let saw = run(context, &cases);
        assert_eq!(first.status, 401, "in flight: {}", first.text());
        assert_eq!(send(&token(&LATER), 8001).status, 200, "a token of the new key");
        // One for the first token, and one for a key that the set did not have.
        assert_eq!(count(&server, "/new/jwks"), 2, "fetches");
        saw
    })
    .stopped_by(&["token"])
}
