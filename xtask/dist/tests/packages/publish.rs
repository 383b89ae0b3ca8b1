//! Publishes all providers to a real registry, and adds each as a user does: it asks for exactly what it declares.

use std::fs;
use std::path::Path;

use belljar_dist::{PublishRequest, publish};
use belljar_tests::{Registry, Site, places};
use serde_json::Value;

fn request(namespace: &str) -> PublishRequest {
    PublishRequest {
        root: places::repository(),
        program: places::host(),
        providers: places::target().join("plugins"),
        namespace: namespace.to_owned(),
        key: None,
        repository: Some(crate::common::REPOSITORY.to_owned()),
    }
}

/// What `belljar inspect` says of a provider that is not published.
fn inspected(site: &Site, component: &Path) -> Value {
    let file = component.to_str().unwrap();
    site.run_json(&["inspect", file])
}

/// The names of the required grants, as a list of sorted words.
fn required(needs: &Value) -> Vec<String> {
    let all = needs.as_array().unwrap().iter().filter(|need| need["optional"] == false);
    let mut kinds: Vec<String> = all.map(|need| need["grant"].as_str().unwrap().to_owned()).collect();
    kinds.sort();
    kinds
}

#[test]
fn every_provider_asks_for_exactly_what_it_declares() {
    let Some(registry) = Registry::start() else { return };
    let published = publish(&request(&registry.reference("belljar", ""))).unwrap();
    let components = fs::read_dir(places::target().join("plugins")).unwrap().flatten();
    let components = components.filter(|entry| entry.path().extension().is_some_and(|kind| kind == "wasm")).count();
    assert!(components >= 10 && published.len() == components, "{published:?}");
    // The same bytes again are no failure.
    assert_eq!(publish(&request(&registry.reference("belljar", ""))).unwrap(), published);
    let site = Site::new();
    for reference in &published {
        let name = reference.rsplit('/').next().and_then(|last| last.split(':').next()).unwrap();
        let added = site.run_json(&["add", reference, "--unsigned", "--yes"]);
        let added = &added["added"][0];
        let inspected = inspected(&site, &places::component(name));
        assert_eq!((&added["mount"], &added["digest"]), (&name.into(), &inspected["digest"]), "{reference}");
        let asked = added["needs"].as_array().unwrap();
        let declared = required(&inspected["needs"]);
        assert_eq!(asked.len(), declared.len(), "{reference}: {asked:?} {declared:?}");
        // Each need that is shown names its grant.
        for (need, kind) in
            asked.iter().zip(inspected["needs"].as_array().unwrap().iter().filter(|n| n["optional"] == false))
        {
            let (shown, kind) = (need.as_str().unwrap(), kind["grant"].as_str().unwrap());
            assert!(shown.contains(kind), "{reference}: {shown:?} for {kind:?}");
        }
        let verified = site.run_json(&["verify"]);
        let mount = verified["mounts"].as_array().unwrap().iter().find(|one| one["mount"] == name).unwrap();
        assert_eq!((&mount["standing"], &mount["reference"]), (&"same".into(), &reference.as_str().into()));
    }
    // One of them needs something, or the comparison shows nothing.
    let postgres = inspected(&site, &places::component("postgres"));
    assert!(!required(&postgres["needs"]).is_empty(), "{postgres}");
}

#[test]
fn what_cannot_be_published_is_named() {
    let empty = tempfile::tempdir().unwrap();
    let absent = PublishRequest { program: empty.path().join("belljar"), ..request("ghcr.io/acme") };
    let none = PublishRequest { providers: empty.path().into(), ..request("ghcr.io/acme") };
    for (request, expected) in [
        (request("acme"), "expected REGISTRY/NAMESPACE"),
        (request("https://ghcr.io/acme"), "expected REGISTRY/NAMESPACE"),
        (absent, "cargo xtask build"),
        (none, "has no .wasm file"),
        (request("127.0.0.1:1/acme"), "was not published"),
    ] {
        let error = format!("{:#}", publish(&request).unwrap_err());
        assert!(error.contains(expected), "{error}");
    }
}
