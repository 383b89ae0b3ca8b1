//! Components that `skopeo copy` moved from one registry to another: they have the same digests, and no signature unless that is
//! copied too.

use std::process::Command;

use belljar_tests::registry::sha256;
use belljar_tests::{Era, Registry, debian, places};

use super::signing::{Key, push, trusting_at};
use super::{NAME, TEXT, fails, release, stdout_and_stderr, succeeds, verified};

/// Copies `tag` from one registry to another, with everything that an index names.
fn copy(skopeo: &std::path::Path, from: &Registry, to: &Registry, tag: &str) {
    let mut command = Command::new(skopeo);
    command.args(["--insecure-policy", "copy", "--all", "--src-tls-verify=false", "--dest-tls-verify=false"]);
    command.args([from, to].map(|registry| format!("docker://{}", registry.reference(NAME, tag))));
    let output = belljar_tests::process::run(command, belljar_tests::DEADLINE);
    assert!(output.status.success(), "{}", stdout_and_stderr(&output));
}

#[test]
fn a_copied_component_is_the_same_and_has_lost_its_signature() {
    let Some(skopeo) = places::program(&debian::SKOPEO) else { return };
    let key = Key::new();
    // The rule is for the registry to which the component is copied.
    let (Some(from), Some((site, to))) = (Registry::start(), trusting_at(Registry::start(), &[&key])) else { return };
    push(&from, "1.0.0", Some(&key));
    copy(&skopeo, &from, &to, "1.0.0");
    let reference = to.reference(NAME, "1.0.0");
    let said = fails(&site, &["add", &reference, "--yes"]);
    assert!(said.contains("is not signed") && said.contains("--unsigned"), "{said}");
    succeeds(&site, &["add", &reference, "--as", "other", "--unsigned", "--yes"]);
    assert_eq!(site.stdio(Era::Stateless).text("belljar://other/static-text"), TEXT);

    let manifest = from.push(NAME, "1.0.0", &release("guest_fixture", "1.0.0"));
    copy(&skopeo, &from, &to, &manifest.replace(':', "-"));
    let said = succeeds(&site, &["add", &reference, "--yes"]);
    assert!(said.contains("trusted for \"127.0.0.1:"), "{said}");
    let verified = verified(&site);
    assert_eq!((&verified["standing"], &verified["manifest"]), (&"same".into(), &manifest.as_str().into()));
    assert_eq!(verified["found"], sha256(&release("guest_fixture", "1.0.0").component).as_str());
}
