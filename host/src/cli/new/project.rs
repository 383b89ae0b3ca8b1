//! A project: the files of a language with the author's name in them, written all or not at all.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, OpenOptions};

use super::embedded;
use super::language::Language;
use crate::model::MountName;

/// The names of a project, as languages write them.
pub(super) struct Names {
    kebab: String,
    snake: String,
    pascal: String,
}

/// Words that name something else in one language or another, or in every project.
const TAKEN: [&str; 4] = ["belljar", "belljar-guest", "wit", "data"];

impl Names {
    /// # Errors
    /// Says why no project can be called so, and what it could be called.
    pub(super) fn new(name: &str, language: &Language) -> Result<Self, String> {
        // A provider is mounted under its name.
        let kebab = MountName::new(name)?.to_string();
        if !kebab.starts_with(|c: char| c.is_ascii_lowercase()) {
            return Err(format!("\"{kebab}\" begins with a digit, and no program is called so; begin with a letter"));
        }
        if kebab.ends_with('-') || kebab.contains("--") {
            return Err(format!("\"{kebab}\" has a \"-\" that is not between two words; leave it out"));
        }
        if TAKEN.contains(&kebab.as_str()) || language.reserved.contains(&kebab) {
            return Err(format!(
                "\"{kebab}\" means something else in {} projects; call it \"{kebab}-provider\", for one",
                language.name
            ));
        }
        let pascal = kebab.split('-').flat_map(|word| {
            let mut letters = word.chars();
            letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters)
        });
        Ok(Self { pascal: pascal.collect(), snake: kebab.replace('-', "_"), kebab })
    }

    /// The name as it was given.
    pub(super) fn kebab(&self) -> &str {
        &self.kebab
    }

    /// `text` with these names for the placeholders.
    pub(super) fn fill(&self, text: &str) -> String {
        text.replace("my-provider", &self.kebab).replace("my_provider", &self.snake).replace("MyProvider", &self.pascal)
    }
}

/// A language's files under their paths in the project.
///
/// # Errors
/// When the language names what is not there, or one path twice: mistakes of belljar's own.
pub(super) fn files(language: &Language, names: &Names) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let mut all = BTreeMap::new();
    for copy in &language.copy {
        let mut is_empty = true;
        for (rest, bytes) in embedded::files(&copy.from) {
            is_empty = false;
            let path = names.fill(&match copy.to.as_str() {
                "." => rest.to_owned(),
                to => format!("{to}/{rest}"),
            });
            // What is no text has no names in it. The interface is everybody's, and stays as it is.
            let bytes = match std::str::from_utf8(bytes) {
                Ok(text) if copy.from != "wit" => names.fill(text).into_bytes(),
                _ => bytes.to_vec(),
            };
            if all.insert(path.clone(), bytes).is_some() {
                return Err(format!("sdk-guest/{}/language.toml: two files would be \"{path}\"", language.id));
            }
        }
        if is_empty {
            return Err(format!("sdk-guest/{}/language.toml: there is nothing at \"{}\"", language.id, copy.from));
        }
    }
    Ok(all)
}

/// Writes `files` as the new directory `at`. Made under another name first, so that it is there whole or not at all.
///
/// # Errors
/// Says what is in the way; then nothing was written.
pub(super) fn write(at: &Path, files: &BTreeMap<String, Vec<u8>>) -> Result<(), String> {
    let fail = |error: &io::Error| format!("cannot make \"{}\": {error}", at.display());
    let (Some(name), Some(parent)) = (at.file_name(), at.parent()) else {
        return Err(format!("\"{}\" is no name for a new directory", at.display()));
    };
    let dir = Dir::open_ambient_dir(parent, cap_std::ambient_authority()).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("there is no directory \"{}\"; create it first", parent.display()),
        _ => fail(&error),
    })?;
    if dir.symlink_metadata(name).is_ok() {
        return Err(format!(
            "there is already \"{}\", and nothing of it is touched; choose another name, or another place with --dir",
            at.display()
        ));
    }
    let mut making = std::ffi::OsString::from(".");
    making.push(name);
    making.push(format!(".{}.new", std::process::id()));
    let making = PathBuf::from(making);
    dir.create_dir(&making).map_err(|error| fail(&error))?;
    // A directory takes the place of none but an empty one: whoever came first keeps theirs.
    let made = fill(&dir, &making, files).and_then(|()| dir.rename(&making, &dir, name));
    made.map_err(|error| {
        let _ = dir.remove_dir_all(&making);
        fail(&error)
    })
}

fn fill(dir: &Dir, making: &Path, files: &BTreeMap<String, Vec<u8>>) -> io::Result<()> {
    let project = dir.open_dir(making)?;
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
    fn names_are_written_as_languages_write_them() {
        let names = Names::new("sea-level2", &language()).unwrap();
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
            let said = Names::new(name, &language()).err().unwrap_or_else(|| panic!("{name:?} is a name"));
            assert!(said.contains(why), "{name:?}: {said}");
        }
    }

    #[test]
    fn nothing_is_left_of_what_failed() {
        let temp = tempfile::tempdir().unwrap();
        let file = |path: &str| (path.to_owned(), b"x".to_vec());
        // A file cannot be a directory as well.
        let impossible = BTreeMap::from([file("a"), file("a/b")]);
        assert!(write(&temp.path().join("p"), &impossible).is_err());
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 0);
        let files = BTreeMap::from([file("a/b")]);
        assert_eq!(write(&temp.path().join("p"), &files), Ok(()));
        assert!(write(&temp.path().join("p"), &BTreeMap::from([file("c")])).unwrap_err().contains("already"));
        assert!(!temp.path().join("p/c").exists());
        assert!(write(&temp.path().join("q/r"), &files).unwrap_err().contains("create it first"));
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1);
    }
}
