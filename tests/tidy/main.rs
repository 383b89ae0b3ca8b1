//! The house rules that a machine can check, as tests. Each is a function from text to violations, run over the
//! repository here and over planted violations beside it, so that a rule which finds nothing is known to look.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "in a test a panic is how a failure is told"
)]

mod components;
mod dependencies;
mod figures;
mod guide;
mod interface;
mod machine;
mod names;
mod power;
mod ranks;
mod sdk;
mod source;
mod surface;

use std::fs;
use std::path::Path;

use belljar_tests::places;

/// Directories that hold nothing of the repository's own.
const FOREIGN: [&str; 7] = [".git", ".mypy_cache", ".venv", "__pycache__", "build", "node_modules", "target"];

/// A text file of the repository.
struct File {
    /// Its path from the root, with `/`.
    path: String,
    /// What it says.
    text: String,
}

/// Every text file of the repository whose path ends as wanted.
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
        // What is no UTF-8 is no text.
        if let Some(text) = kind.is_file().then(|| fs::read_to_string(&path).ok()).flatten() {
            let path = path.strip_prefix(root).unwrap().to_str().expect("a path in UTF-8").to_owned();
            found.push(File { path, text });
        }
    }
}

/// Fails with all violations at once.
fn none(violations: impl IntoIterator<Item = String>) {
    let all: Vec<_> = violations.into_iter().collect();
    assert!(all.is_empty(), "\n{}\n", all.join("\n"));
}
