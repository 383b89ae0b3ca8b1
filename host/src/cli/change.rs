//! A change of the configuration: made in its text, so that comments and order stay; checked whole; shown; asked for; and
//! written only if the file is still the one that it was made for.

use std::collections::HashSet;
use std::io::{IsTerminal, Write as _};
use std::path::PathBuf;

use similar::TextDiff;
use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::serving::{self, Changed};
use super::{Failure, Where, open, store};
use crate::config::{Config, Given};
use crate::grants::edit::Here;
use crate::model::{MountName, text};

/// Lines of a difference that are shown around what changes.
const AROUND: usize = 3;

/// A change that was not written yet.
pub(super) struct Change {
    path: PathBuf,
    /// The file's text; none when there is no file.
    before: Option<String>,
    after: String,
    /// What the file says now.
    pub(super) old: Config,
    /// What it will say.
    pub(super) new: Config,
}

impl Change {
    /// Makes the change that `edit` makes in the file's text.
    ///
    /// # Errors
    /// When the file cannot be read, is invalid before or would be afterwards, or `edit` fails.
    pub(super) fn draft(
        at: &Where,
        edit: impl FnOnce(&mut DocumentMut, &Here) -> Result<(), Failure>,
    ) -> Result<Self, Failure> {
        let (path, given) = open::given(at)?;
        let before = given.file.as_ref().map(|(_, text)| text.clone());
        let old = Config::read(given.clone())?;
        let source = before.as_deref().unwrap_or_default();
        // Neither is part of what the library keeps: a mark at the beginning, and line ends of another system.
        let (mark, plain) = source.strip_prefix('\u{feff}').map_or(("", source), |plain| ("\u{feff}", plain));
        let mut document: DocumentMut =
            plain.parse().map_err(|error: toml_edit::TomlError| format!("{}: {}", path.display(), error.message()))?;
        let base = path.parent().map(PathBuf::from).unwrap_or_default();
        edit(&mut document, &Here { directory: given.directory.clone(), base })?;
        let mut after = format!("{mark}{document}");
        if source.contains("\r\n") {
            after = after.replace("\r\n", "\n").replace('\n', "\r\n");
        }
        let new = Config::read(Given { file: Some((path.clone(), after.clone())), ..given })
            .map_err(|why| format!("nothing was changed, because the configuration would be invalid: {why}"))?;
        Ok(Self { path, before, after, old, new })
    }

    /// Whether there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.before.as_deref() == Some(self.after.as_str())
    }

    /// The lines that change.
    pub(super) fn diff(&self) -> String {
        let before = self.before.as_deref().unwrap_or_default();
        let name = self.path.display().to_string();
        let diff = TextDiff::from_lines(before, &self.after);
        let old = if self.before.is_some() { name.as_str() } else { "(there is no file)" };
        shown(&diff.unified_diff().context_radius(AROUND).header(old, &name).to_string())
    }

    /// What `mount` will be able to do, and what no longer, in words.
    pub(super) fn consequences(&self, mount: &MountName) -> String {
        let words = |config: &Config| config.mounts.get(mount).map(|own| own.grants.in_words()).unwrap_or_default();
        let (old, new) = (words(&self.old), words(&self.new));
        let mut out = String::new();
        let without = if new.iter().all(|word| old.contains(word)) {
            "will no longer be able to"
        } else {
            "will do that in the place of what it can do now:"
        };
        for (title, these, others) in [("will be able to", &new, &old), (without, &old, &new)] {
            let others: HashSet<&String> = others.iter().collect();
            let these: Vec<&String> = these.iter().filter(|word| !others.contains(word)).collect();
            if !these.is_empty() {
                out += &format!("\"{mount}\" {title}\n");
                out.extend(these.iter().map(|word| format!("  - {word}\n")));
            }
        }
        shown(&out)
    }

    /// What `mount` will hold, one line a thing.
    pub(super) fn granted(&self, mount: &MountName) -> Vec<String> {
        let held = self.new.mounts.get(mount).map(|own| own.grants.describe()).unwrap_or_default();
        held.into_iter().map(|(kind, line)| format!("{kind}: {line}")).collect()
    }

    /// Whether the file is still the one that this was made for.
    pub(super) fn is_current(&self) -> Result<bool, Failure> {
        Ok(store::read(&self.path)? == self.before)
    }

    /// Writes it, unless the file is another one by now; says whether it was written.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write(&self, turn: &store::Turn) -> Result<bool, Failure> {
        if !self.is_current()? {
            return Ok(false);
        }
        store::replace(turn, &self.path, &self.after, 0o600)?;
        Ok(true)
    }

    /// What is so now that it was written: whether a server that runs has taken it over for `mount`.
    pub(super) fn told(&self, mount: Option<&MountName>) -> String {
        serving::told(&self.new.state, &self.path, Changed::Text(&self.after), mount)
    }

    /// What is so of second walls, now that something was taken away.
    pub(super) fn still_open(&self) -> &'static str {
        serving::still_open(&self.new.state, &self.path)
    }

    /// The turn to write it, and the lock.
    pub(super) fn turn(&self) -> Result<store::Turn, Failure> {
        Ok(store::turn(&[&self.path, &self.new.lock])?)
    }
}

