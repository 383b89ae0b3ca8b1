//! What the packages contain: the same bytes in each run, digests that match, the interface and the licence in each.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use belljar_tests::places;
use serde_json::Value;

use crate::common::{REPOSITORY, VERSION, run};
use crate::support::{directory, pack, package, packed, unpack};

/// The packages, with the path of the interface and of the licence in each. The module for Go and the wheel are zip files.
const PACKAGES: [(&str, &str, &str); 7] = [
    ("belljar-guest-VERSION.crate", "belljar-guest-VERSION/wit/provider.wit", "belljar-guest-VERSION/LICENSE"),
    ("belljar-guest-VERSION.tgz", "package/wit/belljar-provider/provider.wit", "package/LICENSE"),
    (
        "belljar_guest-VERSION.tar.gz",
        "belljar_guest-VERSION/belljar_guest/wit/provider.wit",
        "belljar_guest-VERSION/LICENSE",
    ),
    (
        "belljar-guest-c-VERSION.tar.gz",
        "belljar-guest-c-VERSION/wit/provider.wit",
        "belljar-guest-c-VERSION/belljar/LICENSE",
    ),
    (
        "belljar-guest-cpp-VERSION.tar.gz",
        "belljar-guest-cpp-VERSION/wit/provider.wit",
        "belljar-guest-cpp-VERSION/belljar/LICENSE",
    ),
    (
        "belljar-guest-zig-VERSION.tar.gz",
        "belljar-guest-zig-VERSION/wit/provider.wit",
        "belljar-guest-zig-VERSION/belljar/LICENSE",
    ),
    ("belljar-guest-go-VERSION.tar.gz", "", "belljar-guest-go-VERSION/LICENSE"),
];

#[test]
fn a_second_run_makes_the_same_bytes() {
    if places::lacks("languages") {
        return;
    }
    let again = pack(&directory("two"));
    assert_eq!(packed(), again);
    let sums = |name: &str| fs::read_to_string(directory(name).join("SHA256SUMS")).unwrap();
    assert_eq!(sums("one"), sums("two"));
    assert_eq!(sums("one").lines().count() + 1, again.len());
    run(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(directory("two")));
}

#[test]
fn each_package_has_the_interface_and_the_licence() {
    if places::lacks("languages") {
        return;
    }
    let read = |path: &str| fs::read_to_string(places::repository().join(path)).unwrap();
    let (interface, license) = (read("wit/provider.wit"), read("LICENSE"));
    let mut expected: BTreeSet<String> = PACKAGES.iter().map(|(name, ..)| name.replace("VERSION", VERSION)).collect();
    expected.extend([format!("belljar_guest-{VERSION}-py3-none-any.whl"), "SHA256SUMS".to_owned()]);
    assert_eq!(packed().iter().cloned().collect::<BTreeSet<_>>(), expected);
    for (name, wit, licensed) in PACKAGES {
        let place = tempfile::tempdir().unwrap();
        unpack(&package(name), place.path(), 0);
        let unpacked = |path: &str| {
            let path = path.replace("VERSION", VERSION);
            fs::read_to_string(place.path().join(&path)).unwrap_or_else(|error| panic!("{name}: {path}: {error}"))
        };
        assert!(unpacked(licensed) == license, "{name}: another licence");
        assert!(wit.is_empty() || unpacked(wit) == interface, "{name}: another interface");
    }
}

#[test]
fn the_manifests_are_those_of_published_packages() {
    if places::lacks("languages") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    unpack(&package("belljar-guest-VERSION.crate"), &place.path().join("rust"), 1);
    unpack(&package("belljar-guest-VERSION.tgz"), &place.path().join("npm"), 1);
    let text = |path: &str| fs::read_to_string(place.path().join(path)).unwrap();
    let rust: toml::Table = text("rust/Cargo.toml").parse().unwrap();
    let package = rust["package"].as_table().unwrap();
    for (field, value) in [
        ("license", "Apache-2.0 WITH LLVM-exception"),
        ("readme", "README.md"),
        ("repository", REPOSITORY),
        ("version", VERSION),
    ] {
        assert_eq!(package[field].as_str(), Some(value), "{field}");
    }
    assert!(!package.contains_key("publish") && package.contains_key("description"));
    for (name, dependency) in rust["dependencies"].as_table().unwrap() {
        assert!(dependency.get("path").is_none(), "\"{name}\" is a directory");
    }
    let npm: Value = serde_json::from_str(&text("npm/package.json")).unwrap();
    assert_eq!((npm["name"].as_str(), npm["version"].as_str()), (Some("@belljar/guest"), Some(VERSION)));
    assert!(npm["private"].is_null() && npm["files"].is_array(), "{npm}");
    // Each file that the manifest exports is in the package.
    for file in exported(&npm["exports"]) {
        assert!(place.path().join("npm").join(&file).is_file(), "{file} is missing");
    }
}

/// The paths in the field `exports` of a `package.json`.
fn exported(exports: &Value) -> Vec<String> {
    match exports {
        Value::String(path) => vec![path.clone()],
        Value::Object(conditions) => conditions.values().flat_map(exported).collect(),
        _ => Vec::new(),
    }
}
