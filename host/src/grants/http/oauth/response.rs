//! Responses of authorization servers: tokens, device codes, errors. Parsed strictly; what is not expected is refused.

use std::time::Duration;

use serde_json::{Map, Value};
use zeroize::Zeroizing;

use super::checks::is_fine;
use crate::grants::http::service_url::ServiceUrl;
use crate::grants::secrets::LiveSecrets;
use crate::model::strict_json;

/// The least bytes of an access token. A shorter one could not be masked.
const MIN_TOKEN: usize = 8;

/// The most seconds of any time: ten years.
const MAX_SECONDS: u64 = 10 * 366 * 24 * 3600;

/// The most characters of a user code.
const MAX_USER_CODE: usize = 64;

/// Why a response is not what was asked for. Contains nothing of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedGrant {
    /// The body is not a JSON object, or an ambiguous one.
    #[error("it is not a JSON object")]
    NotAnObject,
    /// The access token is missing, or belljar cannot send or mask it.
    #[error(
        "its \"access_token\" is missing, or is no text of {MIN_TOKEN} to {} visible ASCII characters",
        LiveSecrets::MAX_LENGTH
    )]
    AccessToken,
    /// The token is bound to a key.
    #[error("its \"token_type\" is not \"Bearer\"")]
    TokenType,
    /// The time is not a number of seconds.
    #[error("its \"expires_in\" is not a number of seconds")]
    ExpiresIn,
    /// The refresh token is malformed.
    #[error("its \"refresh_token\" is no text of visible ASCII characters")]
    RefreshToken,
    /// A member of the answer to a device is missing or malformed.
    #[error("its \"{0}\" is missing or malformed")]
    Device(&'static str),
}

/// A granted access token.
pub(super) struct GrantedTokens {
    pub(super) access_token: Zeroizing<String>,
    /// How long it is valid. `None`: the server does not say.
    pub(super) lifetime: Option<Duration>,
    pub(super) refresh_token: Option<Zeroizing<String>>,
    /// How long the refresh token is valid, if the server says so.
    pub(super) refresh_lifetime: Option<Duration>,
}

/// The answer to a device (RFC 8628, 3.2).
pub(super) struct DeviceGrant {
    pub(super) device_code: Zeroizing<String>,
    pub(super) user_code: String,
    pub(super) page: ServiceUrl,
    pub(super) whole_page: Option<ServiceUrl>,
    pub(super) lifetime: Duration,
    pub(super) interval: Option<Duration>,
}

/// The codes of errors that belljar knows (RFC 6749, 5.2; RFC 8628, 3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OAuthErrorCode {
    /// The client is unknown, or its secret is wrong.
    InvalidClient,
    /// The refresh token or the device code is not valid any more.
    InvalidGrant,
    /// A scope is unknown or not allowed.
    InvalidScope,
    /// The request is malformed.
    InvalidRequest,
    /// The client may not get tokens in this way.
    UnauthorizedClient,
    /// The server gives no tokens in this way.
    UnsupportedGrantType,
    /// The server is down or busy.
    TemporarilyUnavailable,
    /// The server failed.
    ServerError,
    /// The person has not decided yet.
    AuthorizationPending,
    /// The device asks too often.
    SlowDown,
    /// The person refused.
    AccessDenied,
    /// The person was too late.
    ExpiredToken,
    /// Any other code.
    Other,
}

/// Each known code, by its name.
const CODES: [(&str, OAuthErrorCode); 12] = [
    ("invalid_client", OAuthErrorCode::InvalidClient),
    ("invalid_grant", OAuthErrorCode::InvalidGrant),
    ("invalid_scope", OAuthErrorCode::InvalidScope),
    ("invalid_request", OAuthErrorCode::InvalidRequest),
    ("unauthorized_client", OAuthErrorCode::UnauthorizedClient),
    ("unsupported_grant_type", OAuthErrorCode::UnsupportedGrantType),
    ("temporarily_unavailable", OAuthErrorCode::TemporarilyUnavailable),
    ("server_error", OAuthErrorCode::ServerError),
    ("authorization_pending", OAuthErrorCode::AuthorizationPending),
    ("slow_down", OAuthErrorCode::SlowDown),
    ("access_denied", OAuthErrorCode::AccessDenied),
    ("expired_token", OAuthErrorCode::ExpiredToken),
];

impl OAuthErrorCode {
    /// The name of the code. Never text of the server.
    pub(super) fn name(self) -> &'static str {
        CODES.iter().find(|(_, code)| *code == self).map_or("another error", |(name, _)| name)
    }
}

