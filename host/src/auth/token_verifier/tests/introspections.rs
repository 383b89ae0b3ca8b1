//! Opaque tokens: belljar asks their issuer.

use super::issuer_server::{IssuerReply, IssuerServer};
use super::*;

/// A verifier that asks `server` about opaque tokens.
fn verifier_of(server: &IssuerServer) -> TokenVerifier {
    verifier(&format!(
        "issuers = [{{ issuer = '{ISSUER}', jwks = 'keys.json', introspect = {{ url = '{}', client-id = 'bell:jar', client-secret = 'i' }} }}]",
        server.url("/introspect")
    ))
}

/// An answer about an active token.
fn active(change: impl FnOnce(&mut Value)) -> IssuerReply {
    let mut answer = claims(ISSUER);
    answer["active"] = json!(true);
    answer["token_type"] = json!("Bearer");
    change(&mut answer);
    IssuerReply::Json(answer.to_string())
}

#[tokio::test]
async fn the_issuer_is_asked_about_an_opaque_token() {
    let server = IssuerServer::start().await;
    server.reply("/introspect", active(|_| ()));
    let verifier = verifier_of(&server);
    let principal = verifier.verify("opaque+token/1==", at(NOW)).await.unwrap();
    assert_eq!((principal.to_string().as_str(), principal.client()), ("alice@https://login.example", Some("agent")));
    let received = server.received();
    assert_eq!(received[0].line, "POST /introspect");
    assert_eq!(received[0].body, "token=opaque%2Btoken%2F1%3D%3D&token_type_hint=access_token");
    let head = received[0].head.to_ascii_lowercase();
    assert!(head.contains("content-type: application/x-www-form-urlencoded"), "{head}");
    // "bell%3Ajar:a%20secret%2B%2F" (RFC 6749, 2.3.1).
    let basic = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, "bell%3Ajar:a%20secret%2B%2F");
    assert!(received[0].head.contains(&format!("Basic {basic}")), "{}", received[0].head);
    // A signed token needs no question.
    assert_eq!(verifier.verify(&token(|_| ()), at(NOW)).await.err(), None);
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn answers_are_checked_as_claims_are() {
    let json = |text: &str| IssuerReply::Json(text.to_owned());
    for (what, reply, error) in [
        ("inactive", json("{\"active\":false}"), TokenError::Inactive),
        ("inactive with claims", active(|c| c["active"] = json!(false)), TokenError::Inactive),
        ("active in words", active(|c| c["active"] = json!("true")), TokenError::Unavailable),
        ("active as a number", active(|c| c["active"] = json!(1)), TokenError::Unavailable),
        ("active twice", json("{\"active\":false,\"active\":true}"), TokenError::Unavailable),
        ("no JSON", json("active"), TokenError::Unavailable),
        ("no audience", active(|c| drop(c.as_object_mut().unwrap().remove("aud"))), TokenError::Audience),
        ("a foreign audience", active(|c| c["aud"] = json!("https://other.example")), TokenError::Audience),
        ("a foreign issuer", active(|c| c["iss"] = json!("https://evil.example")), TokenError::Issuer),
        ("no subject", active(|c| drop(c.as_object_mut().unwrap().remove("sub"))), TokenError::Claims),
        ("expired", active(|c| c["exp"] = json!(NOW - 60)), TokenError::Expired),
        ("not yet valid", active(|c| c["nbf"] = json!(NOW + 61)), TokenError::NotYetValid),
        ("bound by its type", active(|c| c["token_type"] = json!("DPoP")), TokenError::Bound),
        ("bound by a claim", active(|c| c["cnf"] = json!({ "jkt": "x" })), TokenError::Bound),
        ("a refusal", IssuerReply::Status(401), TokenError::Unavailable),
        ("an error", IssuerReply::Status(500), TokenError::Unavailable),
        ("a redirect", IssuerReply::Redirect("http://127.0.0.1:1/".to_owned()), TokenError::Unavailable),
        ("10 MiB", IssuerReply::Huge(10 << 20), TokenError::Unavailable),
    ] {
        let server = IssuerServer::start().await;
        server.reply("/introspect", reply);
        let verifier = verifier_of(&server);
        for _ in 0..2 {
            assert_eq!(verifier.verify("opaque", at(NOW)).await.err(), Some(error), "{what}");
        }
        assert_eq!(server.received().len(), 2, "{what}: a refusal is not remembered");
    }
    for (what, reply) in [
        ("no issuer", active(|c| drop(c.as_object_mut().unwrap().remove("iss")))),
        ("no expiry", active(|c| drop(c.as_object_mut().unwrap().remove("exp")))),
        ("no type", active(|c| drop(c.as_object_mut().unwrap().remove("token_type")))),
    ] {
        let server = IssuerServer::start().await;
        server.reply("/introspect", reply);
        assert_eq!(verifier_of(&server).verify("opaque", at(NOW)).await.err(), None, "{what}");
    }
}

#[tokio::test]
async fn an_answer_is_remembered_for_a_minute() {
    let server = IssuerServer::start().await;
    server.reply("/introspect", active(|_| ()));
    let verifier = verifier_of(&server);
    for (now, questions) in [(NOW, 1), (NOW + 59, 1), (NOW + 60, 2)] {
        assert_eq!(verifier.verify("opaque", at(now)).await.err(), None);
        assert_eq!(server.received().len(), questions, "{now}");
    }
    server.reply("/introspect", active(|c| c["exp"] = json!(NOW + 10)));
    for (now, questions) in [(NOW, 3), (NOW + 9, 3), (NOW + 10, 4)] {
        assert_eq!(verifier.verify("opaque2", at(now)).await.err(), None);
        assert_eq!(server.received().len(), questions, "{now}: not past its expiry");
    }
}

#[tokio::test]
async fn few_questions_run_at_once() {
    let server = IssuerServer::start().await;
    let IssuerReply::Json(answer) = active(|_| ()) else { panic!("JSON") };
    server.reply("/introspect", IssuerReply::Together(answer, 16));
    let verifier = verifier_of(&server);
    let tokens: Vec<String> = (0..40).map(|number| format!("opaque{number}")).collect();
    let all = futures_util::future::join_all(tokens.iter().map(|token| verifier.verify(token, at(NOW)))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!((server.received().len(), server.most_running()), (40, 16));
}

#[tokio::test]
async fn texts_that_are_no_tokens_are_not_sent() {
    let server = IssuerServer::start().await;
    server.reply("/introspect", active(|_| ()));
    let verifier = verifier_of(&server);
    for token in ["", "a b", "a&active=true", "a\r\nX: y", "é", "a\"", "a,b"] {
        assert_eq!(verifier.verify(token, at(NOW)).await.err(), Some(TokenError::Malformed), "{token:?}");
    }
    // A text in three parts is a signed token, and never sent to anyone.
    assert_eq!(verifier.verify("a.b.c", at(NOW)).await.err(), Some(TokenError::Malformed));
    assert!(server.received().is_empty());
    // Without an issuer to ask, an opaque token is malformed.
    assert_eq!(file_verifier().verify("opaque", at(NOW)).await.err(), Some(TokenError::Malformed));
}
