//! The fetches of key sets, from an issuer that is hostile, slow or down.

use std::net::SocketAddr;

use tokio::net::UdpSocket;
use tokio::time::Instant;

use super::issuer_server::{IssuerReply, IssuerServer};
use super::*;
use crate::grants::http::service_client::ServiceRequest;

/// A token of `server`, signed by `key`.
fn token_of(server: &IssuerServer, key: &TestKey) -> String {
    sign(key, &header("ES256", key.kid), &claims(&server.url("")))
}

/// A verifier for `server`, with further keys of the issuer.
fn verifier_of(server: &IssuerServer, more: &str) -> TokenVerifier {
    verifier(&format!("issuers = [{{ issuer = '{}'{more} }}]", server.url("")))
}

/// Moves the clock of the runtime.
async fn advance(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn keys_are_discovered_at_the_places_of_the_specifications() {
    for (issuer, place) in [
        ("", "/.well-known/oauth-authorization-server"),
        ("", "/.well-known/openid-configuration"),
        ("/t/1", "/.well-known/oauth-authorization-server/t/1"),
        ("/t/1", "/.well-known/openid-configuration/t/1"),
        ("/t/1", "/t/1/.well-known/openid-configuration"),
    ] {
        let key = TestKey::es256("k");
        let server = IssuerServer::start().await;
        server.reply("/jwks", IssuerReply::Json(key_set(&[&key])));
        let metadata = json!({ "issuer": server.url(issuer), "jwks_uri": server.url("/jwks") });
        server.reply(place, IssuerReply::Json(metadata.to_string()));
        let verifier = verifier(&format!("issuers = [{{ issuer = '{}' }}]", server.url(issuer)));
        let token = sign(&key, &header("ES256", "k"), &claims(&server.url(issuer)));
        assert_eq!(verifier.verify(&token, at(NOW)).await.err(), None, "{place}");
        let received = server.received();
        assert!(received.last().unwrap().head.contains(&format!("host: 127.0.0.1:{}", server.port())), "{received:?}");
    }
}

#[tokio::test]
async fn a_page_in_place_of_metadata_does_not_end_the_search() {
    for page in [IssuerReply::Json("<html>".to_owned()), IssuerReply::Status(500), IssuerReply::Status(302)] {
        let key = TestKey::es256("k");
        let server = IssuerServer::start().await;
        server.reply("/.well-known/oauth-authorization-server", page);
        server.reply("/jwks", IssuerReply::Json(key_set(&[&key])));
        let metadata = json!({ "issuer": server.url(""), "jwks_uri": server.url("/jwks") }).to_string();
        server.reply("/.well-known/openid-configuration", IssuerReply::Json(metadata));
        assert_eq!(verifier_of(&server, "").verify(&token_of(&server, &key), at(NOW)).await.err(), None);
    }
}

#[tokio::test]
async fn a_key_set_can_be_named() {
    let key = TestKey::es256("k");
    let server = IssuerServer::start().await;
    server.reply("/keys?x=1", IssuerReply::Json(key_set(&[&key])));
    let verifier = verifier(&format!("issuers = [{{ issuer = '{ISSUER}', jwks = '{}' }}]", server.url("/keys?x=1")));
    let token = sign(&key, &header("ES256", "k"), &claims(ISSUER));
    assert_eq!(verifier.verify(&token, at(NOW)).await.err(), None);
    assert_eq!(server.received().len(), 1, "no discovery");
}

/// Each row: what it is, and the replies of metadata and key set. No token can be verified with them.
#[tokio::test]
async fn hostile_metadata_and_key_sets_are_refused() {
    let key = TestKey::es256("k");
    let set = key_set(&[&key]);
    let other = IssuerServer::with_keys(set.clone()).await;
    let json = |text: &str| IssuerReply::Json(text.to_owned());
    type Make<'a> = Box<dyn Fn(&IssuerServer) -> (IssuerReply, IssuerReply) + 'a>;
    let metadata = |change: fn(&mut Value, &IssuerServer)| {
        let set = set.clone();
        Box::new(move |server: &IssuerServer| {
            let mut metadata: Value = serde_json::from_str(&server.metadata(&server.url("/jwks"))).unwrap();
            change(&mut metadata, server);
            (IssuerReply::Json(metadata.to_string()), IssuerReply::Json(set.clone()))
        }) as Make<'_>
    };
    let key_set = |reply: IssuerReply| {
        Box::new(move |server: &IssuerServer| (IssuerReply::Json(server.metadata(&server.url("/jwks"))), reply.clone()))
            as Make<'_>
    };
    let other_set = other.url("/jwks");
    let to_other = Box::new(move |server: &IssuerServer| {
        (IssuerReply::Json(server.metadata(&other_set)), IssuerReply::Status(404))
    }) as Make<'_>;
    let rows: Vec<(&str, Make<'_>)> = vec![
        ("the metadata of another issuer", metadata(|m, _| m["issuer"] = json!("https://login.example"))),
        ("the issuer with a slash", metadata(|m, s| m["issuer"] = json!(s.url("/")))),
        ("no issuer", metadata(|m, _| m["issuer"] = Value::Null)),
        ("no key set", metadata(|m, _| drop(m.as_object_mut().unwrap().remove("jwks_uri")))),
        (
            "a key set on a private address",
            metadata(|m, s| m["jwks_uri"] = json!(format!("https://10.0.0.1:{}/jwks", s.port()))),
        ),
        (
            "a key set of the cloud",
            metadata(|m, s| m["jwks_uri"] = json!(format!("https://169.254.169.254:{}/", s.port()))),
        ),
        (
            "a key set on loopback by another name",
            metadata(|m, s| m["jwks_uri"] = json!(format!("http://127.0.0.2:{}/jwks", s.port()))),
        ),
        (
            "a key set on localhost",
            metadata(|m, s| m["jwks_uri"] = json!(format!("http://localhost:{}/jwks", s.port()))),
        ),
        ("a key set without encryption", metadata(|m, _| m["jwks_uri"] = json!("http://keys.example/jwks"))),
        ("a key set in a file", metadata(|m, _| m["jwks_uri"] = json!("file:///etc/passwd"))),
        ("a key set on another port", metadata(|m, _| m["jwks_uri"] = json!("https://keys.example:22/jwks"))),
        ("a key set with a line break", metadata(|m, s| m["jwks_uri"] = json!(s.url("/jwks\r\nX: y")))),
        ("a key set of another local service", to_other),
        (
            "metadata that are twice there",
            Box::new(|s: &IssuerServer| {
                let once = s.metadata(&s.url("/jwks"));
                (
                    IssuerReply::Json(once.replacen('{', &format!("{{\"issuer\":\"{}\",", s.url("")), 1)),
                    IssuerReply::Status(404),
                )
            }),
        ),
        (
            "metadata that are no JSON",
            Box::new(|_: &IssuerServer| (IssuerReply::Json("<html>".to_owned()), IssuerReply::Status(404))),
        ),
        (
            "metadata elsewhere",
            Box::new(|s: &IssuerServer| (IssuerReply::Redirect(s.url("/other")), IssuerReply::Status(404))),
        ),
        ("metadata of 10 MiB", Box::new(|_: &IssuerServer| (IssuerReply::Huge(10 << 20), IssuerReply::Status(404)))),
        ("a key set of 10 MiB", key_set(IssuerReply::Huge(10 << 20))),
        (
            "a key set of one byte too many",
            key_set(IssuerReply::Json(format!("{set}{}", " ".repeat((256 << 10) + 1 - set.len())))),
        ),
        ("a key set elsewhere", key_set(IssuerReply::Redirect(other.url("/jwks")))),
        ("a key set that is not there", key_set(IssuerReply::Status(404))),
        ("a key set in an error", key_set(IssuerReply::Status(500))),
        ("a key set that is no JSON", key_set(json("keys"))),
        ("a symmetric key", key_set(json("{\"keys\":[{\"kty\":\"oct\",\"kid\":\"k\",\"k\":\"AAAA\"}]}"))),
    ];
    for (what, make) in rows {
        let server = IssuerServer::start().await;
        let (metadata, keys) = make(&server);
        server.reply("/.well-known/oauth-authorization-server", metadata);
        server.reply("/jwks", keys);
        let refused = verifier_of(&server, "").verify(&token_of(&server, &key), at(NOW)).await.err();
        assert_eq!(refused, Some(TokenError::Unavailable), "{what}");
    }
    assert!(other.received().is_empty(), "{:?}", other.received());
}

/// Answers every question with the address 127.0.0.1 (RFC 1035, 4.1).
async fn loopback_name_server() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut bytes = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut bytes).await {
            let end = 12 + bytes[12..length].iter().position(|byte| *byte == 0).unwrap() + 5;
            let is_a = bytes[end - 3] == 1;
            let mut answer = bytes[..end].to_vec();
            answer[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, u8::from(is_a), 0, 0, 0, 0]);
            if is_a {
                answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
            }
            let _ = socket.send_to(&answer, from).await;
        }
    });
    address
}

