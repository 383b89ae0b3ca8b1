//! belljar refuses a wrong configuration before it starts a provider. The error names the path of the key and the expected
//! value, and the exit code is 1.

use std::fs;

use serde_json::Value;

use crate::support::{assert_clean, isolated_site, stdout_and_stderr};

/// Wrong configurations, each with parts of the error message.
pub(super) const WRONG: &[(&str, &[&str])] = &[
    ("plugin = \"x\"", &["\"plugin\"", "did you mean \"plugins\"?"]),
    ("[limit]\ntime = \"5s\"", &["\"limit\"", "did you mean \"limits\"?"]),
    ("[limits]\ntiem = \"5s\"", &["\"limits.tiem\"", "did you mean \"time\"?"]),
    ("[mounts.clock.limits]\nmemroy = \"5MiB\"", &["\"mounts.clock.limits.memroy\"", "did you mean \"memory\"?"]),
    ("[mounts.clock]\nfile = { \"/a\" = \"b\" }", &["\"mounts.clock.file\""]),
    ("[mounts.clock]\nxyzzy = 1", &["\"mounts.clock.xyzzy\"", "fs", "env"]),
    ("[limits]\ntime = 5", &["limits.time = 5", "\"5s\""]),
    ("[limits]\ntime = \"soon\"", &["limits.time", "\"5s\""]),
    ("[limits]\ntime = \"0s\"", &["limits.time", "1ms"]),
    ("[limits]\ntime = \"2h\"", &["limits.time", "1h"]),
    ("[limits]\nmemory = \"64 miles\"", &["limits.memory", "64MiB"]),
    ("[limits]\nmemory = \"1KiB\"", &["limits.memory", "64KiB"]),
    ("[limits]\nmemory = \"8GiB\"", &["limits.memory", "4GiB"]),
    ("[limits]\nmemory = -1", &["limits.memory"]),
    ("[limits]\nfuel = 0", &["limits.fuel"]),
    ("[limits]\nfuel = \"lots\"", &["limits.fuel"]),
    ("[limits]\nhandles = 0", &["limits.handles"]),
    ("[limits]\nconcurrency = 0", &["limits.concurrency"]),
    ("[mounts.clock.limits]\nresult = \"1TiB\"", &["mounts.clock.limits.result", "256MiB"]),
    ("calls = 0", &["calls = 0"]),
    ("calls = 100000", &["calls = 100000", "1024"]),
    ("list-time = 3", &["list-time = 3"]),
    ("limits = 5", &["limits", "table"]),
    ("mounts = []", &["mounts", "table"]),
    ("[mounts]\nclock = 1", &["mounts.clock", "table"]),
    ("[mounts.Clock]", &["[mounts.Clock]", "a-z"]),
    ("[mounts.\"a/b\"]", &["mounts", "a/b"]),
    ("[mounts.\"\\u001b[31m\"]", &["mount name"]),
    ("[mounts.clock]\nuri = \"clock\"", &["mounts.clock.uri", "scheme"]),
    ("[mounts.clock]\nuri = \"x://a/../b/\"", &["mounts.clock.uri", "dot segment"]),
    ("[mounts.clock]\nuri = \"x://a\"", &["mounts.clock.uri", "end in \"/\""]),
    ("[mounts.clock]\nuri = 5", &["mounts.clock.uri = 5"]),
    ("[mounts.clock]\ncomponent = \"../clock.wasm\"", &["mounts.clock.component", "without a path"]),
    ("[mounts.clock]\ncomponent = \"clock\"", &["mounts.clock.component", ".wasm"]),
    ("[mounts.clock]\nfs = \"/home\"", &["mounts.clock.fs", "fs = {"]),
    ("[mounts.clock]\nenv = { A = 1 }", &["mounts.clock.env", "env = {"]),
    ("[limits]\ntime = \"5s\"\ntime = \"6s\"", &["duplicate"]),
    ("[limits", &["line 1"]),
    ("a = \u{1}", &["line 1"]),
];

