//! Takes the credential out of a request, and writes challenges (RFC 6750).
//!
//! A request has one `Authorization` header with the scheme `Bearer` and one credential. Any other form is refused, so
//! that belljar and a proxy in front of it cannot disagree about the credential of a request.

use std::fmt::Write as _;

use axum::body::Body;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};
use rmcp::model::ErrorData;

use super::reply::refuse_with;

/// Most bytes of the header `Authorization`.
const MAX_HEADER: usize = 16 << 10;

/// The parameter of a query or form with which RFC 6750 lets clients send tokens. Addresses end up in logs.
const PARAMETER: &str = "access_token";

/// Why a request has no usable credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum MalformedCredential {
    /// There are several headers.
    #[error("expected one Authorization header, and the request has several")]
    Several,
    /// The header is too long.
    #[error("the Authorization header is longer than {MAX_HEADER} bytes")]
    TooLong,
    /// The scheme is not `Bearer`.
    #[error("expected the scheme \"Bearer\" in the Authorization header")]
    Scheme,
    /// After `Bearer`, something else than one credential follows.
    #[error("expected one key or token after \"Bearer\" in the Authorization header")]
    Syntax,
    /// The credential is in the URL.
    #[error("a token in the URL ends up in logs; send it in the Authorization header, and revoke this one")]
    InQuery,
}

/// The credential of a request. `None` if it has none.
///
/// # Errors
/// The credential is malformed, or there are several.
pub(super) fn credential(head: &Parts) -> Result<Option<&str>, MalformedCredential> {
    let is_token = |pair: &str| decoded(pair.split('=').next().unwrap_or_default()) == PARAMETER;
    if head.uri.query().is_some_and(|query| query.split(['&', ';']).any(is_token)) {
        return Err(MalformedCredential::InQuery);
    }
    let mut all = head.headers.get_all(header::AUTHORIZATION).into_iter();
    let Some(given) = all.next() else { return Ok(None) };
    if all.next().is_some() {
        return Err(MalformedCredential::Several);
    }
    if given.len() > MAX_HEADER {
        return Err(MalformedCredential::TooLong);
    }
    let given = given.to_str().map_err(|_| MalformedCredential::Syntax)?;
    let (scheme, rest) = given.split_once(' ').unwrap_or((given, ""));
    if !scheme.eq_ignore_ascii_case("Bearer") {
        return Err(MalformedCredential::Scheme);
    }
    // RFC 9110, section 11.4: one or more spaces, and token68.
    let credential = rest.trim_start_matches(' ');
    let body = credential.trim_end_matches('=');
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    if body.is_empty() || !body.bytes().all(fits) {
        return Err(MalformedCredential::Syntax);
    }
    Ok(Some(credential))
}

/// The name of a parameter without percent-encoding.
fn decoded(name: &str) -> String {
    percent_encoding::percent_decode_str(name).decode_utf8_lossy().to_ascii_lowercase()
}

/// The error of a challenge.
pub(super) struct ChallengeError {
    /// The word that clients branch on.
    pub(super) code: &'static str,
    /// The sentence for people.
    pub(super) description: String,
}

/// The value of `WWW-Authenticate`.
pub(super) fn challenge(error: Option<&ChallengeError>, metadata: Option<&str>, scopes: &[&str]) -> HeaderValue {
    let mut parameters: Vec<(&str, String)> = Vec::new();
    if let Some(ChallengeError { code, description }) = error {
        parameters.push(("error", (*code).to_owned()));
        parameters.push(("error_description", description.clone()));
    }
    parameters.extend(metadata.map(|url| ("resource_metadata", url.to_owned())));
    if !scopes.is_empty() {
        parameters.push(("scope", scopes.join(" ")));
    }
    // RFC 6750, section 3: at least one parameter.
    if parameters.is_empty() {
        parameters.push(("realm", "belljar".to_owned()));
    }
    let mut value = String::from("Bearer");
    for (at, (name, text)) in parameters.iter().enumerate() {
        let separator = if at == 0 { "" } else { "," };
        // RFC 6750, section 3: these values have neither quotation marks nor backslashes.
        let text: String = text.chars().map(|c| if c == '"' || c == '\\' { '\'' } else { c }).collect();
        let _ = write!(value, "{separator} {name}=\"{text}\"");
    }
    HeaderValue::from_str(&value).unwrap_or(HeaderValue::from_static("Bearer realm=\"belljar\""))
}

/// A refusal with a challenge.
pub(super) fn refusal(status: StatusCode, error: ErrorData, challenge: HeaderValue) -> Response<Body> {
    let mut response = refuse_with(status, error, None);
    add_challenge(&mut response, challenge);
    response
}