#[tokio::test]
async fn a_name_of_a_private_address_is_refused() {
    let settings = NetworkSettings { dns: vec![loopback_name_server().await], ..NetworkSettings::default() };
    let network = Network::read(&settings).unwrap_or_else(|why| panic!("{why}"));
    let client = ServiceClient::new(Arc::new(network));
    let server = IssuerServer::start().await;
    let url = format!("https://keys.example:{}/jwks", server.port()).parse().unwrap();
    for (networks, is_prohibited) in [(vec![], true), (vec!["127.0.0.0/8".parse().unwrap()], false)] {
        // The second one reaches a server without TLS, which does not answer.
        let deadline = Instant::now() + Duration::from_secs(if is_prohibited { 60 } else { 2 });
        let request = ServiceRequest { url: &url, networks: &networks, body: None, authorization: None, deadline };
        let why = client.send(request).await.err().unwrap().to_string();
        assert_eq!(why.contains("127.0.0.1") && why.contains("networks = "), is_prohibited, "{why}");
    }
}

#[tokio::test]
async fn a_slow_issuer_costs_ten_seconds_at_most() {
    let key = TestKey::es256("k");
    let server = IssuerServer::with_keys(key_set(&[&key])).await;
    server.reply("/jwks", IssuerReply::Silence);
    let verifier = Arc::new(verifier_of(&server, ""));
    let token = token_of(&server, &key);
    let begun = Instant::now();
    let asking = tokio::spawn(async move { verifier.verify(&token, at(NOW)).await.err() });
    while server.count("/jwks") == 0 {
        server.arrived.notified().await;
    }
    // Everything waits now, so the clock jumps to the next deadline.
    tokio::time::pause();
    assert_eq!(asking.await.unwrap(), Some(TokenError::Unavailable));
    assert!((9..=10).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn concurrent_requests_share_one_fetch() {
    let key = TestKey::es256("k");
    let server = IssuerServer::with_keys(String::new()).await;
    server.reply("/jwks", IssuerReply::Slow(key_set(&[&key]), Duration::from_millis(200)));
    let verifier = verifier_of(&server, "");
    let token = token_of(&server, &key);
    let all = futures_util::future::join_all((0..50).map(|_| verifier.verify(&token, at(NOW)))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!((server.count("/jwks"), server.received().len()), (1, 2));
}

#[tokio::test]
async fn a_request_that_goes_away_does_not_end_the_fetch_of_others() {
    let key = TestKey::es256("k");
    let server = IssuerServer::with_keys(String::new()).await;
    server.reply("/jwks", IssuerReply::Slow(key_set(&[&key]), Duration::from_millis(200)));
    let verifier = verifier_of(&server, "");
    let token = token_of(&server, &key);
    let first = tokio::time::timeout(Duration::from_millis(50), verifier.verify(&token, at(NOW))).await;
    assert!(first.is_err());
    assert_eq!(verifier.verify(&token, at(NOW)).await.err(), None);
    assert_eq!(server.count("/jwks"), 1);
}

#[tokio::test]
async fn unknown_keys_lead_to_one_fetch_a_minute() {
    let key = TestKey::es256("k");
    let server = IssuerServer::with_keys(key_set(&[&key])).await;
    let verifier = verifier_of(&server, "");
    let flood = async |fetches: usize| {
        for number in 0..100 {
            let token = sign(&key, &header("ES256", &format!("x{number}")), &claims(&server.url("")));
            assert_eq!(verifier.verify(&token, at(NOW)).await.err(), Some(TokenError::UnknownKey));
        }
        assert_eq!(server.count("/jwks"), fetches);
    };
    // The first fetch, and one for the unknown keys.
    flood(2).await;
    advance(50).await;
    flood(2).await;
    advance(11).await;
    flood(3).await;
    assert_eq!(verifier.verify(&token_of(&server, &key), at(NOW)).await.err(), None);
}

#[tokio::test]
async fn keys_are_exchanged_in_flight() {
    let [old, new] = [TestKey::es256("old"), TestKey::es256("new")];
    let server = IssuerServer::with_keys(key_set(&[&old])).await;
    let verifier = verifier_of(&server, "");
    let [of_old, of_new] = [token_of(&server, &old), token_of(&server, &new)];
    let refused = async |token: &str| verifier.verify(token, at(NOW)).await.err();
    assert_eq!(refused(&of_old).await, None);
    server.reply("/jwks", IssuerReply::Json(key_set(&[&new])));
    assert_eq!(refused(&of_old).await, None, "remembered");
    assert_eq!(refused(&of_new).await, None, "fetched at once: the first fetch was for no unknown key");
    assert_eq!(refused(&of_old).await, Some(TokenError::UnknownKey), "forgotten, and its key is gone");
    server.reply("/jwks", IssuerReply::Json(key_set(&[&old])));
    assert_eq!(refused(&of_old).await, Some(TokenError::UnknownKey), "fetched for it less than a minute ago");
    assert_eq!(refused(&of_new).await, None, "remembered");
    advance(61).await;
    assert_eq!(refused(&of_old).await, None);
    assert_eq!(server.count("/jwks"), 3);
}

#[tokio::test]
async fn a_key_that_changes_under_its_kid_forgets_its_tokens() {
    let [old, new] = [TestKey::es256("k"), TestKey::es256("k")];
    let server = IssuerServer::with_keys(key_set(&[&old])).await;
    let verifier = verifier_of(&server, "");
    let token = token_of(&server, &old);
    assert_eq!(verifier.verify(&token, at(NOW)).await.err(), None);
    server.reply("/jwks", IssuerReply::Json(key_set(&[&new])));
    // The next fetch comes with the age of the old keys.
    advance(15 * 60).await;
    let unknown = sign(&new, &header("ES256", "x"), &claims(&server.url("")));
    assert_eq!(verifier.verify(&unknown, at(NOW)).await.err(), Some(TokenError::UnknownKey));
    assert_eq!(verifier.verify(&token, at(NOW)).await.err(), Some(TokenError::Signature));
}

#[tokio::test]
async fn keys_are_used_for_their_age() {
    for (age, fetched_again_after) in [
        (Some("max-age=120"), 120),
        (Some("max-age=1"), 60),
        (Some("no-store"), 60),
        (Some("max-age=999999999"), 24 * 3600),
        (None, 15 * 60),
    ] {
        let key = TestKey::es256("k");
        let server = IssuerServer::with_keys(key_set(&[&key])).await;
        let set = key_set(&[&key]);
        server.reply("/jwks", age.map_or(IssuerReply::Json(set.clone()), |age| IssuerReply::Cached(set, age)));
        let verifier = verifier_of(&server, "");
        let mut number = 0;
        for (seconds, fetches) in [(0, 1), (fetched_again_after - 2, 1), (3, 2)] {
            advance(seconds).await;
            // Another token each time: a remembered one needs no keys.
            number += 1;
            let mut claims = claims(&server.url(""));
            claims["jti"] = json!(number);
            let token = sign(&key, &header("ES256", "k"), &claims);
            assert_eq!(verifier.verify(&token, at(NOW)).await.err(), None);
            assert_eq!(server.count("/jwks"), fetches, "{age:?} after {seconds} s");
        }
    }
}

#[tokio::test]
async fn the_last_good_keys_stay_while_the_issuer_is_down() {
    let key = TestKey::es256("k");
    let server = IssuerServer::with_keys(key_set(&[&key])).await;
    let verifier = verifier_of(&server, "");
    let fresh = |number: u64| {
        let mut claims = claims(&server.url(""));
        claims["jti"] = json!(number);
        sign(&key, &header("ES256", "k"), &claims)
    };
    assert_eq!(verifier.verify(&fresh(0), at(NOW)).await.err(), None);
    for (number, reply) in
        [IssuerReply::Status(500), IssuerReply::Json("{}".to_owned()), IssuerReply::Silence].into_iter().enumerate()
    {
        server.reply("/jwks", reply);
        advance(24 * 3600).await;
        let begun = std::time::Instant::now();
        assert_eq!(verifier.verify(&fresh(1 + number as u64), at(NOW)).await.err(), None);
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        assert_eq!(server.count("/jwks"), 2 + number);
    }
}

#[tokio::test]
async fn an_issuer_can_withdraw_every_key() {
    let key = TestKey::es256("k");
    let server = IssuerServer::with_keys(key_set(&[&key])).await;
    let verifier = verifier_of(&server, "");
    let token = token_of(&server, &key);
    assert_eq!(verifier.verify(&token, at(NOW)).await.err(), None);
    server.reply("/jwks", IssuerReply::Json("{\"keys\":[]}".to_owned()));
    advance(15 * 60).await;
    let unknown = sign(&key, &header("ES256", "x"), &claims(&server.url("")));
    assert_eq!(verifier.verify(&unknown, at(NOW)).await.err(), Some(TokenError::UnknownKey));
    assert_eq!(verifier.verify(&token, at(NOW)).await.err(), Some(TokenError::UnknownKey), "its key is gone");
}

#[tokio::test]
async fn an_issuer_that_is_down_from_the_start_is_asked_again_soon() {
    let key = TestKey::es256("k");
    let server = IssuerServer::with_keys(key_set(&[&key])).await;
    server.reply("/jwks", IssuerReply::Status(503));
    let (verifier, token) = (verifier_of(&server, ""), token_of(&server, &key));
    for _ in 0..10 {
        assert_eq!(verifier.verify(&token, at(NOW)).await.err(), Some(TokenError::Unavailable));
    }
    assert_eq!(server.count("/jwks"), 1);
    server.reply("/jwks", IssuerReply::Json(key_set(&[&key])));
    advance(6).await;
    assert_eq!(verifier.verify(&token, at(NOW)).await.err(), None);
}

#[tokio::test]
async fn a_new_configuration_keeps_the_keys_and_forgets_the_tokens() {
    let key = TestKey::es256("k");
    let server = IssuerServer::with_keys(key_set(&[&key])).await;
    let token = token_of(&server, &key);
    let first = verifier_of(&server, "");
    assert_eq!(first.verify(&token, at(NOW)).await.err(), None);
    let auth = |more: &str| format!("issuers = [{{ issuer = '{}'{more} }}]", server.url(""));
    let same = try_verifier(&auth(""), Some(&first)).unwrap_or_else(|why| panic!("{why}"));
    server.reply("/jwks", IssuerReply::Status(500));
    assert_eq!(same.verify(&token, at(NOW)).await.err(), None, "the keys are kept");
    let other_audience = try_verifier(&auth(", audience = 'https://other.example'"), Some(&same));
    let other_audience = other_audience.unwrap_or_else(|why| panic!("{why}"));
    server.reply("/jwks", IssuerReply::Json(key_set(&[&key])));
    assert_eq!(other_audience.verify(&token, at(NOW)).await.err(), Some(TokenError::Audience), "nothing is remembered");
}

#[tokio::test]
async fn the_keys_of_two_issuers_are_apart() {
    let [one, two] = [TestKey::es256("k"), TestKey::es256("k")];
    let servers = [IssuerServer::with_keys(key_set(&[&one])).await, IssuerServer::with_keys(key_set(&[&two])).await];
    let verifier = verifier(&format!(
        "issuers = [{{ issuer = '{}' }}, {{ issuer = '{}' }}]",
        servers[0].url(""),
        servers[1].url("")
    ));
    assert_eq!(verifier.verify(&token_of(&servers[0], &one), at(NOW)).await.err(), None);
    assert_eq!(verifier.verify(&token_of(&servers[1], &two), at(NOW)).await.err(), None);
    assert_eq!(verifier.verify(&token_of(&servers[0], &two), at(NOW)).await.err(), Some(TokenError::Signature));
}
