//! Access tokens and key sets for hostile rows: right ones, and any wrong one. Every signature is made with ring.

use std::sync::LazyLock;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value, json};

/// The public URL of belljar in the rows: the audience of good tokens.
pub(crate) const URL: &str = "https://mcp.example/mcp";

/// The issuer whose keys are in the file `jwks.json` of the site.
pub(crate) const ISSUER: &str = "https://login.example";

/// Another issuer that belljar accepts, whose keys are in the file `other.json`.
pub(crate) const OTHER_ISSUER: &str = "https://other.example";

/// The EC key of [`ISSUER`].
pub(crate) static EC: LazyLock<TestKey> = LazyLock::new(|| TestKey::ec("es"));

/// The RSA key of [`ISSUER`]. ring makes none, so it is the one of belljar's own tests.
pub(crate) static RSA: LazyLock<TestKey> = LazyLock::new(|| {
    let bytes = include_bytes!("../../../host/src/auth/token_verifier/tests/rsa.der");
    TestKey { kid: "rs", pair: Pair::Rsa(RsaKeyPair::from_pkcs8(bytes).expect("an RSA key")) }
});

/// The EC key of [`OTHER_ISSUER`].
pub(crate) static OTHER: LazyLock<TestKey> = LazyLock::new(|| TestKey::ec("other"));

/// A key pair, and its `kid`.
pub(crate) struct TestKey {
    pub(crate) kid: &'static str,
    pair: Pair,
}

enum Pair {
    Ec(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

impl TestKey {
    /// A new key on P-256.
    pub(crate) fn ec(kid: &'static str) -> TestKey {
        let (curve, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let key = EcdsaKeyPair::generate_pkcs8(curve, &random).expect("a new key");
        TestKey { kid, pair: Pair::Ec(EcdsaKeyPair::from_pkcs8(curve, key.as_ref(), &random).expect("an EC key")) }
    }

    /// The public key as a JWK.
    pub(crate) fn jwk(&self) -> Value {
        let mut jwk = match &self.pair {
            Pair::Ec(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({ "kty": "EC", "crv": "P-256", "x": encode(x), "y": encode(y) })
            }
            Pair::Rsa(pair) => {
                let public = PublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({ "kty": "RSA", "n": encode(public.n), "e": encode(public.e) })
            }
        };
        jwk["kid"] = json!(self.kid);
        jwk["use"] = json!("sig");
        jwk
    }

    /// The signature of `message`.
    pub(crate) fn signature(&self, message: &str) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Ec(pair) => pair.sign(&random, message.as_bytes()).expect("a signature").as_ref().to_vec(),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message.as_bytes(), &mut signature).expect("a signature");
                signature
            }
        }
    }
}

/// The key set of these keys.
pub(crate) fn key_set(keys: &[&TestKey]) -> String {
    json!({ "keys": keys.iter().map(|key| key.jwk()).collect::<Vec<_>>() }).to_string()
}

pub(crate) fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The current time, in seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time after 1970").as_secs()
}

/// The header of an access token.
pub(crate) fn header(alg: &str, kid: &str) -> Value {
    json!({ "alg": alg, "kid": kid, "typ": "at+jwt" })
}

/// Good claims of `issuer`, for ten minutes.
pub(crate) fn claims(issuer: &str) -> Value {
    json!({
        "iss": issuer, "aud": URL, "sub": "alice", "client_id": "agent", "scope": "a:read", "groups": ["oncall"],
        "iat": now(), "exp": now() + 600,
    })
}

/// A token with this header and these claims, signed by `key`.
pub(crate) fn sign(key: &TestKey, header: &Value, claims: &Value) -> String {
    sign_text(key, &header.to_string(), &claims.to_string())
}

/// A token with these texts as header and claims, signed by `key`.
pub(crate) fn sign_text(key: &TestKey, header: &str, claims: &str) -> String {
    let message = format!("{}.{}", encode(header), encode(claims));
    format!("{message}.{}", encode(key.signature(&message)))
}

/// A good token of [`ISSUER`], with the changes of `change` to its claims.
pub(crate) fn token(change: impl FnOnce(&mut Value)) -> String {
    let mut claims = claims(ISSUER);
    change(&mut claims);
    sign(&EC, &header("ES256", "es"), &claims)
}

/// A token of [`ISSUER`] with this algorithm in its header, and the HMAC of its text with `secret`.
pub(crate) fn hmac(alg: &str, secret: &[u8]) -> String {
    let message = format!("{}.{}", encode(header(alg, "es").to_string()), encode(claims(ISSUER).to_string()));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
    format!("{message}.{}", encode(ring::hmac::sign(&key, message.as_bytes())))
}

/// The first eight hexadecimal digits of the SHA-256 of a credential: its only trace in the record.
pub(crate) fn fingerprint(credential: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, credential.as_bytes());
    digest.as_ref()[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}
