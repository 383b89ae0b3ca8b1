//! How a registry wants to be asked: its challenge (RFC 9110, section 11.6.1), and the token that it sends for.

use belljar_fetch_protocol::FailureKind;
use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, Method, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use crate::body::Payload;
use crate::credentials::Login;
use crate::failure::{Outcome, failure, wrong_content};
use crate::http::{Call, Client, Purpose};
use crate::text;
use crate::url::Url;

/// The most bytes of a token server's answer, and of a token.
const MAX_TOKEN: usize = 64 * 1024;

/// What a request wants to do with a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// To read it.
    Read,
    /// To read and to write it.
    Write,
}

/// What a registry asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// The login itself.
    Basic,
    /// A token of the server `realm`.
    Bearer {
        /// The URL of the token server.
        realm: String,
        /// The registry's name at the token server.
        service: Option<String>,
    },
}

impl Challenge {
    /// The first challenge that this program can answer.
    pub(crate) fn read(headers: &HeaderMap) -> Option<Self> {
        headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok()).find_map(Self::parse)
    }

    fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let (mut realm, mut service, mut rest) = (None, None, rest.trim());
        while let Some((name, after)) = rest.split_once('=') {
            let (value, after) = match after.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"')?,
                None => after
                    .split_once(',')
                    .map_or((after, ""), |(value, _)| (value, after.get(value.len()..).unwrap_or_default())),
            };
            match name.trim().to_ascii_lowercase().as_str() {
                "realm" => realm = Some(value.trim().to_owned()),
                "service" => service = Some(value.trim().to_owned()),
                _ => {}
            }
            rest = after.trim_start().trim_start_matches(',').trim_start();
        }
        Some(Self::Bearer { realm: realm?, service })
    }
}

/// The answer of a token server.
#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

/// The header `Authorization` that answers the challenge, for this access to `repository`.
pub(crate) async fn answer(
    client: &mut Client,
    challenge: Challenge,
    (repository, access): (&str, Access),
    login: Option<&Login>,
) -> Outcome<String> {
    let (realm, service) = match challenge {
        Challenge::Basic => return login.and_then(Login::basic).ok_or_else(|| needs_login(repository)),
        Challenge::Bearer { realm, service } => (realm, service),
    };
    let Some(url) = Url::parse(&realm) else {
        return Err(wrong_content(format!(
            "the registry wants a token of \"{}\", which is no plain URL",
            text::clean(&realm, text::NAME)
        )));
    };
    // Only for what is done, whatever scope the registry names.
    let actions = if access == Access::Read { "pull" } else { "pull,push" };
    let mut query = vec![("scope", format!("repository:{repository}:{actions}"))];
    query.extend(service.map(|service| ("service", service)));
    let call = match login {
        Some(Login::Token(token)) => {
            query.extend([
                ("grant_type", "refresh_token".into()),
                ("client_id", "belljar".into()),
                ("refresh_token", token.clone()),
            ]);
            Call {
                method: Method::POST,
                payload: Payload::Form(form(&query)),
                purpose: Purpose::Token,
                ..Call::get(url, "application/json")
            }
        }
        login => {
            let separator = if url.path.contains('?') { '&' } else { '?' };
            let url = Url { path: format!("{}{separator}{}", url.path, form(&query)), ..url };
            let authorization = login.and_then(Login::basic);
            Call { authorization, purpose: Purpose::Token, ..Call::get(url, "application/json") }
        }
    };
    let mut answer = client.send(call).await?;
    match answer.status {
        StatusCode::OK => {}
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST if login.is_some() => {
            let problem = format!("the token server \"{}\" refuses the login", answer.url.origin);
            return Err(failure(
                FailureKind::Denied,
                problem,
                "log in again: docker login REGISTRY, or podman login REGISTRY",
            ));
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(needs_login(repository)),
        other => {
            let problem = format!("the token server \"{}\" answers {}", answer.url.origin, other.as_u16());
            return Err(failure(FailureKind::Network, problem, "try again later"));
        }
    }
    let body = answer.body(MAX_TOKEN, "the token").await?;
    let token = serde_json::from_slice::<Token>(&body).ok().and_then(|answer| answer.token.or(answer.access_token));
    match token {
        Some(token) if !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Ok(format!("Bearer {token}"))
        }
        _ => Err(wrong_content(format!("the token server \"{}\" sends no token", answer.url.origin))),
    }
}

/// The failure of a registry that wants a login. [`crate::registry::Registry`] puts its name into the cure.
pub(crate) fn needs_login(repository: &str) -> Box<belljar_fetch_protocol::Failure> {
    failure(
        FailureKind::Denied,
        format!("the registry does not show \"{repository}\" to you"),
        "check the spelling; if it is private, log in: docker login REGISTRY, or podman login REGISTRY",
    )
}

fn form(fields: &[(&str, String)]) -> String {
    let one = |(name, value): &(&str, String)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC));
    fields.iter().map(one).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let bearer = |realm: &str, service: Option<&str>| {
            Some(Challenge::Bearer { realm: realm.to_owned(), service: service.map(str::to_owned) })
        };
        for (text, challenge) in [
            ("Basic realm=\"x\"", Some(Challenge::Basic)),
            ("basic", Some(Challenge::Basic)),
            (
                r#"Bearer realm="https://a.example/t",service="s",scope="repository:a:pull,push""#,
                bearer("https://a.example/t", Some("s")),
            ),
            ("bearer  realm=https://a.example/t , service=s", bearer("https://a.example/t", Some("s"))),
            (r#"Bearer service="s", realm="https://a.example/t?x=1""#, bearer("https://a.example/t?x=1", Some("s"))),
            ("Bearer", None),
            ("Bearer realm=\"x", None),
            ("Negotiate", None),
            ("", None),
        ] {
            assert_eq!(Challenge::parse(text), challenge, "{text}");
        }
    }

    #[test]
    fn form_fields_cannot_add_fields() {
        assert_eq!(form(&[("a", "b&c=d e".to_owned())]), "a=b%26c%3Dd%20e");
    }
}
