//! `check --conformance` passes a provider that keeps to the interface, and names each violation. `check --compile` compiles a
//! component ahead of a start. The tests run both commands on real components.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use belljar_tests::{Site, places, process};
use serde_json::Value;

use crate::support::component::assemble;
use crate::support::{hostile_guest, isolated_site, site, stdout_and_stderr};

/// Runs the conformance checks on the hostile guest with these environment variables. Returns true if the hostile guest
/// passed, and the checks.
fn report(settings: &[(&str, &str)]) -> (bool, Vec<Value>) {
    let env: Vec<String> = settings.iter().map(|(name, value)| format!("{name} = {value:?}")).collect();
    // A call that never ends gets a short time limit. Other calls get a limit that a busy machine does not reach.
    let is_endless = settings.iter().any(|(_, value)| ["loop", "sleep"].contains(value));
    let time = if is_endless { "1s" } else { "60s" };
    let site = hostile_guest(&format!("time = \"{time}\"\n[mounts.hostile.env]\n{}", env.join("\n")));
    let output = check_conformance(&site, &plugin(&site, "hostile.wasm"), &["--json"]);
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stdout_and_stderr(&output)));
    let is_good = report[0]["good"].as_bool().unwrap();
    assert_eq!(output.status.code(), Some(i32::from(!is_good)), "{report:#}");
    (is_good, report[0]["checks"].as_array().unwrap().clone())
}

/// Runs the conformance checks on a file, with the configuration of the site if there is one.
fn check_conformance(site: &Site, file: &Path, more: &[&str]) -> Output {
    let mut command = site.command(["check", "--conformance"]);
    command.arg(file).args(more);
    if site.path("belljar.toml").exists() {
        command.arg("--config").arg(site.path("belljar.toml"));
    }
    process::run(command, Duration::from_secs(120))
}

/// The path of a file in the plugin directory.
fn plugin(site: &Site, file: &str) -> PathBuf {
    site.path("plugins").join(file)
}

/// The verdict of a check, and its message.
fn verdict(checks: &[Value], name: &str) -> (String, String) {
    let check = checks.iter().find(|check| check["check"] == name).unwrap_or_else(|| panic!("no {name}: {checks:#?}"));
    (check["verdict"].as_str().unwrap().to_owned(), check["said"].to_string())
}

#[test]
fn providers_of_the_repository_pass() {
    let site = site(
        "[mounts.files]\ncomponent = \"files.wasm\"\nfs = { \"/files\" = \"data\" }\n[mounts.logs]\ncomponent = \"logs.wasm\"\nfs = { \"/logs\" = \"data\" }\n[mounts.system]\nsystem = [\"all\"]",
    );
    site.mount("system");
    for n in 0..30 {
        site.write(format!("data/{n:02}.log"), format!("2026-11-22T10:00:{n:02}Z INFO line {n}\n"));
    }
    for file in ["clock.wasm", "files.wasm", "logs.wasm", "system.wasm"] {
        let output = check_conformance(&site, &plugin(&site, file), &[]);
        assert!(output.status.success(), "{}", stdout_and_stderr(&output));
        let out = String::from_utf8(output.stdout).unwrap();
        assert!(out.contains(" 0 failed") && out.contains("paging ends"), "{out}");
    }
}

#[test]
fn each_violation_of_the_interface_is_named() {
    for (settings, check, words) in [
        (&[("HOSTILE_DESCRIBE", "trap")][..], "describe", "trapped"),
        (&[("HOSTILE_DESCRIBE", "dressed")], "describe", "do not get it unchanged"),
        (&[("HOSTILE_LIST", "echo")], "paging ends", "gave back the cursor"),
        (&[("HOSTILE_LIST", "late-trap")], "paging ends", "with the cursor"),
        (&[("HOSTILE_LIST", "long-cursor")], "paging ends", "cursor of 5000 bytes"),
        (&[("HOSTILE_LIST", "failed")], "paging ends", "the hostile guest does not list"),
        (&[("HOSTILE_LIST", "loop")], "paging ends", "limit was reached"),
        (&[("HOSTILE_LIST", "changing")], "lists are stable", "expected the same order"),
        (&[("HOSTILE_LIST", "garbage")], "resources", "/absolute"),
        (&[("HOSTILE_LIST", "duplicates")], "resources", "listed twice"),
        (&[("HOSTILE_LIST", "dressed")], "resources", "mime-type"),
        (&[("HOSTILE_LIST", "duplicates")], "listed resources", "not-found"),
        (&[("HOSTILE_TEMPLATES", "trap")], "templates", "trapped"),
        (&[("HOSTILE_TEMPLATES", "twice")], "templates", "listed twice"),
        (&[("HOSTILE_TEMPLATES", "capture")], "templates", "left out"),
        (&[("HOSTILE_TEMPLATES", "verbs"), ("HOSTILE_COMPLETE", "trap")], "completion", "trapped"),
        (&[("HOSTILE_TEMPLATES", "verbs"), ("HOSTILE_COMPLETE", "failed")], "completion", "does not complete"),
        (&[("HOSTILE_REVISIONS", "none")], "resource-revisions", "0 results for 3"),
        (&[("HOSTILE_REVISIONS", "short")], "resource-revisions", "2 results for 3"),
        (&[("HOSTILE_REVISIONS", "trap")], "catalog-revision", "trapped"),
        (&[("HOSTILE_REVISIONS", "same")], "resource-revisions", "does not exist, but has a revision"),
        (&[("HOSTILE_REVISIONS", "long")], "catalog-revision", "bytes"),
        (&[("HOSTILE_REVISIONS", "not-found")], "resource-revisions", "is listed, but its revision is"),
    ] {
        let (is_good, checks) = report(settings);
        let (verdict, said) = verdict(&checks, check);
        assert!(!is_good && verdict == "failed" && said.contains(words), "{settings:?}: {check} {verdict}: {said}");
    }
}

