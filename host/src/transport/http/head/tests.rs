//! Tests of the door: credentials, challenges, pages and metadata.

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use http_body_util::BodyExt;

use super::*;
use crate::auth::Credentials;
use crate::config::serve::ServeConfig;
use crate::policy::KeyIdentity;
use crate::transport::http::Advertised;

/// Knows three credentials, one of them without a check. The others are invalid, except one that has expired, and one that
/// cannot be checked.
struct Fake;

impl Credentials for Fake {
    fn find_known(&self, credential: &str, _: SystemTime) -> Option<Principal> {
        let key = KeyIdentity { name: "eva".to_owned(), ..<_>::default() };
        (credential == "known").then(|| authenticate(Evidence::Key(key)))
    }

    fn check<'a>(&'a self, credential: &'a str, _: SystemTime) -> BoxFuture<'a, Result<Principal, AuthError>> {
        let key = |name: &str| authenticate(Evidence::Key(KeyIdentity { name: name.to_owned(), ..<_>::default() }));
        ready(match credential {
            "right" => Ok(key("ada")),
            "other" => Ok(key("ben")),
            "later" => Err(AuthError::Unavailable),
            "expired" => Err(AuthError::Lapsed("the key has expired")),
            _ => Err(AuthError::Invalid("the key is unknown")),
        })
        .boxed()
    }
}

const ADDRESS: &str = "127.0.0.1:8877";
const HOST: (&str, &str) = ("Host", ADDRESS);
const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// A door with `[auth]`, a public URL, one page, and these issuers.
fn door(issuers: &[&str]) -> Door {
    let advertised = Advertised {
        issuers: issuers.iter().map(|issuer| (*issuer).to_owned()).collect(),
        scopes: ["notes:read", "offline_access", "bad scope", "logs:read"].map(str::to_owned).to_vec(),
    };
    let authentication = Authentication {
        credentials: std::sync::Arc::new(Fake),
        advertised: std::sync::Arc::new(arc_swap::ArcSwap::from_pointee(advertised)),
    };
    let serve = ServeConfig {
        url: Some("https://mcp.example/tools/mcp".parse().unwrap()),
        origins: vec!["https://app.example".parse().unwrap()],
        ..ServeConfig::default()
    };
    let front = FrontDoor { serve, authentication: Some(authentication), ..FrontDoor::default() };
    Door::new(ADDRESS.parse().unwrap(), front)
}

/// What the door does with a request.
fn judge(door: &Door, method: &str, target: &str, headers: &[(&str, &str)]) -> Result<CheckedHead, Box<DoorAnswer>> {
    let mut head = http::Request::builder().method(method).uri(target);
    for (name, value) in headers {
        head = head.header(*name, *value);
    }
    let (parts, ()) = head.body(()).unwrap().into_parts();
    door.check(parts, CLIENT).now_or_never().unwrap()
}

/// The status of a POST with these headers, its challenge, and the recorded reason.
fn post(door: &Door, target: &str, headers: &[(&str, &str)]) -> (u16, String, Option<RefusedAuthentication>) {
    let headers = [&[HOST], headers].concat();
    match judge(door, "POST", target, &headers) {
        Ok(_) => (200, String::new(), None),
        Err(answer) => {
            let challenge = answer.response.headers().get(header::WWW_AUTHENTICATE);
            let challenge = challenge.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
            (answer.response.status().as_u16(), challenge, answer.refusal)
        }
    }
}

fn body(response: Response<Body>) -> serde_json::Value {
    let body = response.into_body().collect().now_or_never().unwrap().unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap()
}

fn judged(target: &str, headers: &[(&str, &str)]) -> u16 {
    let door = Door::new(ADDRESS.parse().unwrap(), FrontDoor::default());
    judge(&door, "POST", target, headers).map_or_else(|answer| answer.response.status().as_u16(), |_| 200)
}

#[test]
fn without_auth_every_request_is_from_anonymous() {
    let door = Door::new(ADDRESS.parse().unwrap(), FrontDoor::default());
    for headers in [vec![HOST], vec![HOST, ("Authorization", "Bearer x")], vec![HOST, ("Authorization", "Basic x")]] {
        let head = judge(&door, "POST", PATH, &headers).ok().unwrap();
        assert_eq!((head.principal().to_string().as_str(), head.address()), ("anonymous", None));
    }
    assert_eq!(judged("/other", &[HOST]), 404);
    assert_eq!(judged("/mcp", &[("Host", "evil.example")]), 403);
}

