//! Keys that sign manifests: P-256, P-384 or Ed25519, as a private key in PEM (PKCS#8). The signature is a Sigstore bundle, as
//! `cosign sign --key` makes it, without a log.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
};
use serde_json::json;
use zeroize::Zeroizing;

use crate::model::Digest;

/// The media type of a signature in a registry.
pub(crate) const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// The type of a statement that says "I release this".
pub(crate) const SIGNED: &str = "https://sigstore.dev/cosign/sign/v1";

/// The type of the signed text.
const STATEMENT: &str = "application/vnd.in-toto+json";

/// What stands before the point in a public key (SubjectPublicKeyInfo, RFC 5480 and RFC 8410).
const P256_HEAD: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
const P384_HEAD: &[u8] = &[
    0x30, 0x76, 0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x05, 0x2b, 0x81, 0x04, 0x00,
    0x22, 0x03, 0x62, 0x00,
];
const ED25519_HEAD: &[u8] = &[0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// A private key that signs. Its text appears in no message.
pub(crate) struct SigningKey(PrivateKey);

enum PrivateKey {
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// Why a text is no key that signs. No message quotes the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SigningKeyError {
    /// It has no PEM block.
    #[error("it is no private key in PEM; to make a key pair: belljar publish --key-pair FILE")]
    NotPem,
    /// It is a public key.
    #[error("it is a public key, and only the private key beside it signs")]
    Public,
    /// It is a key of cosign, which has a form of its own.
    #[error(
        "it is an encrypted key of cosign; publish without a key, and sign afterwards: cosign sign --key FILE REFERENCE"
    )]
    Cosign,
    /// It is encrypted.
    #[error("it is encrypted; write a copy without a password, for example: openssl pkcs8 -in FILE -out NEW_FILE")]
    Encrypted,
    /// It is in an older form.
    #[error("it is in an older form than PKCS#8; convert it: openssl pkcs8 -topk8 -nocrypt -in FILE -out NEW_FILE")]
    Older,
    /// It is damaged, or of another kind.
    #[error("it is damaged, or no key of P-256, P-384 or Ed25519; to make a key pair: belljar publish --key-pair FILE")]
    Kind,
    /// The system gives no random numbers.
    #[error("the operating system gives no random numbers; try again")]
    Random,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.name())
    }
}

impl SigningKey {
    /// Reads a private key in PEM.
    ///
    /// # Errors
    /// [`SigningKeyError`], which says what the text is instead.
    pub(crate) fn parse(text: &str) -> Result<Self, SigningKeyError> {
        let (label, der) = read_pem(text)?;
        match label {
            "PRIVATE KEY" => {}
            "PUBLIC KEY" => return Err(SigningKeyError::Public),
            "ENCRYPTED PRIVATE KEY" => return Err(SigningKeyError::Encrypted),
            "EC PRIVATE KEY" | "RSA PRIVATE KEY" => return Err(SigningKeyError::Older),
            label if label.starts_with("ENCRYPTED ") => return Err(SigningKeyError::Cosign),
            _ => return Err(SigningKeyError::Kind),
        }
        let random = SystemRandom::new();
        if let Ok(key) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &der, &random) {
            return Ok(Self(PrivateKey::P256(key)));
        }
        if let Ok(key) = EcdsaKeyPair::from_pkcs8(&ECDSA_P384_SHA384_ASN1_SIGNING, &der, &random) {
            return Ok(Self(PrivateKey::P384(key)));
        }
        // openssl writes the form without the public key.
        let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).map_err(|_| SigningKeyError::Kind)?;
        Ok(Self(PrivateKey::Ed25519(key)))
    }

    /// Makes a key of P-256. Returns its text in PEM, too.
    ///
    /// # Errors
    /// [`SigningKeyError::Random`].
    pub(crate) fn generate() -> Result<(Self, Zeroizing<String>), SigningKeyError> {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random);
        let der = der.map_err(|_| SigningKeyError::Random)?;
        let text = Zeroizing::new(to_pem("PRIVATE KEY", der.as_ref()));
        Ok((Self::parse(&text)?, text))
    }

    /// The public key (SubjectPublicKeyInfo).
    fn public(&self) -> Vec<u8> {
        let (head, point) = match &self.0 {
            PrivateKey::P256(key) => (P256_HEAD, key.public_key().as_ref()),
            PrivateKey::P384(key) => (P384_HEAD, key.public_key().as_ref()),
            PrivateKey::Ed25519(key) => (ED25519_HEAD, key.public_key().as_ref()),
        };
        [head, point].concat()
    }

    /// The public key in PEM, for `[trust]`.
    pub(crate) fn public_pem(&self) -> String {
        to_pem("PUBLIC KEY", &self.public())
    }

    /// The name by which `belljar add` shows the signer: the digest of the public key.
    pub(crate) fn name(&self) -> String {
        Digest::of(&self.public()).to_string()
    }

    /// A bundle that says "I release this" of the manifest with this digest.
    ///
    /// # Errors
    /// [`SigningKeyError::Random`].
    pub(crate) fn sign(&self, manifest: &Digest) -> Result<String, SigningKeyError> {
        let statement = json!({
            "_type": "https://in-toto.io/Statement/v1", "predicateType": SIGNED,
            "subject": [{ "name": "", "digest": { "sha256": manifest.hex() } }], "predicate": {},
        })
        .to_string();
        // The encoding of what a DSSE envelope signs.
        let signed = format!("DSSEv1 {} {STATEMENT} {} {statement}", STATEMENT.len(), statement.len());
        let signature = match &self.0 {
            PrivateKey::P256(key) | PrivateKey::P384(key) => {
                key.sign(&SystemRandom::new(), signed.as_bytes()).map_err(|_| SigningKeyError::Random)?
            }
            PrivateKey::Ed25519(key) => key.sign(signed.as_bytes()),
        };
        let hint = STANDARD.encode(Digest::of(&self.public()).0);
        let bundle = json!({
            "mediaType": BUNDLE,
            "verificationMaterial": { "publicKey": { "hint": hint }, "tlogEntries": [] },
            "dsseEnvelope": {
                "payload": STANDARD.encode(&statement), "payloadType": STATEMENT,
                "signatures": [{ "sig": STANDARD.encode(signature.as_ref()) }],
            },
        });
        Ok(bundle.to_string())
    }
}

