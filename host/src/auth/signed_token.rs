//! The form of a signed token: the compact serialization of RFC 7515, read strictly and without trust.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use super::checks::is_met;
use super::key_set::MAX_KID;
use super::token_error::TokenError;
use crate::model::strict_json;

/// A token in parts. Nothing in it is verified.
pub(super) struct SignedToken<'t> {
    pub(super) header: TokenHeader,
    pub(super) claims: Map<String, Value>,
    /// The text that was signed: header and claims, encoded.
    pub(super) message: &'t str,
    pub(super) signature: Vec<u8>,
}

/// The header. Keys in it (`jwk`, `jku`, `x5c`, `x5u`) are ignored: a token does not choose the key that verifies it.
pub(super) struct TokenHeader {
    /// The name of the algorithm.
    pub(super) alg: String,
    pub(super) typ: Option<String>,
    pub(super) kid: Option<String>,
}

/// True if the token has the form of a signed token: three parts. Other tokens are opaque.
pub(super) fn is_signed(token: &str) -> bool {
    token.bytes().filter(|byte| *byte == b'.').count() == 2
}

impl<'t> SignedToken<'t> {
    /// Reads a token.
    ///
    /// # Errors
    /// If it is not three parts in canonical base64url, of which two are strict JSON, or if its header asks for an
    /// extension.
    pub(super) fn parse(token: &'t str) -> Result<Self, TokenError> {
        let (message, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (header, claims) = message.split_once('.').ok_or(TokenError::Malformed)?;
        let header = object(header)?;
        // Every extension would have to be understood (RFC 7515, 4.1.11), and belljar understands none.
        if !is_met(!header.contains_key("crit")) {
            return Err(TokenError::Malformed);
        }
        let header = TokenHeader {
            alg: text(&header, "alg")?.ok_or(TokenError::Algorithm)?,
            typ: text(&header, "typ")?,
            kid: text(&header, "kid")?,
        };
        if header.kid.as_ref().is_some_and(|kid| kid.len() > MAX_KID) {
            return Err(TokenError::Malformed);
        }
        Ok(Self { header, claims: object(claims)?, message, signature: decode(signature)? })
    }
}

/// Decodes a part. Padding, other alphabets and unused bits are refused: each token has one spelling.
fn decode(part: &str) -> Result<Vec<u8>, TokenError> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Malformed)
}

fn object(part: &str) -> Result<Map<String, Value>, TokenError> {
    strict_json::parse_object(&decode(part)?).map_err(|_| TokenError::Malformed)
}

/// A member that is a text or missing.
fn text(object: &Map<String, Value>, name: &str) -> Result<Option<String>, TokenError> {
    match object.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(TokenError::Malformed),
    }
}
