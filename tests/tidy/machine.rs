//! Nothing in the repository knows the machine that it was written on: no path of it, no mirror of a registry.

use belljar_tests::places;
use serde_json::Value;

use crate::{File, files, none};

/// Homes of people.
const HOMES: [&str; 3] = ["/home/", "/Users/", "\\Users\\"];

/// People who do not exist: the reader of an example, the operator of a test, a placeholder.
const NOBODY: [&str; 3] = ["you", "op", "x"];

/// The only registry that `Cargo.lock` may name.
const CRATES: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Words that belong to the configuration of a mirror.
const MIRRORS: [&str; 6] =
    ["artifactory", "--extra-index-url", "--index-url", "--registry", "replace-with", "registry ="];

/// Every place where a file gives a machine away. `own` are the paths of this one.
fn violations(file: &File, own: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let at = format!("{}:{}", file.path, index + 1);
        let homes = HOMES.iter().flat_map(|home| starts(line, home)).filter(|rest| !is_nobodys(rest));
        let owned = own.iter().flat_map(|path| starts(line, path));
        if homes.chain(owned).next().is_some() {
            found.push(format!("{at}: a path of one machine: {}", line.trim()));
        }
        if let Some(word) = MIRRORS.iter().find(|word| starts(line, word).next().is_some()) {
            found.push(format!("{at}: \"{word}\" belongs to the configuration of one machine"));
        }
        let wrong = match file.path.rsplit('/').next() {
            Some("Cargo.lock") => line.starts_with("source = ") && line != format!("source = \"{CRATES}\""),
            // A path within the repository is where a package is, not where it came from.
            Some("package-lock.json") => line.contains("\"resolved\":") && line.contains("://"),
            Some(name) if name.starts_with("requirements") => !is_pin(line),
            _ => false,
        };
        if wrong {
            found.push(format!("{at}: names where it was downloaded from: {}", line.trim()));
        }
    }
    found
}

/// What follows `word` wherever it stands and is not the tail of a longer word or path.
fn starts<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    let whole = |at: &usize| !line[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '.' || c == '_' || c == '-');
    line.match_indices(word).map(|(at, _)| at).filter(whole).map(move |at| &line[at + word.len()..])
}

/// Whether a home is no real person's: its first step is a placeholder.
fn is_nobodys(rest: &str) -> bool {
    let name = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    name.is_empty() || NOBODY.contains(&name)
}

/// `name==version`, with a hash of each of its files in the lines below; an empty line or a comment.
fn is_pin(line: &str) -> bool {
    let line = line.strip_suffix(" \\").unwrap_or(line);
    let hash = line.strip_prefix("    --hash=sha256:");
    let hashed = hash.is_some_and(|hash| hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit()));
    let pinned = line.split_once("==").is_some_and(|(name, version)| {
        let word = |text: &str| text.chars().all(|c| c.is_alphanumeric() || "._-".contains(c));
        word(name) && word(version)
    });
    line.is_empty() || line.starts_with('#') || pinned || hashed
}

/// The paths of this machine that could have slipped in.
fn own_paths() -> Vec<String> {
    let home = std::env::var("HOME").unwrap_or_default();
    let root = places::repository().to_string_lossy().into_owned();
    // A path of one step could be anyone's.
    let telling = |path: &String| path.matches('/').count() > 1;
    let mut own: Vec<_> = [home, root].into_iter().filter(telling).collect();
    own.push(["", "root", ""].join("/"));
    own
}

#[test]
fn no_file_knows_a_machine() {
    let own = own_paths();
    // The rule has to spell what it looks for.
    let files = files("").into_iter().filter(|file| file.path != "tests/tidy/machine.rs");
    none(files.flat_map(|file| violations(&file, &own)));
}

#[test]
fn what_gives_a_machine_away_is_found() {
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

/// What PyPI and npm give is compared with the hash that was pinned: whoever takes a registry over cannot exchange a tool.
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
fn what_gives_nothing_away_is_fine() {
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
