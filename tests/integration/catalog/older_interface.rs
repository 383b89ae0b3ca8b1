//! A component that was built against version 0.1.0 of the interface. It is a file of the repository, never built again, so it
//! shows that newer versions of the host serve it.

use belljar_tests::{Era, places};
use serde_json::json;

/// A build of `tests/guests/fixture`, from the time of version 0.1.0.
const OLD: &[u8] = include_bytes!("../support/fixture-0.1.0.wasm");

/// How often `part` occurs in `bytes`.
fn occurrences(bytes: &[u8], part: &str) -> usize {
    bytes.windows(part.len()).filter(|window| *window == part.as_bytes()).count()
}

#[test]
fn the_component_names_only_the_old_version() {
    for interface in ["types", "resource-provider", "completion"] {
        let versioned = format!("belljar:provider/{interface}@");
        let old = occurrences(OLD, &format!("{versioned}0.1.0"));
        assert!(old > 0, "{interface}");
        assert_eq!(occurrences(OLD, &versioned), old, "{interface} of another version");
    }
    // The same guest, built today.
    let new = std::fs::read(places::component("guest_fixture")).unwrap();
    let [old, current] =
        ["0.1.0", "0.1.1"].map(|version| occurrences(&new, &format!("belljar:provider/resource-provider@{version}")));
    assert!(current > 0 && old == 0, "a new build names {old} old and {current} current versions");
}

#[test]
fn the_component_is_listed_read_and_completed() {
    let site = crate::support::empty();
    site.drop_in("old.wasm", OLD);
    site.mount_as("guest_fixture", "new.wasm");
    site.config("list-time = \"60s\"\n");
    for era in Era::ALL {
        let mut client = site.stdio(era);
        let uris = client.uris();
        let of = |mount: &str| -> Vec<&str> {
            let base = format!("belljar://{mount}/");
            uris.iter().filter_map(|uri| uri.strip_prefix(&base)).collect()
        };
        assert_eq!(of("old"), ["static-binary", "static-text", "watched-resource"], "{uris:?}");
        assert_eq!(of("old"), of("new"), "{uris:?}");
        assert!(client.templates().contains(&"belljar://old/template/{id}/data".to_owned()));

        assert_eq!(client.text("belljar://old/static-text"), "This is the content of the static text resource.");
        assert_eq!(client.blob("belljar://old/static-binary"), client.blob("belljar://new/static-binary"));
        assert!(client.text("belljar://old/template/123/data").contains("Data for ID: 123"));
        let absent = client.read("belljar://old/nothing-here").expect_err("a resource that does not exist");
        assert_eq!(absent.code, era.not_found(), "{absent}");

        let params = json!({
            "ref": { "type": "ref/resource", "uri": "belljar://old/template/{id}/data" },
            "argument": { "name": "id", "value": "12" },
        });
        let completed = client.request("completion/complete", params).unwrap();
        assert_eq!(completed["completion"]["values"].as_array().map(Vec::len), Some(10), "{completed}");
        client.close();
    }
}