#[test]
fn wrong_settings_are_refused_with_their_path() {
    let site = isolated_site();
    site.mount("clock");
    for (text, expected) in WRONG {
        site.config(text);
        for verb in ["check", "serve", "list"] {
            let output = site.run(&[verb]);
            let output_text = stdout_and_stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{verb} with {text:?}: {output_text}");
            assert_eq!(output.stdout, b"", "{verb} with {text:?}");
            for part in *expected {
                assert!(output_text.contains(part), "{verb} with {text:?}: no {part:?} in {output_text}");
            }
            assert!(
                output_text.contains("belljar.toml") && !output_text.contains("panicked"),
                "{text:?}: {output_text}"
            );
            output_text.lines().for_each(assert_clean);
        }
    }
    // Without the wrong settings, the same site starts.
    site.config("[limits]\ntime = \"5s\"\n");
    assert!(site.run(&["check"]).status.success());
}

/// If belljar cannot give a grant on this machine (its directory is missing, for example), it refuses only the mount of the
/// grant. It serves the other mounts.
#[test]
fn a_grant_that_cannot_be_given_refuses_its_mount() {
    let site = isolated_site();
    site.mount("clock");
    site.mount("files");
    fs::create_dir_all(site.path("notes")).unwrap();
    site.write("a-file", "x");
    std::os::unix::fs::symlink("plugins", site.path("sly")).unwrap();
    for (fs, expected) in [
        ("{ \"/n\" = \"absent\" }", "\"absent\""),
        ("{ \"/n\" = \"a-file\" }", "not a directory"),
        ("{ \"/n\" = \"/\" }", "whole file system"),
        ("{ \"/n\" = \"/proc\" }", "never granted"),
        ("{ \"/n\" = \"/proc/self/root\" }", ""),
        ("{ \"/n\" = \"/sys/kernel\" }", "never granted"),
        ("{ \"/n\" = \"/dev/shm\" }", "never granted"),
        ("{ \"/n\" = \"plugins\" }", "belljar's own"),
        ("{ \"/n\" = \"sly\" }", "belljar's own"),
        ("{ \"/n\" = \".\" }", "belljar's own"),
        ("{ \"/n\" = \"state\" }", ""),
        ("{ \"/n\" = \"notes/../plugins\" }", "belljar's own"),
        ("{ \"n\" = \"notes\" }", "begin with \"/\""),
        ("{ \"/n/../m\" = \"notes\" }", "dot segment"),
    ] {
        site.config(&format!("[mounts.files]\nfs = {fs}\n"));
        let output = site.run(&["check", "--json"]);
        assert_eq!(output.status.code(), Some(1), "{fs}: {}", stdout_and_stderr(&output));
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json["refused"][0]["name"], "files", "{fs}: {json}");
        let reason = json["refused"][0]["reason"].as_str().unwrap();
        assert!(reason.starts_with("fs: ") && reason.contains(expected), "{fs}: {reason}");
        assert_eq!(json["mounts"][0]["name"], "clock", "{fs}: {json}");
    }
    site.config("[mounts.files]\nfs = { \"/n\" = \"notes\" }\n");
    assert!(site.run(&["check"]).status.success());
}

/// Two mounts cannot have the same base. The first one by name is served, and the other one is refused with the reason.
#[test]
fn two_mounts_do_not_share_a_base() {
    let site = isolated_site();
    site.mount("clock");
    site.config(
        "[mounts.one]\ncomponent = \"clock.wasm\"\nuri = \"time://\"\n[mounts.two]\ncomponent = \"clock.wasm\"\nuri = \"time://\"\n\
         [mounts.lost]\n",
    );
    let output = site.run(&["list", "--json"]);
    assert_eq!(output.status.code(), Some(1), "a mount is not served");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let refused: Vec<_> = json["refused"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].as_str().unwrap(), one["reason"].as_str().unwrap()))
        .collect();
    assert_eq!(refused.len(), 2, "{json}");
    assert!(refused.iter().any(|(name, why)| *name == "two" && why.contains("taken by mount \"one\"")), "{refused:?}");
    assert!(refused.iter().any(|(name, why)| *name == "lost" && why.contains("no \"lost.wasm\"")), "{refused:?}");
    assert_eq!(json["mounts"].as_array().unwrap().len(), 1);
}
