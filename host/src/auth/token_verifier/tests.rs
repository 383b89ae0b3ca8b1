//! Access tokens, right and wrong. Every token is made here, with keys of ring, and every key set comes from a real HTTP
//! server on loopback or from a file.

mod fetches;
mod hostile;
mod introspections;
mod issuer_server;
mod tokens;

use std::sync::LazyLock;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};

use super::*;
use crate::config::{Config, ConfigInput};
use crate::grants::network::NetworkSettings;
use crate::grants::secrets::PlainSecret;
use tokens::{TestKey, claims, encode, header, sign};

/// The public URL of the server in these tests.
const URL: &str = "https://mcp.example/mcp";

/// The issuer whose keys are in a file.
const ISSUER: &str = "https://login.example";

/// The time of these tests, in seconds since 1970.
const NOW: u64 = 1_800_000_000;

static NETWORK: LazyLock<Arc<Network>> = LazyLock::new(|| {
    let settings = NetworkSettings::default();
    Arc::new(Network::read(&settings).unwrap_or_else(|why| panic!("{why}")))
});

/// The keys of [`ISSUER`].
static KEYS: LazyLock<Keys> =
    LazyLock::new(|| Keys { es256: TestKey::es256("es"), ed25519: TestKey::ed25519("ed"), rsa: TestKey::rsa("rs") });

struct Keys {
    es256: TestKey,
    ed25519: TestKey,
    rsa: TestKey,
}

impl Keys {
    fn set(&self) -> String {
        key_set(&[&self.es256, &self.ed25519, &self.rsa])
    }
}

