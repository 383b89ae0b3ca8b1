//! Checks the licences and sources of all built crates against `deny.toml`. cargo-deny makes the same check, but its
//! installation takes long, and not every machine has it. Also checks that cargo builds each dependency of the host
//! once.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use belljar_tests::places;
use serde_json::Value;

use crate::assert_none;

/// The packages with a licence that is not in `allowed`, and the packages that do not come from crates.io.
fn violations(packages: &[Value], allowed: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for package in packages {
        let name = format!("{} {}", package["name"], package["version"]);
        match package["license"].as_str() {
            None => found.push(format!("{name} has no licence")),
            Some(license) if !allows(license, allowed) => found.push(format!("{name}: licence \"{license}\"")),
            Some(_) => {}
        }
        let source = package["source"].as_str();
        // A package without a source belongs to this workspace.
        if source.is_some_and(|source| !source.ends_with("github.com/rust-lang/crates.io-index")) {
            found.push(format!("{name} comes from {}", package["source"]));
        }
    }
    found
}

/// True if the licences in `allowed` satisfy an SPDX expression.
fn allows(expression: &str, allowed: &[&str]) -> bool {
    // Before SPDX, `/` meant `OR`.
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<_> = spaced.split_whitespace().collect();
    let mut at = 0;
    let verdict = either(&words, &mut at, allowed);
    verdict && at == words.len()
}

/// Evaluates terms with `OR` between them, from `words[at]`.
fn either(words: &[&str], at: &mut usize, allowed: &[&str]) -> bool {
    let mut verdict = both(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        verdict |= both(words, at, allowed);
    }
    verdict
}

/// Evaluates terms with `AND` between them, which bind more strongly than `OR`.
fn both(words: &[&str], at: &mut usize, allowed: &[&str]) -> bool {
    let mut verdict = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        verdict &= one(words, at, allowed);
    }
    verdict
}

/// Evaluates a licence, or an expression in parentheses.
fn one(words: &[&str], at: &mut usize, allowed: &[&str]) -> bool {
    let Some(word) = words.get(*at) else {
        return false;
    };
    *at += 1;
    if *word == "(" {
        let verdict = either(words, at, allowed);
        *at += 1;
        return verdict;
    }
    // An exception only adds permissions, so ignore it.
    if words.get(*at) == Some(&"WITH") {
        *at += 2;
    }
    allowed.contains(word)
}

#[test]
fn every_dependency_is_licensed_and_comes_from_crates_io() {
    let deny = std::fs::read_to_string(places::repository().join("deny.toml")).unwrap();
    let deny: toml::Table = deny.parse().unwrap();
    let allowed = deny["licenses"]["allow"].as_array().unwrap();
    let allowed: Vec<_> = allowed.iter().map(|license| license.as_str().unwrap()).collect();

    assert_none(violations(&packages(&[]), &allowed));
}

