//! Secrets of which each principal has its own: the upstream sees the one of the principal that asks.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use belljar_tests::{Era, Site, wait_until};
use belljar_upstream::{Upstream, echo};

use crate::grants::http::{fetch, mount};
use crate::support::{serve, site, stdout_and_stderr};

/// Writes a file that only this user can read.
fn private(site: &Site, path: &str, text: &str) {
    let file = site.path(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let file = site.write(path, text);
    fs::set_permissions(file, PermissionsExt::from_mode(0o600)).unwrap();
}

/// A site whose mount `hostile` adds the secret of each principal to its requests to `upstream`.
fn site_with_secret(upstream: &Upstream, file: &str) -> (Site, String) {
    let origin = format!("http://127.0.0.1:{}", upstream.port());
    let grant =
        format!("http = [{{ origin = \"{origin}\", headers = {{ authorization = \"Bearer ${{secret:github}}\" }} }}]");
    let site = site(&format!("[secrets]\ngithub = {{ file = \"{file}\" }}\n{}", mount(&grant)));
    (site, fetch(&format!("GET {origin}/")))
}

#[test]
fn the_upstream_sees_the_secret_of_the_principal() {
    let upstream = Upstream::plain(echo);
    let (site, uri) = site_with_secret(&upstream, "secrets/{principal}/github");
    private(&site, "secrets/local/github", "token-of-local\n");
    private(&site, "secrets/key%3aci/github", "token-of-ci\n");
    let sent = || upstream.requests().pop().unwrap().header("authorization").unwrap().to_owned();
    let mut client = serve(&site);
    let text = client.text(&uri);
    assert_eq!(sent(), "Bearer token-of-local");
    assert!(text.starts_with("status 200") && !text.contains("token-of"), "{text}");
    // The file is read for each call.
    private(&site, "secrets/local/github", "another-token\n");
    let text = client.text(&uri);
    assert_eq!(sent(), "Bearer another-token");
    assert!(!text.contains("another-token"), "the new secret is not masked: {text}");
    client.close();
}

#[test]
fn who_has_no_secret_is_told_so_and_no_request_is_sent() {
    let upstream = Upstream::plain(echo);
    let (site, uri) = site_with_secret(&upstream, "secrets/{principal}/github");
    private(&site, "secrets/key%3aci/github", "token-of-ci\n");
    for era in [Era::Stateless, Era::Session] {
        let mut client = site.stdio(era);
        let error = client.read(&uri).unwrap_err().to_string();
        assert!(
            error.contains("needs a secret \\\"github\\\" of your own")
                || error.contains("needs a secret \"github\" of your own"),
            "{error}"
        );
        assert!(error.contains("local/github"), "{error}");
        assert!(!error.contains(site.path("").to_str().unwrap()), "a path of the host: {error}");
        // A file that others can read is not used, and only the log says why.
        private(&site, "secrets/local/github", "token-of-local\n");
        fs::set_permissions(site.path("secrets/local/github"), PermissionsExt::from_mode(0o644)).unwrap();
        let error = client.read(&uri).unwrap_err().to_string();
        assert!(error.contains("cannot use it") && !error.contains("chmod"), "{error}");
        // The log is written a moment later.
        let mut log = || client.wire().process.stderr();
        wait_until("the cure in the log", || match log().contains("run: chmod 600") {
            true => Ok(()),
            false => Err(log()),
        });
        fs::remove_file(site.path("secrets/local/github")).unwrap();
        client.close();
    }
    let record = site.audit().into_iter().find(|record| record["outcome"] == "denied").unwrap();
    assert_eq!(record["blame"], "operator", "{record}");
    assert_eq!(upstream.connections(), 0);
}

#[test]
fn the_placeholder_is_checked() {
    for (file, expected) in [
        ("{principal}/{principal}", "expected \"{principal}\" once"),
        ("x/{principal}/../y", "without \".\" and \"..\""),
    ] {
        let site = site(&format!("[secrets]\na = {{ file = \"{file}\" }}\n"));
        let output = site.run(&["check"]);
        let shown = stdout_and_stderr(&output);
        assert!(!output.status.success() && shown.contains("secrets.a.file") && shown.contains(expected), "{shown}");
    }
}

#[test]
fn no_grant_covers_the_directory_of_the_secrets() {
    let site = site("[secrets]\na = { file = \"secrets/{principal}/a\" }\n");
    site.mount("files");
    private(&site, "secrets/local/a", "token-of-local\n");
    for directory in ["secrets", "secrets/local"] {
        let output = site.run(&["grant", "files", "--fs", &format!("/data={directory}"), "--yes"]);
        let shown = stdout_and_stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{shown}");
    }
}
