//! `belljar export` and `belljar import`: a set-up in one file.

use std::fs;

use belljar_tests::{Era, Site};
use serde_json::{Value, json};

use super::{fails, succeeds};
use crate::support::empty;

const CONFIG: &str =
    "plugins = \"components\"\n[secrets]\napi = { file = \"api-key\" }\n[mounts.notes]\nfs = { \"/\" = \"notes\" }\n";

/// A site whose configuration and lock are bound to the provider of files.
fn exported() -> Site {
    let site = empty();
    site.write("notes/a.md", "text");
    site.write("api-key", "no-secret-leaves");
    site.write("components/notes.wasm", fs::read(belljar_tests::places::component("files")).unwrap());
    site.config(CONFIG);
    // The command line of the harness names another plugin directory.
    site.write("belljar.toml", CONFIG);
    run(&site, &["list", "--config", "belljar.toml"]);
    run(&site, &["export", "team.bundle", "--config", "belljar.toml"]);
    site
}

/// Runs a command in the directory of the site, without the arguments of the harness.
fn run(site: &Site, arguments: &[&str]) -> String {
    let output = belljar_tests::process::run(site.command(arguments), belljar_tests::DEADLINE);
    let said = crate::support::stdout_and_stderr(&output);
    assert!(output.status.success(), "{arguments:?}: {said}");
    said
}

#[test]
fn a_set_up_moves_to_another_place_in_one_file() {
    let site = exported();
    let bundle = fs::read_to_string(site.path("team.bundle")).unwrap();
    assert!(!bundle.contains("no-secret-leaves"));
    let other = empty();
    other.write("notes/a.md", "another text");
    other.write("team.bundle", &bundle);
    let said = run(&other, &["import", "team.bundle", "--config", "belljar.toml", "--yes"]);
    assert!(said.contains("read every file below") && said.contains("It needs the secret \"api\""), "{said}");
    let client = other.stdio(Era::Stateless).text("belljar://notes/a.md");
    assert_eq!(client, "another text", "the grant is a path relative to the configuration");
    succeeds(&other, &["verify"]);
    assert!(fails(&other, &["import", "team.bundle", "--yes"]).contains("already"));
    // The file is not overwritten either.
    let again = belljar_tests::process::run(
        site.command(["export", "team.bundle", "--config", "belljar.toml"]),
        belljar_tests::DEADLINE,
    );
    assert!(!again.status.success());
}

#[test]
fn a_hostile_bundle_writes_nothing() {
    let site = exported();
    let good: Value = serde_json::from_slice(&fs::read(site.path("team.bundle")).unwrap()).unwrap();
    let with = |key: &str, value: Value| {
        let mut bundle = good.clone();
        bundle[key] = value;
        bundle
    };
    let component = |name: &str, bytes: &str| json!({ name: bytes });
    for (what, bundle, said) in [
        ("a path upwards", with("components", component("../../x.wasm", "AA==")), "no name that a mount can have"),
        ("an absolute path", with("components", component("/tmp/x.wasm", "AA==")), "no name that a mount can have"),
        ("a hidden file", with("components", component(".x.wasm", "AA==")), "no name that a mount can have"),
        ("another file", with("components", component("belljar.toml", "AA==")), "no name that a mount can have"),
        ("no component", with("components", component("notes.wasm", "AA==")), "is not the one in the lock"),
        ("another mount", with("components", component("x.wasm", "AA==")), "\"x.wasm\" is"),
        ("a damaged lock", with("lock", "version = 1".into()), "lock is damaged"),
        ("a wrong key", with("configuration", "plugin = 1".into()), "unknown key"),
        ("a newer version", with("belljar", 9.into()), "version 9"),
        ("no bundle", json!([]), "no bundle"),
    ] {
        let other = empty();
        other.write("team.bundle", bundle.to_string());
        let output = belljar_tests::process::run(
            other.command(["import", "team.bundle", "--config", "set/belljar.toml", "--yes"]),
            belljar_tests::DEADLINE,
        );
        let text = crate::support::stdout_and_stderr(&output);
        assert!(!output.status.success() && text.contains(said), "{what}: {text}");
        assert!(!other.path("set/belljar.toml").exists() && !other.path("x.wasm").exists(), "{what}");
    }
}