fn key_set(keys: &[&TestKey]) -> String {
    json!({ "keys": keys.iter().map(|key| key.jwk()).collect::<Vec<_>>() }).to_string()
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

/// `[auth]` with this text.
fn config(auth: &str) -> AuthConfig {
    let text = format!("secrets.i = {{ env = \"X\" }}\n[auth]\n{auth}");
    let file = Some(("/srv/belljar.toml".into(), text));
    Config::read(ConfigInput { file, ..ConfigInput::default() }).unwrap().auth.unwrap()
}

/// A verifier for `[auth]` with this text. The file `keys.json` has the keys of [`ISSUER`], `other.json` those of another.
fn try_verifier(auth: &str, previous: Option<&TokenVerifier>) -> Result<TokenVerifier, TokenVerifierError> {
    let key_sets = KeySetFiles::from([
        ("/srv/keys.json".into(), KEYS.set()),
        ("/srv/other.json".into(), key_set(&[&TestKey::es256("other")])),
        ("/srv/broken.json".into(), "{}".to_owned()),
    ]);
    let secrets = Secrets::from_plain([("i".to_owned(), Ok(PlainSecret::Value("a secret+/".to_owned())))].into());
    let input = TokenVerifierInput { url: Some(URL), key_sets: &key_sets, secrets: &secrets, network: Some(&NETWORK) };
    TokenVerifier::new(&config(auth), &input, previous)
}

fn verifier(auth: &str) -> TokenVerifier {
    try_verifier(auth, None).unwrap_or_else(|why| panic!("{why}"))
}

/// A verifier for [`ISSUER`], whose keys are in a file.
fn file_verifier() -> TokenVerifier {
    verifier(&format!("issuers = [{{ issuer = '{ISSUER}', jwks = 'keys.json' }}]"))
}

/// A good token, with the changes of `change` to its claims.
fn token(change: impl FnOnce(&mut Value)) -> String {
    let mut claims = claims(ISSUER);
    change(&mut claims);
    sign(&KEYS.es256, &header("ES256", "es"), &claims)
}

/// belljar makes it before it raises the second wall, and the runtime after that.
#[test]
fn a_verifier_is_made_without_a_runtime() {
    assert!(verifier(&format!("issuers = [{{ issuer = '{ISSUER}', jwks = 'discover' }}]")).has_issuers());
}

#[tokio::test]
async fn a_token_proves_an_identity() {
    let principal = file_verifier().verify(&token(|_| ()), at(NOW)).await.unwrap();
    assert_eq!(principal.to_string(), "alice@https://login.example");
    assert_eq!((principal.issuer(), principal.client()), (Some(ISSUER), Some("agent")));
    assert_eq!(
        (principal.groups(), principal.scopes()),
        (&["oncall".to_owned()][..], &["a:read".to_owned(), "b".to_owned()][..])
    );
}

#[tokio::test]
async fn good_tokens_are_accepted() {
    let verifier = verifier(&format!(
        "issuers = [{{ issuer = '{ISSUER}', jwks = 'keys.json', algorithms = ['ES256', 'RS256', 'RS512', 'PS256', 'EdDSA', 'Ed25519'] }}]"
    ));
    let with = |key: &TestKey, alg: &str| sign(key, &header(alg, key.kid), &claims(ISSUER));
    let Keys { es256, ed25519, rsa } = &*KEYS;
    let typ = |typ: &str| sign(es256, &json!({ "alg": "ES256", "kid": "es", "typ": typ }), &claims(ISSUER));
    for (what, token) in [
        ("ES256", with(es256, "ES256")),
        ("EdDSA", with(ed25519, "EdDSA")),
        ("Ed25519", with(ed25519, "Ed25519")),
        ("RS256", with(rsa, "RS256")),
        ("RS512", with(rsa, "RS512")),
        ("PS256", with(rsa, "PS256")),
        ("no kid, one key that fits", sign(es256, &json!({ "alg": "ES256", "typ": "at+jwt" }), &claims(ISSUER))),
        ("the long type", typ("application/at+jwt")),
        ("the type in capitals", typ("AT+JWT")),
        ("several audiences", token(|c| c["aud"] = json!(["https://other.example", URL]))),
        ("expired within the skew", token(|c| c["exp"] = json!(NOW - 59))),
        ("valid soon, within the skew", token(|c| c["nbf"] = json!(NOW + 60))),
        ("a time with a fraction", token(|c| c["exp"] = json!(NOW as f64 + 0.5))),
        ("no client", token(|c| drop(c.as_object_mut().unwrap().remove("client_id")))),
        ("a subject of 255 bytes", token(|c| c["sub"] = json!("x".repeat(255)))),
        ("unknown claims", token(|c| c["x"] = json!({ "y": [1, null] }))),
    ] {
        assert_eq!(verifier.verify(&token, at(NOW)).await.err(), None, "{what}");
    }
}

#[tokio::test]
async fn plain_tokens_are_accepted_where_they_are_allowed() {
    let verifier = verifier(&format!("issuers = [{{ issuer = '{ISSUER}', jwks = 'keys.json', plain-jwt = true }}]"));
    for (header, error) in [
        (json!({ "alg": "ES256", "kid": "es" }), None),
        (json!({ "alg": "ES256", "kid": "es", "typ": "JWT" }), None),
        (json!({ "alg": "ES256", "kid": "es", "typ": "at+jwt" }), None),
        (json!({ "alg": "ES256", "kid": "es", "typ": "dpop+jwt" }), Some(TokenError::Type)),
        (json!({ "alg": "ES256", "kid": "es", "typ": "logout+jwt" }), Some(TokenError::Type)),
    ] {
        let token = sign(&KEYS.es256, &header, &claims(ISSUER));
        assert_eq!(verifier.verify(&token, at(NOW)).await.err(), error, "{header}");
    }
}

#[tokio::test]
async fn scopes_groups_and_clients_have_several_forms() {
    let verifier = |groups: &str| {
        verifier(&format!("issuers = [{{ issuer = '{ISSUER}', jwks = 'keys.json', groups = '{groups}' }}]"))
    };
    for (groups, changes, expected) in [
        ("groups", json!({ "scope": ["a", "b"] }), (vec!["oncall"], vec!["a", "b"], "agent")),
        ("groups", json!({ "scope": "a a", "scp": ["b", "a"] }), (vec!["oncall"], vec!["a", "b"], "agent")),
        ("groups", json!({ "scope": "", "groups": "one" }), (vec!["one"], vec![], "agent")),
        ("roles", json!({ "roles": ["x", "y"], "scope": "a" }), (vec!["x", "y"], vec!["a"], "agent")),
        ("/realm/roles", json!({ "realm": { "roles": ["r"] }, "scope": "a" }), (vec!["r"], vec!["a"], "agent")),
        (
            "/https:~1~1x.example~1g",
            json!({ "https://x.example/g": ["g"], "scope": "a" }),
            (vec!["g"], vec!["a"], "agent"),
        ),
        ("none", json!({ "scope": "a", "client_id": "c", "azp": "z" }), (vec![], vec!["a"], "c")),
    ] {
        let token = token(|claims| claims.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone()));
        let principal = verifier(groups).verify(&token, at(NOW)).await.unwrap();
        assert_eq!(
            (principal.groups().to_vec(), principal.scopes().to_vec()),
            (expected.0.into_iter().map(str::to_owned).collect(), expected.1.into_iter().map(str::to_owned).collect(),),
            "{changes}"
        );
        assert_eq!(principal.client(), Some(expected.2));
    }
}

