//! `belljar init`, `add` and `remove`, and the commands that are made from the help texts.

use std::fs;
use std::path::PathBuf;
use std::process::Output;
use std::time::Duration;

use belljar_tests::{Site, places, process};

use crate::support::{self, stdout_and_stderr};

/// A site without components, and the directory of built providers as the installed ones.
fn new_user() -> Site {
    let site = support::new_user();
    site.write("notes/a.md", "# A");
    site
}

/// Runs a command line in the site's directory, without further arguments.
fn run(site: &Site, line: &[&str]) -> Output {
    process::run(site.command(line), Duration::from_secs(120))
}

/// The output of a command that must succeed.
fn said(site: &Site, line: &[&str]) -> String {
    let output = run(site, line);
    let text = stdout_and_stderr(&output);
    assert!(output.status.success(), "{line:?}: {text}");
    text
}

/// The output of a command that must fail.
fn refused(site: &Site, line: &[&str]) -> String {
    let output = run(site, line);
    let text = stdout_and_stderr(&output);
    assert!(!output.status.success(), "{line:?}: {text}");
    text
}

#[test]
fn three_commands_lead_to_the_first_note() {
    let site = new_user();
    let text = said(&site, &["init"]);
    assert!(text.contains("belljar add") && text.contains("files"), "{text}");
    let text = said(&site, &["add", "files", "--as", "notes", "--fs", "notes", "--yes"]);
    assert!(text.contains("will be able to") && text.contains("sha256:"), "{text}");
    assert_eq!(said(&site, &["read", "belljar://notes/a.md"]).trim(), "# A");
    let lock = fs::read_to_string(site.path("belljar.lock")).unwrap();
    assert!(lock.contains("notes"), "{lock}");
    // A second time, nothing is written over.
    let again = refused(&site, &["init"]);
    assert!(again.contains("exists already"), "{again}");
    let text = fs::read_to_string(site.path("belljar.toml")).unwrap();
    assert!(text.starts_with("# The configuration of belljar") && text.contains("\n\n[mounts.notes]\n"), "{text}");
}

#[test]
fn a_mount_that_is_removed_leaves_nothing() {
    let site = new_user();
    said(&site, &["init"]);
    let before = fs::read_to_string(site.path("belljar.toml")).unwrap();
    said(&site, &["add", "files", "--as", "notes", "--fs", "/notes=notes", "--yes"]);
    said(&site, &["add", "clock", "--yes"]);
    let text = said(&site, &["remove", "notes", "--yes"]);
    assert!(text.contains("notes.wasm") && text.contains("will be deleted"), "{text}");
    assert_eq!(fs::read_to_string(site.path("belljar.toml")).unwrap().trim_end(), before.trim_end());
    assert!(!fs::read_to_string(site.path("belljar.lock")).unwrap().contains("notes"));
    let left: Vec<PathBuf> = fs::read_dir(site.path("plugins")).unwrap().map(|one| one.unwrap().path()).collect();
    assert_eq!(left, [site.path("plugins/clock.wasm")]);
    let text = refused(&site, &["remove", "notes", "--yes"]);
    assert!(text.contains("no mount \"notes\""), "{text}");
}

#[test]
fn a_component_that_another_mount_uses_stays() {
    let site = new_user();
    said(&site, &["add", "files", "--yes"]);
    site.config("[mounts.files]\n[mounts.other]\ncomponent = \"files.wasm\"\n");
    let text = said(&site, &["remove", "files", "--yes"]);
    assert!(text.contains("stays") && text.contains("\"other\""), "{text}");
    assert!(site.path("plugins/files.wasm").is_file());
}

#[test]
fn a_directory_is_added_whole_and_without_grants() {
    let site = new_user();
    for name in ["clock", "files"] {
        fs::create_dir_all(site.path("downloads")).unwrap();
        fs::copy(places::component(name), site.path(format!("downloads/{name}.wasm"))).unwrap();
    }
    let text = refused(&site, &["add", "downloads", "--fs", "/n=notes", "--yes"]);
    assert!(text.contains("2 components"), "{text}");
    let text = said(&site, &["add", "downloads", "--yes"]);
    assert!(text.contains("Added \"clock\"") && text.contains("Added \"files\""), "{text}");
    assert!(text.contains("nothing else"), "{text}");
    assert!(!site.path("belljar.lock").exists(), "nothing was granted");
}

#[test]
fn what_cannot_be_added_changes_nothing() {
    let site = new_user();
    site.write("junk.wasm", "no component");
    for (line, why) in [
        (["add", "junk.wasm", "--yes"].as_slice(), "cannot be added"),
        (&["add", "absent.wasm", "--yes"], "cannot read \"absent.wasm\""),
        (&["add", "flies", "--yes"], "did you mean \"files\"?"),
        (&["add", "zzzzzzzz", "--yes"], "these were: "),
        (&["add", "files", "--as", "No Name", "--yes"], "No Name"),
        (&["add", "files", "--fs", "/notes=absent", "--yes"], "absent"),
        (&["add", "files"], "--yes"),
    ] {
        let text = refused(&site, line);
        assert!(text.contains(why), "{line:?}: {text}");
        assert!(!site.path("plugins/files.wasm").exists() && !site.path("belljar.toml").exists(), "{line:?}");
    }
    said(&site, &["add", "files", "--as", "notes", "--yes"]);
    let text = refused(&site, &["add", "clock", "--as", "notes", "--yes"]);
    assert!(text.contains("another component \"notes\"") && text.contains("belljar remove notes"), "{text}");
    // The same bytes get their grant.
    said(&site, &["add", "files", "--as", "notes", "--fs", "/notes=notes", "--yes"]);
}

#[test]
fn the_installed_providers_are_listed() {
    let site = new_user();
    let text = said(&site, &["add"]);
    assert!(text.lines().any(|line| line == "files"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&said(&site, &["add", "--json"])).unwrap();
    assert!(json["providers"].as_array().unwrap().contains(&"files".into()), "{json}");
}

#[test]
fn shells_and_man_know_every_verb() {
    let site = new_user();
    let help = said(&site, &["--help"]);
    let (_, verbs) = help.split_once("Commands:\n").unwrap();
    // A help text goes on in lines with more spaces.
    let verbs = verbs.lines().map_while(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    let verbs = verbs.filter_map(|line| line.split_whitespace().next());
    let verbs: Vec<&str> = verbs.filter(|verb| *verb != "help").collect();
    assert!(verbs.len() > 20, "{verbs:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = said(&site, &["completions", shell]);
        for verb in &verbs {
            assert!(script.contains(verb), "{shell}: {verb}");
        }
    }
    let script = site.write("complete.bash", said(&site, &["completions", "bash"]));
    let mut bash = std::process::Command::new("bash");
    bash.arg("-c").arg(
        "source \"$1\"; COMP_WORDS=(belljar gr); COMP_CWORD=1; _belljar belljar gr belljar; echo \"${COMPREPLY[@]}\"",
    );
    let completed = process::run(
        {
            bash.arg("bash").arg(script);
            bash
        },
        Duration::from_secs(60),
    );
    assert_eq!(String::from_utf8_lossy(&completed.stdout).trim(), "grant", "{}", stdout_and_stderr(&completed));
    said(&site, &["man", "pages"]);
    for verb in &verbs {
        let page = fs::read_to_string(site.path(format!("pages/belljar-{verb}.1")))
            .unwrap_or_else(|error| panic!("{verb}: {error}"));
        assert!(page.contains(".SH SYNOPSIS"), "{verb}");
    }
}
