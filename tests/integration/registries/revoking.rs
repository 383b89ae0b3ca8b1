//! Versions that their publisher revoked: refused, shown without a network, and stopped if the operator says so.

use std::fs;

use belljar_tests::{Era, Registry, Site};
use serde_json::json;

use super::{NAME, TEXT, fails, release, start, succeeds, verified};

/// Stops what is revoked.
const STOP: &str = "[trust]\nrevoked = \"stop\"\n";

/// A site with version 1.0.0, and a registry that has it.
fn with_first() -> Option<(Site, Registry)> {
    let (site, registry) = start()?;
    registry.push(NAME, "1.0.0", &release("guest_fixture", "1.0.0"));
    succeeds(&site, &["add", &registry.reference(NAME, "1.0.0"), "--unsigned", "--yes"]);
    Some((site, registry))
}

/// The same, after version 1.0.0 was revoked and `outdated` learned it.
fn with_revoked() -> Option<(Site, Registry)> {
    let (site, registry) = with_first()?;
    let list = json!({ "revoked": [{ "version": "<1.1.0", "reason": "leaks\u{1b}[31m keys", "instead": "1.1.0" }] });
    registry.push_revoked(NAME, &list);
    assert_eq!(verified(&site)["revoked"], json!(null), "nobody asked yet");
    let said = fails(&site, &["outdated"]);
    assert!(said.contains("revoked this version: \"leaks [31m keys\"") && said.contains("--to 1.1.0"), "{said}");
    Some((site, registry))
}

#[test]
fn a_revoked_version_is_shown_ever_after_without_a_network() {
    let Some((site, registry)) = with_revoked() else { return };
    drop(registry);
    let said = succeeds(&site, &["verify"]);
    assert!(said.contains("leaks [31m keys") && said.contains("upgrade tides --to 1.1.0"), "{said}");
    assert_eq!(verified(&site)["revoked"], json!({ "reason": "leaks [31m keys", "instead": "1.1.0" }));
    for command in [&["why", "tides"][..], &["check"], &["list"]] {
        let said = succeeds(&site, command);
        assert!(said.contains("leaks [31m keys") && said.contains("upgrade tides --to 1.1.0"), "{command:?}: {said}");
    }
    assert_eq!(site.stdio(Era::Stateless).text("belljar://tides/static-text"), TEXT, "it is served");
}

#[test]
fn a_revoked_version_is_stopped_until_it_is_upgraded() {
    let Some((site, registry)) = with_revoked() else { return };
    site.config(STOP);
    let error = site.stdio(Era::Stateless).read("belljar://tides/static-text").unwrap_err();
    assert!(error.message.contains("its publisher revoked this version"), "{error:?}");
    let said = fails(&site, &["check"]);
    assert!(
        said.contains("quarantine") && said.contains("upgrade tides --to 1.1.0") && said.contains("revoked = "),
        "{said}"
    );
    fails(&site, &["verify"]);
    // The present bytes are the trusted ones: to trust them again changes nothing.
    site.run(&["trust", "tides", "--yes"]);
    assert!(site.stdio(Era::Stateless).read("belljar://tides/static-text").is_err());
    // No newer version is there.
    let said = fails(&site, &["upgrade", "tides", "--unsigned", "--yes"]);
    assert!(said.contains("There is no newer version that is not revoked"), "{said}");
    registry.push(NAME, "1.1.0", &release("guest_fixture", "1.1.0"));
    succeeds(&site, &["upgrade", "tides", "--unsigned", "--yes"]);
    assert_eq!(site.stdio(Era::Stateless).text("belljar://tides/static-text"), TEXT);
    succeeds(&site, &["verify"]);
    assert_eq!(verified(&site)["revoked"], json!(null));
}

/// A server that runs takes what `outdated` learned from the lock.
#[test]
fn a_running_server_stops_what_is_revoked() {
    let Some((site, registry)) = with_first() else { return };
    site.config(STOP);
    let mut client = site.stdio(Era::Stateless);
    assert_eq!(client.text("belljar://tides/static-text"), TEXT);
    registry.push_revoked(NAME, &json!({ "revoked": [{ "version": "1.0.0" }] }));
    fails(&site, &["outdated"]);
    belljar_tests::wait_until("the quarantine", || match client.read("belljar://tides/static-text") {
        Ok(_) => Err("it is served".to_owned()),
        Err(error) if error.message.contains("revoked this version") => Ok(()),
        Err(error) => Err(format!("{error:?}")),
    });
}

