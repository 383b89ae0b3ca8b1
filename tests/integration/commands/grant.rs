//! `grant` and `revoke`: the changes that they write into `belljar.toml` and `belljar.lock`, show and refuse. The tests run the
//! real commands.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::thread;

use belljar_tests::{Era, Site};

use crate::support::{empty, stdout_and_stderr};

/// A configuration as a person writes it, with comments, blank lines and uneven spaces.
const WRITTEN: &str = "# All that this machine serves.\nplugins = 'plugins'   # beside this file\n\n[limits]\ntime = \"5s\"  # enough\n\n# Notes.\n[mounts.files]\nuri  =  \"notes:///\"\nfs = { '/n' = 'notes' } # mine\n# the end of it\n\n[mounts.clock]\n# nothing yet\n\n# fin\n";

/// A site with `clock` and `files`, and with the directories `notes` and `more`.
fn site_with(config: &str) -> Site {
    let site = empty();
    site.mount("clock");
    site.mount("files");
    site.write("notes/a.md", "# A");
    site.write("more/b.md", "# B");
    site.config(config);
    site
}

/// The text of the configuration.
fn config(site: &Site) -> String {
    fs::read_to_string(site.path("belljar.toml")).unwrap()
}

/// Runs a command that must succeed, and returns its output.
fn succeeds(site: &Site, verb: &[&str]) -> String {
    let output = site.run(verb);
    assert!(output.status.success(), "{verb:?}: {}", stdout_and_stderr(&output));
    stdout_and_stderr(&output)
}

/// Runs a command that must fail with this code, and returns its output.
fn fails(site: &Site, code: i32, verb: &[&str]) -> String {
    let output = site.run(verb);
    assert_eq!(output.status.code(), Some(code), "{verb:?}: {}", stdout_and_stderr(&output));
    assert!(!stdout_and_stderr(&output).contains("panicked"), "{}", stdout_and_stderr(&output));
    stdout_and_stderr(&output)
}

#[test]
fn unchanged_lines_stay_byte_for_byte() {
    for written in [WRITTEN.to_owned(), WRITTEN.replace('\n', "\r\n"), format!("\u{feff}{WRITTEN}")] {
        let site = site_with(&written);
        let shown = succeeds(&site, &["grant", "files", "--fs", "/m=more", "--env", "T=x", "--yes"]);
        let after = config(&site);
        assert!(after.contains("fs = { '/n' = 'notes', \"/m\" = \"more\" } # mine"), "{after}");
        assert!(after.contains("env = { T = \"x\" }"), "{after}");
        let kept = |text: &str| {
            text.lines()
                .filter(|line| !line.starts_with("fs =") && !line.starts_with("env ="))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(kept(&after), kept(&written));
        for part in [
            "+fs = { '/n' = 'notes', \"/m\" = \"more\" } # mine",
            "-fs = { '/n' = 'notes' } # mine",
            "\"files\" will be able to\n",
            "read every file below \"more\", which it sees as \"/m\"; it cannot change anything there",
            "see the environment variable \"T\" and its value",
            "only the current \"files.wasm\" may use it: sha256:",
        ] {
            assert!(shown.contains(part), "no {part:?} in {shown}");
        }
        assert!(!shown.contains("every file below \"notes\""), "an unchanged grant is shown: {shown}");
        let shown = succeeds(&site, &["revoke", "files", "--fs", "/m", "--env", "T", "--yes"]);
        assert!(shown.contains("\"files\" will no longer be able to\n  - read every file below \"more\""), "{shown}");
        assert_eq!(config(&site), written);
        // An existing grant is not written again.
        let shown = succeeds(&site, &["grant", "files", "--fs", "/n=notes", "--yes"]);
        assert!(shown.contains("already holds these grants") && config(&site) == written, "{shown}");
    }
}

#[test]
fn a_missing_configuration_is_created() {
    let site = empty();
    site.mount("files");
    site.write("notes/a.md", "# A");
    let output = site.command(["grant", "files", "--fs", "/=notes", "--yes"]).output().unwrap();
    assert!(output.status.success(), "{}", stdout_and_stderr(&output));
    assert!(stdout_and_stderr(&output).contains("(no file)"), "{}", stdout_and_stderr(&output));
    assert_eq!(config(&site), "[mounts.files]\nfs = { \"/\" = \"notes\" }\n");
    assert_eq!(fs::metadata(site.path("belljar.toml")).unwrap().mode() & 0o777, 0o600);
    assert_eq!(site.stdio(Era::Stateless).text("belljar://files/a.md"), "# A");
    // A relative path is relative to the working directory of the command.
    fs::create_dir(site.path("elsewhere")).unwrap();
    site.write("elsewhere/inner/c.md", "# C");
    let config_file = site.path("belljar.toml");
    let mut command = site.command(["grant", "files", "--fs", "/c=inner", "--yes", "--config"]);
    let output = command.arg(&config_file).current_dir(site.path("elsewhere")).output().unwrap();
    assert!(output.status.success(), "{}", stdout_and_stderr(&output));
    assert_eq!(site.stdio(Era::Stateless).text("belljar://files/c/c.md"), "# C");
}

#[test]
fn nothing_is_written_without_a_yes() {
    let site = site_with(WRITTEN);
    let shown = fails(&site, 2, &["grant", "files", "--fs", "/m=more"]);
    assert!(shown.contains("+fs = ") && shown.contains("will be able to") && shown.contains("add --yes"), "{shown}");
    assert!(fails(&site, 2, &["revoke", "files", "--all"]).contains("add --yes"));
    assert!(fails(&site, 2, &["grant", "files"]).contains("belljar grant files --fs /data=~/files"));
    assert!(fails(&site, 2, &["revoke", "files"]).contains("--fs GUEST"));
    assert!(fails(&site, 2, &["grant", "No Name", "--env", "A=b"]).contains("not a mount name"));
    assert!(fails(&site, 2, &["grant", "files", "--fs", "notes", "--yes"]).contains("expected GUEST=HOST"));
    assert!(fails(&site, 2, &["grant", "files", "--env", "=x", "--yes"]).contains("expected NAME=VALUE"));
    assert_eq!(config(&site), WRITTEN);
    assert!(!site.path("belljar.lock").exists());
}

/// At a terminal the command asks, and accepts only "yes".
#[test]
fn grant_asks_at_a_terminal() {
    let site = site_with(WRITTEN);
    for (answer, is_written) in [("\n", false), ("n\n", false), ("what?\n", false), ("y\n", true)] {
        let belljar = site.command(site.arguments(&["grant", "files", "--env", "T=x"]));
        let words: Vec<String> = std::iter::once(belljar.get_program())
            .chain(belljar.get_args())
            .map(|word| format!("'{}'", word.to_str().unwrap()))
            .collect();
        let mut script = Command::new("script");
        script.args(["-qec", &words.join(" "), "/dev/null"]).env_clear().envs(site.environment());
        script.stdin(Stdio::piped()).stdout(Stdio::piped()).current_dir(site.path(""));
        let mut child = script.spawn().expect("start `script`, of util-linux");
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), answer.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let shown = stdout_and_stderr(&output);
        // The terminal shows what was typed as soon as it comes, also within the question.
        assert!(shown.contains("Write this?") && shown.contains("[y/N]"), "{shown}");
        assert_eq!(config(&site) != WRITTEN, is_written, "{answer:?}: {shown}");
        assert_eq!(output.status.success(), is_written, "{answer:?}: {shown}");
        assert_eq!(shown.contains("nothing was changed"), !is_written, "{answer:?}: {shown}");
    }
}

