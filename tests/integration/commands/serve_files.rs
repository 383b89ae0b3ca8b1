//! `belljar serve --files`: directories without a configuration.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use belljar_tests::{Client, Era, Site, process};

use crate::support::{self, stdout_and_stderr};

/// A site without components and configuration, with two directories and the installed providers.
fn new_user() -> Site {
    let site = support::new_user();
    site.write("My Notes/a.md", "# A");
    site.write("papers/b.md", "# B");
    site
}

/// The folders with belljar's own configurations of a site.
fn own_configurations(site: &Site) -> Vec<std::path::PathBuf> {
    let (_, state) = site.environment().into_iter().find(|(name, _)| name == "XDG_STATE_HOME").unwrap();
    let folders = fs::read_dir(std::path::Path::new(&state).join("belljar/files")).unwrap();
    folders.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn each_directory_is_a_mount_that_can_only_read() {
    let site = new_user();
    let serve =
        |directories: &[&str]| Client::start(site.command([&["serve", "--files"], directories].concat()), Era::Session);
    for _ in 0..2 {
        let mut client = serve(&["My Notes", "papers"]);
        assert_eq!(client.uris(), ["belljar://my-notes/a.md", "belljar://papers/b.md"]);
        assert_eq!(client.text("belljar://papers/b.md"), "# B");
        // Later files are there, and files beside the directory are not.
        site.write("papers/c.md", "# C");
        site.write("secret.md", "secret");
        assert_eq!(client.text("belljar://papers/c.md"), "# C");
        fs::remove_file(site.path("papers/c.md")).unwrap();
        assert!(client.read("belljar://papers/../secret.md").is_err());
        assert!(client.close().status.success());
    }
    // The same directories have one configuration, which only this user can read.
    let [folder] = &own_configurations(&site)[..] else { panic!("{:?}", own_configurations(&site)) };
    assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    assert!(fs::read_to_string(folder.join("belljar.lock")).unwrap().contains("papers"));
    assert!(!site.path("belljar.toml").exists());
    assert!(serve(&["papers"]).close().status.success());
    assert_eq!(own_configurations(&site).len(), 2);
}

#[test]
fn a_missing_directory_does_not_take_the_others_down() {
    let site = new_user();
    let mut client = Client::start(site.command(["serve", "--files", "papers", "gone"]), Era::Session);
    assert_eq!(client.text("belljar://papers/b.md"), "# B");
    let error = client.read("belljar://gone/a.md").unwrap_err();
    assert!(error.message.contains("gone"), "{error:?}");
    let ended = client.close();
    assert!(ended.stderr.contains("gone"), "{}", ended.stderr);
}

#[test]
fn wrong_usage_is_explained() {
    let mut site = new_user();
    let refused = |site: &Site, line: &[&str]| {
        let output = process::run(site.command(line), Duration::from_secs(120));
        assert!(!output.status.success(), "{line:?}");
        stdout_and_stderr(&output)
    };
    site.config("");
    for flag in ["--config=belljar.toml", "--plugins=plugins", "--dev"] {
        let text = refused(&site, &["serve", "--files", "papers", flag]);
        assert!(text.contains("cannot be used with"), "{text}");
    }
    let none = site.path("none");
    fs::create_dir(&none).unwrap();
    site.env("BELLJAR_PROVIDERS", &none);
    let text = refused(&site, &["serve", "--files", "papers"]);
    assert!(text.contains("\"files\" was not installed") && text.contains("BELLJAR_PROVIDERS"), "{text}");
}
