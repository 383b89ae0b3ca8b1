//! Editing of grants in the configuration file, from the command line: the parts that all kinds share. Comments, order
//! and spelling of unchanged lines stay as the operator wrote them.

use std::fmt;
use std::path::PathBuf;

use toml_edit::{Array, ArrayOfTables, InlineTable, Item, Table, TableLike, Value};

use super::kind_error::KindError;
use crate::model::text;

/// A flag of `belljar grant`.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// The name, without the dashes.
    pub name: &'static str,
    /// The placeholder of the value in the help: `GUEST=HOST`.
    pub value: &'static str,
    /// The help text.
    pub help: &'static str,
}

/// The flag of every kind that connects to a host.
pub const NETWORK_FLAG: Flag = Flag {
    name: "network",
    value: "ADDRESS|NETWORK",
    help: "Let the preceding origin or server have this address, or an address in this network, such as 10.0.0.0/8",
};

/// Why a grant cannot be added to the configuration file, or removed from it.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The value of a flag has the wrong form.
    #[error("--{flag} \"{value}\": expected {expected}")]
    Value {
        /// The name of the flag, without the dashes.
        flag: &'static str,
        /// The value, shortened for display.
        value: String,
        /// The expected form.
        expected: &'static str,
    },
    /// The value of a flag has the wrong form, and may be a secret. Therefore the message leaves it out.
    #[error("--{flag}: expected \"{expected}\"")]
    PrivateValue {
        /// The name of the flag, without the dashes.
        flag: &'static str,
        /// The expected form.
        expected: &'static str,
    },
    /// The TOML library cannot insert a value at this key.
    #[error("{0}: a value cannot be written here; edit the file by hand")]
    Unwritable(String),
    /// The key has a value of another shape already.
    #[error("{key}: expected {expected}; edit the file by hand")]
    Occupied {
        /// The key, relative to the mount.
        key: String,
        /// The shape that belljar can edit.
        expected: TomlShape,
    },
    /// The mount lacks the grant that should be removed.
    #[error("{}", absent_message(key, name, there))]
    Absent {
        /// The configuration key of the kind.
        key: &'static str,
        /// The name of the missing grant.
        name: String,
        /// The names of the mount's grants of this kind.
        there: Vec<String>,
    },
    /// No grant of this kind asks for consent.
    #[error("{kind} grants cannot ask for consent, so \"{name}\" cannot be granted permanently")]
    NeverAsked {
        /// The name of the kind.
        kind: &'static str,
        /// The directory, origin or name to which the consent would apply.
        name: String,
    },
    /// An error that only one kind of grant has.
    #[error(transparent)]
    Kind(KindError),
}

/// The shape of a TOML value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TomlShape {
    /// An inline table `{ .. }`, or a section `[ .. ]`.
    Table,
    /// An array `[ .. ]`.
    List,
    /// An array of tables: sections in double brackets, or an array of inline tables.
    Tables,
}

impl fmt::Display for TomlShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Table => "a table",
            Self::List => "a list",
            Self::Tables => "a list of tables",
        })
    }
}

/// The arguments of `belljar grant` for one grant: the value of the kind's own flag, and the flags that refine this
/// grant.
#[derive(Clone, Debug, Default)]
pub struct GrantArgs {
    /// The value of the kind's own flag.
    pub value: String,
    /// Name and value of each further flag, in the order on the command line.
    pub extra_flags: Vec<(&'static str, String)>,
}

impl GrantArgs {
    /// Splits the value at its first `=`.
    ///
    /// # Errors
    /// States the expected form.
    pub fn pair(&self, flag: &Flag) -> Result<(&str, &str), EditError> {
        pair(&self.value, flag)
    }

    /// The values of the further flag `name`.
    pub fn flag_values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.extra_flags.iter().filter(move |(flag, _)| *flag == name).map(|(_, value)| value.as_str())
    }
}

/// Splits the value of a flag at its first `=`.
fn pair<'v>(value: &'v str, flag: &Flag) -> Result<(&'v str, &'v str), EditError> {
    let shown = || text::excerpt(value, 80);
    let wrong = || EditError::Value { flag: flag.name, value: shown(), expected: flag.value };
    value.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(wrong)
}