#[test]
fn odd_answers_are_warnings() {
    for (settings, check, words) in [
        (&[][..], "describe", "no version"),
        (&[("HOSTILE_LIST", "endless")], "paging ends", "rest was not checked"),
        (&[("HOSTILE_TEMPLATES", "verbs"), ("HOSTILE_COMPLETE", "controls")], "completion", "do not get unchanged"),
        (&[("HOSTILE_REVISIONS", "change")], "catalog-revision", "between two calls"),
    ] {
        let (_, checks) = report(settings);
        let (verdict, said) = verdict(&checks, check);
        assert!(verdict == "warning" && said.contains(words), "{settings:?}: {check} {verdict}: {said}");
    }
    let (is_good, checks) = report(&[]);
    assert!(is_good, "{checks:#?}");
}

#[test]
fn a_missing_grant_is_no_violation() {
    let site = site("[mounts.other]\ncomponent = \"files.wasm\"");
    let output = check_conformance(&site, &plugin(&site, "files.wasm"), &[]);
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && out.contains("needs a grant") && out.contains("--config"), "{out}");
}

#[test]
fn files_that_are_not_providers_are_reported() {
    let site = isolated_site();
    let file = site.write("else/shell.wasm", assemble("(component)"));
    let output = check_conformance(&site, &file, &[]);
    let text = stdout_and_stderr(&output);
    assert!(output.status.code() == Some(1) && text.contains("\"shell.wasm\" cannot be mounted"), "{text}");
    for (file, code, words) in [("else/none.wasm", 1, "there is no file"), ("else/none.txt", 2, "ends in .wasm")] {
        let output = check_conformance(&site, &site.path(file), &[]);
        assert!(
            output.status.code() == Some(code) && stdout_and_stderr(&output).contains(words),
            "{}",
            stdout_and_stderr(&output)
        );
    }
}

#[test]
fn a_component_that_was_compiled_ahead_is_not_compiled_again() {
    let mut site = isolated_site();
    let place = site.path("shared");
    site.share(&place);
    site.mount("clock");
    let lines = |arguments: &[&str]| {
        let output = site.run(arguments);
        assert!(output.status.success(), "{}", stdout_and_stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let first = lines(&["check", "--compile"]);
    assert!(first.starts_with("compiled") && first.contains("of code) in "), "{first}");
    assert!(lines(&["check", "--compile"]).starts_with("cached"));
    // A component in another directory uses the same cache.
    let elsewhere = site.write("else/another.wasm", fs::read(places::component("clock")).unwrap());
    assert!(lines(&["check", "--compile", elsewhere.to_str().unwrap()]).starts_with("cached"));
    let listed = site.run(&["list"]);
    assert!(
        !stdout_and_stderr(&listed).contains("compiled in"),
        "the start compiled a component again: {}",
        stdout_and_stderr(&listed)
    );
    let bad = site.write("else/bad.wasm", b"\0asm\x0d\0\x01\0\xff");
    let output = site.run(&["check", "--compile", bad.to_str().unwrap(), elsewhere.to_str().unwrap()]);
    let text = stdout_and_stderr(&output);
    assert!(output.status.code() == Some(1) && text.contains("refused") && text.contains("cached"), "{text}");
    let missing = site.run(&["check", "--compile", Path::new("nowhere.wasm").to_str().unwrap()]);
    assert!(missing.status.code() == Some(1) && stdout_and_stderr(&missing).contains("cannot read \"nowhere.wasm\""));
}
