//! Errors of the hostile guest (`tests/guests/hostile`, a hostile provider), over both transports of the real server:
//! each has its kind, and the provider's words, cut and cleaned. belljar refuses malformed references before a provider
//! gets them.

use belljar_tests::client::INTERNAL;
use belljar_tests::{Client, Era, RpcError, Wire};
use serde_json::Value;

use crate::support::{assert_clean, hostile_guest, kind, serve, site};

const INVALID_PARAMS: i64 = -32602;

/// Runs `check` with a client of each protocol era, over stdio and over HTTP.
fn everywhere(check: impl Fn(&mut dyn FnMut(&str) -> Result<Value, RpcError>, Era)) {
    fn reader<W: Wire>(client: &mut Client<W>) -> impl FnMut(&str) -> Result<Value, RpcError> {
        |uri| client.read(uri)
    }
    let site = hostile_guest("");
    let server = site.http();
    for era in Era::ALL {
        check(&mut reader(&mut site.stdio(era)), era);
        check(&mut reader(&mut server.client(era)), era);
    }
}

#[test]
fn each_kind_of_error_has_its_code_and_its_name() {
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
            let uri = format!("belljar://hostile/{reference}");
            let error = read(&uri).expect_err(reference);
            assert_eq!((error.code, kind(&error)), (code, name), "{era:?} {reference}: {error}");
            assert_eq!(error.data["mount"], "hostile", "{era:?} {reference}: {error}");
            assert_eq!(error.data["uri"], uri, "{era:?} {reference}: {error}");
            if reference.ends_with("/plain") {
                assert!(error.message.contains("\"the hostile guest says no\""), "{era:?} {reference}: {error}");
                assert!(
                    error.message.contains("the provider"),
                    "the message does not name the provider as its source: {error}"
                );
            }
        }
    });
}

/// The error names the missing grant, and the line of the configuration that gives it.
#[test]
fn a_denial_names_the_grant_that_would_allow_the_read() {
    let site = hostile_guest("");
    let mut client = serve(&site);
    let error = client.read("belljar://hostile/errors/denied/plain").expect_err("an error");
    let hint = error.data["hint"].as_str().unwrap_or_else(|| panic!("no hint: {error}"));
    assert!(hint.contains("[mounts.hostile]") && hint.contains("fs = "), "{hint}");
}

#[test]
fn contents_belong_to_the_requested_resource() {
    let site = hostile_guest("");
    let mut client = serve(&site);
    let result = client.read("belljar://hostile/many/3").unwrap();
    let uris: Vec<_> = result["contents"].as_array().unwrap().iter().map(|contents| &contents["uri"]).collect();
    assert_eq!(uris, ["belljar://hostile/many/3"; 3]);
}

/// Dot segments, wrong encodings and forbidden characters: no provider gets any of these references. The record shows
/// no call.
#[test]
fn malformed_references_are_refused_before_a_provider_gets_them() {
    let site = site(
        "[mounts.hostile]\ncomponent = \"hostile.wasm\"\n[mounts.any]\ncomponent = \"hostile.wasm\"\nuri = \"any://\"\n",
    );
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
            for base in ["belljar://hostile/", "any://"] {
                let error = client.read(&format!("{base}{bad}")).expect_err(bad);
                assert_eq!((error.code, kind(&error)), (INVALID_PARAMS, "bad-uri"), "{era:?} {base}{bad:?}: {error}");
                assert_clean(&error.message);
            }
        }
        let long = "x".repeat(3000);
        for bad in
            ["", "hostile", "/hostile/ok", "belljar", long.as_str(), "belljar://hostile/\u{202e}", "://hostile/ok"]
        {
            let error = client.read(bad).expect_err(bad);
            assert_eq!((error.code, kind(&error)), (INVALID_PARAMS, "bad-uri"), "{era:?} {bad:?}: {error}");
            assert_clean(&error.message);
        }
        // Well-formed URIs that belong to no mount.
        for unknown in [
            "belljar://nobody/ok",
            "belljar://hostile",
            "Belljar://hostile/ok",
            "BELLJAR://hostile/ok",
            "file:///etc/passwd",
            "belljar:///hostile/ok",
        ] {
            let error = client.read(unknown).expect_err(unknown);
            assert_eq!((error.code, kind(&error)), (era.not_found(), "not-found"), "{era:?} {unknown}: {error}");
        }
        assert!(client.close().status.success());
    }
    let calls: Vec<_> =
        site.audit().into_iter().filter(|record| !record["mount"].is_null() && record["operation"] == "read").collect();
    assert_eq!(calls, Vec::<Value>::new(), "a provider was called");
}

/// belljar does not decode or normalize the reference.
#[test]
fn a_provider_gets_the_reference_as_sent() {
    let site = hostile_guest("");
    let mut client = serve(&site);
    for reference in ["a//b", "a/", "%41", "%2541", "a?b=c&d=%2F", "x%252e%252e/y", "...", "a;b=1,2", "caf%C3%A9"] {
        let uri = format!("belljar://hostile/{reference}");
        client.read(&uri).expect_err("no such verb");
    }
    assert!(client.close().status.success());
    let recorded: Vec<_> = site
        .audit()
        .iter()
        .filter(|record| record["mount"] == "hostile")
        .map(|record| record["reference"].clone())
        .collect();
    assert_eq!(recorded, ["a//b", "a/", "%41", "%2541", "a?b=c&d=%2F", "x%252e%252e/y", "...", "a;b=1,2", "caf%C3%A9"]);
}
