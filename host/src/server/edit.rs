//! A change of the configuration file. It is made in the text, so that comments and order stay. The new configuration
//! is checked as a whole. The change is written only if the file is still the one for which it was made.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use similar::TextDiff;
use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::files::{self, FileError};
use super::location::{self, LocationArgs, ReadConfigError};
use super::server_status::{self, Changed};
use crate::config::{self, Config, ConfigInput, EditableToml};
use crate::grants::edit::EditDirectories;
use crate::model::{MountName, text};

/// Unchanged lines that a diff shows before and after a change.
const DIFF_CONTEXT: usize = 3;

/// A change that is not written yet.
pub(crate) struct ConfigChange {
    path: PathBuf,
    /// The text of the file; `None` if there is no file.
    before: Option<String>,
    after: String,
    /// The configuration before the change.
    pub(crate) old: Config,
    /// The configuration after the change.
    pub(crate) new: Config,
}

/// Why a change cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChangeError {
    /// The configuration cannot be read.
    #[error(transparent)]
    Unreadable(#[from] ReadConfigError),
    /// The configuration is invalid before the change.
    #[error(transparent)]
    Before(#[from] config::Error),
    /// The editing library cannot parse the file.
    #[error("{}: {message}", file.display())]
    NotToml {
        /// The file.
        file: PathBuf,
        /// The message of the library.
        message: String,
    },
    /// The configuration would be invalid after the change.
    #[error("nothing was changed, because the configuration would be invalid: {0}")]
    After(config::Error),
}

/// The value of `mounts.NAME` is not a table.
#[derive(Debug, thiserror::Error)]
#[error("[mounts.{0}]: expected a table in the configuration; edit the file by hand")]
pub(crate) struct NotEditable(MountName);

impl ConfigChange {
    /// Applies `edit` to the text of the file.
    ///
    /// # Errors
    /// If the file cannot be read, the configuration is invalid before or after the change, or `edit` fails.
    pub(crate) fn draft<E: From<ChangeError>>(
        at: &LocationArgs,
        edit: impl FnOnce(&mut DocumentMut, &EditDirectories) -> Result<(), E>,
    ) -> Result<Self, E> {
        let (path, input) = location::read_config_input(at).map_err(ChangeError::from)?;
        let before = input.file.as_ref().map(|(_, text)| text.clone());
        let old = Config::read(input.clone()).map_err(ChangeError::from)?;
        let source = before.as_deref().unwrap_or_default();
        let unread = |error: toml_edit::TomlError| ChangeError::NotToml {
            file: path.clone(),
            message: error.message().to_owned(),
        };
        let mut text = EditableToml::parse(source).map_err(unread)?;
        let base = path.parent().map(PathBuf::from).unwrap_or_default();
        edit(&mut text.document, &EditDirectories { working: input.directory.clone(), config: base })?;
        let after = text.to_text();
        let new = Config::read(ConfigInput { file: Some((path.clone(), after.clone())), ..input })
            .map_err(ChangeError::After)?;
        Ok(Self { path, before, after, old, new })
    }

    /// True if the change leaves the text as it is.
    pub(crate) fn is_empty(&self) -> bool {
        self.before.as_deref().unwrap_or_default() == self.after
    }

    /// The changed lines, as a unified diff.
    pub(crate) fn diff(&self) -> String {
        diff(&self.path, self.before.as_deref(), &self.after, DIFF_CONTEXT)
    }

    /// The capabilities that `mount` gains and loses, in words.
    pub(crate) fn consequences(&self, mount: &MountName) -> String {
        let words = |config: &Config| config.mounts.get(mount).map(|own| own.grants.explain()).unwrap_or_default();
        let (old, new) = (words(&self.old), words(&self.new));
        let mut out = String::new();
        let without = if new.iter().all(|word| old.contains(word)) {
            "will no longer be able to"
        } else {
            "will have this instead of the permission to"
        };
        for (title, these, others) in [("will be able to", &new, &old), (without, &old, &new)] {
            let others: HashSet<&String> = others.iter().collect();
            let these: Vec<&String> = these.iter().filter(|word| !others.contains(word)).collect();
            if !these.is_empty() {
                out += &format!("\"{mount}\" {title}\n");
                out.extend(these.iter().map(|word| format!("  - {word}\n")));
            }
        }
        for_terminal(&out)
    }

    /// The grants that `mount` will hold, one line each.
    pub(crate) fn granted(&self, mount: &MountName) -> Vec<String> {
        let held = self.new.mounts.get(mount).map(|own| own.grants.describe()).unwrap_or_default();
        held.into_iter().map(|(kind, line)| format!("{kind}: {line}")).collect()
    }

    /// True if the file still has the text for which this change was made.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn is_current(&self) -> Result<bool, FileError> {
        Ok(files::read(&self.path)? == self.before)
    }

    /// Writes the change, unless the file was changed in the meantime. Returns true if it was written.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn write(&self, write_lock: &files::WriteLock) -> Result<bool, FileError> {
        if !self.is_current()? {
            return Ok(false);
        }
        files::replace(write_lock, &self.path, &self.after, 0o600)?;
        Ok(true)
    }

    /// A message for the time after the write: whether each running server uses the change, for `mount` if it is given.
    pub(crate) fn effect(&self, mount: Option<&MountName>) -> String {
        server_status::await_reload(&self.new.state, &self.path, Changed::Text(&self.after), mount)
    }

    /// A message for the time after a revocation: the second walls of running servers still allow the access.
    pub(crate) fn wall_notice(&self) -> &'static str {
        server_status::wall_notice(&self.new.state, &self.path)
    }

    /// Locks the directories of the configuration file and of `belljar.lock` for writing.
    ///
    /// # Errors
    /// If a directory cannot be locked.
    pub(crate) fn lock_for_writing(&self) -> Result<files::WriteLock, FileError> {
        files::lock_for_writing(&[&self.path, &self.new.lock])
    }
}

