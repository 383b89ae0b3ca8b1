//! `belljar new` creates a complete project in each language, and changes no existing file. For a misspelt language, the error
//! names the nearest language. The tests run the real command.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use belljar_tests::Site;
use serde_json::Value;

use crate::support::stdout_and_stderr;

/// Runs belljar without a plugin directory: `new` needs none.
fn run(site: &Site, arguments: &[&str]) -> std::process::Output {
    belljar_tests::process::run(site.command(arguments), std::time::Duration::from_secs(60))
}

/// The languages that `belljar new` offers.
fn languages(site: &Site) -> Vec<Value> {
    let output = run(site, &["new", "--list", "--json"]);
    assert!(output.status.success(), "{}", stdout_and_stderr(&output));
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    listed["languages"].as_array().unwrap().clone()
}

/// The paths of all files below `dir`, relative to `dir`.
fn files(dir: &Path) -> BTreeSet<String> {
    let (mut found, mut waiting) = (BTreeSet::new(), vec![dir.to_path_buf()]);
    while let Some(next) = waiting.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => waiting.push(path),
                false => drop(found.insert(path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned())),
            }
        }
    }
    found
}

#[test]
fn every_language_makes_a_whole_project() {
    let site = Site::new();
    let all = languages(&site);
    assert!(all.iter().any(|language| language["lang"] == "rust"), "{all:?}");
    for language in all {
        let lang = language["lang"].as_str().unwrap();
        let dir = format!("made-{lang}");
        let output = run(&site, &["new", "--lang", lang, "sea-level2", "--dir", &dir, "--json"]);
        assert!(output.status.success(), "{lang}: {}", stdout_and_stderr(&output));
        let made: Value = serde_json::from_slice(&output.stdout).unwrap();
        let root = site.path(&dir);
        let created: BTreeSet<String> =
            made["files"].as_array().unwrap().iter().map(|file| file.as_str().unwrap().to_owned()).collect();
        assert_eq!(files(&root), created, "{lang}: the printed files are not the created ones");
        for wanted in ["README.md", ".gitignore", "belljar.toml", "data/notes.md"] {
            assert!(created.contains(wanted), "{lang}: no {wanted}");
        }
        for file in &created {
            let bytes = fs::read(root.join(file)).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            for placeholder in ["my-provider", "my_provider", "MyProvider"] {
                assert!(!file.contains(placeholder), "{lang}: the name of {file} comes from the template");
                assert!(!text.contains(placeholder), "{lang}: {file} contains {placeholder}");
            }
            // A project must not contain files that a tool left in the template.
            let foreign = ["target/", "node_modules/", "build/", "dist/", "__pycache__/"];
            assert!(!foreign.iter().any(|directory| file.contains(directory)), "{lang}: {file}");
        }
        let interface: Vec<_> = created.iter().filter(|file| file.ends_with("/provider.wit")).collect();
        let [interface] = interface.as_slice() else { panic!("{lang}: {} copies of the interface", interface.len()) };
        let original = belljar_tests::places::repository().join("wit/provider.wit");
        assert_eq!(fs::read(root.join(interface)).unwrap(), fs::read(original).unwrap(), "{lang}: the interface");
        let readme = fs::read_to_string(root.join("README.md")).unwrap();
        assert!(readme.starts_with("# sea-level2\n"), "{lang}: {readme}");
        for command in ["belljar dev .", "belljar check", "belljar serve"] {
            assert!(readme.contains(command), "{lang}: the README does not contain {command:?}");
        }
        assert!(readme.lines().count() <= 60, "{lang}: {} lines, more than 60", readme.lines().count());

        // The configuration grants directories of the project, and names the directory of the built component.
        let config: toml::Table = fs::read_to_string(root.join("belljar.toml")).unwrap().parse().unwrap();
        let mount = &config["mounts"]["sea-level2"];
        assert_eq!(mount["fs"]["/data"].as_str(), Some("data"), "{lang}");
        let component = made["component"].as_str().unwrap();
        let (place, file) = component.rsplit_once('/').unwrap();
        assert_eq!(config["plugins"].as_str(), Some(place), "{lang}");
        let stem = file.strip_suffix(".wasm").unwrap();
        let mounted = mount.get("component").and_then(|file| file.as_str()).unwrap_or("sea-level2.wasm");
        assert!(mounted == file || stem.replace('_', "-") == "sea-level2", "{lang}: {file}");
    }
}

/// The files of a project that mention `word`, apart from the interface and the SDK.
fn mentions(root: &Path, word: &str) -> Vec<String> {
    let is_own = |file: &&String| !file.starts_with("wit/") && !file.contains("belljar");
    let text = |file: &String| String::from_utf8_lossy(&fs::read(root.join(file)).unwrap()).into_owned();
    files(root).iter().filter(is_own).filter(|file| text(file).contains(word)).cloned().collect()
}