/// The two directories from which relative paths start while the operator edits the configuration.
#[derive(Clone, Debug, Default)]
pub struct EditDirectories {
    /// The working directory: the start of paths on the command line.
    pub working: PathBuf,
    /// The directory of the configuration file: the start of paths in this file.
    pub config: PathBuf,
}

impl EditDirectories {
    /// Converts a path of the command line into the same path for the configuration file.
    pub fn config_path(&self, path: &str) -> String {
        let is_absolute = path.starts_with('/') || path == "~" || path.starts_with("~/");
        if is_absolute || self.working == self.config {
            return path.to_owned();
        }
        self.working.join(path).to_string_lossy().into_owned()
    }
}

/// Sets `name = value` in the table under `key` of a mount. Replaces the old value of `name`.
///
/// # Errors
/// When the value of `key` is not a table.
pub fn set_entry(mount: &mut dyn TableLike, key: &str, name: &str, value: Value) -> Result<(), EditError> {
    if !mount.contains_key(key) {
        mount.insert(key, Item::Value(Value::InlineTable(InlineTable::new())));
    }
    let item = mount.get_mut(key).ok_or_else(|| EditError::Unwritable(key.to_owned()))?;
    set_value(item, name, value).ok_or_else(|| EditError::Occupied { key: key.to_owned(), expected: TomlShape::Table })
}

/// Sets `name = value` in a table of any notation. `None`: `table` is not a table.
pub fn set_value(table: &mut Item, name: &str, mut value: Value) -> Option<()> {
    if let Some(old) = table.as_table_like_mut()?.get_mut(name).and_then(Item::as_value_mut) {
        // An equal value keeps its spelling. A changed value keeps the white space and the comments around it.
        if old.as_str().is_some_and(|old| Some(old) == value.as_str()) {
            return Some(());
        }
        *value.decor_mut() = old.decor().clone();
        *old = value;
        return Some(());
    }
    match table {
        Item::Value(Value::InlineTable(inline)) => {
            // Keep the white space before the closing brace.
            let last = inline.iter_mut().last().map(|(_, last)| last.decor_mut());
            let end = last.and_then(|decor| {
                let end = decor.suffix().and_then(|end| end.as_str()).map(str::to_owned);
                decor.set_suffix("");
                end
            });
            *value.decor_mut() = toml_edit::Decor::new(" ", end.unwrap_or_else(|| " ".to_owned()));
            inline.insert(name, value);
        }
        table => {
            table.as_table_like_mut()?.insert(name, Item::Value(value));
        }
    }
    Some(())
}

/// Removes `name` from the table under `key` of a mount. Removes `key` too if the table is empty then.
///
/// # Errors
/// When the table lacks `name`. The error lists the names in the table.
pub fn remove_entry(mount: &mut dyn TableLike, key: &'static str, name: &str) -> Result<(), EditError> {
    let absent = |there| EditError::Absent { key, name: name.to_owned(), there };
    let Some(table) = mount.get_mut(key).and_then(Item::as_table_like_mut) else { return Err(absent(Vec::new())) };
    if table.get(name).is_none() {
        return Err(absent(table.iter().map(|(name, _)| name.to_owned()).collect()));
    }
    let last = table.iter().last().and_then(|(_, last)| last.as_value());
    let end = last.and_then(|last| last.decor().suffix()?.as_str()).map(str::to_owned);
    table.remove(name);
    let is_empty = table.is_empty();
    if is_empty {
        mount.remove(key);
    } else if let Some(Item::Value(Value::InlineTable(inline))) = mount.get_mut(key)
        && let Some((_, last)) = inline.iter_mut().last()
        && last.decor().suffix().is_none_or(|end| end.as_str() == Some(""))
    {
        // The removed entry was the last one and took the white space before the brace with it: restore this white
        // space.
        last.decor_mut().set_suffix(end.unwrap_or_default());
    }
    Ok(())
}