#[tokio::test]
async fn a_remembered_token_still_expires() {
    let verifier = file_verifier();
    let token = token(|claims| claims["exp"] = json!(NOW + 100));
    for (now, error) in
        [(NOW, None), (NOW + 99, None), (NOW + 159, None), (NOW + 160, Some(TokenError::Expired)), (NOW, None)]
    {
        assert_eq!(verifier.verify(&token, at(now)).await.err(), error, "{now}");
    }
}

#[test]
fn configurations_that_verify_nothing_are_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _context = runtime.enter();
    let errors = |auth: &str, url: Option<&str>, network: Option<&Arc<Network>>| {
        let key_sets = KeySetFiles::from([("/srv/broken.json".into(), "{}".to_owned())]);
        let input = TokenVerifierInput { url, key_sets: &key_sets, secrets: &Secrets::default(), network };
        TokenVerifier::new(&config(auth), &input, None).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let network = Some(&*NETWORK);
    for (auth, url, network, says) in [
        ("issuers = [{ issuer = 'https://a.example' }]", None, network, "set  url  in [serve]"),
        ("issuers = [{ issuer = 'https://a.example' }]", Some(URL), None, "restart"),
        ("issuers = [{ issuer = 'https://a.example', jwks = 'absent.json' }]", Some(URL), network, "absent.json"),
        ("issuers = [{ issuer = 'https://a.example', jwks = 'broken.json' }]", Some(URL), network, "not a key set"),
        (
            "issuers = [{ issuer = 'https://a.example', introspect = { url = 'https://a.example/i', client-id = 'b', client-secret = 'i' } }]",
            Some(URL),
            network,
            "\"i\"",
        ),
    ] {
        let why = errors(auth, url, network);
        assert!(why.contains(says), "{auth}: {why}");
    }
}

#[tokio::test]
async fn a_verified_token_is_known_until_it_is_forgotten() {
    let verifier = file_verifier();
    let token = token(|claims| claims["jti"] = json!(1));
    let known = |now: u64| verifier.find_known(&token, at(now)).map(|principal| principal.subject().to_owned());
    assert_eq!(known(NOW), None, "it was not verified yet");
    assert_eq!(verifier.verify(&token, at(NOW)).await.err(), None);
    assert_eq!(known(NOW).as_deref(), Some("alice"));
    assert_eq!((known(NOW + 299).is_some(), known(NOW + 300)), (true, None));
    assert_eq!(verifier.find_known(&format!("{token}x"), at(NOW)), None);
}

#[test]
fn descriptions_fit_into_a_challenge() {
    for error in [TokenError::Malformed, TokenError::Type, TokenError::Bound, TokenError::Claims] {
        // RFC 6750, section 3.
        assert!(error.description().bytes().all(|b| (0x20..=0x7e).contains(&b) && b != b'"' && b != b'\\'));
        assert_eq!(AuthError::from(error), AuthError::Invalid(error.description()));
    }
    assert_eq!(AuthError::from(TokenError::Unavailable), AuthError::Unavailable);
    assert_eq!(fingerprint("abc"), "ba7816bf");
}