/// Runs a command that must fail in the directory of the site, without the arguments of the harness.
fn refused(site: &Site, arguments: &[&str]) -> String {
    let output = belljar_tests::process::run(site.command(arguments), belljar_tests::DEADLINE);
    let said = crate::support::stdout_and_stderr(&output);
    assert!(!output.status.success(), "{arguments:?}: {said}");
    said
}

#[test]
fn a_set_up_moves_through_a_registry() {
    let Some(registry) = belljar_tests::Registry::start() else { return };
    let site = exported();
    run(&site, &["publish", "--key-pair", "acme.key"]);
    let reference = format!("oci://{}", registry.reference("acme/team", "1"));
    let export = ["export", &reference, "--config", "belljar.toml", "--yes"];
    let said = run(&site, &[export.as_slice(), &["--sign-key", "acme.key"]].concat());
    assert!(said.contains("Whoever can read that repository") && said.contains("signed    by sha256:"), "{said}");
    assert_eq!(registry.document("acme/team", "1")["artifactType"], "application/vnd.belljar.bundle.v1+json");
    run(&site, &[export.as_slice(), &["--sign-key", "acme.key"]].concat());
    assert!(
        refused(&site, &["add", &reference, "--unsigned", "--yes", "--config", "belljar.toml"])
            .contains("belljar import")
    );

    let other = empty();
    other.write("notes/a.md", "another text");
    other.write("acme.pub", fs::read(site.path("acme.pub")).unwrap());
    let import = ["import", &reference, "--config", "belljar.toml", "--yes"];
    assert!(refused(&other, &import).contains("no key is trusted"));
    run(&site, &["publish", "--key-pair", "stranger.key"]);
    other.write("stranger.pub", fs::read(site.path("stranger.pub")).unwrap());
    let said = refused(&other, &[import.as_slice(), &["--signed-by", "stranger.pub"]].concat());
    assert!(said.contains("is refused"), "{said}");
    assert!(!other.path("belljar.toml").exists());
    let said = run(&other, &[import.as_slice(), &["--signed-by", "acme.pub"]].concat());
    assert!(said.contains("trusted for \"127.0.0.1:") && said.contains("read every file below"), "{said}");
    assert_eq!(other.stdio(Era::Stateless).text("belljar://notes/a.md"), "another text");

    // Another set-up does not take the tag.
    site.write("components/other.wasm", fs::read(belljar_tests::places::component("files")).unwrap());
    assert!(refused(&site, &export).contains("holds other content already"));
    run(&site, &[export.as_slice(), &["--force"]].concat());
    let third = empty();
    assert!(refused(&third, &import).contains("is not signed"));
    run(&third, &[import.as_slice(), &["--unsigned"]].concat());
    assert!(third.path("plugins/other.wasm").exists());
}

#[test]
fn a_registry_that_holds_no_bundle_gives_none() {
    let Some(registry) = belljar_tests::Registry::start() else { return };
    let artifact = super::release("guest_fixture", "1.0.0");
    registry.push("acme/team", "1", &artifact);
    let site = empty();
    let reference = format!("oci://{}", registry.reference("acme/team", "1"));
    let said = refused(&site, &["import", &reference, "--config", "belljar.toml", "--unsigned", "--yes"]);
    assert!(said.contains("belljar add"), "{said}");
    let said = refused(&site, &["import", "team.bundle", "--config", "belljar.toml", "--unsigned", "--yes"]);
    assert!(said.contains("is a file, which has no signature"), "{said}");
    assert!(!site.path("belljar.toml").exists() && !site.path("plugins/tides.wasm").exists());
}