#[test]
fn a_project_has_only_the_parts_that_its_author_wants() {
    let site = Site::new();
    for language in languages(&site) {
        let lang = language["lang"].as_str().unwrap();
        for (parts, has_tool, has_prompt) in
            [("", false, false), ("tools", true, false), ("prompts", false, true), ("tools,prompts", true, true)]
        {
            let dir = format!("{lang}-{}", parts.replace(',', "-"));
            let with: &[&str] = if parts.is_empty() { &[] } else { &["--with", parts] };
            let output = run(&site, &[&["new", "--lang", lang, "sea-level2", "--dir", &dir], with].concat());
            assert!(output.status.success(), "{dir}: {}", stdout_and_stderr(&output));
            let root = site.path(&dir);
            for (word, is_wanted) in [("month_days", has_tool), ("plan_month", has_prompt), ("belljar:if", false)] {
                let found = mentions(&root, word);
                assert_eq!(!found.is_empty(), is_wanted, "{dir}: {word} is in {found:?}");
            }
        }
    }
}

#[test]
fn new_prints_the_next_commands() {
    let site = Site::new();
    let output = run(&site, &["new", "--lang", "rust", "tides"]);
    let output_text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && output_text.starts_with("created tides: a provider in Rust, "), "{output_text}");
    let next = "\nnext:\n  cd tides\n  cargo build --release --target wasm32-wasip2\n  belljar dev .\n";
    assert!(output_text.ends_with(next), "{output_text}");
}

#[test]
fn missing_tools_are_reported_with_their_cure() {
    let mut site = Site::new();
    // A search path without programs.
    let empty = site.path("home");
    site.env("PATH", &empty);
    let output = run(&site, &["new", "--lang", "rust", "tides"]);
    let output_text = stdout_and_stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{output_text}");
    assert!(output_text.contains("\n  cargo: builds the component\n    curl "), "{output_text}");
    assert!(output_text.contains("\n    rustup target add wasm32-wasip2\n"), "{output_text}");
    assert!(site.path("tides/src/lib.rs").is_file());
    let made = run(&site, &["new", "--lang", "rust", "waves", "--json"]);
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    assert_eq!(made["missing"].as_array().unwrap().len(), 2, "{made}");
}

#[test]
fn existing_files_are_not_touched() {
    let site = Site::new();
    site.write("file", "mine");
    site.write("full/own", "mine");
    fs::create_dir(site.path("empty")).unwrap();
    std::os::unix::fs::symlink("nowhere", site.path("link")).unwrap();
    let before = files(site.path("").as_path());
    for taken in ["file", "full", "empty", "link"] {
        let output = run(&site, &["new", "--lang", "rust", "tides", "--dir", taken]);
        let output_text = stdout_and_stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{taken}: {output_text}");
        assert!(output_text.contains(&format!("{taken}\"")) && output_text.contains("--dir"), "{taken}: {output_text}");
    }
    let output = run(&site, &["new", "--lang", "rust", "tides", "--dir", "absent/tides"]);
    assert!(stdout_and_stderr(&output).contains("create it first"), "{}", stdout_and_stderr(&output));
    assert_eq!(files(site.path("").as_path()), before);
    assert_eq!(fs::read_to_string(site.path("file")).unwrap(), "mine");
}

#[test]
fn an_error_of_the_arguments_names_the_languages_or_the_cure() {
    let site = Site::new();
    for (arguments, expected) in [
        (&["--lang", "rsut", "tides"][..], "did you mean \"rust\"?"),
        (&["--lang", "cobol", "tides"], "the languages are: "),
        (&["--lang", "rust", "Tides"], "\"Tides\" is not a mount name"),
        (&["--lang", "rust", "../tides"], "../tides"),
        (&["--lang", "rust", "belljar-guest"], "\"belljar-guest-provider\""),
        // Names of modules and packages that every project of the language uses.
        (&["--lang", "python", "json"], "is reserved in Python projects; use another name, such as \"json-provider\""),
        (&["--lang", "typescript", "esbuild"], "\"esbuild-provider\""),
        (&["--lang", "rust", "match"], "\"match-provider\""),
        (&["--lang", "rust", "1st"], "begin with a letter"),
        (&["--lang", "rust", "tides", "--with", "tools,view"], "[possible values: tools, prompts]"),
        (&["--lang", "rust"], "<NAME>"),
        (&["--lang", "rust", "tides", "--minimal", "--with", "tools"], "cannot be used with '--with <PARTS>'"),
        (
            &["tides"],
            "add --lang with one of: c, cpp, go, javascript, python, rust, typescript, zig; for example: belljar new --lang python tides",
        ),
    ] {
        let output = run(&site, &[&["new"], arguments].concat());
        let output_text = stdout_and_stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output_text}");
        assert!(output_text.contains(expected) && !output_text.contains("panicked"), "{arguments:?}: {output_text}");
    }
    assert!(!site.path("tides").exists());
    let help = run(&site, &["new", "--help"]);
    for expected in ["Languages: ", "--with <PARTS>", "tools,prompts"] {
        assert!(stdout_and_stderr(&help).contains(expected), "{expected}: {}", stdout_and_stderr(&help));
    }
}
