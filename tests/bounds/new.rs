//! `belljar new` through the real binary: each language that it carries makes a whole project, nothing that was there is
//! touched, and whoever misspells is told what is meant.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use belljar_tests::Site;
use serde_json::Value;

use crate::place::said;

/// A place without plugins: `new` needs none.
fn run(site: &Site, arguments: &[&str]) -> std::process::Output {
    belljar_tests::process::run(site.command(arguments), std::time::Duration::from_secs(60))
}

fn languages(site: &Site) -> Vec<Value> {
    let output = run(site, &["new", "--list", "--json"]);
    assert!(output.status.success(), "{}", said(&output));
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    listed["languages"].as_array().unwrap().clone()
}

/// Every file below `dir`, by its path there.
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
        assert!(output.status.success(), "{lang}: {}", said(&output));
        let made: Value = serde_json::from_slice(&output.stdout).unwrap();
        let root = site.path(&dir);
        let told: BTreeSet<String> =
            made["files"].as_array().unwrap().iter().map(|file| file.as_str().unwrap().to_owned()).collect();
        assert_eq!(files(&root), told, "{lang}: what is said and what is there");
        for wanted in ["README.md", ".gitignore", "belljar.toml", "data/notes.md"] {
            assert!(told.contains(wanted), "{lang}: no {wanted}");
        }
        for file in &told {
            let bytes = fs::read(root.join(file)).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            for placeholder in ["my-provider", "my_provider", "MyProvider"] {
                assert!(!file.contains(placeholder), "{lang}: {file} is called after the template");
                assert!(!text.contains(placeholder), "{lang}: {file} still says {placeholder}");
            }
            // What a tool left in the template has no business in a project.
            let foreign = ["target/", "node_modules/", "build/", "dist/", "__pycache__/"];
            assert!(!foreign.iter().any(|left| file.contains(left)), "{lang}: {file}");
        }
        let interface: Vec<_> = told.iter().filter(|file| file.ends_with("/provider.wit")).collect();
        let [interface] = interface.as_slice() else { panic!("{lang}: {} copies of the interface", interface.len()) };
        let own = belljar_tests::places::repository().join("wit/provider.wit");
        assert_eq!(fs::read(root.join(interface)).unwrap(), fs::read(own).unwrap(), "{lang}: the interface");
        let readme = fs::read_to_string(root.join("README.md")).unwrap();
        assert!(readme.starts_with("# sea-level2\n"), "{lang}: {readme}");
        for said in ["belljar dev .", "belljar check", "belljar serve"] {
            assert!(readme.contains(said), "{lang}: its README does not say {said:?}");
        }
        assert!(readme.lines().count() <= 60, "{lang}: nobody reads {} lines", readme.lines().count());

        // What it grants is what lies in the project, and the component is where the configuration says.
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

#[test]
fn a_project_ends_with_what_to_type_next() {
    let site = Site::new();
    let output = run(&site, &["new", "--lang", "rust", "tides"]);
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && told.starts_with("made tides: a provider in Rust, "), "{told}");
    let next = "\nnext:\n  cd tides\n  cargo build --release --target wasm32-wasip2\n  belljar dev .\n";
    assert!(told.ends_with(next), "{told}");
}

#[test]
fn what_is_missing_is_told_with_its_cure() {
    let mut site = Site::new();
    // A search path on which there is nothing.
    let empty = site.path("home");
    site.env("PATH", &empty);
    let output = run(&site, &["new", "--lang", "rust", "tides"]);
    let told = said(&output);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("\n  cargo: builds the component\n    curl "), "{told}");
    assert!(told.contains("\n    rustup target add wasm32-wasip2\n"), "{told}");
    assert!(site.path("tides/src/lib.rs").is_file());
    let made = run(&site, &["new", "--lang", "rust", "waves", "--json"]);
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    assert_eq!(made["missing"].as_array().unwrap().len(), 2, "{made}");
}

#[test]
fn nothing_that_is_there_is_touched() {
    let site = Site::new();
    site.write("file", "mine");
    site.write("full/own", "mine");
    fs::create_dir(site.path("empty")).unwrap();
    std::os::unix::fs::symlink("nowhere", site.path("link")).unwrap();
    let before = files(site.path("").as_path());
    for taken in ["file", "full", "empty", "link"] {
        let output = run(&site, &["new", "--lang", "rust", "tides", "--dir", taken]);
        let told = said(&output);
        assert_eq!(output.status.code(), Some(1), "{taken}: {told}");
        assert!(told.contains(&format!("{taken}\"")) && told.contains("--dir"), "{taken}: {told}");
    }
    let output = run(&site, &["new", "--lang", "rust", "tides", "--dir", "absent/tides"]);
    assert!(said(&output).contains("create it first"), "{}", said(&output));
    assert_eq!(files(site.path("").as_path()), before);
    assert_eq!(fs::read_to_string(site.path("file")).unwrap(), "mine");
}

#[test]
fn whoever_misspells_is_told_what_is_meant() {
    let site = Site::new();
    for (arguments, expected) in [
        (&["--lang", "rsut", "tides"][..], "did you mean \"rust\"?"),
        (&["--lang", "cobol", "tides"], "The languages are: "),
        (&["--lang", "rust", "Tides"], "\"Tides\" is not a mount name"),
        (&["--lang", "rust", "../tides"], "../tides"),
        (&["--lang", "rust", "belljar-guest"], "\"belljar-guest-provider\""),
        // Modules and packages that every project of the language has.
        (&["--lang", "python", "json"], "means something else in Python projects; call it \"json-provider\""),
        (&["--lang", "typescript", "esbuild"], "\"esbuild-provider\""),
        (&["--lang", "rust", "match"], "\"match-provider\""),
        (&["--lang", "rust", "1st"], "begin with a letter"),
        (&["--lang", "rust"], "<NAME>"),
        (&["tides"], "--lang <LANG>"),
    ] {
        let output = run(&site, &[&["new"], arguments].concat());
        let told = said(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains(expected) && !told.contains("panicked"), "{arguments:?}: {told}");
    }
    assert!(!site.path("tides").exists());
    let help = run(&site, &["new", "--help"]);
    assert!(said(&help).contains("Languages: "), "{}", said(&help));
}
