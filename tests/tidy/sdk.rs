//! Compares the two manifests of the Rust SDK. The manifest in this repository inherits values from the workspace. The
//! manifest for projects of `belljar new` has no workspace, and must contain the same values.

use std::fs;

use belljar_tests::places;
use toml::{Table, Value};

/// The manifest `own` with its inherited values from `workspace`. Removes the lints, which only this repository has.
fn resolved(mut own: Table, workspace: &Table) -> Table {
    own.remove("lints");
    let package = own["package"].as_table_mut().expect("a table");
    for (key, value) in package.iter_mut() {
        if inherits(value) {
            *value = workspace["package"][key].clone();
        }
    }
    let look_up = |dependencies: Option<&mut Value>| {
        for (key, value) in dependencies.and_then(Value::as_table_mut).into_iter().flatten() {
            if inherits(value) {
                *value = workspace["dependencies"][key].clone();
            }
        }
    };
    look_up(own.get_mut("dependencies"));
    for (_, target) in own.get_mut("target").and_then(Value::as_table_mut).into_iter().flatten() {
        look_up(target.get_mut("dependencies"));
    }
    own
}

fn inherits(value: &Value) -> bool {
    value.get("workspace").and_then(Value::as_bool) == Some(true)
}

fn read(path: &str) -> Table {
    fs::read_to_string(places::repository().join(path)).unwrap().parse().unwrap()
}

#[test]
fn both_manifests_of_the_sdk_have_the_same_values() {
    let workspace = read("Cargo.toml");
    let workspace = workspace["workspace"].as_table().unwrap();
    assert_eq!(resolved(read("sdk-guest/Cargo.toml"), workspace), read("sdk-guest/rust/sdk/Cargo.toml"));
}

#[test]
fn inherited_keys_are_resolved() {
    let workspace: Table = "[package]\nversion = \"2\"\n[dependencies]\na = \"3\"".parse().unwrap();
    let own: Table =
        "lints.workspace = true\n[package]\nname = \"x\"\nversion.workspace = true\n[target.x.dependencies]\na.workspace = true"
            .parse()
            .unwrap();
    let expected: Table =
        "[package]\nname = \"x\"\nversion = \"2\"\n[target.x.dependencies]\na = \"3\"".parse().unwrap();
    assert_eq!(resolved(own, &workspace), expected);
}