/// The changed lines of a file, as a unified diff with `context` unchanged lines before and after each change. `before` is
/// `None` if the file is new.
pub(crate) fn diff(path: &Path, before: Option<&str>, after: &str, context: usize) -> String {
    let name = path.display().to_string();
    let diff = TextDiff::from_lines(before.unwrap_or_default(), after);
    let old = if before.is_some() { name.as_str() } else { "(no file)" };
    for_terminal(&diff.unified_diff().context_radius(context).header(old, &name).to_string())
}

/// Applies `edit` to the table of a mount. Creates the table if it is missing.
///
/// # Errors
/// If the value is not a table, or `edit` fails.
pub(crate) fn mount<E: From<NotEditable>>(
    document: &mut DocumentMut,
    mount: &MountName,
    edit: impl FnOnce(&mut dyn TableLike) -> Result<(), E>,
) -> Result<(), E> {
    let last = |document: &DocumentMut| {
        let own = document.get("mounts")?.get(mount.as_str())?.as_inline_table()?;
        let (key, value) = own.iter().last()?;
        Some((key.to_owned(), value.decor().suffix().and_then(|end| end.as_str()).unwrap_or_default().to_owned()))
    };
    let before = last(document);
    edit(table(document, mount)?)?;
    // In an inline table, the space before the closing brace belongs to the last value. It moves to the new last value.
    if let (Some((old, end)), Some((new, _))) = (before, last(document))
        && old != new
        && let Some(own) = document.get_mut("mounts").and_then(|mounts| mounts.get_mut(mount.as_str()))
        && let Some(own) = own.as_inline_table_mut()
    {
        if let Some(value) = own.get_mut(&old) {
            value.decor_mut().set_suffix("");
        }
        if let Some(value) = own.get_mut(&new) {
            value.decor_mut().set_suffix(end);
        }
    }
    Ok(())
}

/// The table of a mount. Creates it if it is missing.
fn table<'d>(document: &'d mut DocumentMut, mount: &MountName) -> Result<&'d mut dyn TableLike, NotEditable> {
    let odd = || NotEditable(mount.clone());
    let is_first = document.is_empty();
    // A file with comments only keeps them at its top.
    let comments = if is_first { take_comments(document) } else { None };
    let root = document.as_table_mut();
    if !root.contains_key("mounts") {
        let mut mounts = Table::new();
        mounts.set_implicit(true);
        root.insert("mounts", Item::Table(mounts));
    }
    let mounts = root.get_mut("mounts").ok_or_else(odd)?;
    if !mounts.as_table_like().ok_or_else(odd)?.contains_key(mount.as_str()) {
        let is_inline = mounts.is_inline_table();
        let new = if is_inline {
            Item::Value(Value::InlineTable(InlineTable::new()))
        } else {
            let mut table = Table::new();
            let default = if is_first { "" } else { "\n" };
            table.decor_mut().set_prefix(comments.unwrap_or_else(|| default.to_owned()));
            Item::Table(table)
        };
        mounts.as_table_like_mut().ok_or_else(odd)?.insert(mount.as_str(), new);
    }
    let own = mounts.as_table_like_mut().and_then(|mounts| mounts.get_mut(mount.as_str()));
    own.and_then(Item::as_table_like_mut).ok_or_else(odd)
}

