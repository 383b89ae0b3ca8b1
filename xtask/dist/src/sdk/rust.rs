//! The SDK for Rust: the crate `belljar-guest`, made by `cargo package`.
//!
//! In a project of `belljar new`, the interface is beside the crate. In the package, it is inside.

use std::fs;

use anyhow::{Context as _, Result, bail};
use toml::{Table, Value};

use crate::output::Output;
use crate::project::{self, Project};
use crate::sdk::sources;
use crate::tree::Tree;

/// The README of the crate.
const README: &str = include_str!("../../sdk/rust.md");

/// The option of `wit_bindgen::generate!` that finds the interface in this repository, and the one for the package.
const INTERFACE: [&str; 2] = ["path: \"../wit\"", "path: \"wit\""];

/// Writes `belljar-guest-VERSION.crate`.
pub(super) fn write(output: &Output, project: &Project) -> Result<()> {
    let stage = tempfile::tempdir().context("cannot create a directory for the crate")?;
    files(project)?.write(stage.path())?;
    let (manifest, target) = (stage.path().join("Cargo.toml"), stage.path().join("target"));
    let (manifest, target) = (manifest.to_string_lossy(), target.to_string_lossy());
    let options = ["package", "--quiet", "--no-verify", "--allow-dirty"];
    let paths = ["--manifest-path", &manifest, "--target-dir", &target];
    project::cargo(&project.root, &[options.as_slice(), &paths].concat())?;
    let name = format!("belljar-guest-{}.crate", project.version);
    let path = stage.path().join("target/package").join(&name);
    let bytes = fs::read(&path).with_context(|| format!("`cargo package` has left no file \"{name}\""))?;
    output.write(&name, &bytes)
}

/// The files of the crate, as its author would have them.
fn files(project: &Project) -> Result<Tree> {
    let mut files = Tree::default();
    let mut is_found = false;
    for (path, file) in sources::folder(project, "src")?.iter() {
        let text = std::str::from_utf8(&file.bytes).with_context(|| format!("\"sdk-guest/src/{path}\" is no text"))?;
        let [here, packaged] = INTERFACE;
        is_found |= text.contains(here);
        files.file(format!("src/{path}"), text.replace(here, packaged).into_bytes());
    }
    if !is_found {
        bail!("no file of \"sdk-guest/src\" has `{}`, so the crate would not find its interface", INTERFACE[0]);
    }
    files.tree("wit/", &sources::folder(project, "wit")?);
    files.file("Cargo.toml", manifest(project)?.into_bytes());
    // The versions of this repository: without the file, cargo would ask crates.io for newer ones.
    files.file("Cargo.lock", sources::text(project, "Cargo.lock")?.into_bytes());
    files.file("README.md", README.replace("VERSION", &project.version).into_bytes());
    files.file("LICENSE", project.license_text.clone().into_bytes());
    Ok(files)
}

/// The manifest of the crate: that of projects, with the fields of a published crate.
fn manifest(project: &Project) -> Result<String> {
    const SOURCE: &str = "sdk-guest/rust/sdk/Cargo.toml";
    let mut manifest: Table =
        sources::text(project, SOURCE)?.parse().with_context(|| format!("\"{SOURCE}\" is not TOML"))?;
    let package = manifest.get_mut("package").and_then(Value::as_table_mut);
    let package = package.with_context(|| format!("\"{SOURCE}\" has no table \"package\""))?;
    let version = package.get("version").and_then(Value::as_str).unwrap_or_default();
    if version != project.version {
        let expected = &project.version;
        bail!("\"{SOURCE}\" has the version \"{version}\", and the repository has \"{expected}\": write that one");
    }
    package.remove("publish");
    package.insert("readme".to_owned(), "README.md".into());
    package.insert("keywords".to_owned(), ["wasm", "wasi", "component", "mcp"].map(Value::from).to_vec().into());
    if let Some(address) = &project.repository {
        package.insert("repository".to_owned(), address.as_str().into());
    }
    // The crate is its own workspace, in any directory. `cargo package` removes the table.
    manifest.insert("workspace".to_owned(), Table::new().into());
    Ok(toml::to_string(&manifest)?)
}