/// Adds a challenge to a response. No cache may keep it: another request, with a credential, has another answer.
pub(super) fn add_challenge(response: &mut Response<Body>, challenge: HeaderValue) {
    response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The credential of a request with these headers and this target.
    fn of(target: &str, headers: &[&[u8]]) -> Result<Option<String>, MalformedCredential> {
        let mut head = http::Request::post(target);
        for value in headers {
            head = head.header(header::AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
        }
        let (parts, ()) = head.body(()).unwrap().into_parts();
        credential(&parts).map(|found| found.map(str::to_owned))
    }

    #[test]
    fn one_bearer_credential_is_taken() {
        for (header, expected) in [
            ("Bearer abc", "abc"),
            ("bearer abc", "abc"),
            ("BEARER abc", "abc"),
            ("Bearer   abc", "abc"),
            ("Bearer a.b-c_d~e+f/g==", "a.b-c_d~e+f/g=="),
        ] {
            assert_eq!(of("/mcp", &[header.as_bytes()]), Ok(Some(expected.to_owned())), "{header}");
        }
        assert_eq!(of("/mcp", &[]), Ok(None));
        assert_eq!(of("/mcp?token=a&x=access_token", &[]), Ok(None));
    }

    #[test]
    fn every_other_form_is_refused() {
        use MalformedCredential::{InQuery, Scheme, Several, Syntax, TooLong};
        let long = format!("Bearer {}", "a".repeat(MAX_HEADER));
        for (headers, expected) in [
            (vec!["Bearer a", "Bearer a"], Several),
            (vec!["Bearer a", "Basic a"], Several),
            (vec!["Basic YTpi"], Scheme),
            (vec!["DPoP abc"], Scheme),
            (vec!["abc"], Scheme),
            (vec![""], Scheme),
            (vec!["Bearerabc"], Scheme),
            (vec!["Bearer\tabc"], Scheme),
            (vec!["Bearer"], Syntax),
            (vec!["Bearer "], Syntax),
            (vec!["Bearer ="], Syntax),
            (vec!["Bearer a b"], Syntax),
            (vec!["Bearer a, Bearer b"], Syntax),
            (vec!["Bearer a,b"], Syntax),
            (vec!["Bearer a=b"], Syntax),
            (vec!["Bearer \"abc\""], Syntax),
            (vec!["Bearer token=abc"], Syntax),
            (vec!["Bearer a "], Syntax),
            (vec![long.as_str()], TooLong),
        ] {
            let headers: Vec<&[u8]> = headers.iter().map(|header| header.as_bytes()).collect();
            assert_eq!(of("/mcp", &headers), Err(expected), "{headers:?}");
        }
        assert_eq!(of("/mcp", &[b"Bearer \xff"]), Err(Syntax));
        for target in [
            "/mcp?access_token=abc",
            "/mcp?x=1&access_token=abc",
            "/mcp?x=1;access_token=abc",
            "/mcp?access%5Ftoken=abc",
            "/mcp?ACCESS_TOKEN=abc",
            "/mcp?access_token",
        ] {
            assert_eq!(of(target, &[]), Err(InQuery), "{target}");
            assert_eq!(of(target, &[b"Bearer abc"]), Err(InQuery), "{target}");
        }
    }

    #[test]
    fn a_challenge_names_what_the_client_needs() {
        let shown = |error: Option<ChallengeError>, metadata, scopes: &[&str]| {
            challenge(error.as_ref(), metadata, scopes).to_str().unwrap().to_owned()
        };
        let metadata = Some("https://mcp.example/.well-known/oauth-protected-resource/mcp");
        assert_eq!(
            shown(None, metadata, &["notes:read", "logs:read"]),
            "Bearer resource_metadata=\"https://mcp.example/.well-known/oauth-protected-resource/mcp\", scope=\"notes:read logs:read\""
        );
        assert_eq!(shown(None, None, &[]), "Bearer realm=\"belljar\"");
        let error = ChallengeError { code: "invalid_token", description: "it \"expired\" \\".to_owned() };
        assert_eq!(
            shown(Some(error), None, &["a"]),
            "Bearer error=\"invalid_token\", error_description=\"it 'expired' '\", scope=\"a\""
        );
        let error = ChallengeError { code: "invalid_token", description: "a\r\nX: y".to_owned() };
        assert_eq!(shown(Some(error), None, &[]), "Bearer realm=\"belljar\"", "no header can be injected");
    }
}