#[test]
fn a_valid_credential_gives_its_principal() {
    let door = door(&[]);
    for method in ["POST", "GET", "DELETE"] {
        let head = judge(&door, method, PATH, &[HOST, ("Authorization", "bearer right")]).ok().unwrap();
        assert_eq!((head.principal().to_string().as_str(), head.address()), ("key:ada", Some(CLIENT)), "{method}");
    }
}

#[test]
fn a_request_without_a_credential_is_challenged_on_every_path() {
    let door = door(&["https://login.example"]);
    let expected = "Bearer resource_metadata=\"https://mcp.example/.well-known/oauth-protected-resource/tools/mcp\", scope=\"notes:read logs:read\"";
    for method in ["POST", "GET", "DELETE", "PUT", "OPTIONS"] {
        let answer = judge(&door, method, PATH, &[HOST]).err().unwrap();
        assert_eq!(answer.response.status(), 401, "{method}");
        assert_eq!(answer.response.headers()[header::WWW_AUTHENTICATE], expected);
        assert_eq!(body(answer.response)["error"]["data"]["kind"], "unauthenticated");
    }
    let stateless = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "resources/list")];
    assert_eq!(post(&door, PATH, &stateless).0, 401, "the fast path");
    assert_eq!(post(&door, PATH, &[("Mcp-Session-Id", "x")]).0, 401, "a session");
}

#[test]
fn without_issuers_a_challenge_names_no_metadata() {
    assert_eq!(post(&door(&[]), PATH, &[]).1, "Bearer scope=\"notes:read logs:read\"");
}

#[test]
fn an_invalid_credential_is_refused_and_only_its_digest_is_recorded() {
    let (status, challenge, recorded) = post(&door(&[]), PATH, &[("Authorization", "Bearer s3cret")]);
    assert_eq!(status, 401);
    assert!(
        challenge.starts_with("Bearer error=\"invalid_token\", error_description=\"the key is unknown\""),
        "{challenge}"
    );
    // printf s3cret | sha256sum
    let digest = Some("1ec1c26b".to_owned());
    let why = "the key is unknown".to_owned();
    assert_eq!(recorded, Some(RefusedAuthentication { address: CLIENT, why, credential: digest, count: 1 }));
}

#[test]
fn a_malformed_credential_is_a_bad_request_even_beside_a_valid_one() {
    for (target, headers) in [
        (PATH, vec![("Authorization", "Bearer right"), ("Authorization", "Bearer right")]),
        (PATH, vec![("Authorization", "Basic right")]),
        (PATH, vec![("Authorization", "Bearer right x")]),
        ("/mcp?access_token=right", vec![]),
        ("/mcp?access_token=right", vec![("Authorization", "Bearer right")]),
    ] {
        let (status, challenge, recorded) = post(&door(&[]), target, &headers);
        assert_eq!(status, 400, "{target} {headers:?}");
        assert!(challenge.starts_with("Bearer error=\"invalid_request\", error_description="), "{challenge}");
        assert!(!format!("{challenge}{recorded:?}").contains("right"), "{challenge} {recorded:?}");
    }
}

#[test]
fn a_credential_that_cannot_be_checked_now_is_no_failure() {
    let door = door(&[]);
    for _ in 0..50 {
        assert_eq!(post(&door, PATH, &[("Authorization", "Bearer later")]).0, 503);
    }
    assert_eq!(post(&door, PATH, &[("Authorization", "Bearer right")]).0, 200);
}

#[tokio::test(start_paused = true)]
async fn failures_close_an_address_except_for_credentials_in_use() {
    let door = door(&[]);
    let status = |credential: &str| post(&door, PATH, &[("Authorization", &format!("Bearer {credential}"))]).0;
    assert_eq!(status("right"), 200);
    let all: Vec<u16> = (0..12).map(|number| status(&format!("wrong{number}"))).collect();
    assert_eq!(all, [vec![401; 10], vec![429; 2]].concat());
    assert_eq!((status("right"), status("other"), post(&door, PATH, &[]).0), (200, 429, 401));
    assert_eq!(status("known"), 200, "a key is looked up in any case");
    let answer = judge(&door, "POST", PATH, &[HOST, ("Authorization", "Bearer wrong")]).err().unwrap();
    assert_eq!((answer.response.headers()[header::RETRY_AFTER].to_str().unwrap(), answer.refusal), ("1", None));
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    assert_eq!(status("other"), 200);
}

