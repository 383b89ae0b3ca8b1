//! Components that are fetched: added, verified, upgraded, held back. With the real commands and a real registry.

mod adding;
mod bundles;
mod publishing;
mod signing;
mod upgrading;

use belljar_tests::{Artifact, Registry, Site, places};
use serde_json::Value;

use crate::support::{empty, stdout_and_stderr};

/// The repository of the tests.
const NAME: &str = "acme/tides";

/// What the component of the tests serves as "static-text".
const TEXT: &str = "This is the content of the static text resource.";

/// A site without components, and a registry.
fn start() -> Option<(Site, Registry)> {
    Some((empty(), Registry::start()?))
}

/// A component with a section that no engine reads: other bytes, the same component.
fn release(stem: &str, version: &str) -> Artifact {
    let mut component = std::fs::read(places::component(stem)).expect("a built component");
    let note = [&[u8::try_from("release".len()).unwrap()], "release".as_bytes(), version.as_bytes()].concat();
    component.extend([0, u8::try_from(note.len()).expect("a short note")]);
    component.extend(note);
    Artifact { component, version: version.to_owned(), ..Artifact::default() }
}

/// Runs a command that must succeed. Returns what it says.
fn succeeds(site: &Site, arguments: &[&str]) -> String {
    let output = site.run(arguments);
    let said = stdout_and_stderr(&output);
    assert!(output.status.success(), "{arguments:?}: {said}");
    said
}

/// Runs a command that must fail. Returns what it says.
fn fails(site: &Site, arguments: &[&str]) -> String {
    let output = site.run(arguments);
    let said = stdout_and_stderr(&output);
    assert!(!output.status.success(), "{arguments:?}: {said}");
    said
}

/// What `belljar verify` says of the mount "tides".
fn verified(site: &Site) -> Value {
    let output = site.run(&["verify", "--json"]);
    let all: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stdout_and_stderr(&output)));
    let mounts = all["mounts"].as_array().expect("mounts");
    mounts.iter().find(|one| one["mount"] == "tides").expect("the mount").clone()
}
