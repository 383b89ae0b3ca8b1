//! `belljar add` of a reference: what it shows, checks and remembers.

use std::fs;

use belljar_tests::{Artifact, Era};
use serde_json::Value;

use super::{NAME, TEXT, fails, release, start, succeeds, verified};

#[test]
fn a_component_is_fetched_shown_pinned_and_served() {
    let Some((site, registry)) = start() else { return };
    let artifact = Artifact {
        exports: vec!["belljar:resources/provider@0.1.0".to_owned()],
        imports: vec!["wasi:clocks/wall-clock@0.2.6".to_owned()],
        ..release("guest_fixture", "1.0.0")
    };
    let manifest = registry.push(NAME, "1.0.0", &artifact);
    let reference = registry.reference(NAME, "1.0.0");
    let said = succeeds(&site, &["add", &reference, "--unsigned", "--yes"]);
    for shown in [&reference, "1.0.0", "signed   by nobody", "wasi:clocks/wall-clock", "Added \"tides\""] {
        assert!(said.contains(shown), "{shown}: {said}");
    }
    assert_eq!(site.stdio(Era::Stateless).text("belljar://tides/static-text"), TEXT);
    let verified = verified(&site);
    assert_eq!((&verified["standing"], &verified["signedBy"]), (&"same".into(), &"unsigned".into()));
    assert_eq!(
        (&verified["reference"], &verified["manifest"]),
        (&reference.as_str().into(), &manifest.as_str().into())
    );
    let why = succeeds(&site, &["why", "tides"]);
    assert!(why.contains(&reference) && why.contains("unsigned") && why.contains("version  1.0.0"), "{why}");
    // By digest, under another name.
    let pinned = format!("{}@{manifest}", registry.reference(NAME, ""));
    succeeds(&site, &["add", &pinned, "--as", "other", "--unsigned", "--yes"]);
    assert_eq!(site.stdio(Era::Stateless).text("belljar://other/static-text"), TEXT);
}

#[test]
fn an_unsigned_component_needs_a_flag() {
    let Some((site, registry)) = start() else { return };
    registry.push(NAME, "1.0.0", &release("guest_fixture", "1.0.0"));
    let said = fails(&site, &["add", &registry.reference(NAME, "1.0.0"), "--yes"]);
    assert!(said.contains("--unsigned"), "{said}");
    assert!(!site.path("plugins/tides.wasm").exists() && !site.path("belljar.lock").exists());
    let said = fails(&site, &["add", "./tides.wasm", "--unsigned", "--yes"]);
    assert!(said.contains("needs no signature"), "{said}");
}

/// A mount that was fetched is bound to its bytes, also without grants.
#[test]
fn other_bytes_than_those_that_were_fetched_are_not_served() {
    let Some((site, registry)) = start() else { return };
    registry.push(NAME, "1.0.0", &release("guest_fixture", "1.0.0"));
    succeeds(&site, &["add", &registry.reference(NAME, "1.0.0"), "--unsigned", "--yes"]);
    fs::write(site.path("plugins/tides.wasm"), release("guest_fixture", "2.0.0").component).unwrap();
    assert_eq!(verified(&site)["standing"], "changed");
    assert!(fails(&site, &["verify"]).contains("has other bytes than the lock says"));
    assert!(site.stdio(Era::Stateless).read("belljar://tides/static-text").is_err());
    assert!(fails(&site, &["check"]).contains("quarantine"));
    // The operator may trust it. It is then no component of the registry any more.
    succeeds(&site, &["trust", "tides", "--yes"]);
    assert_eq!(site.stdio(Era::Stateless).text("belljar://tides/static-text"), TEXT);
    assert_eq!(verified(&site)["reference"], Value::Null);
}

#[test]
fn what_is_no_component_is_refused_by_its_name() {
    let Some((site, registry)) = start() else { return };
    let elf = fs::read(belljar_tests::places::host()).unwrap();
    let module = wat::parse_str("(module)").unwrap();
    for (tag, component, said) in [
        ("native", elf.get(..1000).unwrap().to_vec(), "a native program"),
        ("module", module, "a core module"),
        ("text", b"hello".to_vec(), "component"),
    ] {
        registry.push(NAME, tag, &Artifact { component, version: "1.0.0".to_owned(), ..Artifact::default() });
        let output = fails(&site, &["add", &registry.reference(NAME, tag), "--unsigned", "--yes"]);
        assert!(output.contains(said), "{tag}: {output}");
    }
    let absent = fails(&site, &["add", &registry.reference(NAME, "none"), "--unsigned", "--yes"]);
    assert!(absent.contains("none"), "{absent}");
    assert!(!site.path("plugins/tides.wasm").exists());
}