#[test]
fn what_an_honest_client_does_closes_no_address() {
    let door = door(&[]);
    let status = |credential: &str| post(&door, PATH, &[("Authorization", &format!("Bearer {credential}"))]).0;
    for _ in 0..50 {
        assert_eq!(status("expired"), 401);
        // A link on any web page can send this one.
        assert_eq!(post(&door, "/mcp?access_token=x", &[]).0, 400);
        assert_eq!(post(&door, PATH, &[("Authorization", "Basic YTpi")]).0, 400);
        assert_eq!(post(&door, PATH, &[]).0, 401);
    }
    assert_eq!(status("other"), 200);
}

#[test]
fn few_malformed_requests_are_recorded() {
    let door = door(&[]);
    let recorded = |target: &str| post(&door, target, &[]).2.map(|refusal| refusal.count);
    let all: Vec<_> =
        (0..100).filter_map(|at| recorded(if at % 2 == 0 { PATH } else { "/mcp?access_token=x" })).collect();
    assert_eq!(all.len(), 13, "three without a credential, and ten malformed ones");
    let (_, _, refused) = post(&door, PATH, &[("Authorization", "Bearer wrong")]);
    let stands_for = refused.map(|refusal| refusal.count).unwrap();
    assert_eq!(all.iter().sum::<u32>() + stands_for, 101, "each request is in a line");
}

#[test]
fn requests_behind_a_proxy_are_counted_by_client() {
    let serve = ServeConfig { trusted: Some(vec!["127.0.0.1/32".parse().unwrap()]), ..ServeConfig::default() };
    let authentication = door(&[]).authentication;
    let door = Door::new(ADDRESS.parse().unwrap(), FrontDoor { serve, authentication, ..FrontDoor::default() });
    let status = |client: &str, credential: &str| {
        let credential = format!("Bearer {credential}");
        post(&door, PATH, &[("X-Forwarded-For", client), ("Authorization", &credential)]).0
    };
    (0..10).for_each(|_| assert_eq!(status("203.0.113.7", "wrong"), 401));
    assert_eq!((status("203.0.113.7", "other"), status("198.51.100.1, 203.0.113.7", "other")), (429, 429));
    assert_eq!(status("203.0.113.8", "other"), 200);
    let (parts, ()) = http::Request::post(PATH).header("Host", ADDRESS).body(()).unwrap().into_parts();
    let stranger = door.check(parts, "203.0.113.7".parse().unwrap()).now_or_never().unwrap().err().unwrap();
    assert_eq!(stranger.response.status(), 403, "not through the proxy");
}

#[test]
fn a_page_of_the_operator_is_told_what_it_may_send() {
    let door = door(&[]);
    let ask = ("Access-Control-Request-Method", "POST");
    let preflight = |origin: &str, headers: &[(&str, &str)]| {
        let headers = [&[HOST, ("Origin", origin)], headers].concat();
        judge(&door, "OPTIONS", PATH, &headers).err().unwrap().response
    };
    let allowed = preflight("https://app.example", &[ask]);
    assert_eq!(allowed.status(), 204);
    let headers = allowed.headers();
    assert_eq!(headers[header::ACCESS_CONTROL_ALLOW_METHODS], "POST, GET, DELETE");
    for name in
        ["authorization", "content-type", "accept", "mcp-protocol-version", "mcp-session-id", "mcp-method", "mcp-name"]
    {
        assert!(headers[header::ACCESS_CONTROL_ALLOW_HEADERS].to_str().unwrap().contains(name), "{name}");
    }
    assert!(!headers.contains_key(header::ACCESS_CONTROL_ALLOW_CREDENTIALS));
    assert_eq!(preflight("https://app.example", &[]).status(), 401, "no preflight");
    for foreign in ["https://evil.example", "https://app.example.evil.com", "http://app.example", "null"] {
        let refused = preflight(foreign, &[ask]);
        assert_eq!((refused.status().as_u16(), refused.headers().len()), (403, 1), "{foreign}");
    }
    // The page itself needs a credential like everyone else.
    let page = ("Origin", "https://app.example");
    assert_eq!(post(&door, PATH, &[page]).0, 401);
    assert_eq!(post(&door, PATH, &[page, ("Authorization", "Bearer right")]).0, 200);
    assert_eq!(post(&door, PATH, &[page, page, ("Authorization", "Bearer right")]).0, 403, "two origins");
}

