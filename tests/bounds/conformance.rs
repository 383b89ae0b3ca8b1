//! `check --conformance`: a provider that keeps to the interface passes, and each way not to is seen and named. `check
//! --compile`: what it compiled is not compiled again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use belljar_tests::{Site, places, process};
use serde_json::Value;

use crate::component::assemble;
use crate::place::{bare, imp, said, site};

/// What the kit says of the imp with these settings: whether it is good, and the checks.
fn report(settings: &[(&str, &str)]) -> (bool, Vec<Value>) {
    let env: Vec<String> = settings.iter().map(|(name, value)| format!("{name} = {value:?}")).collect();
    let site = imp(&format!("time = \"1s\"\n[mounts.imp.env]\n{}", env.join("\n")));
    let output = kit(&site, &plugin(&site, "imp.wasm"), &["--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)));
    let is_good = report[0]["good"].as_bool().unwrap();
    assert_eq!(output.status.code(), Some(i32::from(!is_good)), "{report:#}");
    (is_good, report[0]["checks"].as_array().unwrap().clone())
}

/// Runs the kit on a file. It looks for no others, so it takes no plugin directory.
fn kit(site: &Site, file: &Path, more: &[&str]) -> Output {
    let mut command = site.command(["check", "--conformance"]);
    command.arg(file).args(more);
    if site.path("belljar.toml").exists() {
        command.arg("--config").arg(site.path("belljar.toml"));
    }
    process::run(command, Duration::from_secs(120))
}

fn plugin(site: &Site, file: &str) -> PathBuf {
    site.path("plugins").join(file)
}

/// The verdict of a check, and what was said.
fn verdict(checks: &[Value], name: &str) -> (String, String) {
    let check = checks.iter().find(|check| check["check"] == name).unwrap_or_else(|| panic!("no {name}: {checks:#?}"));
    (check["verdict"].as_str().unwrap().to_owned(), check["said"].to_string())
}

#[test]
fn our_own_providers_keep_to_the_interface() {
    let site = site(
        "[mounts.files]\ncomponent = \"files.wasm\"\nfs = { \"/files\" = \"data\" }\n[mounts.logs]\ncomponent = \"logs.wasm\"\nfs = { \"/logs\" = \"data\" }",
    );
    for n in 0..30 {
        site.write(format!("data/{n:02}.log"), format!("2026-11-22T10:00:{n:02}Z INFO line {n}\n"));
    }
    for file in ["clock.wasm", "files.wasm", "logs.wasm"] {
        let output = kit(&site, &plugin(&site, file), &[]);
        assert!(output.status.success(), "{}", said(&output));
        let out = String::from_utf8(output.stdout).unwrap();
        assert!(out.contains(" 0 failed") && out.contains("paging ends"), "{out}");
    }
}

#[test]
fn each_way_not_to_keep_to_it_is_seen() {
    for (settings, check, words) in [
        (&[("IMP_DESCRIBE", "trap")][..], "describe", "trapped"),
        (&[("IMP_DESCRIBE", "dressed")], "describe", "not shown as it is"),
        (&[("IMP_LIST", "echo")], "paging ends", "gave back the cursor"),
        (&[("IMP_LIST", "late-trap")], "paging ends", "with the cursor"),
        (&[("IMP_LIST", "long-cursor")], "paging ends", "cursor of 5000 bytes"),
        (&[("IMP_LIST", "failed")], "paging ends", "the imp does not list"),
        (&[("IMP_LIST", "loop")], "paging ends", "limit was reached"),
        (&[("IMP_LIST", "changing")], "lists are stable", "order has to be the same"),
        (&[("IMP_LIST", "garbage")], "resources", "/absolute"),
        (&[("IMP_LIST", "duplicates")], "resources", "listed twice"),
        (&[("IMP_LIST", "dressed")], "resources", "mime-type"),
        (&[("IMP_LIST", "duplicates")], "listed resources", "not-found"),
        (&[("IMP_TEMPLATES", "trap")], "templates", "trapped"),
        (&[("IMP_TEMPLATES", "twice")], "templates", "listed twice"),
        (&[("IMP_TEMPLATES", "capture")], "templates", "left out"),
        (&[("IMP_TEMPLATES", "verbs"), ("IMP_COMPLETE", "trap")], "completion", "trapped"),
        (&[("IMP_TEMPLATES", "verbs"), ("IMP_COMPLETE", "failed")], "completion", "does not complete"),
        (&[("IMP_REVISIONS", "none")], "resource-revisions", "0 results for 3"),
        (&[("IMP_REVISIONS", "short")], "resource-revisions", "2 results for 3"),
        (&[("IMP_REVISIONS", "trap")], "catalog-revision", "trapped"),
        (&[("IMP_REVISIONS", "same")], "resource-revisions", "is not there, and has a revision"),
        (&[("IMP_REVISIONS", "long")], "catalog-revision", "bytes"),
        (&[("IMP_REVISIONS", "not-found")], "resource-revisions", "is listed, and its revision is"),
    ] {
        let (is_good, checks) = report(settings);
        let (verdict, said) = verdict(&checks, check);
        assert!(!is_good && verdict == "failed" && said.contains(words), "{settings:?}: {check} {verdict}: {said}");
    }
}

#[test]
fn what_is_only_odd_is_a_warning() {
    for (settings, check, words) in [
        (&[][..], "describe", "no version"),
        (&[("IMP_LIST", "endless")], "paging ends", "rest was not looked at"),
        (&[("IMP_TEMPLATES", "verbs"), ("IMP_COMPLETE", "controls")], "completion", "not shown as they are"),
        (&[("IMP_REVISIONS", "change")], "catalog-revision", "from one call to the next"),
    ] {
        let (_, checks) = report(settings);
        let (verdict, said) = verdict(&checks, check);
        assert!(verdict == "warning" && said.contains(words), "{settings:?}: {check} {verdict}: {said}");
    }
    let (is_good, checks) = report(&[]);
    assert!(is_good, "{checks:#?}");
}

#[test]
fn a_missing_grant_is_nothing_against_a_provider() {
    let site = site("[mounts.other]\ncomponent = \"files.wasm\"");
    let output = kit(&site, &plugin(&site, "files.wasm"), &[]);
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && out.contains("needs a grant") && out.contains("--config"), "{out}");
}

#[test]
fn what_is_no_provider_is_told_so() {
    let site = bare();
    let file = site.write("else/shell.wasm", assemble("(component)"));
    let output = kit(&site, &file, &[]);
    let text = said(&output);
    assert!(output.status.code() == Some(1) && text.contains("\"shell.wasm\" cannot be mounted"), "{text}");
    for (file, code, words) in [("else/none.wasm", 1, "there is no file"), ("else/none.txt", 2, "expected FILE.wasm")] {
        let output = kit(&site, &site.path(file), &[]);
        assert!(output.status.code() == Some(code) && said(&output).contains(words), "{}", said(&output));
    }
}

#[test]
fn compiling_ahead_is_done_once() {
    let mut site = bare();
    let place = site.path("shared");
    site.share(&place);
    site.mount("clock");
    let lines = |arguments: &[&str]| {
        let output = site.run(arguments);
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let first = lines(&["check", "--compile"]);
    assert!(first.starts_with("compiled") && first.contains("of code) in "), "{first}");
    assert!(lines(&["check", "--compile"]).starts_with("was there"));
    // Anywhere else too, into the same place.
    let elsewhere = site.write("else/another.wasm", fs::read(places::component("clock")).unwrap());
    assert!(lines(&["check", "--compile", elsewhere.to_str().unwrap()]).starts_with("was there"));
    let listed = site.run(&["list"]);
    assert!(!said(&listed).contains("compiled in"), "the start compiles nothing: {}", said(&listed));
    let bad = site.write("else/bad.wasm", b"\0asm\x0d\0\x01\0\xff");
    let output = site.run(&["check", "--compile", bad.to_str().unwrap(), elsewhere.to_str().unwrap()]);
    let text = said(&output);
    assert!(output.status.code() == Some(1) && text.contains("refused") && text.contains("was there"), "{text}");
    let missing = site.run(&["check", "--compile", Path::new("nowhere.wasm").to_str().unwrap()]);
    assert!(missing.status.code() == Some(1) && said(&missing).contains("cannot read \"nowhere.wasm\""));
}
