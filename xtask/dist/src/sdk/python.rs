//! The SDK for Python: the package `belljar-guest` as a wheel, and as a source distribution.

use anyhow::Result;

use crate::archive::Tar;
use crate::output::Output;
use crate::project::Project;
use crate::sdk::sources;
use crate::tree::Tree;
use crate::wheel;

/// The README of the package.
const README: &str = include_str!("../../sdk/python.md");

/// The module that prints the directory of the interface: `python3 -m belljar_guest`.
const MAIN: &str = include_str!("../../sdk/python_main.py");

/// The `pyproject.toml` of the source distribution.
const PYPROJECT: &str = include_str!("../../sdk/pyproject.toml");

/// Writes `belljar_guest-VERSION-py3-none-any.whl` and `belljar_guest-VERSION.tar.gz`.
pub(super) fn write(output: &Output, project: &Project) -> Result<()> {
    let base = format!("belljar_guest-{}", project.version);
    let (modules, metadata) = (modules(project)?, metadata(project).into_bytes());

    let mut files = modules.clone();
    files.file(format!("{base}.dist-info/METADATA"), metadata.clone());
    let packed = wheel::pack(project, &base, files, true, &["py3-none-any".to_owned()])?;
    output.write(&format!("{base}-py3-none-any.whl"), &packed)?;

    let mut files = modules;
    files.file("PKG-INFO", metadata);
    files.file("pyproject.toml", PYPROJECT.replace("VERSION", &project.version).into_bytes());
    files.file("README.md", readme(project).into_bytes());
    files.file("LICENSE", project.license_text.clone().into_bytes());
    let mut tar = Tar::compressed(project);
    tar.tree(&format!("{base}/"), &files)?;
    output.write(&format!("{base}.tar.gz"), &tar.finish()?)
}

/// The modules, with the interface as data.
fn modules(project: &Project) -> Result<Tree> {
    let mut files = Tree::default();
    files.tree("belljar_guest/", &sources::folder(project, "python/sdk")?);
    files.tree("belljar_guest/wit/", &sources::folder(project, "wit")?);
    files.tree("belljar_guest/wit/deps/", &sources::folder(project, "wasi")?);
    files.file("belljar_guest/__main__.py", MAIN.as_bytes());
    Ok(files)
}

/// The file `METADATA` of the wheel, which is the file `PKG-INFO` of the source distribution.
fn metadata(project: &Project) -> String {
    let mut text = format!(
        "Metadata-Version: 2.4\nName: belljar-guest\nVersion: {}\nSummary: Write belljar providers in Python\n\
         License-Expression: {}\nLicense-File: LICENSE\nRequires-Python: >=3.11\n",
        project.version, project.license,
    );
    if let Some(address) = &project.repository {
        text += &format!("Project-URL: Source, {address}\n");
    }
    text + &format!("Description-Content-Type: text/markdown\n\n{}", readme(project))
}

fn readme(project: &Project) -> String {
    README.replace("VERSION", &project.version)
}
