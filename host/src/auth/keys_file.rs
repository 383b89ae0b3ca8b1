//! The text of the keys file: parsed strictly, and edited so that comments and order stay. Opens no file: text in, text
//! out.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml_edit::{Array, ArrayOfTables, Item, Table, value};

use super::api_key;
use super::key_entry::{KeyEntry, KeyName};
use crate::config::{self, EditableToml, Problem};
use crate::model::text;

/// The most keys of one file.
const MAX_KEYS: usize = 10_000;

/// The key of the entries in the file.
const TABLES: &str = "key";

/// The beginning of a new file.
const HEADING: &str = "# The API keys that belljar accepts. Each is stored as its SHA-256; nobody can derive a key from it.\n# Commands: belljar key new, belljar key list, belljar key revoke\n\n";

/// Why the file is refused. The text names the line, and no key that was pasted into the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeysFileError(Box<Problem>);

impl fmt::Display for KeysFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&api_key::hide_keys(&self.0.to_string()))
    }
}

impl std::error::Error for KeysFileError {}

/// Why the file cannot be edited.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeysEditError {
    /// The file is wrong already.
    #[error(transparent)]
    Wrong(#[from] KeysFileError),
    /// A key has this name.
    #[error("there is already a key \"{0}\"; choose another name, or revoke that key first")]
    Taken(String),
    /// No key has this name.
    #[error("there is no key \"{name}\"; {}", the_names(known))]
    Absent {
        /// The name.
        name: KeyName,
        /// The names of the keys.
        known: Vec<String>,
    },
    /// The file has as many keys as it may have.
    #[error("there are already {MAX_KEYS} keys; revoke those that are not used any more")]
    Full,
    /// The keys stand in an array of inline tables.
    #[error("the keys are written as  key = [...] ; write each as a table  [[key]]  and try again")]
    Inline,
}

/// The names of the keys, for a message. Long lists are cut.
fn the_names(known: &[String]) -> String {
    const SHOWN: usize = 20;
    let shown = known.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match known.len() {
        0 => "there are no keys".to_owned(),
        1..=SHOWN => format!("the keys are {shown}"),
        more => format!("the keys are {shown} and {} more", more - SHOWN),
    }
}

/// Parses the text of the file.
///
/// # Errors
/// The first problem, with its line.
pub fn parse(source: &str) -> Result<Vec<KeyEntry>, KeysFileError> {
    let file: KeysFile = config::parse(source).map_err(|problem| KeysFileError(Box::new(problem)))?;
    Ok(file.key.0)
}

/// Adds a key to the text of the file.
///
/// # Errors
/// If the text is wrong, or has a key of this name.
pub fn add(source: &str, entry: &KeyEntry) -> Result<String, KeysEditError> {
    let entries = parse(source)?;
    if entries.iter().any(|other| other.identity.name == entry.identity.name) {
        return Err(KeysEditError::Taken(entry.identity.name.clone()));
    }
    if entries.len() >= MAX_KEYS {
        return Err(KeysEditError::Full);
    }
    let source = if source.trim().is_empty() { HEADING } else { source };
    let mut text = editable(source)?;
    let is_first = entries.is_empty();
    let mut table = written(entry);
    // Without an entry, the comments of the file are what follows its last key. They stay in front of the new entry.
    let before =
        if is_first { text.document.trailing().as_str().unwrap_or_default().to_owned() } else { "\n".to_owned() };
    if is_first {
        text.document.set_trailing("");
    }
    table.decor_mut().set_prefix(before);
    match text.document.entry(TABLES).or_insert(Item::ArrayOfTables(ArrayOfTables::new())) {
        Item::ArrayOfTables(tables) => tables.push(table),
        // The text may have `key = []`.
        other if is_first => *other = Item::ArrayOfTables(std::iter::once(table).collect()),
        _ => return Err(KeysEditError::Inline),
    }
    checked(text)
}