/// Takes the comments after the last key, followed by an empty line. `None` if there are none.
fn take_comments(document: &mut DocumentMut) -> Option<String> {
    let comments = document.trailing().as_str().filter(|text| text.contains('#'))?;
    let comments = format!("{}\n\n", comments.trim_end());
    document.set_trailing("");
    Some(comments)
}

/// Removes the table of a mount. The comments before it stay, if it is the only table.
pub(crate) fn remove_mount(document: &mut DocumentMut, mount: &MountName) {
    let Some(mounts) = document.get_mut("mounts").and_then(Item::as_table_like_mut) else { return };
    let Some(removed) = mounts.remove(mount.as_str()) else { return };
    let is_last = mounts.is_empty();
    if is_last && document.get("mounts").and_then(Item::as_table).is_some_and(Table::is_implicit) {
        document.remove("mounts");
    }
    let prefix = removed.as_table().and_then(|table| table.decor().prefix()?.as_str());
    if let Some(comments) = prefix.filter(|text| document.is_empty() && text.contains('#')) {
        let trailing = document.trailing().as_str().unwrap_or_default().to_owned();
        document.set_trailing(format!("{}\n{trailing}", comments.trim_end()));
    }
}

/// `text` without control characters, except line breaks and tabs.
fn for_terminal(text: &str) -> String {
    text::visible(text).filter_map(|(c, shows)| if matches!(c, '\n' | '\t') { Some(c) } else { shows }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grants::edit;

    /// Every error of the edits below.
    #[derive(Debug, thiserror::Error)]
    enum AnyEditError {
        #[error(transparent)]
        Table(#[from] NotEditable),
        #[error(transparent)]
        Edit(#[from] edit::EditError),
    }

    #[test]
    fn comments_of_a_file_without_keys_stay_at_its_top() {
        let name = MountName::new("a").unwrap();
        let mut document: DocumentMut = "# one\n# two\n".parse().unwrap();
        let give = |table: &mut dyn TableLike| edit::set_entry(table, "fs", "/n", "x".into());
        mount(&mut document, &name, |table| give(table).map_err(AnyEditError::from)).unwrap();
        assert_eq!(document.to_string(), "# one\n# two\n\n[mounts.a]\nfs = { \"/n\" = \"x\" }\n");
        let mut document: DocumentMut = document.to_string().parse().unwrap();
        remove_mount(&mut document, &name);
        assert_eq!(document.to_string(), "# one\n# two\n");
        // A table that the user wrote stays, and so do other mounts.
        let mut document: DocumentMut = "# one\n[mounts]\na = {}\n[mounts.b]\n".parse().unwrap();
        remove_mount(&mut document, &name);
        assert_eq!(document.to_string(), "# one\n[mounts]\n[mounts.b]\n");
        remove_mount(&mut document, &MountName::new("b").unwrap());
        assert_eq!(document.to_string(), "# one\n[mounts]\n");
    }

    #[test]
    fn an_edit_keeps_the_style_of_the_mount() {
        let name = MountName::new("a").unwrap();
        for (source, expected) in [
            ("", "[mounts.a]\nfs = { \"/n\" = \"x\" }\n"),
            ("x = 1\n", "x = 1\n\n[mounts.a]\nfs = { \"/n\" = \"x\" }\n"),
            ("[mounts]\na = { uri = 'a://' }\n", "[mounts]\na = { uri = 'a://', fs = { \"/n\" = \"x\" } }\n"),
            ("mounts.a = {uri = 'a://'} # b\n", "mounts.a = {uri = 'a://', fs = { \"/n\" = \"x\" }} # b\n"),
            ("[mounts]\nb = {}\n", "[mounts]\nb = {}\n\n[mounts.a]\nfs = { \"/n\" = \"x\" }\n"),
        ] {
            let mut document: DocumentMut = source.parse().unwrap();
            let give = |table: &mut dyn TableLike| edit::set_entry(table, "fs", "/n", "x".into());
            mount(&mut document, &name, |table| give(table).map_err(AnyEditError::from)).unwrap();
            assert_eq!(document.to_string(), expected);
            if source.contains("uri") {
                let take = |table: &mut dyn TableLike| edit::remove_entry(table, "fs", "/n");
                mount(&mut document, &name, |table| take(table).map_err(AnyEditError::from)).unwrap();
                assert_eq!(document.to_string(), source);
            }
        }
        let mut document: DocumentMut = "mounts = 3\n".parse().unwrap();
        assert!(mount::<NotEditable>(&mut document, &name, |_| Ok(())).is_err());
    }
}
