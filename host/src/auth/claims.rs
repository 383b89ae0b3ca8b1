//! The claims of access tokens (RFC 9068) and of introspections (RFC 7662), and the identity that they prove. Pure: the
//! time is an argument.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};

use super::checks::is_met;
use super::token_error::TokenError;
use crate::policy::TokenIdentity;

/// The most that the clocks of an issuer and of belljar may differ.
const SKEW: i64 = 60;

/// The last second of the year 9999. A later time is a mistake.
const MAX_SECONDS: i64 = 253_402_300_799;

/// The longest subject, client or group, in bytes (OpenID Connect Core, 2).
const MAX_NAME: usize = 255;

/// What an issuer's claims must say.
pub(super) struct ClaimRules<'a> {
    /// The issuer, as in `iss`.
    pub(super) issuer: &'a str,
    /// The text that `aud` must contain.
    pub(super) audience: &'a str,
    /// The claim with the groups.
    pub(super) groups: &'a str,
    /// True if `iss` and `exp` may be missing: the issuer itself gave the answer, and it says that the token is active.
    pub(super) is_answer: bool,
}

/// Accepted claims.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AcceptedClaims {
    pub(super) identity: TokenIdentity,
    /// The time in `exp`.
    pub(super) expires: Option<SystemTime>,
}

impl ClaimRules<'_> {
    /// Checks the claims of a token whose signature is right, at the time `at`.
    ///
    /// # Errors
    /// The first rule that the claims break.
    pub(super) fn accept(&self, claims: &Map<String, Value>, at: SystemTime) -> Result<AcceptedClaims, TokenError> {
        let issuer = text(claims, "iss")?;
        if !is_met(issuer.map_or(self.is_answer, |issuer| issuer == self.issuer)) {
            return Err(TokenError::Issuer);
        }
        if !is_met(texts(claims.get("aud"))?.contains(&self.audience)) {
            return Err(TokenError::Audience);
        }
        let now = i64::try_from(at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()).unwrap_or(i64::MAX);
        let expires = seconds(claims, "exp")?;
        if !is_met(expires.is_some() || self.is_answer) {
            return Err(TokenError::Claims);
        }
        if !is_met(expires.is_none_or(|expires| now < expires.saturating_add(SKEW))) {
            return Err(TokenError::Expired);
        }
        for name in ["nbf", "iat"] {
            let begins = seconds(claims, name)?;
            if !is_met(begins.is_none_or(|begins| begins <= now.saturating_add(SKEW))) {
                return Err(TokenError::NotYetValid);
            }
        }
        if !is_met(!claims.contains_key("cnf")) {
            return Err(TokenError::Bound);
        }
        let identity = TokenIdentity {
            issuer: self.issuer.to_owned(),
            subject: name(text(claims, "sub")?.unwrap_or_default())?,
            client: text(claims, "client_id")?.or(text(claims, "azp")?).map(name).transpose()?,
            groups: texts(member(claims, self.groups))?.into_iter().map(name).collect::<Result<_, _>>()?,
            scopes: scopes(claims)?,
        };
        let time = |seconds: i64| UNIX_EPOCH + Duration::from_secs(seconds.unsigned_abs());
        Ok(AcceptedClaims { identity, expires: expires.map(time) })
    }
}

/// A claim that is a text or missing.
fn text<'a>(claims: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, TokenError> {
    match claims.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(TokenError::Claims),
    }
}

/// The texts of a claim: one text, an array of texts, or none.
fn texts(claim: Option<&Value>) -> Result<Vec<&str>, TokenError> {
    match claim {
        None => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![text]),
        Some(Value::Array(all)) => {
            all.iter().map(|text| text.as_str().ok_or(TokenError::Claims)).collect::<Result<Vec<_>, _>>()
        }
        Some(_) => Err(TokenError::Claims),
    }
}

/// A claim with a time, in seconds since 1970. Fractions are cut off.
fn seconds(claims: &Map<String, Value>, name: &str) -> Result<Option<i64>, TokenError> {
    let Some(claim) = claims.get(name) else { return Ok(None) };
    #[expect(clippy::cast_possible_truncation, reason = "cutting off the fraction; the bounds are checked below")]
    let seconds = claim.as_i64().or_else(|| claim.as_f64().map(|seconds| seconds as i64));
    seconds.filter(|seconds| (0..=MAX_SECONDS).contains(seconds)).map(Some).ok_or(TokenError::Claims)
}

/// A subject, client or group. It becomes part of log lines and records.
fn name(text: &str) -> Result<String, TokenError> {
    let is_name = !text.is_empty() && text.len() <= MAX_NAME && !text.chars().any(char::is_control);
    if is_name { Ok(text.to_owned()) } else { Err(TokenError::Claims) }
}

/// The scopes of `scope` (RFC 8693, 4.2) and `scp`, each a text with spaces or an array, without duplicates.
fn scopes(claims: &Map<String, Value>) -> Result<Vec<String>, TokenError> {
    let mut all: Vec<String> = Vec::new();
    for claim in ["scope", "scp"] {
        for scope in texts(claims.get(claim))?.into_iter().flat_map(|text| text.split(' ')) {
            // RFC 6749, 3.3.
            let is_allowed = |b: u8| b.is_ascii_graphic() && b != b'"' && b != b'\\';
            if !scope.bytes().all(is_allowed) {
                return Err(TokenError::Claims);
            }
            if !scope.is_empty() && !all.iter().any(|own| own == scope) {
                all.push(scope.to_owned());
            }
        }
    }
    Ok(all)
}

/// The claim of this name, or the value at this JSON pointer (RFC 6901).
fn member<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let Some(pointer) = name.strip_prefix('/') else { return claims.get(name) };
    let (first, rest) = pointer.split_once('/').map_or((pointer, None), |(first, rest)| (first, Some(rest)));
    let value = claims.get(&first.replace("~1", "/").replace("~0", "~"))?;
    rest.map_or(Some(value), |rest| value.pointer(&format!("/{rest}")))
}