/// Removes a key from the text of the file, with the comments that belong to it.
///
/// # Errors
/// If the text is wrong, or has no key of this name.
pub fn remove(source: &str, name: &KeyName) -> Result<String, KeysEditError> {
    let entries = parse(source)?;
    let Some(at) = entries.iter().position(|entry| entry.identity.name == name.as_str()) else {
        let known = entries.into_iter().map(|entry| entry.identity.name).collect();
        return Err(KeysEditError::Absent { name: name.clone(), known });
    };
    let mut text = editable(source)?;
    let tables = text.document.get_mut(TABLES).and_then(Item::as_array_of_tables_mut).ok_or(KeysEditError::Inline)?;
    let prefix = tables.get(at).and_then(|table| table.decor().prefix()?.as_str()).unwrap_or_default().to_owned();
    tables.remove(at);
    // The comment above a blank line is about the file, not about its first key.
    let heading = prefix.rfind("\n\n").filter(|_| at == 0).and_then(|end| prefix.get(..end + 2)).unwrap_or_default();
    if let Some(next) = tables.get_mut(at).filter(|_| at == 0) {
        let own = next.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
        let joined = format!("{heading}{}", own.trim_start_matches('\n'));
        next.decor_mut().set_prefix(joined);
    }
    if tables.is_empty() {
        text.document.remove(TABLES);
        let after = text.document.trailing().as_str().unwrap_or_default().to_owned();
        text.document.set_trailing(format!("{heading}{after}"));
    }
    checked(text)
}

/// The text, ready to be edited.
fn editable(source: &str) -> Result<EditableToml, KeysEditError> {
    let unread =
        |error: toml_edit::TomlError| KeysFileError(Box::new(Problem::NotToml(text::excerpt(error.message(), 200))));
    Ok(EditableToml::parse(source).map_err(unread)?)
}

/// The edited text. It must be a file that belljar accepts.
fn checked(text: EditableToml) -> Result<String, KeysEditError> {
    let text = text.to_text();
    parse(&text)?;
    Ok(text)
}

/// The table of an entry.
fn written(entry: &KeyEntry) -> Table {
    let words = |words: &[String]| value(words.iter().map(String::as_str).collect::<Array>());
    let mut table = Table::new();
    table.insert("name", value(entry.identity.name.as_str()));
    table.insert("sha256", value(entry.hash.to_string()));
    table.insert("scopes", words(&entry.identity.scopes));
    table.insert("groups", words(&entry.identity.groups));
    for (key, time) in [("created", entry.created), ("expires", entry.expires)] {
        if let Some(time) = time {
            table.insert(key, value(time.to_string()));
        }
    }
    table
}

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct KeysFile {
    #[serde(default)]
    key: KeyTables,
}

/// All tables `[[key]]`. No two have the same name or the same hash.
#[derive(Default)]
struct KeyTables(Vec<KeyEntry>);

impl<'de> Deserialize<'de> for KeyTables {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Tables;

        impl<'de> Visitor<'de> for Tables {
            type Value = KeyTables;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("tables, each with the heading [[key]]")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<KeyTables, A::Error> {
                let (mut seen, mut entries) = (HashSet::new(), Vec::new());
                while let Some(entry) = all.next_element_seed(KeySeed { seen: &mut seen })? {
                    entries.push(entry);
                }
                Ok(KeyTables(entries))
            }
        }

        deserializer.deserialize_seq(Tables)
    }
}

/// Reads one table. Its error has the line of this table.
struct KeySeed<'a> {
    /// The names and hashes of the tables before this one.
    seen: &'a mut HashSet<String>,
}

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = KeyEntry;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<KeyEntry, D::Error> {
        let entry = KeyEntry::deserialize(deserializer)?;
        let name = &entry.identity.name;
        if self.seen.len() >= 2 * MAX_KEYS {
            return Err(D::Error::custom(format!("there are more than {MAX_KEYS} keys; remove some")));
        }
        if !self.seen.insert(format!("name {name}")) {
            return Err(D::Error::custom(format!("there are two keys \"{name}\"; rename or remove one")));
        }
        if !self.seen.insert(format!("hash {}", entry.hash)) {
            let message = format!("the key \"{name}\" has the same \"sha256\" as a key above it; remove one");
            return Err(D::Error::custom(message));
        }
        Ok(entry)
    }
}

#[cfg(test)]
mod tests;