/// The code of an error. `None`: the object is no error.
pub(super) fn error_code(object: &Map<String, Value>) -> Option<OAuthErrorCode> {
    let name = object.get("error")?;
    let known = CODES.iter().find(|(known, _)| name.as_str() == Some(known));
    Some(known.map_or(OAuthErrorCode::Other, |(_, code)| *code))
}

/// The JSON object of a body.
pub(super) fn object(body: &[u8]) -> Result<Map<String, Value>, MalformedGrant> {
    strict_json::parse_object(body).map_err(|_| MalformedGrant::NotAnObject)
}

/// A text of visible ASCII characters.
fn visible(value: &Value, lengths: std::ops::RangeInclusive<usize>) -> Option<&str> {
    let text = value.as_str()?;
    (is_fine(lengths.contains(&text.len())) && text.bytes().all(|b| matches!(b, b'!'..=b'~'))).then_some(text)
}

/// A whole number of seconds. `null` counts as missing.
fn seconds(object: &Map<String, Value>, name: &str) -> Result<Option<Duration>, ()> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_u64().map(|all| Some(Duration::from_secs(all.min(MAX_SECONDS)))).ok_or(()),
    }
}

/// The tokens in a response with the status 200.
pub(super) fn tokens(object: &Map<String, Value>) -> Result<GrantedTokens, MalformedGrant> {
    let access_token = object.get("access_token").and_then(|value| visible(value, MIN_TOKEN..=LiveSecrets::MAX_LENGTH));
    let access_token = access_token.ok_or(MalformedGrant::AccessToken)?;
    let kind = object.get("token_type").and_then(Value::as_str);
    if !is_fine(kind.is_some_and(|kind| kind.eq_ignore_ascii_case("bearer"))) {
        return Err(MalformedGrant::TokenType);
    }
    let lifetime = seconds(object, "expires_in").map_err(|()| MalformedGrant::ExpiresIn)?;
    let refresh_token = match object.get("refresh_token") {
        None | Some(Value::Null) => None,
        Some(value) => Some(visible(value, 1..=LiveSecrets::MAX_LENGTH).ok_or(MalformedGrant::RefreshToken)?),
    };
    // No standard has these members. Keycloak sends the first one, GitHub the second one. Zero: it does not end.
    let ends = ["refresh_expires_in", "refresh_token_expires_in"].iter().find_map(|name| seconds(object, name).ok()?);
    Ok(GrantedTokens {
        access_token: Zeroizing::new(access_token.to_owned()),
        lifetime,
        refresh_token: refresh_token.map(|token| Zeroizing::new(token.to_owned())),
        refresh_lifetime: ends.filter(|time| !time.is_zero()),
    })
}

