//! Licences and sources of every crate that is built, by the list in `deny.toml`: enforced here too, because cargo-deny
//! takes long to install and is not everywhere.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use belljar_tests::places;
use serde_json::Value;

use crate::none;

/// The packages whose licence the list does not allow, or that come from elsewhere than crates.io.
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
        // Without a source it is of this workspace.
        if source.is_some_and(|source| !source.ends_with("github.com/rust-lang/crates.io-index")) {
            found.push(format!("{name} comes from {}", package["source"]));
        }
    }
    found
}

/// Whether an SPDX expression can be met with `allowed` alone.
fn allows(expression: &str, allowed: &[&str]) -> bool {
    // `/` is what `OR` was before SPDX.
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<_> = spaced.split_whitespace().collect();
    let mut at = 0;
    let verdict = either(&words, &mut at, allowed);
    verdict && at == words.len()
}

fn either(words: &[&str], at: &mut usize, allowed: &[&str]) -> bool {
    let mut verdict = both(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        verdict |= both(words, at, allowed);
    }
    verdict
}

fn both(words: &[&str], at: &mut usize, allowed: &[&str]) -> bool {
    let mut verdict = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        verdict &= one(words, at, allowed);
    }
    verdict
}

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
    // An exception gives more than the licence alone.
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

    none(violations(&packages(&[]), &allowed));
}

/// What cargo says.
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

/// Packages that are built apart from the host, and folders of such.
const APART: [&str; 3] = ["plugins", "tests/guests", "sdk-guest/tree"];

/// Each crate that these options of `cargo tree` select, with its features; one that macros use too may have others for them.
fn features(options: &[&str]) -> BTreeSet<(String, String)> {
    let tree = cargo(&[&["tree", "--prefix", "none", "--no-dedupe", "--format", "{p}|{f}"], options].concat());
    tree.lines().filter_map(|line| line.split_once('|')).map(|(of, has)| (of.to_owned(), has.to_owned())).collect()
}

/// A crate that has one feature more for the tests is built twice, with all that depends on it: the engine, say.
#[test]
fn what_the_host_depends_on_is_built_once() {
    let root = places::repository();
    let is_apart = |package: &Value| {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        APART.iter().any(|folder| manifest.starts_with(root.join(folder)))
    };
    let all = packages(&["--no-deps"]);
    let names: Vec<_> = all.iter().filter(|package| !is_apart(package)).map(|package| &package["name"]).collect();
    let selected: Vec<_> = names.iter().flat_map(|name| ["--package", name.as_str().unwrap()]).collect();
    let own = features(&["--package", "belljar", "--edges", "normal,no-proc-macro"]);
    let tested = features(&[&["--edges", "normal,dev,no-proc-macro"], selected.as_slice()].concat());
    assert!(own.len() > 100, "{own:?}");
    none(own.difference(&tested).map(|(of, has)| {
        let others: Vec<_> = tested.iter().filter(|(other, _)| other == of).map(|(_, has)| has.as_str()).collect();
        format!("{of} has the features {has}, and for the tests {}: ask for them in host/Cargo.toml", others.join("; "))
    }));
}

#[test]
fn expressions_are_understood() {
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
fn a_stranger_is_found() {
    let package = |license: Value, source: &str| serde_json::json!({ "name": "a", "version": "1", "license": license, "source": source });
    let crates = "registry+https://github.com/rust-lang/crates.io-index";
    assert!(violations(&[package("MIT".into(), crates)], &["MIT"]).is_empty());
    for stranger in [
        package("GPL-3.0".into(), crates),
        package(Value::Null, crates),
        package("MIT".into(), "git+https://github.com/a/b"),
    ] {
        assert_eq!(violations(std::slice::from_ref(&stranger), &["MIT"]).len(), 1, "{stranger}");
    }
}
