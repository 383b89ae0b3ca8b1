//! A new project: the files of a language with the name of the provider filled in. Either all files are written or
//! none.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, OpenOptions};

use super::blocks::{self, Parts, ProjectPart};
use super::embedded;
use super::language::{CopyRule, Language};
use crate::model::MountName;

/// The name of a project in the spellings that languages use.
pub(super) struct ProjectNames {
    kebab: String,
    snake: String,
    pascal: String,
}

/// Names that already have a meaning in every project.
const RESERVED_NAMES: [&str; 4] = ["belljar", "belljar-guest", "wit", "data"];

impl ProjectNames {
    /// Checks the name of a project.
    ///
    /// # Errors
    /// A message with the reason, and with a better name.
    pub(super) fn new(name: &str, language: &Language) -> Result<Self, String> {
        // The name of the provider is also the name of its mount.
        let kebab = MountName::new(name).map_err(|error| error.to_string())?.to_string();
        if !kebab.starts_with(|c: char| c.is_ascii_lowercase()) {
            return Err(format!("the name \"{kebab}\" begins with a digit; begin with a letter"));
        }
        if kebab.ends_with('-') || kebab.contains("--") {
            return Err(format!("the name \"{kebab}\" has a \"-\" that is not between two words; remove it"));
        }
        if RESERVED_NAMES.contains(&kebab.as_str()) || language.reserved.contains(&kebab) {
            return Err(format!(
                "the name \"{kebab}\" is reserved in {} projects; use another name, such as \"{kebab}-provider\"",
                language.name
            ));
        }
        let pascal = kebab.split('-').flat_map(|word| {
            let mut letters = word.chars();
            letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters)
        });
        Ok(Self { pascal: pascal.collect(), snake: kebab.replace('-', "_"), kebab })
    }

    /// The name as the author typed it.
    pub(super) fn kebab(&self) -> &str {
        &self.kebab
    }

    /// `text` with the placeholders `my-provider`, `my_provider` and `MyProvider` replaced.
    pub(super) fn fill(&self, text: &str) -> String {
        text.replace("my-provider", &self.kebab).replace("my_provider", &self.snake).replace("MyProvider", &self.pascal)
    }
}

/// What a project contains besides the SDK.
#[derive(Debug)]
pub(crate) enum ProjectContent {
    /// What its build needs.
    Minimal,
    /// The whole template, with examples of these parts.
    With(Parts),
}

impl ProjectContent {
    /// The whole template, with examples of these parts.
    pub(crate) fn of(parts: impl IntoIterator<Item = ProjectPart>) -> Self {
        Self::With(parts.into_iter().collect())
    }

    /// The parts, of which there are examples.
    pub(super) fn parts(&self) -> Parts {
        match self {
            Self::Minimal => Parts::new(),
            Self::With(parts) => parts.clone(),
        }
    }
}

/// The files of a project with this content, each under its path in the project.
///
/// # Errors
/// If `language.toml` names a missing file, or one path twice, or if a file has a malformed block. All are embedded, so
/// this is a bug of belljar.
pub(super) fn files(
    language: &Language,
    names: &ProjectNames,
    content: &ProjectContent,
) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let mut all = BTreeMap::new();
    let parts = content.parts();
    let is_minimal = matches!(content, ProjectContent::Minimal);
    let template = format!("{}/template", language.id);
    let minimal = CopyRule { from: format!("{}/minimal", language.id), to: ".".to_owned() };
    for copy in language.copy.iter().chain(is_minimal.then_some(&minimal)) {
        let mut is_empty = true;
        for (rest, bytes) in embedded::files(&copy.from) {
            is_empty = false;
            if is_minimal && copy.from == template && !language.minimal.iter().any(|kept| kept == rest) {
                continue;
            }
            let path = names.fill(&match copy.to.as_str() {
                "." => rest.to_owned(),
                to => format!("{to}/{rest}"),
            });
            // Binary files contain no blocks and no placeholders. The files of `wit` are the same in every project.
            let bytes = match std::str::from_utf8(bytes) {
                Ok(text) if copy.from != "wit" => {
                    let selected = blocks::select(text, &parts)
                        .map_err(|why| format!("sdk-guest/{}: file \"{rest}\", {why}", copy.from))?;
                    let Some(selected) = selected else { continue };
                    names.fill(&selected).into_bytes()
                }
                _ => bytes.to_vec(),
            };
            if all.insert(path.clone(), bytes).is_some() {
                return Err(format!("sdk-guest/{}/language.toml: two files would be \"{path}\"", language.id));
            }
        }
        if is_empty {
            return Err(format!("sdk-guest/{}/language.toml: there is no file \"{}\"", language.id, copy.from));
        }
    }
    Ok(all)
}

