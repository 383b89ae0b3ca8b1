//! Checks that the repository contains no paths of a single machine, and no addresses of mirrors of registries.

use belljar_tests::places;
use serde_json::Value;

use crate::{File, assert_none, files};

/// The directories of users' homes.
const HOMES: [&str; 3] = ["/home/", "/Users/", "\\Users\\"];

/// The user names that examples and tests may use.
const PLACEHOLDERS: [&str; 3] = ["you", "op", "x"];

/// The only registry that `Cargo.lock` may name.
const CRATES: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Words in the configuration of a mirror.
const MIRRORS: [&str; 6] =
    ["artifactory", "--extra-index-url", "--index-url", "--registry", "replace-with", "registry = \""];

/// Every line of a file with a path of one machine, or with a mirror. `own` are the paths of this machine.
fn violations(file: &File, own: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let at = format!("{}:{}", file.path, index + 1);
        let homes = HOMES.iter().flat_map(|home| starts(line, home)).filter(|rest| !is_placeholder(rest));
        let owned = own.iter().flat_map(|path| starts(line, path));
        if homes.chain(owned).next().is_some() {
            found.push(format!("{at}: a path of one machine: {}", line.trim()));
        }
        if let Some(word) = MIRRORS.iter().find(|word| starts(line, word).next().is_some()) {
            found.push(format!("{at}: \"{word}\" belongs to the configuration of one machine"));
        }
        let wrong = match file.path.rsplit('/').next() {
            Some("Cargo.lock") => line.starts_with("source = ") && line != format!("source = \"{CRATES}\""),
            // A path in the repository is allowed: such a package is not downloaded.
            Some("package-lock.json") => line.contains("\"resolved\":") && line.contains("://"),
            Some(name) if name.starts_with("requirements") => !is_pin(line),
            _ => false,
        };
        if wrong {
            found.push(format!("{at}: names the server of a download: {}", line.trim()));
        }
    }
    found
}

/// The text after each occurrence of `word` in the line. An occurrence at the end of a longer word or path does not
/// count.
fn starts<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    let whole = |at: &usize| !line[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '.' || c == '_' || c == '-');
    line.match_indices(word).map(|(at, _)| at).filter(whole).map(move |at| &line[at + word.len()..])
}

/// True if the first part of the path is a placeholder for a user name.
fn is_placeholder(rest: &str) -> bool {
    let name = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    name.is_empty() || PLACEHOLDERS.contains(&name)
}

/// True for a line `name==version`, a line with a hash, an empty line, and a comment.
fn is_pin(line: &str) -> bool {
    let line = line.strip_suffix(" \\").unwrap_or(line);
    let hash = line.strip_prefix("    --hash=sha256:");
    let hashed = hash.is_some_and(|hash| hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit()));
    let pinned = line.split_once("==").is_some_and(|(name, version)| {
        let word = |text: &str| text.chars().all(|c| c.is_alphanumeric() || "._-".contains(c));
        // An extra of a package, as in `pydantic[email]`, comes from the same place.
        let (name, extra) = name.strip_suffix(']').and_then(|name| name.split_once('[')).unwrap_or((name, ""));
        word(name) && word(extra) && word(version)
    });
    line.is_empty() || line.starts_with('#') || pinned || hashed
}

/// The paths of this machine that a file could contain by mistake.
fn own_paths() -> Vec<String> {
    let home = std::env::var("HOME").unwrap_or_default();
    let root = places::repository().to_string_lossy().into_owned();
    // Many machines have a path of one part, such as `/root`. So ignore such paths.
    let is_specific = |path: &String| path.matches('/').count() > 1;
    let mut own: Vec<_> = [home, root].into_iter().filter(is_specific).collect();
    own.push(["", "root", ""].join("/"));
    own
}

#[test]
fn no_file_names_a_machine() {
    let own = own_paths();
    // Skip this file, because it contains the forbidden words.
    let files = files("").into_iter().filter(|file| file.path != "tests/tidy/machine.rs");
    assert_none(files.flat_map(|file| violations(&file, &own)));
}

#[test]
fn paths_and_addresses_of_a_machine_are_found() {
    let own = ["/build/belljar".to_owned()];
    for (path, line) in [
        ("README.md", "cd /home/somebody/belljar"),
        ("a.toml", "plugins = \"/Users/somebody/plugins\""),
        ("a.rs", "const P: &str = \"/build/belljar/target\";"),
        ("a.md", "pip install --index-url http://10.0.0.1/simple mcp"),
        (".cargo/config.toml", "replace-with = \"mirror\""),
        ("Cargo.lock", "source = \"registry+https://mirror.example/index\""),
        ("a/package-lock.json", "  \"resolved\": \"https://mirror.example/a.tgz\","),
        ("a/requirements-1.txt", "mcp @ https://mirror.example/mcp.whl"),
        ("a/requirements-1.txt", "    --hash=md5:0123456789abcdef0123456789abcdef"),
    ] {
        let file = File { path: path.to_owned(), text: line.to_owned() };
        assert!(!violations(&file, &own).is_empty(), "{path}: {line}");
    }
}

/// pip and npm compare each downloaded file with a pinned hash. So an attacker who controls a registry cannot replace a
/// tool.
#[test]
fn tools_of_other_registries_are_pinned_by_their_hashes() {
    let mut seen = 0;
    for file in [files(".txt"), files("package-lock.json")].into_iter().flatten() {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        if (name.starts_with("requirements") && name.ends_with(".txt")) || file.path == "xtask/tools/python.txt" {
            seen += 1;
            let lines: Vec<&str> = file.text.lines().collect();
            for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.contains("==")) {
                let below = lines.get(at + 1).copied().unwrap_or_default();
                assert!(line.ends_with('\\') && below.contains("--hash=sha256:"), "{}: {line}", file.path);
            }
        }
        if name == "package-lock.json" {
            seen += 1;
            let lock: Value = serde_json::from_str(&file.text).unwrap();
            for (place, package) in lock["packages"].as_object().unwrap() {
                let is_foreign = place.starts_with("node_modules/") && package["link"] != true;
                assert!(!is_foreign || package["integrity"].is_string(), "{}: {place}", file.path);
            }
        }
    }
    assert!(seen > 8, "only {seen} files");
}

#[test]
fn neutral_paths_and_addresses_are_allowed() {
    let own = ["/build/belljar".to_owned()];
    for (path, line) in [
        ("README.md", "\"command\": \"/home/you/belljar\""),
        ("a.md", "https://example.com/home/page and ./build/belljar and src/home/x"),
        ("Cargo.lock", "source = \"registry+https://github.com/rust-lang/crates.io-index\""),
        ("a/requirements-1.txt", "mcp==1.30.0 \\"),
        ("a/requirements-1.txt", "    --hash=sha256:65fbc4a94df1de8acf7da50a1f5ed1711230188844e53e6332d99029be4e0afa"),
        ("a/package-lock.json", "      \"resolved\": \"../sdk\","),
    ] {
        let file = File { path: path.to_owned(), text: line.to_owned() };
        assert_eq!(violations(&file, &own), Vec::<String>::new(), "{path}: {line}");
    }
}
