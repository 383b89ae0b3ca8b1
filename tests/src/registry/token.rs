//! Tokens that a registry accepts: JSON Web Tokens of a key whose certificate the registry trusts.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::json;

/// The name of the token server, and of the registry at it.
pub(super) const NAMES: [&str; 2] = ["tokens.example", "registry.example"];

/// The key of a token server.
pub(super) struct TokenKey {
    key: EcdsaKeyPair,
    /// The certificate, in PEM and in DER.
    pub(super) pem: String,
    der: Vec<u8>,
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey")
    }
}

impl TokenKey {
    /// A new key, with a certificate of its own.
    pub(super) fn new() -> TokenKey {
        let pair = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec![NAMES[0].to_owned()]).expect("a name");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&pair).expect("a certificate");
        let secret = pair.serialize_der();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &secret, &SystemRandom::new());
        TokenKey { key: key.expect("a key of P-256"), pem: certificate.pem(), der: certificate.der().to_vec() }
    }

    /// A token for a scope such as `repository:acme/tides:pull`.
    pub(super) fn sign(&self, scope: &str) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs();
        let access: Vec<_> = match scope.split(':').collect::<Vec<_>>().as_slice() {
            [kind, name, actions] => {
                vec![json!({ "type": kind, "name": name, "actions": actions.split(',').collect::<Vec<_>>() })]
            }
            _ => Vec::new(),
        };
        let header = json!({ "typ": "JWT", "alg": "ES256", "x5c": [STANDARD.encode(&self.der)] });
        let claims = json!({
            "iss": NAMES[0], "sub": "acme", "aud": NAMES[1], "exp": now + 3600, "nbf": now - 60, "iat": now, "jti": "1",
            "access": access,
        });
        let signed = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
        let signature = self.key.sign(&SystemRandom::new(), signed.as_bytes()).expect("a signature");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }
}
