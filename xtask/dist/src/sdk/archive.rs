//! The SDKs for C, C++ and Zig, which have no registry of packages: an archive that is unpacked in the directory of a project.

use anyhow::Result;

use crate::archive::Tar;
use crate::output::Output;
use crate::project::Project;
use crate::sdk::sources::{self, Language, LanguageTool};

/// The README of each archive.
const README: &str = include_str!("../../sdk/archive.md");

/// Writes `belljar-guest-LANGUAGE-VERSION.tar.gz`.
pub(super) fn write(output: &Output, project: &Project, folder: &str) -> Result<()> {
    let language = Language::read(project, folder)?;
    let mut files = language.files(project)?;
    files.tree("belljar/example/", &sources::template(project, folder)?);
    // Not beside the directories: a project has a README and a licence of its own.
    files.file("belljar/README.md", readme(project, folder, &language).into_bytes());
    files.file("belljar/LICENSE", project.license_text.clone().into_bytes());
    let name = format!("belljar-guest-{folder}-{}", project.version);
    let mut tar = Tar::compressed(project);
    tar.tree(&format!("{name}/"), &files)?;
    output.write(&format!("{name}.tar.gz"), &tar.finish()?)
}

fn readme(project: &Project, folder: &str, language: &Language) -> String {
    let line = |LanguageTool { why, get }: &LanguageTool| format!("{get:<90} # {why}\n");
    let tools: String = language.tools.iter().map(line).collect();
    README
        .replace("TOOLS\n", &tools)
        .replace("LANGUAGE", &language.name)
        .replace("FOLDER", folder)
        .replace("VERSION", &project.version)
}