/// The output of cargo.
fn cargo(arguments: &[&str]) -> String {
    let mut cargo = Command::new(env!("CARGO"));
    let output = cargo.current_dir(places::repository()).args(arguments).arg("--locked").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn packages(options: &[&str]) -> Vec<Value> {
    let metadata = cargo(&[&["metadata", "--format-version", "1"], options].concat());
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// Folders of packages that cargo builds separately from the host.
const SEPARATE: [&str; 6] =
    ["plugins", "tests/guests", "sdk-guest/sql", "sdk-guest/tree", "tests/clients/rust", "tests/fuzz/providers"];

/// Each crate that these options of `cargo tree` select, with its features. If macros also use a crate, the crate may
/// occur twice, with different features.
fn features(options: &[&str]) -> BTreeSet<(String, String)> {
    let tree = cargo(&[&["tree", "--prefix", "none", "--no-dedupe", "--format", "{p}|{f}"], options].concat());
    tree.lines().filter_map(|line| line.split_once('|')).map(|(of, has)| (of.to_owned(), has.to_owned())).collect()
}

/// If the tests enabled a further feature of a crate, cargo would build the crate twice. It would also build each crate
/// that depends on it twice, such as the engine. The same holds for the crates of procedural macros and build scripts,
/// because the engine depends on a macro.
#[test]
fn each_dependency_of_the_host_is_built_once() {
    let root = places::repository();
    let is_separate = |package: &Value| {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        SEPARATE.iter().any(|folder| manifest.starts_with(root.join(folder)))
    };
    let all = packages(&["--no-deps"]);
    let names: Vec<_> = all.iter().filter(|package| !is_separate(package)).map(|package| &package["name"]).collect();
    let selected: Vec<_> = names.iter().flat_map(|name| ["--package", name.as_str().unwrap()]).collect();
    let own = features(&["--package", "belljar", "--edges", "normal,build"]);
    let tested = features(&[&["--edges", "normal,build,dev"], selected.as_slice()].concat());
    assert!(own.len() > 100, "{own:?}");
    assert_none(own.difference(&tested).map(|(of, has)| {
        let others: Vec<_> = tested.iter().filter(|(other, _)| other == of).map(|(_, has)| has.as_str()).collect();
        format!("{of} has the features {has}, but in tests {}: add these to host/Cargo.toml", others.join("; "))
    }));
}

/// Crates of `belljar-fetch`, the program that fetches and verifies components, and of clients like it.
const FETCHING: [&str; 8] = [
    "belljar-fetch",
    "docker_credential",
    "minisign-verify",
    "oci-client",
    "reqwest",
    "sigstore-trust-root",
    "sigstore-verify",
    "x509-cert",
];

/// The names of the crates that a package is linked with.
fn linked(package: &str) -> BTreeSet<String> {
    let tree = cargo(&["tree", "--package", package, "--edges", "normal", "--prefix", "none", "--no-dedupe"]);
    tree.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// A serving belljar must not parse manifests, certificates and bundles of strangers. A program of its own does, behind a wall.
#[test]
fn a_serving_belljar_contains_no_client_of_registries() {
    let (serving, fetching) = (linked("belljar"), linked("belljar-fetch"));
    assert!(serving.contains("wasmtime") && !fetching.contains("wasmtime"), "{fetching:?}");
    assert_none(FETCHING.iter().filter(|name| serving.contains(**name)).map(|name| format!("belljar contains {name}")));
    // Each name must be that of a crate: these two are known as clients, and belljar-fetch does without them.
    let unused = ["oci-client", "reqwest"];
    let unknown = FETCHING.iter().filter(|name| !unused.contains(name) && !fetching.contains(**name));
    assert_none(unknown.map(|name| format!("belljar-fetch does not contain {name}")));
}

#[test]
fn licence_expressions_are_evaluated() {
    let allowed = ["MIT", "Apache-2.0", "Zlib"];
    for fine in
        ["MIT", "MIT/GPL-3.0", "GPL-3.0 OR (MIT AND Zlib)", "Apache-2.0 WITH LLVM-exception", "(MIT OR X) AND Zlib"]
    {
        assert!(allows(fine, &allowed), "{fine}");
    }
    for wrong in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Zlib) AND GPL-3.0", "", "MIT )", "GPL-3.0 WITH MIT"] {
        assert!(!allows(wrong, &allowed), "{wrong}");
    }
}

#[test]
fn a_package_with_another_licence_or_source_is_found() {
    let package = |license: Value, source: &str| serde_json::json!({ "name": "a", "version": "1", "license": license, "source": source });
    let crates = "registry+https://github.com/rust-lang/crates.io-index";
    assert!(violations(&[package("MIT".into(), crates)], &["MIT"]).is_empty());
    for foreign in [
        package("GPL-3.0".into(), crates),
        package(Value::Null, crates),
        package("MIT".into(), "git+https://github.com/a/b"),
    ] {
        assert_eq!(violations(std::slice::from_ref(&foreign), &["MIT"]).len(), 1, "{foreign}");
    }
}
