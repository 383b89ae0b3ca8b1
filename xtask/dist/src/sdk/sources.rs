//! Reads the SDKs in the repository: the files that `belljar new` copies into a project, by the rules in `language.toml`.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER;

use crate::project::Project;
use crate::tree::Tree;

/// The file that turns a WASI 0.1 module into a component. `belljar new` takes it from the same crate.
const ADAPTER: &str = "wasi_snapshot_preview1.reactor.wasm";

/// Directories that tools create in the folders of the SDKs.
const TOOL_OUTPUT: [&str; 4] = ["__pycache__", "build", "node_modules", "target"];

/// The parts of a `language.toml` that packages need.
#[derive(Deserialize)]
pub(super) struct Language {
    /// The name of the language.
    pub(super) name: String,
    /// The files of a project.
    pub(super) copy: Vec<CopyRule>,
    /// The tools that build a project.
    pub(super) tools: Vec<LanguageTool>,
}

/// A folder of `sdk-guest`, or `wit`, and its path in a project.
#[derive(Deserialize)]
pub(super) struct CopyRule {
    pub(super) from: String,
    pub(super) to: String,
}

/// A program that a language needs.
#[derive(Deserialize)]
pub(super) struct LanguageTool {
    /// What the tool does for a project.
    pub(super) why: String,
    /// How to install the tool, in one line.
    pub(super) get: String,
}

impl Language {
    /// Reads the `language.toml` of a folder of `sdk-guest`.
    pub(super) fn read(project: &Project, folder: &str) -> Result<Language> {
        let path = format!("sdk-guest/{folder}/language.toml");
        toml::from_str(&text(project, &path)?).with_context(|| format!("\"{path}\" does not describe a language"))
    }

    /// The files of a project, each under its path there, without those of the template.
    pub(super) fn files(&self, project: &Project) -> Result<Tree> {
        let mut files = Tree::default();
        for CopyRule { from, to } in self.copy.iter().filter(|rule| rule.to != ".") {
            files.tree(&format!("{to}/"), &folder(project, from)?);
        }
        Ok(files)
    }
}

/// The files below a folder of `sdk-guest`, or below `wit`. The folder `adapter` also has the adapter itself.
pub(super) fn folder(project: &Project, name: &str) -> Result<Tree> {
    let path = if name == "wit" { project.root.join(name) } else { project.root.join("sdk-guest").join(name) };
    let mut files = Tree::default();
    collect(&path, "", &mut files)?;
    if name == "adapter" {
        files.file(ADAPTER, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER);
    }
    if files.iter().next().is_none() {
        bail!("the directory \"{}\" has no file, and a package needs its files", path.display());
    }
    Ok(files)
}

/// The template of a language, without further parts such as tools.
pub(super) fn template(project: &Project, language: &str) -> Result<Tree> {
    let mut files = Tree::default();
    for (path, file) in folder(project, &format!("{language}/template"))?.iter() {
        match std::str::from_utf8(&file.bytes).ok().filter(|text| text.contains(BLOCK)) {
            None => files.file(path, file.bytes.clone()),
            Some(text) => {
                let text = without_parts(text);
                if !text.trim().is_empty() {
                    files.file(path, text.into_bytes());
                }
            }
        }
    }
    Ok(files)
}

/// The word that begins a block of a template. A condition follows.
const BLOCK: &str = "belljar:if ";

/// The text of a template without its blocks for further parts. Only the blocks for projects without any remain.
fn without_parts(text: &str) -> String {
    let (mut kept, mut is_kept) = (String::new(), true);
    for line in text.split_inclusive('\n') {
        if let Some((_, condition)) = line.split_once(BLOCK) {
            is_kept = condition.split_whitespace().next() == Some("none");
        } else if line.contains("belljar:end") {
            is_kept = true;
        } else if is_kept {
            kept.push_str(line);
        }
    }
    kept
}

/// A text file of the repository.
pub(super) fn text(project: &Project, path: &str) -> Result<String> {
    let path = project.root.join(path);
    fs::read_to_string(&path).with_context(|| format!("cannot read \"{}\"", path.display()))
}

fn collect(directory: &Path, prefix: &str, files: &mut Tree) -> Result<()> {
    let shown = directory.display();
    for entry in fs::read_dir(directory).with_context(|| format!("cannot read the directory \"{shown}\""))? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.with_context(|| format!("the name of \"{}\" is not UTF-8", path.display()))?;
        if TOOL_OUTPUT.contains(&name) {
            continue;
        }
        if path.is_dir() {
            collect(&path, &format!("{prefix}{name}/"), files)?;
        } else {
            let bytes = fs::read(&path).with_context(|| format!("cannot read \"{}\"", path.display()))?;
            files.file(format!("{prefix}{name}"), bytes);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_without_parts_has_no_block() {
        let text = "a\n# belljar:if tools\nt\n# belljar:end\n<!-- belljar:if none -->\nn\n<!-- belljar:end -->\nz\n";
        assert_eq!(without_parts(text), "a\nn\nz\n");
        assert_eq!(without_parts("# belljar:if any\nx\n# belljar:end\n"), "");
    }
}
