//! `belljar search` in indexes of the configuration, with the real command and a real registry.

use belljar_tests::{Artifact, Era};
use serde_json::{Value, json};

use super::{NAME, TEXT, fails, release, start, succeeds};
use crate::support::{empty, stdout_and_stderr};

#[test]
fn without_an_index_it_says_how_to_configure_one() {
    let site = empty();
    let said = fails(&site, &["search", "tides"]);
    assert!(said.contains("there is no central one") && said.contains("[[search.indexes]]"), "{said}");
}

#[test]
fn what_a_registry_and_a_list_have_is_found_and_added() {
    let Some((site, registry)) = start() else { return };
    registry.push(NAME, "1.0.0", &release("guest_fixture", "1.0.0"));
    registry.push(NAME, "1.1.0", &release("guest_fixture", "1.1.0"));
    registry.push_revoked("acme/tides", &json!({ "revoked": [{ "version": "0.9.0" }] }));
    registry.push(
        "other/tides",
        "1.0.0",
        &Artifact { version: "1.0.0".to_owned(), ..release("guest_fixture", "9.0.0") },
    );
    site.write(
        "components.json",
        json!({ "components": [
            { "name": "Tides of \u{1b}[31mthe sea", "version": "1.0.0", "description": "high water",
              "reference": registry.reference(NAME, "1.0.0") },
            { "name": "tides", "reference": "--yes" },
        ] })
        .to_string(),
    );
    let namespace = registry.reference("acme", "");
    site.config(&format!("[[search.indexes]]\njson = \"components.json\"\n[[search.indexes]]\noci = {namespace:?}\n"));
    let said = succeeds(&site, &["search", "TIDES"]);
    let (old, newest) = (registry.reference(NAME, "1.0.0"), registry.reference(NAME, "1.1.0"));
    for shown in
        ["Tides of [31mthe sea", "high water", &format!("add {old}"), &format!("add {newest}"), "names no source"]
    {
        assert!(said.contains(shown), "{shown}: {said}");
    }
    assert!(!said.contains("other/tides") && !said.contains("add --yes") && !said.contains('\u{1b}'), "{said}");
    // As data, and the reference can be added.
    let found: Value = serde_json::from_slice(&site.run(&["search", "tides", "--json"]).stdout).unwrap();
    let one = &found["indexes"][1]["found"][0];
    assert_eq!((one["reference"].as_str(), one["version"].as_str()), (Some(newest.as_str()), Some("1.1.0")));
    succeeds(&site, &["add", one["reference"].as_str().unwrap(), "--unsigned", "--yes"]);
    assert_eq!(site.stdio(Era::Stateless).text("belljar://tides/static-text"), TEXT);
    let said = fails(&site, &["search", "wind"]);
    assert!(said.contains("has nothing with \"wind\""), "{said}");
}

#[test]
fn an_index_that_fails_is_named_and_the_others_are_shown() {
    let site = empty();
    site.write("components.json", r#"{"components":[{"name":"tides","reference":"ghcr.io/acme/tides:1.0.0"}]}"#);
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).unwrap().port();
    let closed = format!("http://127.0.0.1:{port}");
    site.config(&format!(
        "[[search.indexes]]\nwasm-directory = {closed:?}\n[[search.indexes]]\njson = \"none.json\"\n[[search.indexes]]\njson = \
         \"components.json\"\n"
    ));
    let output = site.run(&["search", "tides"]);
    let said = stdout_and_stderr(&output);
    assert_eq!(output.status.code(), Some(1), "not every index was asked: {said}");
    for shown in [closed.as_str(), "cannot connect", "there is no file", "add ghcr.io/acme/tides:1.0.0"] {
        assert!(said.contains(shown), "{shown}: {said}");
    }
    for (config, why) in [
        ("[[search.indexes]]\n", "expected one of json, oci, wasm-directory and mcp-registry"),
        ("[[search.indexes]]\njson = \"http://acme.example/x.json\"\n", "begins with \"https://\""),
        ("[search]\nindex = []\n", "indexes"),
    ] {
        site.config(config);
        let said = fails(&site, &["search", "tides"]);
        assert!(said.contains(why), "{config}: {said}");
    }
}
