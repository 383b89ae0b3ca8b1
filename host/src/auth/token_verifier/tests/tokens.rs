//! Makes tokens and key sets.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384,
    RSA_PKCS1_SHA512, RSA_PSS_SHA256, RsaEncoding, RsaKeyPair,
};
use serde_json::{Value, json};

use super::{NOW, URL};

/// A key pair, and its `kid`.
pub(super) struct TestKey {
    pub(super) kid: &'static str,
    pair: Pair,
}

enum Pair {
    Es256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

impl TestKey {
    pub(super) fn es256(kid: &'static str) -> Self {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.as_ref(), &random).unwrap();
        Self { kid, pair: Pair::Es256(pair) }
    }

    pub(super) fn ed25519(kid: &'static str) -> Self {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self { kid, pair: Pair::Ed25519(Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap()) }
    }

    /// The fixed RSA key of these tests: ring makes none.
    pub(super) fn rsa(kid: &'static str) -> Self {
        Self { kid, pair: Pair::Rsa(RsaKeyPair::from_pkcs8(include_bytes!("rsa.der")).unwrap()) }
    }

    /// The public key as a JWK.
    pub(super) fn jwk(&self) -> Value {
        let mut jwk = match &self.pair {
            Pair::Es256(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({ "kty": "EC", "crv": "P-256", "x": encode(x), "y": encode(y), "alg": "ES256" })
            }
            Pair::Ed25519(pair) => json!({ "kty": "OKP", "crv": "Ed25519", "x": encode(pair.public_key()) }),
            Pair::Rsa(pair) => {
                let public = PublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({ "kty": "RSA", "n": encode(public.n), "e": encode(public.e) })
            }
        };
        jwk["kid"] = json!(self.kid);
        jwk["use"] = json!("sig");
        jwk
    }

    /// The signature of `message`, by the algorithm `alg` if the key has several.
    pub(super) fn signature(&self, alg: &str, message: &str) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Es256(pair) => pair.sign(&random, message.as_bytes()).unwrap().as_ref().to_vec(),
            Pair::Ed25519(pair) => pair.sign(message.as_bytes()).as_ref().to_vec(),
            Pair::Rsa(pair) => {
                let padding: &dyn RsaEncoding = match alg {
                    "RS384" => &RSA_PKCS1_SHA384,
                    "RS512" => &RSA_PKCS1_SHA512,
                    "PS256" => &RSA_PSS_SHA256,
                    _ => &RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(padding, &random, message.as_bytes(), &mut signature).unwrap();
                signature
            }
        }
    }
}

pub(super) fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The header of an access token.
pub(super) fn header(alg: &str, kid: &str) -> Value {
    json!({ "alg": alg, "kid": kid, "typ": "at+jwt" })
}

/// Good claims of `issuer`.
pub(super) fn claims(issuer: &str) -> Value {
    json!({
        "iss": issuer, "aud": URL, "sub": "alice", "client_id": "agent", "scope": "a:read b", "groups": ["oncall"],
        "iat": NOW, "exp": NOW + 600,
    })
}

/// A token with this header and these claims, signed by `key`.
pub(super) fn sign(key: &TestKey, header: &Value, claims: &Value) -> String {
    sign_text(key, &header.to_string(), &claims.to_string())
}

/// A token with these texts as header and claims, signed by `key`.
pub(super) fn sign_text(key: &TestKey, header: &str, claims: &str) -> String {
    let message = format!("{}.{}", encode(header), encode(claims));
    let alg = serde_json::from_str::<Value>(header).ok().and_then(|header| Some(header["alg"].as_str()?.to_owned()));
    let signature = key.signature(&alg.unwrap_or_default(), &message);
    format!("{message}.{}", encode(signature))
}