/// Writes `files` as the new directory `at`. Creates it under a temporary name and renames it, so that it is never
/// incomplete.
///
/// # Errors
/// A message with the reason. No file was written then.
pub(super) fn write(at: &Path, files: &BTreeMap<String, Vec<u8>>) -> Result<(), String> {
    let fail = |error: &io::Error| format!("cannot create \"{}\": {error}", at.display());
    let (Some(name), Some(parent)) = (at.file_name(), at.parent()) else {
        return Err(format!("\"{}\" is not a valid name for a new directory", at.display()));
    };
    let dir = Dir::open_ambient_dir(parent, cap_std::ambient_authority()).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("there is no directory \"{}\"; create it first", parent.display()),
        _ => fail(&error),
    })?;
    if dir.symlink_metadata(name).is_ok() {
        return Err(format!(
            "\"{}\" already exists and was not changed; choose another name, or another directory with --dir",
            at.display()
        ));
    }
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.new", std::process::id()));
    let temporary = PathBuf::from(temporary);
    dir.create_dir(&temporary).map_err(|error| fail(&error))?;
    // rename(2) replaces only an empty directory: a project that another process made in the meantime stays.
    let made = write_files(&dir, &temporary, files).and_then(|()| dir.rename(&temporary, &dir, name));
    made.map_err(|error| {
        let _ = dir.remove_dir_all(&temporary);
        fail(&error)
    })
}

fn write_files(dir: &Dir, temporary: &Path, files: &BTreeMap<String, Vec<u8>>) -> io::Result<()> {
    let project = dir.open_dir(temporary)?;
    for (path, bytes) in files {
        if let Some((parent, _)) = path.rsplit_once('/') {
            project.create_dir_all(parent)?;
        }
        project.open_with(path, OpenOptions::new().write(true).create_new(true))?.write_all(bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn language() -> Language {
        embedded::languages().unwrap().into_iter().find(|language| language.id == "rust").unwrap()
    }

    #[test]
    fn names_are_spelled_as_languages_spell_them() {
        let names = ProjectNames::new("sea-level2", &language()).unwrap();
        assert_eq!(
            names.fill("my-provider my_provider MyProvider myProvider"),
            "sea-level2 sea_level2 SeaLevel2 myProvider"
        );
        for (name, why) in [
            ("", "name"),
            ("Notes", "is not a mount name"),
            ("1st", "digit"),
            ("a--b", "between two words"),
            ("a-", "between two words"),
            ("belljar-guest", "\"belljar-guest-provider\""),
            ("a/b", "is not a mount name"),
        ] {
            let error = ProjectNames::new(name, &language()).err().unwrap_or_else(|| panic!("{name:?} is a name"));
            assert!(error.contains(why), "{name:?}: {error}");
        }
    }

    #[test]
    fn a_failed_project_leaves_no_files() {
        let temp = tempfile::tempdir().unwrap();
        let file = |path: &str| (path.to_owned(), b"x".to_vec());
        // A file cannot be a directory as well.
        let impossible = BTreeMap::from([file("a"), file("a/b")]);
        assert!(write(&temp.path().join("p"), &impossible).is_err());
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 0);
        let files = BTreeMap::from([file("a/b")]);
        assert_eq!(write(&temp.path().join("p"), &files), Ok(()));
        assert!(write(&temp.path().join("p"), &BTreeMap::from([file("c")])).unwrap_err().contains("already exists"));
        assert!(!temp.path().join("p/c").exists());
        assert!(write(&temp.path().join("q/r"), &files).unwrap_err().contains("create it first"));
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1);
    }
}
