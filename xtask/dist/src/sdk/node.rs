//! The SDK for JavaScript and TypeScript: the package `@belljar/guest`, made by `npm pack`.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value, json};

use crate::output::Output;
use crate::project::Project;
use crate::sdk::sources;
use crate::tree::Tree;

/// The README of the package.
const README: &str = include_str!("../../sdk/node.md");

/// The tool that makes components. The template of a project has its version.
const COMPONENT_TOOL: &str = "componentize-qjs";

/// Writes `belljar-guest-VERSION.tgz`.
pub(super) fn write(output: &Output, project: &Project) -> Result<()> {
    let stage = tempfile::tempdir().context("cannot create a directory for the npm package")?;
    files(project)?.write(stage.path())?;
    let mut npm = Command::new("npm");
    npm.current_dir(stage.path()).args(["pack", "--ignore-scripts", "--loglevel=error", "--no-update-notifier"]);
    let done =
        npm.output().context("cannot start `npm pack`: install Node and npm (https://nodejs.org/en/download)")?;
    if !done.status.success() {
        bail!("`npm pack` failed ({}):\n{}", done.status, String::from_utf8_lossy(&done.stderr));
    }
    let name = format!("belljar-guest-{}.tgz", project.version);
    let bytes =
        fs::read(stage.path().join(&name)).with_context(|| format!("`npm pack` has left no file \"{name}\""))?;
    output.write(&name, &bytes)
}

/// The files of the package.
fn files(project: &Project) -> Result<Tree> {
    let mut files = sources::folder(project, "javascript/sdk")?;
    files.tree("wit/", &sources::folder(project, "wasi")?);
    files.tree("wit/belljar-provider/", &sources::folder(project, "wit")?);
    files.file("package.json", serde_json::to_vec_pretty(&Value::Object(manifest(project)?))?);
    files.file("README.md", README.replace("VERSION", &project.version).into_bytes());
    files.file("LICENSE", project.license_text.clone().into_bytes());
    Ok(files)
}

/// The `package.json` of projects, with the fields of a published package.
fn manifest(project: &Project) -> Result<Map<String, Value>> {
    let read = |path: &str| -> Result<Map<String, Value>> {
        serde_json::from_str(&sources::text(project, path)?).with_context(|| format!("\"{path}\" is no JSON object"))
    };
    let mut manifest = read("sdk-guest/javascript/sdk/package.json")?;
    let template = "sdk-guest/javascript/template/package.json";
    let tools = read(template)?;
    let version = tools.get("devDependencies").and_then(|tools| tools.get(COMPONENT_TOOL));
    let version = version.with_context(|| format!("\"{template}\" names no version of \"{COMPONENT_TOOL}\""))?;
    manifest.remove("private");
    manifest.extend([
        ("version".to_owned(), json!(project.version)),
        ("files".to_owned(), json!(["componentize.js", "installed.js", "src", "wit"])),
        ("engines".to_owned(), json!({ "node": ">=20" })),
        ("peerDependencies".to_owned(), json!({ COMPONENT_TOOL: version })),
    ]);
    let source = |address: &String| json!({ "type": "git", "url": format!("git+{address}.git") });
    manifest.extend(project.repository.as_ref().map(|address| ("repository".to_owned(), source(address))));
    Ok(manifest)
}