#[test]
fn a_revoked_version_is_added_only_by_name_and_with_a_flag() {
    let Some((site, registry)) = start() else { return };
    let manifest = registry.push(NAME, "1.0.0", &release("guest_fixture", "1.0.0"));
    registry.push(NAME, "latest", &release("guest_fixture", "1.0.0"));
    registry.push_revoked(NAME, &json!({ "revoked": [{ "manifest": manifest, "reason": "leaks" }] }));
    let (named, latest) = (registry.reference(NAME, "1.0.0"), registry.reference(NAME, "latest"));
    let said = fails(&site, &["add", &named, "--unsigned", "--yes"]);
    assert!(said.contains("revoked this version: \"leaks\"") && said.contains("add --revoked"), "{said}");
    let said = fails(&site, &["add", &latest, "--unsigned", "--yes", "--revoked"]);
    assert!(said.contains("for a version that you name"), "{said}");
    site.config(STOP);
    let said = fails(&site, &["add", &named, "--unsigned", "--yes", "--revoked"]);
    assert!(said.contains("under [trust]"), "it would not be served: {said}");
    assert!(!site.path("plugins/tides.wasm").exists() && !site.path("belljar.lock").exists());
    site.config("");
    succeeds(&site, &["add", &named, "--unsigned", "--yes", "--revoked"]);
    assert_eq!(verified(&site)["revoked"]["reason"], "leaks");
    assert_eq!(site.stdio(Era::Stateless).text("belljar://tides/static-text"), TEXT);
}

#[test]
fn an_upgrade_passes_over_revoked_versions() {
    let Some((site, registry)) = with_first() else { return };
    registry.push(NAME, "1.1.0", &release("guest_fixture", "1.1.0"));
    registry.push(NAME, "1.2.0", &release("guest_fixture", "1.2.0"));
    let manifest = registry.push(NAME, "1.3.0", &release("guest_fixture", "1.3.0"));
    registry.push_revoked(NAME, &json!({ "revoked": [{ "version": ">=1.2.0", "reason": "broken" }] }));
    let said = fails(&site, &["outdated"]);
    assert!(said.contains("1.0.0 -> 1.1.0"), "{said}");
    succeeds(&site, &["upgrade", "tides", "--unsigned", "--yes"]);
    assert!(verified(&site)["reference"].as_str().unwrap().ends_with(":1.1.0"));
    // By its digest, it is found out when the tag is resolved.
    registry.push_revoked(NAME, &json!({ "revoked": [{ "manifest": manifest, "reason": "broken" }] }));
    let said = fails(&site, &["upgrade", "tides", "--unsigned", "--yes"]);
    assert!(said.contains("revoked this version: \"broken\""), "{said}");
    assert!(fails(&site, &["upgrade", "tides", "--revoked", "--yes"]).contains("--to"), "the version must be named");
    succeeds(&site, &["upgrade", "tides", "--to", "1.3.0", "--revoked", "--unsigned", "--yes"]);
    assert_eq!(verified(&site)["revoked"]["reason"], "broken");
}

/// Only a list that is there and does not name a version brings it back.
#[test]
fn a_list_that_went_away_brings_no_version_back() {
    let Some((site, registry)) = with_revoked() else { return };
    registry.remove_tag(NAME, "revoked");
    assert!(fails(&site, &["outdated"]).contains("revoked this version"));
    registry.push_revoked(NAME, &json!({ "revoked": "none" }));
    let said = fails(&site, &["outdated"]);
    assert!(
        said.contains("list of revoked versions cannot be read") && said.contains("revoked this version"),
        "{said}"
    );
    registry.push_revoked(NAME, &json!({ "revoked": [{ "version": "<2" }] }));
    let said = fails(&site, &["outdated"]);
    assert!(said.contains("has the range \"<2\"") && said.contains("revoked this version"), "{said}");
    assert_eq!(verified(&site)["revoked"]["instead"], "1.1.0");
    registry.push_revoked(NAME, &json!({ "revoked": [] }));
    succeeds(&site, &["outdated"]);
    assert_eq!(verified(&site)["revoked"], json!(null));
    assert!(!fs::read_to_string(site.path("belljar.lock")).unwrap().contains("revoked"));
}

/// `belljar publish --revoke` keeps the entries that are there.
#[test]
fn a_publisher_takes_versions_back_one_after_the_other() {
    let Some((site, registry)) = with_first() else { return };
    let repository = registry.reference(NAME, "");
    let revoke = |versions: &str, more: &[&str]| {
        let command = [&["publish", "--revoke", versions, &repository, "--yes"], more].concat();
        succeeds(&site, &command)
    };
    revoke("2.0.0", &["--reason", "built on another machine"]);
    let said = revoke("<1.1.0", &["--reason", "leaks keys", "--instead", "1.1.0"]);
    assert!(
        said.contains("<1.1.0: leaks keys; take 1.1.0") && said.contains("2.0.0: built on another machine"),
        "{said}"
    );
    let said = revoke("<1.1.0", &["--reason", "leaks all keys", "--instead", "1.1.0"]);
    assert!(!said.contains("leaks keys"), "the entry is replaced: {said}");
    let said = fails(&site, &["outdated"]);
    assert!(said.contains("leaks all keys") && said.contains("--to 1.1.0"), "{said}");
    for (versions, place, expected) in [
        ("1.x", repository.as_str(), "\"1.x\" names no versions"),
        (">=1", &repository, "\">=1\" names no versions"),
        ("1.0.0", &registry.reference(NAME, "1.0.0"), "without a tag"),
        ("1.0.0", "tides", "is no repository"),
    ] {
        let said = fails(&site, &["publish", "--revoke", versions, place, "--yes"]);
        assert!(said.contains(expected), "{said}");
    }
}
