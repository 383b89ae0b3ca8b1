//! `belljar doctor` finds what is wrong, and its cure is right.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use belljar_tests::Site;
use serde_json::Value;

use crate::support::{empty, shared, stdout_and_stderr};

/// A site in which everything is fine.
fn healthy() -> Site {
    let mut site = empty();
    site.own_state(shared());
    site.mount("clock");
    site.mount_as("files", "notes.wasm");
    site.write("notes/a.md", "A");
    site.config("[mounts.notes]\nfs = { \"/notes\" = \"notes\" }\n");
    assert!(site.run(&["trust", "notes", "--yes"]).status.success());
    site
}

/// The findings that are not good, and the exit code.
fn findings(site: &Site) -> (Vec<Value>, Option<i32>) {
    let output = site.run(&["doctor", "--json"]);
    let json: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stdout_and_stderr(&output)));
    let all = json["findings"].as_array().unwrap().clone();
    // The machine of the test may have an old kernel, or a full disk.
    let of_machine =
        |one: &Value| ["kernel", "wall", "disk"].contains(&one["area"].as_str().unwrap()) && one["state"] == "warning";
    let bad = all.into_iter().filter(|one| one["state"] != "ok" && !of_machine(one));
    (bad.collect(), output.status.code())
}

/// Asserts that the only problem is in `area`, and that its text and its cure contain these.
fn assert_only(site: &Site, area: &str, what: &str, cure: &str) {
    let (all, code) = findings(site);
    let problems: Vec<&Value> = all.iter().filter(|one| one["state"] == "problem").collect();
    let [one] = problems.as_slice() else { panic!("{area}: {all:?}") };
    assert_eq!((&one["area"], code), (&area.into(), Some(1)), "{one}");
    assert!(one["what"].as_str().unwrap().contains(what), "{one}");
    assert!(one["cure"].as_str().unwrap().contains(cure), "{one}");
}

#[test]
fn a_healthy_set_up_has_no_problem() {
    let site = healthy();
    let (all, code) = findings(&site);
    assert_eq!(code, Some(0), "{all:?}");
    assert!(all.iter().all(|one| one["area"] == "clients"), "{all:?}");
    let text = stdout_and_stderr(&site.run(&["doctor"]));
    for area in ["config", "providers", "disk", "clock", "tools", "kernel", "wall"] {
        assert!(text.contains(area), "{area}: {text}");
    }
}

#[test]
fn each_fault_is_found_with_its_cure() {
    let site = healthy();
    let config = fs::read_to_string(site.path("belljar.toml")).unwrap();

    site.config("limits = 7\n");
    assert_only(&site, "config", "limits", "belljar init");

    site.config(&format!("{config}\n[mounts.gone]\ncomponent = \"gone.wasm\"\n"));
    assert_only(&site, "providers", "no \"gone.wasm\"", "belljar remove gone");

    site.config(&config);
    site.drop_in("junk.wasm", "no component");
    assert_only(&site, "providers", "junk.wasm", "belljar remove junk");
    fs::remove_file(site.path("plugins/junk.wasm")).unwrap();

    site.mount_as("clock", "notes.wasm");
    assert_only(&site, "providers", "\"notes\" is in quarantine", "trust notes");
    site.mount_as("files", "notes.wasm");

    fs::rename(site.path("notes"), site.path("moved")).unwrap();
    assert_only(&site, "paths", "the grants of \"notes\" cannot be used", "revoke notes");
    fs::rename(site.path("moved"), site.path("notes")).unwrap();

    fs::set_permissions(site.path("state/belljar"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_only(&site, "disk", "state directory", "chmod 700");
    fs::set_permissions(site.path("state/belljar"), fs::Permissions::from_mode(0o700)).unwrap();

    site.write(
        "home/.claude.json",
        "{ \"mcpServers\": { \"belljar\": { \"command\": \"/no/such/belljar\", \"args\": [\"serve\"] } } }",
    );
    assert_only(&site, "clients", "/no/such/belljar", "belljar connect claude-code");
    fs::remove_file(site.path("home/.claude.json")).unwrap();

    let (all, code) = findings(&site);
    assert_eq!(code, Some(0), "{all:?}");
}

#[test]
fn an_address_in_use_is_a_warning() {
    let site = healthy();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = fs::read_to_string(site.path("belljar.toml")).unwrap();
    site.config(&format!("{config}\n[serve]\nhttp = \"{}\"\n", listener.local_addr().unwrap()));
    let (all, code) = findings(&site);
    assert!(all.iter().any(|one| one["area"] == "port" && one["state"] == "warning"), "{all:?}");
    assert_eq!(code, Some(0));
}

#[test]
fn a_belljar_that_has_crashed_is_found() {
    let site = healthy();
    assert!(site.run(&["up", "--background"]).status.success());
    assert_eq!(findings(&site).1, Some(0));
    site.kill_up();
    assert_only(&site, "up", "does not serve", "belljar up --place");
    assert!(site.run(&["down"]).status.success());
    assert_eq!(findings(&site).1, Some(0));
}
