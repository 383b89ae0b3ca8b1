//! Hostile tokens. Each row is refused, and for the right reason.

use super::tokens::sign_text;
use super::*;

/// A row: what it is, the token, and why it is refused.
type Row = (&'static str, String, TokenError);

/// A verifier for two issuers, whose keys are in files.
fn two_issuers() -> TokenVerifier {
    verifier(&format!(
        "issuers = [{{ issuer = '{ISSUER}', jwks = 'keys.json' }}, {{ issuer = 'https://other.example', jwks = 'other.json' }}]"
    ))
}

fn malformed() -> Vec<Row> {
    let good = token(|_| ());
    let parts: Vec<&str> = good.split('.').collect();
    let [header_part, claims_part, signature] = parts[..] else { panic!("three parts") };
    let text = claims(ISSUER).to_string();
    let with_header = |header: &str| sign_text(&KEYS.es256, header, &text);
    let with_claims = |claims: &str| sign_text(&KEYS.es256, &header("ES256", "es").to_string(), claims);
    let (last, rest) = (signature.chars().last().unwrap(), &signature[..signature.len() - 1]);
    // The last character has four unused bits.
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let other = alphabet.chars().nth(alphabet.find(last).unwrap() + 1).unwrap();
    let encoded = |claims: &[u8]| {
        let message = format!("{header_part}.{}", encode(claims));
        format!("{message}.{}", encode(KEYS.es256.signature("ES256", &message)))
    };
    let all = vec![
        ("nothing", String::new()),
        ("a word", "abc".to_owned()),
        ("two parts", format!("{header_part}.{claims_part}")),
        ("two signatures", format!("{good}.{signature}")),
        ("two signatures in JSON", json!({ "payload": claims_part, "signatures": [{ "protected": header_part, "signature": signature }, { "protected": header_part, "signature": signature }] }).to_string()),
        ("an encrypted token in five parts", format!("{good}.{signature}.{signature}")),
        ("empty parts", "..".to_owned()),
        ("padding after the signature", format!("{good}==")),
        ("padding after the header", format!("{header_part}=.{claims_part}.{signature}")),
        ("the other alphabet", format!("{header_part}.{claims_part}.+{}", &signature[1..])),
        ("unused bits that are set", format!("{header_part}.{claims_part}.{rest}{other}")),
        ("a line break in it", format!("{header_part}.{claims_part}.\n{signature}")),
        ("a space behind it", format!("{good} ")),
        ("a scheme before it", format!("Bearer {good}")),
        ("a null byte in it", format!("{good}\0")),
        ("letters of another script", format!("{good}é")),
        ("1 MiB", token(|claims| claims["x"] = json!("x".repeat(1 << 20)))),
        ("one byte more than 16 KiB", "a".repeat((16 << 10) + 1)),
        ("a header that is no JSON", with_header("alg=ES256")),
        ("a header that is an array", with_header("[\"ES256\"]")),
        ("a header of null", with_header("null")),
        ("alg twice", with_header(r#"{"alg":"none","alg":"ES256","kid":"es","typ":"at+jwt"}"#)),
        ("alg twice, once escaped", with_header(r#"{"alg":"ES256","\u0061lg":"none","kid":"es","typ":"at+jwt"}"#)),
        ("kid twice", with_header(r#"{"alg":"ES256","kid":"es","kid":"x","typ":"at+jwt"}"#)),
        ("alg is a number", with_header(r#"{"alg":256,"kid":"es","typ":"at+jwt"}"#)),
        ("alg is an array", with_header(r#"{"alg":["ES256"],"kid":"es","typ":"at+jwt"}"#)),
        ("kid is a number", with_header(r#"{"alg":"ES256","kid":1,"typ":"at+jwt"}"#)),
        ("a kid of 1 KiB", sign(&KEYS.es256, &header("ES256", &"x".repeat(1024)), &claims(ISSUER))),
        ("typ is null", with_header(r#"{"alg":"ES256","kid":"es","typ":null}"#)),
        ("a critical extension", with_header(r#"{"alg":"ES256","kid":"es","typ":"at+jwt","crit":["x"],"x":1}"#)),
        ("an empty list of critical extensions", with_header(r#"{"alg":"ES256","kid":"es","typ":"at+jwt","crit":[]}"#)),
        ("claims that are not encoded", with_header(r#"{"alg":"ES256","kid":"es","typ":"at+jwt","b64":false,"crit":["b64"]}"#)),
        ("text behind the header", with_header(r#"{"alg":"ES256","kid":"es","typ":"at+jwt"} {}"#)),
        ("iss twice", with_claims(&text.replacen('{', &format!("{{\"iss\":\"{ISSUER}\","), 1))),
        ("sub twice, once escaped", with_claims(&text.replacen('{', r#"{"s\u0075b":"root","#, 1))),
        ("a member twice, deep inside", with_claims(&text.replacen('{', r#"{"x":{"y":1,"y":2},"#, 1))),
        ("text behind the claims", with_claims(&format!("{text}{text}"))),
        ("claims that are an array", with_claims(&format!("[{text}]"))),
        ("claims that are no text", encoded(b"{\"iss\":\"\xff\"}")),
        ("claims that are deep", with_claims(&"[".repeat(5000))),
        ("a token as the claims of a token", sign_text(&KEYS.es256, r#"{"alg":"ES256","kid":"es","typ":"at+jwt","cty":"JWT"}"#, &good)),
        ("compressed claims", encoded(&[0x78, 0x9c, 0x03, 0x00])),
    ];
    all.into_iter().map(|(what, token)| (what, token, TokenError::Malformed)).collect()
}

fn algorithms() -> Vec<Row> {
    let mut all = Vec::new();
    for alg in ["none", "None", "NONE", "nOnE", "none ", ""] {
        let token = format!("{}.{}.", encode(header(alg, "es").to_string()), encode(claims(ISSUER).to_string()));
        all.push(("no signature at all", token, TokenError::Algorithm));
    }
    let signed = token(|_| ());
    let kept = signed.rsplit_once('.').unwrap().1;
    let unsigned = encode(header("none", "es").to_string());
    all.push((
        "alg none with a signature",
        format!("{unsigned}.{}.{kept}", encode(claims(ISSUER).to_string())),
        TokenError::Algorithm,
    ));
    let point = [URL_POINT, &KEYS.es256.jwk()["x"].as_str().unwrap().as_bytes()[..8]].concat();
    let jwk = KEYS.es256.jwk().to_string();
    let set = KEYS.set();
    for (what, alg, secret) in [
        ("HMAC with the public key", "HS256", jwk.as_bytes()),
        ("HMAC with the key set", "HS256", set.as_bytes()),
        ("HMAC with a part of the key", "HS256", point.as_slice()),
        ("HMAC with SHA-512", "HS512", jwk.as_bytes()),
        ("HMAC without a secret", "HS256", b""),
    ] {
        let message = format!("{}.{}", encode(header(alg, "es").to_string()), encode(claims(ISSUER).to_string()));
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
        let token = format!("{message}.{}", encode(ring::hmac::sign(&key, message.as_bytes())));
        all.push((what, token, TokenError::Algorithm));
    }
    let with = |key: &TestKey, alg: &str, kid: &str| sign(key, &header(alg, kid), &claims(ISSUER));
    let Keys { es256, ed25519, rsa } = &*KEYS;
    all.extend([
        ("no alg", sign(es256, &json!({ "kid": "es", "typ": "at+jwt" }), &claims(ISSUER)), TokenError::Algorithm),
        ("alg in small letters", with(es256, "es256", "es"), TokenError::Algorithm),
        ("an algorithm that the issuer does not use", with(rsa, "RS384", "rs"), TokenError::Algorithm),
        ("an algorithm of the future", with(es256, "ES256K", "es"), TokenError::Algorithm),
        ("the algorithm of RSA for an EC key", with(es256, "RS256", "es"), TokenError::UnknownKey),
        ("the algorithm of EC for an RSA key", with(rsa, "ES256", "rs"), TokenError::UnknownKey),
        ("another curve", with(es256, "ES384", "es"), TokenError::UnknownKey),
        ("the algorithm of Ed25519 for an EC key", with(es256, "EdDSA", "es"), TokenError::UnknownKey),
        ("the algorithm of EC for an Ed25519 key", with(ed25519, "ES256", "ed"), TokenError::UnknownKey),
        (
            "the signature of PKCS 1 as one of PSS",
            {
                let message =
                    format!("{}.{}", encode(header("PS256", "rs").to_string()), encode(claims(ISSUER).to_string()));
                format!("{message}.{}", encode(rsa.signature("RS256", &message)))
            },
            TokenError::Signature,
        ),
    ]);
    let typ = |typ: Value| sign(es256, &json!({ "alg": "ES256", "kid": "es", "typ": typ }), &claims(ISSUER));
    all.extend([
        ("a plain JWT, such as an ID token", typ(json!("JWT")), TokenError::Type),
        ("no type", sign(es256, &json!({ "alg": "ES256", "kid": "es" }), &claims(ISSUER)), TokenError::Type),
        ("a proof", typ(json!("dpop+jwt")), TokenError::Type),
        ("a type that begins well", typ(json!("at+jwt; x")), TokenError::Type),
        ("an assertion of identity", typ(json!("oauth-id-jag+jwt")), TokenError::Type),
    ]);
    all
}

/// The start of an uncompressed point.
const URL_POINT: &[u8] = &[4];

fn keys() -> Vec<Row> {
    let thief = TestKey::es256("es");
    let with = |extra: Value, key: &TestKey| {
        let mut header = header("ES256", "es");
        header.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        sign(key, &header, &claims(ISSUER))
    };
    let named = |kid: &str| sign(&KEYS.es256, &header("ES256", kid), &claims(ISSUER));
    let good = token(|_| ());
    let other = token(|claims| claims["sub"] = json!("mallory"));
    let parts = |token: &str| -> Vec<String> { token.split('.').map(str::to_owned).collect() };
    let (good_parts, other_parts) = (parts(&good), parts(&other));
    let signed = |signature: &[u8]| format!("{}.{}.{}", good_parts[0], good_parts[1], encode(signature));
    let message = format!("{}.{}", good_parts[0], good_parts[1]);
    let mut flipped = KEYS.es256.signature("ES256", &message);
    flipped[40] ^= 1;
    let right = KEYS.es256.signature("ES256", &message);
    vec![
        ("a key of another", with(json!({}), &thief), TokenError::Signature),
        ("its own key in the header", with(json!({ "jwk": thief.jwk() }), &thief), TokenError::Signature),
        ("a key set of its own", with(json!({ "jku": "https://evil.example/jwks" }), &thief), TokenError::Signature),
        (
            "a certificate of its own",
            with(json!({ "x5u": "https://evil.example/c", "x5c": ["MIIB"] }), &thief),
            TokenError::Signature,
        ),
        ("the kid of another issuer", named("other"), TokenError::UnknownKey),
        ("an unknown kid", named("x"), TokenError::UnknownKey),
        ("an empty kid", named(""), TokenError::UnknownKey),
        ("a kid that is a path", named("../../../../dev/null"), TokenError::UnknownKey),
        ("a kid that is a query", named("es' OR '1'='1"), TokenError::UnknownKey),
        ("a kid with capitals", named("ES"), TokenError::UnknownKey),
        ("no signature", format!("{message}."), TokenError::Signature),
        ("a signature of zeros", signed(&[0; 64]), TokenError::Signature),
        ("one wrong bit", signed(&flipped), TokenError::Signature),
        ("half a signature", signed(&right[..32]), TokenError::Signature),
        ("a signature and a byte", signed(&[&right[..], &[0]].concat()), TokenError::Signature),
        (
            "the signature of other claims",
            format!("{}.{}.{}", good_parts[0], other_parts[1], good_parts[2]),
            TokenError::Signature,
        ),
        (
            "the signature of another header",
            format!(
                "{}.{}.{}",
                encode(r#"{"alg":"ES256","kid":"es","typ":"at+jwt","x":1}"#),
                good_parts[1],
                good_parts[2]
            ),
            TokenError::Signature,
        ),
        (
            "the issuer of another's key",
            sign(&KEYS.es256, &header("ES256", "es"), &claims("https://other.example")),
            TokenError::UnknownKey,
        ),
    ]
}

fn claims_rows() -> Vec<Row> {
    let set = |name: &'static str, value: Value| token(move |claims| claims[name] = value);
    let without = |name: &'static str| token(move |claims| drop(claims.as_object_mut().unwrap().remove(name)));
    let mut all = vec![
        ("no audience", without("aud"), TokenError::Audience),
        ("no issuer", without("iss"), TokenError::Issuer),
        ("no expiry", without("exp"), TokenError::Claims),
        ("no subject", without("sub"), TokenError::Claims),
    ];
    for (what, name, value, error) in [
        ("a foreign issuer", "iss", json!("https://evil.example"), TokenError::Issuer),
        ("the issuer with a slash", "iss", json!("https://login.example/"), TokenError::Issuer),
        ("the issuer in capitals", "iss", json!("https://LOGIN.example"), TokenError::Issuer),
        ("the issuer with a port", "iss", json!("https://login.example:443"), TokenError::Issuer),
        ("the issuer as a prefix", "iss", json!("https://login.example.evil"), TokenError::Issuer),
        ("two issuers", "iss", json!([ISSUER]), TokenError::Issuer),
        ("a foreign audience", "aud", json!("https://other.example/mcp"), TokenError::Audience),
        ("the audience as a prefix", "aud", json!("https://mcp.example"), TokenError::Audience),
        ("the audience and more", "aud", json!("https://mcp.example/mcp/x"), TokenError::Audience),
        ("the audience with a slash", "aud", json!("https://mcp.example/mcp/"), TokenError::Audience),
        ("the audience in capitals", "aud", json!("https://MCP.example/mcp"), TokenError::Audience),
        ("audiences of others", "aud", json!(["https://mcp.example", "mcp"]), TokenError::Audience),
        ("audiences in one text", "aud", json!(format!("{URL} https://other.example")), TokenError::Audience),
        ("no audiences", "aud", json!([]), TokenError::Audience),
        ("an audience in an audience", "aud", json!([[URL]]), TokenError::Claims),
        ("an audience as a key", "aud", json!({ URL: true }), TokenError::Claims),
        ("a star as audience", "aud", json!("*"), TokenError::Audience),
        ("expired", "exp", json!(NOW - 3600), TokenError::Expired),
        ("expired by the skew", "exp", json!(NOW - 60), TokenError::Expired),
        ("an expiry in words", "exp", json!("2099-01-01"), TokenError::Claims),
        ("an expiry as a text", "exp", json!(NOW.to_string()), TokenError::Claims),
        ("an expiry of null", "exp", Value::Null, TokenError::Claims),
        ("an expiry before 1970", "exp", json!(-1), TokenError::Claims),
        ("an expiry in milliseconds", "exp", json!(NOW * 1000), TokenError::Claims),
        ("an expiry at the end of time", "exp", json!(1e300), TokenError::Claims),
        ("an expiry beyond all numbers", "exp", json!(u64::MAX), TokenError::Claims),
        ("not yet valid", "nbf", json!(NOW + 3600), TokenError::NotYetValid),
        ("not yet valid by the skew", "nbf", json!(NOW + 61), TokenError::NotYetValid),
        ("issued in the future", "iat", json!(NOW + 3600), TokenError::NotYetValid),
        ("a start in words", "nbf", json!("now"), TokenError::Claims),
        ("an empty subject", "sub", json!(""), TokenError::Claims),
        ("a long subject", "sub", json!("x".repeat(256)), TokenError::Claims),
        ("a subject that is a number", "sub", json!(0), TokenError::Claims),
        ("a subject with a line break", "sub", json!("a\nlevel=info"), TokenError::Claims),
        ("a subject with an escape", "sub", json!("a\u{1b}[2J"), TokenError::Claims),
        ("a scope that is a number", "scope", json!(1), TokenError::Claims),
        ("a scope with a quotation mark", "scope", json!("a\", error=\"x"), TokenError::Claims),
        ("a scope with a line break", "scope", json!("a\r\nX: y"), TokenError::Claims),
        ("a group that is a number", "groups", json!(["a", 1]), TokenError::Claims),
        ("groups as keys", "groups", json!({ "admin": true }), TokenError::Claims),
        ("an empty group", "groups", json!([""]), TokenError::Claims),
        ("a client that is an array", "client_id", json!(["a"]), TokenError::Claims),
        ("a token that is bound to a key", "cnf", json!({ "jkt": "x" }), TokenError::Bound),
    ] {
        all.push((what, set(name, value), error));
    }
    all
}

#[tokio::test]
async fn hostile_tokens_are_refused() {
    let verifier = two_issuers();
    let rows = [malformed(), algorithms(), keys(), claims_rows()].concat();
    assert!(rows.len() >= 60, "{}", rows.len());
    assert_eq!(verifier.verify(&token(|_| ()), at(NOW)).await.err(), None, "the token that the rows change");
    for (what, token, error) in rows {
        let refused = verifier.verify(&token, at(NOW)).await.err();
        assert_eq!(refused, Some(error), "{what}: {}", &token[..token.len().min(300)]);
        // A refusal is not remembered as a success.
        assert_eq!(verifier.verify(&token, at(NOW)).await.err(), Some(error), "{what}, again");
    }
}

#[tokio::test]
async fn a_token_without_kid_needs_a_key_that_is_the_only_one() {
    let keys = [TestKey::es256("a"), TestKey::es256("b")];
    let server = issuer_server::IssuerServer::with_keys(key_set(&[&keys[0], &keys[1]])).await;
    let verifier = verifier(&format!("issuers = [{{ issuer = '{}' }}]", server.url("")));
    let token = sign(&keys[0], &json!({ "alg": "ES256", "typ": "at+jwt" }), &claims(&server.url("")));
    assert_eq!(verifier.verify(&token, at(NOW)).await.err(), Some(TokenError::UnknownKey));
}

#[test]
fn unusable_keys_are_left_out() {
    let good = KEYS.es256.jwk();
    let with = |name: &str, value: Value| {
        let mut jwk = KEYS.es256.jwk();
        jwk[name] = value;
        jwk
    };
    let weak = json!({ "kty": "RSA", "kid": "w", "n": encode([0xff; 128]), "e": "AQAB" });
    let huge = json!({ "kty": "RSA", "kid": "w", "n": encode([0xff; 1025]), "e": "AQAB" });
    let padded = json!({ "kty": "RSA", "kid": "w", "n": encode([&[0; 200][..], &[0xff; 100]].concat()), "e": "AQAB" });
    for (what, key) in [
        ("symmetric", json!({ "kty": "oct", "kid": "es", "k": encode([1; 32]) })),
        ("weak", weak),
        ("weak behind zeros", padded),
        ("too large", huge),
        ("for encryption", with("use", json!("enc"))),
        ("for other operations", with("key_ops", json!(["sign"]))),
        ("operations that are no list", with("key_ops", json!("verify"))),
        ("on another curve", with("crv", json!("secp256k1"))),
        ("of the wrong length", with("x", json!(encode([1; 31])))),
        ("not canonical", with("x", json!(format!("{}=", good["x"].as_str().unwrap())))),
        ("without type", with("kty", Value::Null)),
        ("with a kid that is a number", with("kid", json!(1))),
        ("with a use that is a number", with("use", json!(1))),
        ("no object", json!("key")),
    ] {
        let alone = json!({ "keys": [key] }).to_string();
        assert_eq!(KeySet::parse(alone.as_bytes()), Err(KeySetError::NoKey), "{what}");
        let both = json!({ "keys": [key, good] }).to_string();
        assert_eq!(
            KeySet::parse(both.as_bytes()).unwrap().candidates(Some("es"), TokenAlgorithm::Es256).len(),
            1,
            "{what}"
        );
    }
    let other_algorithm = json!({ "keys": [with("alg", json!("ES384"))] }).to_string();
    let set = KeySet::parse(other_algorithm.as_bytes()).unwrap();
    assert!(set.candidates(Some("es"), TokenAlgorithm::Es256).is_empty(), "the key names its only algorithm");
    for (text, error) in [
        ("[]", KeySetError::Malformed),
        ("{\"keys\":{}}", KeySetError::Malformed),
        ("{\"keys\":[],\"keys\":[]}", KeySetError::Malformed),
    ] {
        assert_eq!(KeySet::parse(text.as_bytes()), Err(error), "{text}");
    }
    let none = KeySet::parse(b"{\"keys\":[]}").unwrap();
    assert!(none.candidates(Some("es"), TokenAlgorithm::Es256).is_empty(), "the issuer has withdrawn every key");
    let many = |number: usize| json!({ "keys": vec![good.clone(); number] }).to_string();
    assert!(KeySet::parse(many(64).as_bytes()).is_ok());
    assert_eq!(KeySet::parse(many(65).as_bytes()), Err(KeySetError::TooManyKeys));
    let set = KeySet::parse(many(64).as_bytes()).unwrap();
    assert_eq!(set.candidates(Some("es"), TokenAlgorithm::Es256).len(), 4, "the work for one token is bounded");
}
