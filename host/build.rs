//! Embeds the files from which `belljar new` creates projects: the folders of `sdk-guest/` and the interface in `wit/`.
//! Each folder with a `language.toml` is a language. This script only selects the files; `cli::new` interprets them.
#![allow(clippy::disallowed_methods, reason = "a build script reads the sources of its crate")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Directories that build tools create, in any language. The project's own `.gitignore` names the others.
const TOOL_OUTPUT: [&str; 10] = [
    "target",
    "node_modules",
    "build",
    "dist",
    "generated",
    "__pycache__",
    ".venv",
    ".zig-cache",
    ".mypy_cache",
    ".pytest_cache",
];

fn main() -> io::Result<()> {
    let root = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default().join("..");
    let sdks = root.join("sdk-guest");
    println!("cargo::rerun-if-changed=build.rs");
    // Notices a language that is added or removed.
    println!("cargo::rerun-if-changed={}", sdks.display());
    let (mut files, mut languages) = (Vec::new(), Vec::new());
    for name in names(&sdks)? {
        let dir = sdks.join(&name);
        // A folder that is a crate serves only the providers of this repository.
        if !dir.is_dir() || TOOL_OUTPUT.contains(&name.as_str()) || dir.join("Cargo.toml").is_file() {
            continue;
        }
        // Folders without `language.toml` are shared by several languages: the sources of the Rust SDK, an adapter.
        collect(&dir, &name, &BTreeSet::new(), &mut files)?;
        if dir.join("language.toml").is_file() {
            languages.push(name);
        }
    }
    collect(&root.join("wit"), "wit", &BTreeSet::new(), &mut files)?;
    let mut code = format!("const LANGUAGES: &[&str] = &{languages:?};\nconst FILES: &[(&str, &[u8])] = &[\n");
    for (name, path) in files {
        let _ = writeln!(code, "    ({name:?}, include_bytes!({:?})),", path.canonicalize()?);
    }
    code.push_str("];\n");
    let out = env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    fs::write(out.join("embedded.rs"), code)
}

/// The names of a directory's entries, sorted, so that builds are reproducible.
fn names(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name().into_string();
        names.push(name.map_err(|name| io::Error::other(format!("{name:?} in {} is not UTF-8", dir.display())))?);
    }
    names.sort();
    Ok(names)
}

/// Adds every file below `dir` that no tool made, under the name `prefix/...`.
fn collect(dir: &Path, prefix: &str, ignored: &BTreeSet<String>, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    let mut ignored = ignored.clone();
    // Handles only plain names and `*.ending`: the projects' `.gitignore` files contain no other patterns.
    for line in fs::read_to_string(dir.join(".gitignore")).unwrap_or_default().lines() {
        ignored.insert(line.trim().trim_matches('/').to_owned());
    }
    for name in names(dir)? {
        let is_output = TOOL_OUTPUT.contains(&name.as_str())
            || ignored.contains(&name)
            || name.rsplit_once('.').is_some_and(|(_, ending)| ignored.contains(&format!("*.{ending}")));
        let (path, full) = (dir.join(&name), format!("{prefix}/{name}"));
        match path.is_dir() {
            _ if is_output => {}
            true => collect(&path, &full, &ignored, files)?,
            false => files.push((full, path)),
        }
    }
    Ok(())
}
