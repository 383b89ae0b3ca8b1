//! The npm packages: `belljar`, which has only a launcher, and one package with the program for each platform.
//!
//! npm installs the package of a platform only on that platform, because its `package.json` names `os` and `cpu`. So nobody
//! downloads a program for another machine, and no install script runs.

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::archive::Tar;
use crate::output::Output;
use crate::project::Project;
use crate::target::{Architecture, Linkage, Target};
use crate::tree::Tree;

/// The launcher. It is JavaScript, so that `npx` can run it.
const LAUNCHER: &str = include_str!("../npm/belljar.js");

/// Writes `belljar-VERSION.tgz`, the package with the launcher.
pub(crate) fn write_launcher(output: &Output, project: &Project) -> Result<()> {
    let platforms = [Architecture::X86_64, Architecture::Aarch64];
    let platforms: Map<String, Value> =
        platforms.into_iter().map(|one| (package(one), json!(project.version))).collect();
    let mut manifest = manifest(project, "belljar", &project.description);
    manifest.extend([
        ("bin".to_owned(), json!({ "belljar": "bin/belljar.js" })),
        ("engines".to_owned(), json!({ "node": ">=18" })),
        ("optionalDependencies".to_owned(), Value::Object(platforms)),
    ]);
    // The MCP registry compares it with the name of the server, to know that the package belongs to that.
    manifest.extend(project.registry_name().map(|name| ("mcpName".to_owned(), json!(name))));
    let mut tree = Tree::default();
    tree.program("bin/belljar.js", LAUNCHER.as_bytes());
    tree.file("README.md", project.readme.clone().into_bytes());
    write(output, project, &format!("belljar-{}.tgz", project.version), manifest, tree)
}

/// Writes `belljar-linux-CPU-VERSION.tgz`, the package with the program of one platform.
pub(crate) fn write_program(output: &Output, project: &Project, target: &Target, tree: &Tree) -> Result<()> {
    let cpu = target.architecture.node();
    let description = format!("The program of belljar for Linux on {cpu}. Install \"belljar\" instead of this package");
    let mut manifest = manifest(project, &package(target.architecture), &description);
    manifest.extend([("os".to_owned(), json!(["linux"])), ("cpu".to_owned(), json!([cpu]))]);
    if let Linkage::Glibc(..) = target.linkage {
        manifest.insert("libc".to_owned(), json!(["glibc"]));
    }
    // npm installs neither manual pages nor completions from here.
    let tree = tree.filtered(|path| !path.starts_with("share/"));
    write(output, project, &format!("belljar-linux-{cpu}-{}.tgz", project.version), manifest, tree)
}

/// The name of the package with the program.
fn package(architecture: Architecture) -> String {
    format!("@belljar/linux-{}", architecture.node())
}

/// The fields that each `package.json` has.
fn manifest(project: &Project, name: &str, description: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.extend([
        ("name".to_owned(), json!(name)),
        ("version".to_owned(), json!(project.version)),
        ("description".to_owned(), json!(description)),
        ("license".to_owned(), json!(project.license)),
    ]);
    let source = |address: &String| json!({ "type": "git", "url": format!("git+{address}.git") });
    fields.extend(project.repository.as_ref().map(|address| ("repository".to_owned(), source(address))));
    fields
}

/// Writes a package: the files of the tree, `package.json` and the licence, all below `package/`.
fn write(output: &Output, project: &Project, name: &str, manifest: Map<String, Value>, mut tree: Tree) -> Result<()> {
    tree.file("package.json", serde_json::to_vec_pretty(&Value::Object(manifest))?);
    tree.file("LICENSE", project.license_text.clone().into_bytes());
    let mut tar = Tar::compressed(project);
    tar.tree("package/", &tree)?;
    output.write(name, &tar.finish()?)
}