#[test]
fn impossible_grants_are_not_written() {
    let site = site_with(WRITTEN);
    symlink("plugins", site.path("sly")).unwrap();
    for (flag, value, expected) in [
        ("--fs", "/m=absent", "it does not exist"),
        ("--fs", "/m=notes/a.md", "not a directory"),
        ("--fs", "/m=/", "whole file system"),
        ("--fs", "/m=/proc", "never granted"),
        ("--fs", "/m=/dev/shm", "never granted"),
        ("--fs", "/m=plugins", "belljar's own"),
        ("--fs", "/m=sly", "belljar's own"),
        ("--fs", "/m=.", "belljar's own"),
        ("--fs", "m=more", "begin with \"/\""),
        ("--fs", "/../m=more", "dot segment"),
    ] {
        let said = fails(&site, 1, &["grant", "files", flag, value, "--yes"]);
        assert!(said.contains("nothing was changed") && said.contains(expected), "{value}: {said}");
        assert_eq!(config(&site), WRITTEN, "{value}");
        assert!(!site.path("belljar.lock").exists(), "{value}");
    }
    let said = fails(&site, 1, &["grant", "absent", "--env", "A=b", "--yes"]);
    assert!(said.contains("there is no component for the mount \"absent\""), "{said}");
    // The command does not change a configuration that is already invalid.
    site.config("[mounts.files]\nsf = 1\n");
    assert!(fails(&site, 1, &["grant", "files", "--env", "A=b", "--yes"]).contains("did you mean"));
    assert_eq!(config(&site), "[mounts.files]\nsf = 1\n");
}

