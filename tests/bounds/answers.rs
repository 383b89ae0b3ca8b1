//! What a provider answers instead of contents, or as contents that are none of its business: told by kind, in its own
//! words, cut and cleaned; and references that no provider gets to see.

use belljar_tests::client::INTERNAL;
use belljar_tests::{Client, Era, RpcError, Wire};
use serde_json::Value;

use crate::place::{assert_clean, imp, kind, serve, site};

const INVALID_PARAMS: i64 = -32602;

/// Runs `check` with a client of each era on each wire.
fn everywhere(check: impl Fn(&mut dyn FnMut(&str) -> Result<Value, RpcError>, Era)) {
    fn reader<W: Wire>(client: &mut Client<W>) -> impl FnMut(&str) -> Result<Value, RpcError> {
        |uri| client.read(uri)
    }
    let site = imp("");
    let server = site.http();
    for era in Era::ALL {
        check(&mut reader(&mut site.stdio(era)), era);
        check(&mut reader(&mut server.client(era)), era);
    }
}

#[test]
fn each_kind_of_error_has_its_code_and_says_so() {
    everywhere(|read, era| {
        for (reference, code, name) in [
            ("errors/not-found", era.not_found(), "not-found"),
            ("no-such-verb", era.not_found(), "not-found"),
            ("errors/invalid/plain", INVALID_PARAMS, "invalid"),
            ("errors/denied/plain", INTERNAL, "denied"),
            ("errors/unavailable/plain", INTERNAL, "unavailable"),
            ("errors/failed/plain", INTERNAL, "failed"),
            ("trap", INTERNAL, "trap"),
            ("empty", INTERNAL, "bad-output"),
            ("grow/1000", INTERNAL, "limit"),
        ] {
            let uri = format!("belljar://imp/{reference}");
            let error = read(&uri).expect_err(reference);
            assert_eq!((error.code, kind(&error)), (code, name), "{era:?} {reference}: {error}");
            assert_eq!(error.data["mount"], "imp", "{era:?} {reference}: {error}");
            assert_eq!(error.data["uri"], uri, "{era:?} {reference}: {error}");
            if reference.ends_with("/plain") {
                assert!(error.message.contains("\"the imp says no\""), "{era:?} {reference}: {error}");
                assert!(error.message.contains("the provider"), "not told as its words: {error}");
            }
        }
    });
}

/// What was missing is told with the line that gives it.
#[test]
fn a_denial_names_what_would_allow_it() {
    let site = imp("");
    let mut client = serve(&site);
    let error = client.read("belljar://imp/errors/denied/plain").expect_err("an error");
    let hint = error.data["hint"].as_str().unwrap_or_else(|| panic!("no hint: {error}"));
    assert!(hint.contains("[mounts.imp]") && hint.contains("fs = "), "{hint}");
}

#[test]
fn contents_are_for_what_was_asked() {
    let site = imp("");
    let mut client = serve(&site);
    let result = client.read("belljar://imp/many/3").unwrap();
    let uris: Vec<_> = result["contents"].as_array().unwrap().iter().map(|contents| &contents["uri"]).collect();
    assert_eq!(uris, ["belljar://imp/many/3"; 3]);
}

/// None of these gets to a provider: the imp would count the call, or answer it.
#[test]
fn references_that_climb_or_confuse_are_refused_before_any_provider_sees_them() {
    let site =
        site("[mounts.imp]\ncomponent = \"imp.wasm\"\n[mounts.any]\ncomponent = \"imp.wasm\"\nuri = \"any://\"\n");
    for era in Era::ALL {
        let mut client = site.stdio(era);
        for bad in [
            "..",
            ".",
            "../clock/utc",
            "ok/..",
            "ok/../ok",
            "./ok",
            "ok/.",
            "%2e%2e/ok",
            "%2E%2E/ok",
            ".%2e/ok",
            "%2e./ok",
            "ok/%2e",
            "..%2fok",
            "..%2Fok",
            "%2e%2e%2fok",
            "%2e%2e%5cok",
            "..%5Cok",
            "..\\ok",
            "a\\..\\ok",
            "ok%00",
            "%00",
            "ok%0a",
            "ok%0D",
            "ok%1b",
            "%c0%ae%c0%ae/ok",
            "%ff",
            "%e0%80%af",
            "%C2%85",
            "/ok",
            "//ok",
            "//clock/utc",
            "ok#x",
            "#",
            "ok ",
            " ok",
            "o k",
            "ok%",
            "ok%2",
            "ok%zz",
            "ok{x}",
            "o<k",
            "o\"k",
            "o|k",
            "o^k",
            "o`k",
            "[ok]",
            "\u{e9}",
            "ok\n",
            "\tok",
            "\u{ff0e}\u{ff0e}/ok",
            "\u{2024}\u{2024}/ok",
            "x:y",
        ] {
            for base in ["belljar://imp/", "any://"] {
                let error = client.read(&format!("{base}{bad}")).expect_err(bad);
                assert_eq!((error.code, kind(&error)), (INVALID_PARAMS, "bad-uri"), "{era:?} {base}{bad:?}: {error}");
                assert_clean(&error.message);
            }
        }
        let long = "x".repeat(3000);
        for bad in ["", "imp", "/imp/ok", "belljar", long.as_str(), "belljar://imp/\u{202e}", "://imp/ok"] {
            let error = client.read(bad).expect_err(bad);
            assert_eq!((error.code, kind(&error)), (INVALID_PARAMS, "bad-uri"), "{era:?} {bad:?}: {error}");
            assert_clean(&error.message);
        }
        // Well formed, and nobody's.
        for strange in [
            "belljar://nobody/ok",
            "belljar://imp",
            "Belljar://imp/ok",
            "BELLJAR://imp/ok",
            "file:///etc/passwd",
            "belljar:///imp/ok",
        ] {
            let error = client.read(strange).expect_err(strange);
            assert_eq!((error.code, kind(&error)), (era.not_found(), "not-found"), "{era:?} {strange}: {error}");
        }
        assert!(client.close().status.success());
    }
    let seen: Vec<_> =
        site.audit().into_iter().filter(|record| !record["mount"].is_null() && record["operation"] == "read").collect();
    assert_eq!(seen, Vec::<Value>::new(), "a provider was asked");
}

/// Letter by letter: nothing is decoded, folded or tidied on the way to the provider.
#[test]
fn a_provider_gets_the_reference_as_it_was_sent() {
    let site = imp("");
    let mut client = serve(&site);
    for reference in ["a//b", "a/", "%41", "%2541", "a?b=c&d=%2F", "x%252e%252e/y", "...", "a;b=1,2", "caf%C3%A9"] {
        let uri = format!("belljar://imp/{reference}");
        client.read(&uri).expect_err("no such verb");
    }
    assert!(client.close().status.success());
    let asked: Vec<_> = site
        .audit()
        .iter()
        .filter(|record| record["mount"] == "imp")
        .map(|record| record["reference"].clone())
        .collect();
    assert_eq!(asked, ["a//b", "a/", "%41", "%2541", "a?b=c&d=%2F", "x%252e%252e/y", "...", "a;b=1,2", "caf%C3%A9"]);
}