/// The label and the bytes of the first block.
fn read_pem(text: &str) -> Result<(&str, Zeroizing<Vec<u8>>), SigningKeyError> {
    // openssl writes the parameters of a curve in front of an older key.
    let text = text.split_once("-----END EC PARAMETERS-----").map_or(text, |(_, rest)| rest);
    let (_, rest) = text.split_once("-----BEGIN ").ok_or(SigningKeyError::NotPem)?;
    let (label, rest) = rest.split_once("-----").ok_or(SigningKeyError::NotPem)?;
    let (body, _) = rest.split_once("-----END ").ok_or(SigningKeyError::NotPem)?;
    let body = Zeroizing::new(body.split_whitespace().collect::<String>());
    // The bodies of other forms are not read: some have headers.
    let der = if label == "PRIVATE KEY" { STANDARD.decode(body.as_bytes()) } else { Ok(Vec::new()) };
    Ok((label, Zeroizing::new(der.map_err(|_| SigningKeyError::NotPem)?)))
}

fn to_pem(label: &str, der: &[u8]) -> String {
    let body = Zeroizing::new(STANDARD.encode(der));
    let mut out = format!("-----BEGIN {label}-----\n");
    for (at, letter) in body.chars().enumerate() {
        out.push(letter);
        if at % 64 == 63 {
            out.push('\n');
        }
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out + &format!("-----END {label}-----\n")
}

#[cfg(test)]
mod tests {
    use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};

    use super::*;

    /// Made with `openssl genpkey -algorithm ed25519`, for this test alone.
    const ED25519: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIK22QA1JuvFXoFVWVsPIJiFnxOrbI1L0YJ5wHsk8ElKH\n-----END PRIVATE KEY-----\n";

    #[test]
    fn a_new_key_is_read_back_and_signs() {
        let (key, text) = SigningKey::generate().unwrap();
        assert_eq!(SigningKey::parse(&text).unwrap().public_pem(), key.public_pem());
        let bundle: serde_json::Value = serde_json::from_str(&key.sign(&Digest([7; 32])).unwrap()).unwrap();
        let decode = |value: &serde_json::Value| STANDARD.decode(value.as_str().unwrap()).unwrap();
        let envelope = &bundle["dsseEnvelope"];
        let statement = String::from_utf8(decode(&envelope["payload"])).unwrap();
        assert!(statement.contains(&"07".repeat(32)), "{statement}");
        let signed = format!("DSSEv1 28 application/vnd.in-toto+json {} {statement}", statement.len());
        let public = key.public().split_off(P256_HEAD.len());
        let signature = decode(&envelope["signatures"][0]["sig"]);
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, public).verify(signed.as_bytes(), &signature).unwrap();
    }

    #[test]
    fn a_key_of_ed25519_without_its_public_part_is_read() {
        let key = SigningKey::parse(ED25519).unwrap();
        assert!(key.sign(&Digest([0; 32])).is_ok());
        assert!(key.public_pem().contains("MCowBQYDK2VwAyEAZn7gYiW0FyFTnNWFrZhFJg6ZkQ9TqQLDLE95YDMeOKk="));
    }

    #[test]
    fn other_texts_say_what_they_are() {
        let block = |label: &str| format!("-----BEGIN {label}-----\nAAAA\n-----END {label}-----\n");
        for (text, why) in [
            (String::new(), SigningKeyError::NotPem),
            ("-----BEGIN PRIVATE KEY-----\nAAAA".to_owned(), SigningKeyError::NotPem),
            (block("PRIVATE KEY").replace("AAAA", "*"), SigningKeyError::NotPem),
            (block("PRIVATE KEY"), SigningKeyError::Kind),
            (block("PUBLIC KEY"), SigningKeyError::Public),
            (block("ENCRYPTED PRIVATE KEY"), SigningKeyError::Encrypted),
            (block("ENCRYPTED COSIGN PRIVATE KEY"), SigningKeyError::Cosign),
            (block("ENCRYPTED SIGSTORE PRIVATE KEY"), SigningKeyError::Cosign),
            (block("EC PARAMETERS") + &block("EC PRIVATE KEY"), SigningKeyError::Older),
            (block("CERTIFICATE"), SigningKeyError::Kind),
        ] {
            assert_eq!(SigningKey::parse(&text).err(), Some(why), "{text}");
        }
    }
}