/// Adds a value to a list under `key`, unless the list contains it. `None`: `key` has a value of another shape.
pub fn add_to_list(table: &mut dyn TableLike, key: &str, value: &str) -> Option<()> {
    if !table.contains_key(key) {
        table.insert(key, Item::Value(Value::Array(Array::new())));
    }
    let array = table.get_mut(key)?.as_array_mut()?;
    if !array.iter().any(|own| own.as_str() == Some(value)) {
        append(array, value.into());
    }
    Some(())
}

/// Appends a value to a list in the layout of the list: on the same line, or on a line of its own.
fn append(array: &mut Array, mut value: Value) {
    let decor = array.iter().last().map(|last| last.decor().clone());
    match decor.as_ref().and_then(|decor| decor.prefix()?.as_str()) {
        Some(prefix) if prefix.contains('\n') => {
            // Leave out the comments before the last value.
            let line = prefix.rsplit_once('\n').map_or(String::new(), |(_, indent)| format!("\n{indent}"));
            *value.decor_mut() = toml_edit::Decor::new(line, "");
            array.push_formatted(value);
        }
        _ => array.push(value),
    }
}

/// Edits the table of one grant in the list of tables under `list`, or in a new table. `name` is the key that names the
/// grant, with the value for a new table; `is_it` recognises the value. `edit` gets the table, and true if it is not new.
///
/// # Errors
/// When the value of `list` is no list of tables, or as `edit`.
pub fn edit_table(
    mount: &mut dyn TableLike,
    list: &'static str,
    name: (&str, &str),
    is_it: impl Fn(&str) -> bool,
    edit: impl FnOnce(&mut dyn TableLike, bool) -> Result<(), EditError>,
) -> Result<(), EditError> {
    let wrong_shape = || EditError::Occupied { key: list.to_owned(), expected: TomlShape::Tables };
    let (key, value) = name;
    let is_own = |table: &dyn TableLike| table.get(key).and_then(Item::as_str).is_some_and(&is_it);
    if !mount.contains_key(list) {
        // `toml_edit` turns this into an inline array if the mount itself is an inline table.
        mount.insert(list, Item::ArrayOfTables(ArrayOfTables::new()));
    }
    match mount.get_mut(list).ok_or_else(wrong_shape)? {
        Item::ArrayOfTables(tables) => {
            let known = tables.iter().position(|table| is_own(table));
            let at = known.unwrap_or(tables.len());
            if known.is_none() {
                let mut table = Table::new();
                table.insert(key, value.into());
                tables.push(table);
            }
            edit(tables.get_mut(at).ok_or_else(wrong_shape)?, known.is_some())
        }
        Item::Value(Value::Array(array)) => {
            let known = array.iter().position(|entry| entry.as_inline_table().is_some_and(|table| is_own(table)));
            let at = known.unwrap_or(array.len());
            if known.is_none() {
                let mut table = InlineTable::new();
                table.insert(key, value.into());
                append(array, table.into());
            }
            let table = array.get_mut(at).and_then(Value::as_inline_table_mut).ok_or_else(wrong_shape)?;
            edit(table, known.is_some())
        }
        _ => Err(wrong_shape()),
    }
}

/// Removes the table of one grant from the list of tables under `list`, and `list` if it is empty then. `name` is the key
/// that names the grant, with the value that the operator gave; `is_it` recognises the value.
///
/// # Errors
/// When there is no such grant. The error lists the mount's grants of this kind.
pub fn remove_table(
    mount: &mut dyn TableLike,
    list: &'static str,
    name: (&str, &str),
    is_it: impl Fn(&str) -> bool,
) -> Result<(), EditError> {
    let (key, value) = name;
    let mut there: Vec<String> = Vec::new();
    let mut stays = |table: &dyn TableLike| {
        let own = table.get(key).and_then(Item::as_str);
        there.extend(own.map(str::to_owned));
        !own.is_some_and(&is_it)
    };
    let (before, left) = match mount.get_mut(list) {
        Some(Item::ArrayOfTables(tables)) => {
            let before = tables.len();
            tables.retain(|table| stays(table));
            (before, tables.len())
        }
        Some(Item::Value(Value::Array(array))) => {
            let before = array.len();
            array.retain(|entry| entry.as_inline_table().is_none_or(|table| stays(table)));
            (before, array.len())
        }
        _ => (0, 0),
    };
    if before == left {
        return Err(EditError::Absent { key: list, name: value.to_owned(), there });
    }
    if left == 0 {
        mount.remove(list);
    }
    Ok(())
}

