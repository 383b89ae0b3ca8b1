//! Registries that want a login: with the password in each request, and with tokens.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_tests::registry::{PASSWORD, USER};
use belljar_tests::{Era, Registry, Site};
use serde_json::json;

use super::{NAME, TEXT, fails, release, succeeds, verified};
use crate::support::empty;

/// A password that the registry does not know.
const WRONG: &str = "wr0ng-pa55word";

/// A site, and a registry with one version.
fn start(registry: Option<Registry>) -> Option<(Site, Registry, String)> {
    let registry = registry?;
    registry.push(NAME, "1.0.0", &release("guest_fixture", "1.0.0"));
    let reference = registry.reference(NAME, "1.0.0");
    Some((empty(), registry, reference))
}

/// A login, as docker and podman write it.
fn login(registry: &Registry, password: &str) -> String {
    json!({ "auths": { registry.name(): { "auth": STANDARD.encode(format!("{USER}:{password}")) } } }).to_string()
}

/// Checks that what a command says has neither password.
fn clean(said: String) -> String {
    for secret in [PASSWORD, WRONG] {
        assert!(!said.contains(secret), "{said}");
        assert!(!said.contains(&STANDARD.encode(format!("{USER}:{secret}"))), "{said}");
    }
    said
}

/// Checks the whole life of a mount of a private registry.
fn check(registry: Option<Registry>) {
    let Some((mut site, registry, reference)) = start(registry) else { return };
    let add = ["add", &reference, "--unsigned", "--yes"];
    let cure = format!("docker login {}", registry.name());
    let said = fails(&site, &add);
    assert!(said.contains("does not show") && said.contains("acme/tides") && said.contains(&cure), "{said}");
    site.write("home/.docker/config.json", login(&registry, WRONG));
    let said = clean(fails(&site, &add));
    assert!(said.contains("refuses the login") && said.contains(&cure), "{said}");
    assert!(!site.path("plugins/tides.wasm").exists() && !site.path("belljar.lock").exists());

    site.write("home/.docker/config.json", login(&registry, PASSWORD));
    clean(succeeds(&site, &add));
    assert_eq!(site.stdio(Era::Stateless).text("belljar://tides/static-text"), TEXT);
    registry.push(NAME, "1.1.0", &release("guest_fixture", "1.1.0"));
    let said = clean(fails(&site, &["outdated"]));
    assert!(said.contains("1.0.0 -> 1.1.0"), "{said}");
    // The login may have ended since.
    std::fs::remove_file(site.path("home/.docker/config.json")).unwrap();
    let upgrade = ["upgrade", "tides", "--unsigned", "--yes"];
    let said = fails(&site, &upgrade);
    assert!(said.contains(&cure), "{said}");
    assert_eq!(verified(&site)["standing"], "same");
    // Podman keeps it elsewhere.
    let file = site.write("podman/auth.json", login(&registry, PASSWORD));
    site.env("REGISTRY_AUTH_FILE", file);
    clean(succeeds(&site, &[upgrade.as_slice(), &["--json"]].concat()));
    assert_eq!(verified(&site)["reference"], registry.reference(NAME, "1.1.0"));
    for command in ["verify", "why"] {
        let arguments = if command == "why" { &[command, "tides"][..] } else { &[command] };
        clean(succeeds(&site, arguments));
    }
    for file in ["belljar.lock", "belljar.toml"] {
        clean(std::fs::read_to_string(site.path(file)).unwrap_or_default());
    }
}

#[test]
fn a_registry_wants_a_password() {
    check(Registry::with_password());
}

#[test]
fn a_registry_wants_a_token() {
    check(Registry::with_tokens());
}

/// A login at one registry is nothing to another.
#[test]
fn a_login_stays_at_its_registry() {
    let Some((site, registry, _)) = start(Registry::with_password()) else { return };
    let Some(other) = Registry::with_password() else { return };
    site.write("home/.docker/config.json", login(&registry, PASSWORD));
    let said = clean(fails(&site, &["add", &other.reference(NAME, "1.0.0"), "--unsigned", "--yes"]));
    assert!(said.contains("does not show"), "{said}");
}