/// The codes in a response to a device.
pub(super) fn device(object: &Map<String, Value>) -> Result<DeviceGrant, MalformedGrant> {
    let wrong = MalformedGrant::Device;
    let get = |name| object.get(name).ok_or(wrong(name));
    let url = |value: &Value| value.as_str()?.parse::<ServiceUrl>().ok();
    let code = visible(get("device_code")?, 1..=LiveSecrets::MAX_LENGTH).ok_or(wrong("device_code"))?;
    let user_code = get("user_code")?
        .as_str()
        .filter(|code| (1..=MAX_USER_CODE).contains(&code.len()) && code.bytes().all(|b| matches!(b, b' '..=b'~')));
    let lifetime = seconds(object, "expires_in").ok().flatten().ok_or(wrong("expires_in"))?;
    Ok(DeviceGrant {
        device_code: Zeroizing::new(code.to_owned()),
        user_code: user_code.ok_or(wrong("user_code"))?.to_owned(),
        page: url(get("verification_uri")?).ok_or(wrong("verification_uri"))?,
        whole_page: object.get("verification_uri_complete").and_then(url),
        lifetime,
        interval: seconds(object, "interval").map_err(|()| wrong("interval"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> Result<GrantedTokens, MalformedGrant> {
        tokens(&object(body.as_bytes())?)
    }

    #[test]
    fn a_token_response_is_read() {
        let whole =
            r#"{"access_token":"12345678","token_type":"BEARER","expires_in":3600,"refresh_token":"r","x":[1]}"#;
        let read = parse(whole).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!((read.access_token.as_str(), read.lifetime), ("12345678", Some(Duration::from_secs(3600))));
        assert_eq!(read.refresh_token.as_deref().map(String::as_str), Some("r"));
        let least = parse(r#"{"access_token":"12345678","token_type":"bearer"}"#).unwrap_or_else(|why| panic!("{why}"));
        assert!(least.lifetime.is_none() && least.refresh_token.is_none() && least.refresh_lifetime.is_none());
        let long = format!(r#"{{"access_token":"12345678","token_type":"bearer","expires_in":{}}}"#, u64::MAX);
        assert_eq!(parse(&long).ok().and_then(|read| read.lifetime), Some(Duration::from_secs(MAX_SECONDS)));
    }

    #[test]
    fn a_malformed_token_response_is_refused() {
        let with = |more: &str| format!(r#"{{"access_token":"12345678","token_type":"Bearer"{more}}}"#);
        let long = "x".repeat(LiveSecrets::MAX_LENGTH + 1);
        for (body, error) in [
            (String::new(), MalformedGrant::NotAnObject),
            ("[]".to_owned(), MalformedGrant::NotAnObject),
            ("access_token=12345678&token_type=bearer".to_owned(), MalformedGrant::NotAnObject),
            (with(r#","access_token":"87654321""#), MalformedGrant::NotAnObject),
            (r#"{"token_type":"Bearer"}"#.to_owned(), MalformedGrant::AccessToken),
            (r#"{"access_token":12345678,"token_type":"Bearer"}"#.to_owned(), MalformedGrant::AccessToken),
            (r#"{"access_token":"1234567","token_type":"Bearer"}"#.to_owned(), MalformedGrant::AccessToken),
            (r#"{"access_token":"1234 5678","token_type":"Bearer"}"#.to_owned(), MalformedGrant::AccessToken),
            (r#"{"access_token":"12345678\r\nx: y","token_type":"Bearer"}"#.to_owned(), MalformedGrant::AccessToken),
            (r#"{"access_token":"1234567é","token_type":"Bearer"}"#.to_owned(), MalformedGrant::AccessToken),
            (format!(r#"{{"access_token":"{long}","token_type":"Bearer"}}"#), MalformedGrant::AccessToken),
            (r#"{"access_token":"12345678"}"#.to_owned(), MalformedGrant::TokenType),
            (r#"{"access_token":"12345678","token_type":"DPoP"}"#.to_owned(), MalformedGrant::TokenType),
            (with(r#","expires_in":"3600""#), MalformedGrant::ExpiresIn),
            (with(r#","expires_in":-1"#), MalformedGrant::ExpiresIn),
            (with(r#","expires_in":1.5"#), MalformedGrant::ExpiresIn),
            (with(r#","refresh_token":7"#), MalformedGrant::RefreshToken),
            (with(r#","refresh_token":"a\u0000""#), MalformedGrant::RefreshToken),
        ] {
            assert_eq!(parse(&body).err(), Some(error), "{body}");
        }
    }

    #[test]
    fn only_known_codes_of_errors_are_repeated() {
        let code = |text: &str| error_code(&object(text.as_bytes()).unwrap_or_else(|why| panic!("{why}")));
        assert_eq!(code(r#"{"error":"invalid_client"}"#), Some(OAuthErrorCode::InvalidClient));
        assert_eq!(code(r#"{"error":"s3cr3t"}"#).map(OAuthErrorCode::name), Some("another error"));
        assert_eq!(code(r#"{"error":7}"#), Some(OAuthErrorCode::Other));
        assert_eq!(code("{}"), None);
    }

    #[test]
    fn the_answer_to_a_device() {
        let with = |more: &str| {
            let text = format!(
                r#"{{"device_code":"d","user_code":"AB CD","verification_uri":"https://a.example/d","expires_in":600{more}}}"#
            );
            device(&object(text.as_bytes())?)
        };
        let read = with("").unwrap_or_else(|why| panic!("{why}"));
        assert_eq!((read.user_code.as_str(), read.interval), ("AB CD", None));
        assert_eq!(with(r#","interval":7"#).ok().and_then(|read| read.interval), Some(Duration::from_secs(7)));
        assert_eq!(with(r#","interval":"7""#).err(), Some(MalformedGrant::Device("interval")));
        for (from, to, member) in [
            ("AB CD", "A\\u001b[2J", "user_code"),
            ("https://a.example/d", "javascript:alert(1)", "verification_uri"),
            ("https://a.example/d", "http://a.example/d", "verification_uri"),
            ("\"d\"", "\"\"", "device_code"),
            ("600", "\"600\"", "expires_in"),
        ] {
            let text =
                r#"{"device_code":"d","user_code":"AB CD","verification_uri":"https://a.example/d","expires_in":600}"#;
            let read = device(&object(text.replacen(from, to, 1).as_bytes()).unwrap_or_else(|why| panic!("{why}")));
            assert_eq!(read.err(), Some(MalformedGrant::Device(member)), "{to}");
        }
    }
}
