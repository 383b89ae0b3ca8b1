//! The SDK for Go: two modules in the layout of a module proxy, in one archive. `GOPROXY=file://DIRECTORY` reads the unpacked one.
//!
//! <https://go.dev/ref/mod#goproxy-protocol> describes the layout, and <https://go.dev/ref/mod#zip-files> the zip file.

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use crate::archive::Tar;
use crate::output::Output;
use crate::project::Project;
use crate::sdk::sources;
use crate::tree::Tree;
use crate::zip_archive;

/// The path of the module. The domain `internal` is reserved for private use, so nobody can publish a module of this path.
const MODULE: &str = "belljar.internal/belljar";

/// The path of the SDK's package in the template.
const IN_TEMPLATE: &str = "\"my-provider/belljar\"";

/// The module that generated code imports. It is a part of wit-bindgen, in no published version.
const RUNTIME: [&str; 2] = ["go.bytecodealliance.org/pkg", "v0.0.0"];

/// The README of the module.
const README: &str = include_str!("../../sdk/go.md");

/// Writes `belljar-guest-go-VERSION.tar.gz`.
pub(super) fn write(output: &Output, project: &Project) -> Result<()> {
    let mut proxy = Tree::default();
    let [runtime, version] = RUNTIME;
    add(&mut proxy, project, runtime, version, &sources::folder(project, "go/pkg")?)?;
    add(&mut proxy, project, MODULE, &format!("v{}", project.version), &files(project)?)?;
    proxy.file("README.md", readme(project).into_bytes());
    proxy.file("LICENSE", project.license_text.clone().into_bytes());
    let name = format!("belljar-guest-go-{}", project.version);
    let mut tar = Tar::compressed(project);
    tar.tree(&format!("{name}/"), &proxy)?;
    output.write(&format!("{name}.tar.gz"), &tar.finish()?)
}

/// The files of the SDK's module.
fn files(project: &Project) -> Result<Tree> {
    let mut files = Tree::default();
    let mut is_found = false;
    for (path, file) in sources::folder(project, "go/sdk")?.iter() {
        match std::str::from_utf8(&file.bytes).ok().filter(|text| text.contains(IN_TEMPLATE)) {
            Some(text) => {
                is_found = true;
                files.file(path, text.replace(IN_TEMPLATE, &format!("\"{MODULE}\"")).into_bytes());
            }
            None => files.file(path, file.bytes.clone()),
        }
    }
    if !is_found {
        bail!("no file of \"sdk-guest/go/sdk\" imports {IN_TEMPLATE}, so the module would not find its package");
    }
    for (prefix, folder) in [("", "make"), ("adapter/", "adapter"), ("wit/", "wit"), ("wit/deps/", "wasi")] {
        files.tree(prefix, &sources::folder(project, folder)?);
    }
    files.file("go.mod", manifest(project)?.into_bytes());
    files.file("README.md", readme(project).into_bytes());
    files.file("LICENSE", project.license_text.clone().into_bytes());
    Ok(files)
}

/// The file `go.mod` of the SDK's module. The template has the version of the language.
fn manifest(project: &Project) -> Result<String> {
    let template = "sdk-guest/go/template/go.mod";
    let text = sources::text(project, template)?;
    let version = text.lines().find(|line| line.starts_with("go "));
    let version = version.with_context(|| format!("\"{template}\" has no line \"go VERSION\""))?;
    Ok(format!("module {MODULE}\n\n{version}\n\nrequire {}\n", RUNTIME.join(" ")))
}

/// Adds a version of a module to a proxy.
fn add(proxy: &mut Tree, project: &Project, module: &str, version: &str, files: &Tree) -> Result<()> {
    let manifest = files.iter().find(|(path, _)| *path == "go.mod").map(|(_, file)| file.bytes.clone());
    let manifest = manifest.with_context(|| format!("the module \"{module}\" has no file \"go.mod\""))?;
    let mut zipped = Tree::default();
    zipped.tree(&format!("{module}@{version}/"), files);
    let info = json!({ "Version": version, "Time": project.timestamp() });
    proxy.file(format!("{module}/@v/list"), format!("{version}\n").into_bytes());
    proxy.file(format!("{module}/@v/{version}.info"), format!("{info}\n").into_bytes());
    proxy.file(format!("{module}/@v/{version}.mod"), manifest);
    proxy.file(format!("{module}/@v/{version}.zip"), zip_archive::pack(&zipped)?);
    Ok(())
}

fn readme(project: &Project) -> String {
    README.replace("VERSION", &project.version)
}
