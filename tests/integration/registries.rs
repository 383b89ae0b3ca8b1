//! Components that are fetched: added, verified, upgraded, held back. With the real commands and a real registry.

mod adding;
mod bundles;
mod copied;
mod killed;
mod private;
mod publishing;
mod revoking;
mod searching;
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

/// The same component with a section of `bytes` bytes that no engine reads.
fn padded(mut artifact: Artifact, bytes: usize) -> Artifact {
    let length = u32::try_from(bytes).expect("a short section");
    // A length is written in groups of seven bits, with the lowest first.
    let groups = (0..5).map(|at| u8::try_from((length >> (7 * at)) & 0x7f).expect("seven bits"));
    let encoded: Vec<u8> = groups.enumerate().map(|(at, group)| if at < 4 { group | 0x80 } else { group }).collect();
    artifact.component.push(0);
    artifact.component.extend(encoded);
    // A section begins with its name, which is empty.
    artifact.component.extend((0..bytes).map(|at| if at == 0 { 0 } else { u8::try_from(at % 251).expect("a byte") }));
    artifact
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
