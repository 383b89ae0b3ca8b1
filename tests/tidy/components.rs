//! Checks that a test loads each guest in `tests/guests`.

use crate::{File, assert_none, files};

const GUESTS: &str = "tests/guests/";

/// The file stems of the guests. A guest is a package, `tests/guests/<folder>/Cargo.toml`, or a text file,
/// `tests/guests/<stem>.wat`. The stem of a package is its name with underscores.
fn stems(files: &[File]) -> Vec<String> {
    let guest = |file: &File| {
        let rest = file.path.strip_prefix(GUESTS)?;
        if let Some(stem) = rest.strip_suffix(".wat") {
            return Some(stem.to_owned());
        }
        rest.ends_with("/Cargo.toml").then(|| {
            let name = file.text.lines().find_map(|line| line.strip_prefix("name = "));
            name.expect("a package has a name").trim_matches('"').replace('-', "_")
        })
    };
    files.iter().filter_map(guest).collect()
}

/// The guests that no test names.
fn unused(files: &[File]) -> Vec<String> {
    let is_test = |file: &&File| file.path.ends_with(".rs") && !file.path.starts_with(GUESTS);
    let is_named = |stem: &str| files.iter().filter(is_test).any(|file| file.text.contains(&format!("\"{stem}\"")));
    stems(files)
        .into_iter()
        .filter(|stem| !is_named(stem))
        .map(|stem| format!("no test loads the guest \"{stem}\""))
        .collect()
}

#[test]
fn every_guest_is_loaded_by_a_test() {
    assert_none(unused(&files("")));
}

#[test]
fn a_guest_that_no_test_loads_is_found() {
    let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
    let files = [
        file("tests/guests/loops/Cargo.toml", "[package]\nname = \"guest-loops\"\n"),
        file("tests/guests/traps.wat", "(component)"),
        file("tests/guests/used.wat", "(component)"),
        file("tests/integration/main.rs", "site.mount(\"used\"); // guest_loops"),
    ];
    let expected = ["no test loads the guest \"guest_loops\"", "no test loads the guest \"traps\""];
    assert_eq!(unused(&files), expected);
}
