//! The house rules that a program can check. Each rule is a function from the text of files to violations. One test
//! applies the rule to the repository. Another test applies it to planted violations, to show that the rule finds them.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test reports a failure by a panic"
)]

mod components;
mod cycles;
mod dependencies;
mod errors;
mod figures;
mod guards;
mod guide;
mod interface;
mod machine;
mod names;
mod power;
mod ranks;
mod sdk;
mod sentences;
mod source;
mod surface;
mod type_names;

use std::fs;
use std::path::Path;

use belljar_tests::places;

/// The names of directories that do not belong to the repository: builds, caches and installed packages.
const FOREIGN: [&str; 7] = [".git", ".mypy_cache", ".venv", "__pycache__", "build", "node_modules", "target"];

/// A text file of the repository.
struct File {
    /// Its path from the root, with `/`.
    path: String,
    /// Its text.
    text: String,
}

/// Every text file of the repository whose path ends with `ending`.
fn files(ending: &str) -> Vec<File> {
    let root = places::repository();
    let mut found = Vec::new();
    collect(&root, &root, &mut found);
    found.retain(|file| file.path.ends_with(ending));
    found.sort_by(|one, other| one.path.cmp(&other.path));
    assert!(!found.is_empty(), "the repository has no {ending} file: is {} its root?", root.display());
    found
}

fn collect(root: &Path, directory: &Path, found: &mut Vec<File>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() && !FOREIGN.iter().any(|name| entry.file_name() == *name) {
            collect(root, &path, found);
        }
        // Skip files that are not UTF-8.
        if let Some(text) = kind.is_file().then(|| fs::read_to_string(&path).ok()).flatten() {
            let path = path.strip_prefix(root).unwrap().to_str().expect("a path in UTF-8").to_owned();
            found.push(File { path, text });
        }
    }
}

/// Fails if there are violations. The message contains all of them.
fn assert_none(violations: impl IntoIterator<Item = String>) {
    let all: Vec<_> = violations.into_iter().collect();
    assert!(all.is_empty(), "\n{}\n", all.join("\n"));
}
