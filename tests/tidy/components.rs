//! Every component of the tests is used by one: a guest that nothing loads proves nothing.

use crate::{File, files, none};

const GUESTS: &str = "tests/guests/";

/// The file stems of the guests: `tests/guests/<folder>/Cargo.toml` by its package's name, `tests/guests/<stem>.wat`.
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
    let tests = |file: &&File| file.path.ends_with(".rs") && !file.path.starts_with(GUESTS);
    let named = |stem: &str| files.iter().filter(tests).any(|file| file.text.contains(&format!("\"{stem}\"")));
    stems(files)
        .into_iter()
        .filter(|stem| !named(stem))
        .map(|stem| format!("no test loads the guest \"{stem}\""))
        .collect()
}

#[test]
fn every_guest_is_loaded_by_a_test() {
    none(unused(&files("")));
}

#[test]
fn a_guest_that_no_test_loads_is_found() {
    let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
    let files = [
        file("tests/guests/loops/Cargo.toml", "[package]\nname = \"guest-loops\"\n"),
        file("tests/guests/traps.wat", "(component)"),
        file("tests/guests/used.wat", "(component)"),
        file("tests/bounds/main.rs", "site.mount(\"used\"); // guest_loops"),
    ];
    let told = ["no test loads the guest \"guest_loops\"", "no test loads the guest \"traps\""];
    assert_eq!(unused(&files), told);
}
