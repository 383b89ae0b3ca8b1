//! Key sets of issuers (RFC 7517): which keys of a set are usable, and which key fits a token.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use super::signature::PublicKey;
use crate::config::TokenAlgorithm;
use crate::model::strict_json;

/// The most keys of a set. Issuers publish two to ten.
const MAX_KEYS: usize = 64;

/// The most keys with the same `kid` that are tried for one token.
const MAX_CANDIDATES: usize = 4;

/// The longest `kid`, in bytes.
pub(super) const MAX_KID: usize = 512;

/// The sizes of RSA keys in bits that ring verifies with. Smaller ones are weak, larger ones slow.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// The usable keys of an issuer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KeySet {
    keys: Vec<IssuerKey>,
}

/// One key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct IssuerKey {
    kid: Option<String>,
    /// The only algorithm of the key, by its name. `None`: every algorithm that fits.
    algorithm: Option<String>,
    public: PublicKey,
}

/// Why a text is not a key set. Contains nothing of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeySetError {
    /// The text is not a key set.
    #[error("it is not a key set (RFC 7517): a JSON object with the array \"keys\"")]
    Malformed,
    /// The set has too many keys.
    #[error("it has more than {MAX_KEYS} keys")]
    TooManyKeys,
    /// No key of the set is usable.
    #[error(
        "it has no public key for signatures that belljar can use (EC P-256 or P-384, Ed25519, RSA of 2048 to 8192 bits)"
    )]
    NoKey,
}

impl KeySet {
    /// Parses a set. Leaves out keys that are symmetric, weak, malformed, or not for signatures. A set without any key is
    /// valid: the issuer has withdrawn all.
    ///
    /// # Errors
    /// If the text is not a key set, or has keys of which none remains.
    pub(super) fn parse(text: &[u8]) -> Result<Self, KeySetError> {
        let set = strict_json::parse_object(text).map_err(|_| KeySetError::Malformed)?;
        let keys = set.get("keys").and_then(Value::as_array).ok_or(KeySetError::Malformed)?;
        if keys.len() > MAX_KEYS {
            return Err(KeySetError::TooManyKeys);
        }
        let usable: Vec<_> = keys.iter().filter_map(Value::as_object).filter_map(IssuerKey::read).collect();
        if usable.is_empty() && !keys.is_empty() { Err(KeySetError::NoKey) } else { Ok(Self { keys: usable }) }
    }

    /// The keys that may have signed a token with this header. Without `kid`, only a key that is the only possible one.
    pub(super) fn candidates(&self, kid: Option<&str>, algorithm: TokenAlgorithm) -> Vec<&PublicKey> {
        let fits = self.keys.iter().filter(|key| key.fits(algorithm));
        match kid {
            Some(kid) => {
                let named = fits.filter(|key| key.kid.as_deref() == Some(kid));
                named.take(MAX_CANDIDATES).map(|key| &key.public).collect()
            }
            None => {
                let all: Vec<_> = fits.take(2).map(|key| &key.public).collect();
                if all.len() == 1 { all } else { Vec::new() }
            }
        }
    }
}

impl IssuerKey {
    /// Reads a key. `None` if it is not usable.
    fn read(key: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| key.get(name).and_then(Value::as_str);
        // A member of another type is malformed; a missing one restricts nothing.
        let is_text_or_absent = |name: &str| key.get(name).is_none_or(Value::is_string);
        if !["kid", "alg", "use"].into_iter().all(is_text_or_absent) || text("use").is_some_and(|own| own != "sig") {
            return None;
        }
        if let Some(operations) = key.get("key_ops") {
            let verifies = |operation: &Value| operation == "verify";
            operations.as_array().filter(|all| all.iter().any(verifies))?;
        }
        let public = match (text("kty")?, text("crv")) {
            ("EC", Some("P-256")) => PublicKey::P256(point(key, 32)?),
            ("EC", Some("P-384")) => PublicKey::P384(point(key, 48)?),
            ("OKP", Some("Ed25519")) => PublicKey::Ed25519(bytes(key, "x").filter(|x| x.len() == 32)?),
            ("RSA", _) => {
                let [modulus, exponent] = [number(key, "n")?, number(key, "e")?];
                if !RSA_BITS.contains(&bits(&modulus)) {
                    return None;
                }
                PublicKey::Rsa { modulus, exponent }
            }
            _ => return None,
        };
        let kid = text("kid").map(str::to_owned);
        if kid.as_ref().is_some_and(|kid| kid.len() > MAX_KID) {
            return None;
        }
        Some(Self { kid, algorithm: text("alg").map(str::to_owned), public })
    }

    fn fits(&self, algorithm: TokenAlgorithm) -> bool {
        let is_named = |own: &String| {
            let ed25519 = [TokenAlgorithm::EdDsa.name(), TokenAlgorithm::Ed25519.name()];
            // Two names of one algorithm (RFC 9864).
            own == algorithm.name() || (ed25519.contains(&own.as_str()) && ed25519.contains(&algorithm.name()))
        };
        self.public.fits(algorithm) && self.algorithm.as_ref().is_none_or(is_named)
    }
}

/// The bytes of a member. The text is canonical base64url.
fn bytes(key: &Map<String, Value>, name: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(key.get(name)?.as_str()?).ok()
}

/// A number without leading zeros. RFC 7518 forbids them, and some issuers write them.
fn number(key: &Map<String, Value>, name: &str) -> Option<Vec<u8>> {
    let bytes = bytes(key, name)?;
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let number = bytes.get(zeros..)?;
    (!number.is_empty()).then(|| number.to_vec())
}

/// The point of an EC key, uncompressed (SEC 1, 2.3.3).
fn point(key: &Map<String, Value>, length: usize) -> Option<Vec<u8>> {
    let [x, y] = [bytes(key, "x")?, bytes(key, "y")?];
    (x.len() == length && y.len() == length).then(|| [&[4][..], &x, &y].concat())
}

/// The length of a number in bits.
fn bits(number: &[u8]) -> usize {
    let unused = number.first().map_or(0, |byte| byte.leading_zeros());
    (number.len() * 8).saturating_sub(usize::try_from(unused).unwrap_or(0))
}
