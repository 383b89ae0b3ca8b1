//! Tokens and keys of an issuer: which tokens are accepted, while its keys change, and while it is down.

use std::thread;
use std::time::{Duration, SystemTime};

use belljar_tests::wait_until;
use serde_json::json;

use super::protected::{CLOCK, Protected};

/// The tokens of each key in a test with reads at the same time.
const READS: usize = 20;

/// Seconds since 1970, this many seconds from now.
fn in_seconds(seconds: i64) -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    i64::try_from(now).unwrap() + seconds
}

#[test]
fn only_tokens_of_the_issuer_are_accepted() {
    let Some(protected) = Protected::start(json!({})) else { return };
    let good = protected.issuer.mint(&json!({}));
    protected.accept("a usual token", &good);
    // Fewer than belljar allows from one address in a minute.
    let hostile = [
        ("no signature", json!({ "key": "none" })),
        ("HMAC with the public key", json!({ "key": "public" })),
        ("an unknown key", json!({ "key": "unknown" })),
        ("another key under a known name", json!({ "key": "forged" })),
        ("another audience", json!({ "claims": { "aud": "http://127.0.0.1:1/mcp" } })),
        ("another issuer", json!({ "claims": { "iss": "https://login.example" } })),
        ("an expired token", json!({ "claims": { "exp": in_seconds(-120) } })),
        ("a token that is not yet valid", json!({ "claims": { "nbf": in_seconds(120) } })),
        ("another type of token", json!({ "header": { "typ": "JWT" } })),
    ];
    let mut tokens = vec![good.clone()];
    for (what, difference) in hostile {
        let token = protected.issuer.mint(&difference);
        protected.refuse(what, &token);
        tokens.push(token);
    }
    protected.accept("the usual token again", &good);
    let requests = protected.issuer.key_set_requests();
    assert!((1..=2).contains(&requests), "{requests} requests for the key set");
    // Without a signature, there is nothing to look for.
    tokens.retain(|token| !token.ends_with('.'));
    protected.stop(&tokens);
}

#[test]
fn the_last_keys_stay_in_use_while_the_issuer_is_down() {
    let Some(protected) = Protected::start(json!({})) else { return };
    protected.accept("a usual token", &protected.issuer.mint(&json!({})));
    protected.issuer.break_key_set(503);
    protected.accept("another token of the same key", &protected.issuer.mint(&json!({})));
    protected.refuse("a token of an unknown key", &protected.issuer.mint(&json!({ "key": "unknown" })));
    protected.accept("a third token of the same key", &protected.issuer.mint(&json!({})));
    protected.stop(&[]);
}

/// belljar fetches the key set once more for an unknown key, at once: the first fetch was not for one.
#[test]
fn a_new_key_of_the_issuer_is_accepted() {
    let Some(protected) = Protected::start(json!({})) else { return };
    let old = protected.issuer.mint(&json!({}));
    protected.accept("a token of the first key", &old);
    protected.issuer.add_key();
    protected.accept("a token of the new key", &protected.issuer.mint(&json!({})));
    protected.accept("the token of the first key", &old);
    protected.accept("a new token of the first key", &protected.issuer.mint(&json!({ "key": "previous" })));
    let requests = protected.issuer.key_set_requests();
    assert!(requests >= 2, "{requests} requests for the key set");
    protected.stop(&[]);
}

/// A token that was verified before is refused too: the issuer withdrew its key.
#[test]
fn a_withdrawn_key_of_the_issuer_is_refused() {
    let Some(protected) = Protected::start(json!({})) else { return };
    let old = protected.issuer.mint(&json!({}));
    protected.accept("a token of the first key", &old);
    protected.issuer.replace_key();
    protected.accept("a token of the new key", &protected.issuer.mint(&json!({})));
    protected.refuse("the token of the withdrawn key", &old);
    protected.stop(&[old]);
}

/// Reads go on with old and new tokens while the issuer rotates its keys. No read is refused.
#[test]
fn reads_go_on_while_the_issuer_rotates_its_keys() {
    let Some(protected) = Protected::start(json!({})) else { return };
    let mint = |difference: &serde_json::Value| -> Vec<String> {
        (0..READS).map(|_| protected.issuer.mint(difference)).collect()
    };
    let old = mint(&json!({}));
    let (first, rest) = old.split_first().unwrap();
    protected.accept("a token of the first key", first);
    thread::scope(|scope| {
        let reads =
            scope.spawn(|| rest.iter().for_each(|token| protected.accept("another token of the first key", token)));
        protected.issuer.add_key();
        for token in mint(&json!({})) {
            protected.accept("a token of the new key", &token);
            protected.accept("a token of the first key", first);
        }
        reads.join().unwrap();
    });
    let requests = protected.issuer.key_set_requests();
    // One for each set. On a slow machine, a set gets old meanwhile.
    assert!((2..READS as u64).contains(&requests), "{requests} requests for the key set");
    protected.stop(&[]);
}

/// The issuer's process has ended, so nobody answers at its address.
#[test]
fn tokens_are_accepted_after_the_issuer_has_ended() {
    let Some(protected) = Protected::start(json!({})) else { return };
    let [first, second, unknown] =
        [json!({}), json!({}), json!({ "key": "unknown" })].map(|of| protected.issuer.mint(&of));
    protected.accept("a usual token", &first);
    protected.issuer.end();
    protected.accept("a token that was not seen before", &second);
    protected.refuse("a token of an unknown key", &unknown);
    protected.accept("the first token", &first);
    protected.stop(&[first, second, unknown]);
}

/// Without any keys, belljar cannot tell good tokens from bad ones. It answers 503, and accepts the token later.
#[test]
fn an_issuer_that_is_down_at_the_start_is_asked_again() {
    let Some(protected) = Protected::start(json!({})) else { return };
    protected.issuer.break_key_set(503);
    let token = protected.issuer.mint(&json!({}));
    // More often than belljar allows an address to fail: these are no failures of the client.
    for _ in 0..12 {
        let answer = protected.read(CLOCK, &token);
        assert_eq!((answer.status, answer.header("retry-after")), (503, Some("5")), "{}", answer.text());
        assert_eq!(answer.header("www-authenticate"), None, "the token is not invalid");
    }
    protected.issuer.mend_key_set();
    wait_until("the keys of the issuer", || match protected.read(CLOCK, &token) {
        answer if answer.status == 503 => Err(answer.text()),
        _ => Ok(()),
    });
    protected.accept("the same token", &token);
    protected.stop(&[token]);
}

#[test]
fn opaque_tokens_that_the_issuer_does_not_know_are_refused() {
    let Some(protected) = Protected::start(json!({ "opaque": true })) else { return };
    protected.refuse("an unknown token", "nothing-that-was-issued");
    // belljar does not take the word of a token that it should introspect.
    protected.refuse("an unsigned token", &protected.issuer.mint(&json!({ "key": "none" })));
    protected.issuer.end();
    let answer = protected.read(CLOCK, "nothing-that-was-issued-either");
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("5")), "{}", answer.text());
    protected.stop(&["nothing-that-was-issued".to_owned()]);
}