#[test]
fn a_grant_that_a_mount_lacks_cannot_be_revoked() {
    let site = site_with(WRITTEN);
    let said = fails(&site, 1, &["revoke", "files", "--fs", "/x", "--yes"]);
    assert!(said.contains("the mount has no fs grant \"/x\"; its fs grants are \"/n\""), "{said}");
    let said = fails(&site, 1, &["revoke", "files", "--env", "X", "--yes"]);
    assert!(said.contains("the mount has no env grants"), "{said}");
    let said = fails(&site, 1, &["revoke", "clock", "--all", "--yes"]);
    assert!(said.contains("\"clock\" holds no grants; these do: \"files\""), "{said}");
    assert_eq!(config(&site), WRITTEN);
    succeeds(&site, &["list"]);
    assert!(fs::read_to_string(site.path("belljar.lock")).unwrap().contains("[mounts.files]"));
    succeeds(&site, &["revoke", "files", "--all", "--yes"]);
    assert_eq!(config(&site), WRITTEN.replace("fs = { '/n' = 'notes' } # mine\n", ""));
    assert!(
        !fs::read_to_string(site.path("belljar.lock")).unwrap().contains("[mounts.files]"),
        "the lock has an entry for a mount without grants"
    );
}

/// Concurrent commands must not undo each other's changes.
#[test]
fn concurrent_commands_keep_the_changes_of_each_other() {
    let site = site_with(WRITTEN);
    thread::scope(|scope| {
        for n in 0..8 {
            let site = &site;
            scope.spawn(move || {
                succeeds(
                    site,
                    &["grant", if n % 2 == 0 { "files" } else { "clock" }, "--env", &format!("V{n}=x"), "--yes"],
                );
            });
        }
    });
    let after = config(&site);
    assert!((0..8).all(|n| after.contains(&format!("V{n} = \"x\""))), "{after}");
    let lock = fs::read_to_string(site.path("belljar.lock")).unwrap();
    assert!(lock.contains("[mounts.files]") && lock.contains("[mounts.clock]"), "{lock}");
    // Concurrent first starts write the same lock.
    fs::remove_file(site.path("belljar.lock")).unwrap();
    thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(|| succeeds(&site, &["list"])))));
    assert_eq!(fs::read_to_string(site.path("belljar.lock")).unwrap(), lock);
}

#[test]
fn a_link_stays_a_link_and_permissions_stay() {
    let site = site_with("");
    fs::create_dir(site.path("real")).unwrap();
    fs::rename(site.path("belljar.toml"), site.path("real/shared.toml")).unwrap();
    fs::set_permissions(site.path("real/shared.toml"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("real/shared.toml", site.path("belljar.toml")).unwrap();
    succeeds(&site, &["grant", "files", "--fs", "/=notes", "--yes"]);
    assert!(site.path("belljar.toml").is_symlink());
    assert_eq!(
        fs::read_to_string(site.path("real/shared.toml")).unwrap(),
        "[mounts.files]\nfs = { \"/\" = \"notes\" }\n"
    );
    assert_eq!(fs::metadata(site.path("real/shared.toml")).unwrap().mode() & 0o777, 0o640);
    assert!(site.path("belljar.lock").is_file(), "the lock is beside the link, not beside its target");
    assert_eq!(site.stdio(Era::Stateless).text("belljar://files/a.md"), "# A");
}

/// The command that `inspect` prints must work.
#[test]
fn the_command_that_inspect_prints_works() {
    let site = site_with("");
    let shown = succeeds(&site, &["inspect", site.path("plugins/files.wasm").to_str().unwrap()]);
    assert!(shown.contains("belljar grant files --fs /data=~/files"), "{shown}");
    fs::create_dir_all(site.path("home/files")).unwrap();
    succeeds(&site, &["grant", "files", "--fs", "/data=~/files", "--yes"]);
}

/// A mount in quarantine gets no further grants before `belljar trust`.
#[test]
fn a_mount_in_quarantine_gets_no_grants() {
    let site = site_with("[mounts.clock]\nenv = { A = \"b\" }\n");
    succeeds(&site, &["list"]);
    site.mount_as("files", "clock.wasm");
    let before = (config(&site), fs::read_to_string(site.path("belljar.lock")).unwrap());
    let said = fails(&site, 1, &["grant", "clock", "--fs", "/=notes", "--yes"]);
    assert!(said.contains("is in quarantine") && said.contains("belljar trust clock"), "{said}");
    assert_eq!((config(&site), fs::read_to_string(site.path("belljar.lock")).unwrap()), before);
    // Revoking is always possible.
    succeeds(&site, &["revoke", "clock", "--env", "A", "--yes"]);
}

#[test]
fn grant_and_check_warn_of_files_that_others_may_change() {
    let site = site_with("");
    fs::set_permissions(site.path("notes"), fs::Permissions::from_mode(0o777)).unwrap();
    let shown = succeeds(&site, &["grant", "files", "--fs", "/=notes", "--yes"]);
    assert!(shown.contains("warning: anyone on this machine can change the files in \"/\""), "{shown}");
    let shown = succeeds(&site, &["check"]);
    assert!(shown.contains("warning  anyone on this machine can change the files in \"/\""), "{shown}");
    let shown = succeeds(&site, &["grant", "clock", "--fs", "/=more", "--yes"]);
    assert!(shown.contains("warning: the component cannot use the grant \"fs\":"), "{shown}");
}
