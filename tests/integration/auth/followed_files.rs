//! Files that a running server follows: key sets, policies, API keys and certificates. Each test changes one while the real
//! server runs, and most of them leave something else broken.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use belljar_tests::{Server, Site, wait_until};
use belljar_upstream::TokenKey;
use serde_json::{Value, json};

use super::requests::{HttpCaller, stdout_of};
use crate::support::{site, stdout_and_stderr};

const ISSUER: &str = "https://login.example";
const URL: &str = "http://127.0.0.1:1/mcp";
const CLOCK: &str = "belljar://clock/utc";

/// A site with an issuer whose keys are in `keys.json`, and with the mount `clock`.
fn with_issuer(url: &str, key: &TokenKey) -> Site {
    let site = site(&config(url));
    write_key_set(&site, key);
    site
}

fn config(url: &str) -> String {
    format!(
        "[serve]\nurl = \"{url}\"\n[auth]\nissuers = [{{ issuer = \"{ISSUER}\", jwks = \"keys.json\" }}]\n# clock.wasm\n"
    )
}

/// Replaces a file by a rename, so that the server never reads half of it.
fn replace(site: &Site, name: &str, text: impl AsRef<[u8]>) {
    let next = site.write(format!("{name}.next"), text);
    fs::rename(next, site.path(name)).unwrap();
}

fn write_key_set(site: &Site, key: &TokenKey) {
    let public = URL_SAFE_NO_PAD.encode(key.public());
    let key = json!({ "kty": "OKP", "crv": "Ed25519", "kid": "one", "use": "sig", "x": public });
    replace(site, "keys.json", json!({ "keys": [key] }).to_string());
}

/// A token for this audience.
fn token(key: &TokenKey, audience: &str) -> String {
    let encode = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let header = json!({ "alg": "EdDSA", "typ": "at+jwt", "kid": "one" });
    // The year 2100.
    let claims =
        json!({ "iss": ISSUER, "sub": "alice", "aud": audience, "exp": 4_102_444_800_u64, "client_id": "test" });
    let signed = format!("{}.{}", encode(header), encode(claims));
    let signature = URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

/// The status of a read with this credential.
fn status(server: &Server, credential: &str) -> u16 {
    HttpCaller::stateless(server, Some(credential)).read(CLOCK).status
}

fn await_status(server: &Server, credential: &str, expected: u16, what: &str) {
    wait_until(what, || match status(server, credential) {
        found if found == expected => Ok(()),
        found => Err(format!("status {found}\n{}", server.process.stderr())),
    });
}

fn await_log(server: &Server, text: &str) {
    wait_until(&format!("{text:?} in the log"), || {
        let log = server.process.stderr();
        if log.contains(text) { Ok(()) } else { Err(log) }
    });
}

#[test]
fn a_key_set_in_a_file_is_read_again() {
    let (old, new) = (TokenKey::new(), TokenKey::new());
    let site = with_issuer(URL, &old);
    let server = site.http();
    let [of_old, of_new] = [&old, &new].map(|key| token(key, URL));
    assert_eq!((status(&server, &of_old), status(&server, &of_new)), (200, 401));
    write_key_set(&site, &new);
    await_status(&server, &of_new, 200, "the new key");
    assert_eq!(status(&server, &of_old), 401, "the withdrawn key");
    // A file that others can change proves nothing.
    fs::set_permissions(site.path("keys.json"), PermissionsExt::from_mode(0o666)).unwrap();
    let said = stdout_and_stderr(&site.run(&["check"]));
    assert!(said.contains("keys.json") && said.contains("run: chmod go-w"), "{said}");
}

#[test]
fn another_url_takes_effect_after_a_restart_only() {
    let key = TokenKey::new();
    let site = with_issuer(URL, &key);
    let server = site.http();
    let other = "http://127.0.0.1:2/mcp";
    let [of_old, of_new] = [URL, other].map(|audience| token(&key, audience));
    assert_eq!((status(&server, &of_old), status(&server, &of_new)), (200, 401));
    let before = fs::read_to_string(site.path("belljar.toml")).unwrap();
    replace(&site, "belljar.toml", before.replace(URL, other));
    await_log(&server, "the changes of [serve] need a restart");
    assert_eq!((status(&server, &of_old), status(&server, &of_new)), (200, 401), "metadata name the old URL, too");
}

#[test]
fn a_policy_file_that_a_change_names_is_followed() {
    let site = site("[auth]\n# clock.wasm\n");
    let key = stdout_of(&site, &["key", "new", "ci"]).trim_end().to_owned();
    let server = site.http();
    assert_eq!(status(&server, &key), 200);
    let refused = || HttpCaller::stateless(&server, Some(&key)).read(CLOCK).json()["error"].is_object();
    site.write("other.cedar", "permit(principal, action, resource);");
    let before = fs::read_to_string(site.path("belljar.toml")).unwrap();
    replace(&site, "belljar.toml", format!("policy = \"other.cedar\"\n{before}"));
    await_log(&server, "belljar");
    assert!(!refused());
    let is = |expected: bool, what: &str| {
        wait_until(what, || if refused() == expected { Ok(()) } else { Err(server.process.stderr()) });
    };
    for round in 0..2 {
        replace(&site, "other.cedar", "forbid(principal, action, resource);");
        is(true, &format!("the policy that forbids, {round}"));
        replace(&site, "other.cedar", "permit(principal, action, resource);");
        is(false, &format!("the policy that permits, {round}"));
    }
}

/// The process outside the wall that reads the operator's files for the server.
fn helper_of(server: &Server) -> u32 {
    let own = format!("PPid:\t{}", server.process.id());
    let is_helper = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        status.contains(&own) && command.split(|byte| *byte == 0).any(|word| word == b"outside")
    };
    let mut all = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    all.find(is_helper).expect("a helper process")
}

#[test]
fn no_key_is_accepted_when_nobody_can_read_the_file() {
    let site = site("[auth]\n# clock.wasm\n");
    let [one, two] = ["one", "two"].map(|name| stdout_of(&site, &["key", "new", name]).trim_end().to_owned());
    let server = site.http();
    assert_eq!((status(&server, &one), status(&server, &two)), (200, 200));
    let killed = Command::new("kill").args(["-9", &helper_of(&server).to_string()]).status().unwrap();
    assert!(killed.success());
    stdout_of(&site, &["key", "revoke", "two"]);
    await_status(&server, &two, 401, "the end of the revoked key");
    await_log(&server, "the API keys cannot be read, so every one is refused from now on");
    assert_eq!(status(&server, &one), 401, "another change could be unread, too");
}