#[test]
fn pages_can_read_every_answer_and_others_none() {
    let door = door(&[]);
    let answer = |origin: Option<&str>| {
        let headers: Vec<_> = origin.into_iter().map(|origin| (header::ORIGIN, origin.parse().unwrap())).collect();
        let mut response = Response::new(Body::empty());
        let page = door.pages().origin(&HeaderMap::from_iter(headers)).cloned();
        door.pages().add_to(&mut response, page);
        response
    };
    let page = answer(Some("https://app.example"));
    assert_eq!(page.headers()[header::ACCESS_CONTROL_ALLOW_ORIGIN], "https://app.example");
    let exposed = page.headers()[header::ACCESS_CONTROL_EXPOSE_HEADERS].to_str().unwrap();
    for name in ["www-authenticate", "mcp-session-id", "mcp-protocol-version", "retry-after"] {
        assert!(exposed.contains(name), "{name}");
    }
    for other in [None, Some("https://evil.example"), Some("null")] {
        let response = answer(other);
        assert_eq!(response.headers().len(), 1, "{other:?}");
        assert_eq!(response.headers()[header::VARY], "origin");
    }
    let mut plain = Response::new(Body::empty());
    Pages::new(&[]).add_to(&mut plain, None);
    assert_eq!(plain.headers().len(), 0, "without pages, nothing is added");
}

#[test]
fn the_metadata_names_the_issuers_to_everyone() {
    let root = "/.well-known/oauth-protected-resource";
    let with_issuers = door(&["https://login.example"]);
    for path in [root.to_owned(), format!("{root}/mcp"), format!("{root}/tools/mcp")] {
        for origin in ["https://evil.example", "null"] {
            let answer = judge(&with_issuers, "GET", &path, &[HOST, ("Origin", origin)]).err().unwrap();
            assert_eq!(answer.response.status(), 200, "{path}");
            let headers = answer.response.headers();
            assert_eq!(headers[header::ACCESS_CONTROL_ALLOW_ORIGIN], "*");
            assert_eq!(headers[header::CACHE_CONTROL], "max-age=3600");
            assert_eq!(headers[header::CONTENT_TYPE], "application/json");
            let expected = serde_json::json!({
                "resource": "https://mcp.example/tools/mcp",
                "authorization_servers": ["https://login.example"],
                "scopes_supported": ["notes:read", "logs:read"],
                "bearer_methods_supported": ["header"],
                "resource_name": "belljar",
            });
            assert_eq!(body(answer.response), expected);
        }
        let status = |door: &Door, method: &str, headers: &[(&str, &str)]| {
            judge(door, method, &path, headers).err().unwrap().response.status().as_u16()
        };
        assert_eq!(status(&with_issuers, "GET", &[("Host", "evil.example")]), 403, "the Host is checked");
        assert_eq!(status(&with_issuers, "POST", &[HOST]), 405);
        let preflight = [HOST, ("Origin", "https://a.example"), ("Access-Control-Request-Method", "GET")];
        assert_eq!(status(&with_issuers, "OPTIONS", &preflight), 204);
        assert_eq!(status(&door(&[]), "GET", &[HOST]), 404, "keys only");
    }
    // RFC 9728, section 3.2: a parameter without values is left out.
    let without_scopes = door(&["https://login.example"]);
    let advertised = Advertised { issuers: vec!["https://login.example".to_owned()], scopes: Vec::new() };
    without_scopes.authentication.as_ref().unwrap().advertised.store(std::sync::Arc::new(advertised));
    let answer = judge(&without_scopes, "GET", root, &[HOST]).err().unwrap();
    assert_eq!(body(answer.response).get("scopes_supported"), None);
    for other in ["/.well-known/oauth-protected-resource/", "/.well-known/oauth-protected-resource/x", "/.well-known/"]
    {
        let answer = judge(&with_issuers, "GET", other, &[HOST]).err().unwrap();
        assert_eq!(answer.response.status(), 404, "{other}");
    }
}

#[test]
fn missing_scopes_are_demanded_all_at_once() {
    let mut response = Response::new(Body::empty());
    let scopes = ["notes:read".to_owned(), "logs:read".to_owned()];
    door(&["https://login.example"]).demand_scopes(&mut response, &scopes);
    assert_eq!(response.status(), 403);
    assert_eq!(
        response.headers()[header::WWW_AUTHENTICATE],
        "Bearer error=\"insufficient_scope\", error_description=\"the credential lacks a scope that this request needs\", resource_metadata=\"https://mcp.example/.well-known/oauth-protected-resource/tools/mcp\", scope=\"notes:read logs:read\""
    );
}

#[test]
fn the_revision_with_batches_is_refused() {
    let older = ("MCP-Protocol-Version", "2025-03-26");
    assert_eq!(judged(PATH, &[HOST, older]), 400);
    assert_eq!(judged(PATH, &[HOST, older, ("Mcp-Session-Id", "x")]), 200, "the session has its revision");
    for spoken in ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28", "nonsense"] {
        assert_eq!(judged(PATH, &[HOST, ("MCP-Protocol-Version", spoken)]), 200, "{spoken}");
    }
}