/// The message of [`EditError::Absent`].
fn absent_message(key: &str, name: &str, there: &[String]) -> String {
    let name = text::excerpt(name, 200);
    if there.is_empty() {
        return format!("the mount has no {key} grants, so \"{name}\" cannot be revoked");
    }
    let there: Vec<String> = there.iter().map(|name| format!("\"{}\"", text::excerpt(name, 200))).collect();
    format!("the mount has no {key} grant \"{name}\"; its {key} grants are {}", there.join(", "))
}

#[cfg(test)]
mod tests {
    use toml_edit::DocumentMut;

    use super::*;

    /// Sets and then removes an entry of `fs` in the mount `a`. Returns the text after each step.
    fn set_and_remove(source: &str, name: &str, value: &str) -> (String, String) {
        let mut doc: DocumentMut = source.parse().unwrap();
        set_entry(doc["mounts"]["a"].as_table_like_mut().unwrap(), "fs", name, value.into()).unwrap();
        let after = doc.to_string();
        remove_entry(doc["mounts"]["a"].as_table_like_mut().unwrap(), "fs", name).unwrap();
        (after, doc.to_string())
    }

    #[test]
    fn setting_and_removing_an_entry_restores_the_text() {
        for (source, expected) in [
            ("[mounts.a]\n", "[mounts.a]\nfs = { \"/n\" = \"x\" }\n"),
            (
                "# one\n[mounts.a] # two\nuri = 'a://' # three\n\n# four\n[mounts.b]\n",
                "# one\n[mounts.a] # two\nuri = 'a://' # three\nfs = { \"/n\" = \"x\" }\n\n# four\n[mounts.b]\n",
            ),
            ("[mounts.a]\nfs = { '/o' = 'y' }\n", "[mounts.a]\nfs = { '/o' = 'y', \"/n\" = \"x\" }\n"),
            ("[mounts.a]\nfs = {'/o'='y'}\n", "[mounts.a]\nfs = {'/o'='y', \"/n\" = \"x\"}\n"),
            (
                "[mounts.a.fs]\n'/o' = 'y' # why\n[limits]\n",
                "[mounts.a.fs]\n'/o' = 'y' # why\n\"/n\" = \"x\"\n[limits]\n",
            ),
            ("mounts.a.uri = 'a://'\n", "mounts.a.uri = 'a://'\nmounts.a.fs = { \"/n\" = \"x\" }\n"),
        ] {
            let (after, back) = set_and_remove(source, "/n", "x");
            assert_eq!(after, expected);
            assert_eq!(back, source);
        }
    }

    #[test]
    fn an_existing_entry_is_replaced_in_place() {
        let mut doc: DocumentMut = "[mounts.a]\nfs = { '/n' =  'y' , '/o' = 'z' } # why\n".parse().unwrap();
        set_entry(doc["mounts"]["a"].as_table_like_mut().unwrap(), "fs", "/n", "x".into()).unwrap();
        assert_eq!(doc.to_string(), "[mounts.a]\nfs = { '/n' =  \"x\" , '/o' = 'z' } # why\n");
        let why = remove_entry(doc["mounts"]["a"].as_table_like_mut().unwrap(), "fs", "/p").unwrap_err().to_string();
        assert_eq!(why, "the mount has no fs grant \"/p\"; its fs grants are \"/n\", \"/o\"");
        let why = remove_entry(doc["mounts"]["a"].as_table_like_mut().unwrap(), "env", "P").unwrap_err().to_string();
        assert_eq!(why, "the mount has no env grants, so \"P\" cannot be revoked");
    }

    #[test]
    fn relative_paths_start_at_the_working_directory() {
        let here = |directory: &str| EditDirectories { working: directory.into(), config: "/srv".into() };
        assert_eq!(here("/srv").config_path("notes"), "notes");
        assert_eq!(here("/tmp").config_path("notes"), "/tmp/notes");
        for whole in ["/a", "~", "~/a"] {
            assert_eq!(here("/tmp").config_path(whole), whole);
        }
    }
}