/// Edits the table of a mount, which is made where there is none.
///
/// # Errors
/// When the file has something else in its place, or `edit` fails.
pub(super) fn mount(
    document: &mut DocumentMut,
    mount: &MountName,
    edit: impl FnOnce(&mut dyn TableLike) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let last = |document: &DocumentMut| {
        let own = document.get("mounts")?.get(mount.as_str())?.as_inline_table()?;
        let (key, value) = own.iter().last()?;
        Some((key.to_owned(), value.decor().suffix().and_then(|end| end.as_str()).unwrap_or_default().to_owned()))
    };
    let before = last(document);
    edit(table(document, mount)?)?;
    // In a table that is written in one line, what stood before its brace stands there still, whichever value is last.
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

/// The table of a mount, made where there is none.
fn table<'d>(document: &'d mut DocumentMut, mount: &MountName) -> Result<&'d mut dyn TableLike, Failure> {
    let odd = || Failure::Failed(format!("[mounts.{mount}] is no table that can be edited; edit the file by hand"));
    let is_first = document.is_empty();
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
            table.decor_mut().set_prefix(if is_first { "" } else { "\n" });
            Item::Table(table)
        };
        mounts.as_table_like_mut().ok_or_else(odd)?.insert(mount.as_str(), new);
    }
    let own = mounts.as_table_like_mut().and_then(|mounts| mounts.get_mut(mount.as_str()));
    own.and_then(Item::as_table_like_mut).ok_or_else(odd)
}

/// Asks the operator, unless `yes` says it. What it is about has been printed.
///
/// # Errors
/// Where nobody can be asked.
pub(super) fn agrees(question: &str, yes: bool) -> Result<bool, Failure> {
    if yes {
        return Ok(true);
    }
    let input = std::io::stdin();
    if !input.is_terminal() {
        return Err(Failure::Misused(
            "nothing was changed: this asks before it writes, and standard input is no terminal; to write without being asked, add --yes".to_owned(),
        ));
    }
    super::log::settle();
    let mut out = std::io::stderr().lock();
    write!(out, "{question} [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    input.read_line(&mut answer)?;
    let agrees = matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes");
    if !agrees {
        writeln!(out, "nothing was changed")?;
    }
    Ok(agrees)
}

/// Text without what steers a terminal.
fn shown(text: &str) -> String {
    text::shown(text).filter_map(|(c, shows)| if matches!(c, '\n' | '\t') { Some(c) } else { shows }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grants::edit;

    #[test]
    fn a_mount_is_edited_as_it_is_written() {
        let name = MountName::new("a").unwrap();
        for (source, expected) in [
            ("", "[mounts.a]\nfs = { \"/n\" = \"x\" }\n"),
            ("x = 1\n", "x = 1\n\n[mounts.a]\nfs = { \"/n\" = \"x\" }\n"),
            ("[mounts]\na = { uri = 'a://' }\n", "[mounts]\na = { uri = 'a://', fs = { \"/n\" = \"x\" } }\n"),
            ("mounts.a = {uri = 'a://'} # b\n", "mounts.a = {uri = 'a://', fs = { \"/n\" = \"x\" }} # b\n"),
            ("[mounts]\nb = {}\n", "[mounts]\nb = {}\n\n[mounts.a]\nfs = { \"/n\" = \"x\" }\n"),
        ] {
            let mut document: DocumentMut = source.parse().unwrap();
            let give = |table: &mut dyn TableLike| Ok(edit::set_entry(table, "fs", "/n", "x".into())?);
            assert!(mount(&mut document, &name, give).is_ok());
            assert_eq!(document.to_string(), expected);
            if source.contains("uri") {
                assert!(mount(&mut document, &name, |table| Ok(edit::remove_entry(table, "fs", "/n")?)).is_ok());
                assert_eq!(document.to_string(), source);
            }
        }
        let mut document: DocumentMut = "mounts = 3\n".parse().unwrap();
        assert!(mount(&mut document, &name, |_| Ok(())).is_err());
    }
}
