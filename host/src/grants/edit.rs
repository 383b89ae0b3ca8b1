//! How grants are given and taken away on the command line, and how they stand in the configuration file: what all kinds
//! share. Comments, order and spelling of whatever is not changed stay as the operator wrote them.

use std::path::PathBuf;

use toml_edit::{InlineTable, Item, TableLike, Value};

use crate::model::text;

/// A flag of `belljar grant`, and what follows it.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Without the dashes.
    pub name: &'static str,
    /// What its value is, as the help names it: `GUEST=HOST`.
    pub value: &'static str,
    /// What it does.
    pub help: &'static str,
}

/// One thing to be given: the value of the kind's own flag, with those flags that say more about it.
#[derive(Clone, Debug, Default)]
pub struct Gift {
    /// The value of the kind's own flag.
    pub what: String,
    /// Flag and value, in the order in which they were typed.
    pub more: Vec<(&'static str, String)>,
}

impl Gift {
    /// The two sides of the value's first `=`.
    ///
    /// # Errors
    /// Says what was expected.
    pub fn pair(&self, flag: &Flag) -> Result<(&str, &str), String> {
        pair(&self.what, flag)
    }

    /// The values of the flag `name`.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.more.iter().filter(move |(flag, _)| *flag == name).map(|(_, value)| value.as_str())
    }
}

/// The two sides of the first `=` of a flag's value.
fn pair<'v>(value: &'v str, flag: &Flag) -> Result<(&'v str, &'v str), String> {
    value
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| format!("--{} \"{}\": expected {}", flag.name, text::excerpt(value, 80), flag.value))
}

/// Where the operator types, and where the file lies that is edited.
#[derive(Clone, Debug, Default)]
pub struct Here {
    /// The working directory, which paths on the command line start from.
    pub directory: PathBuf,
    /// The configuration's directory, which paths in it start from.
    pub base: PathBuf,
}

impl Here {
    /// A path of the command line as it stands in the configuration.
    pub fn written(&self, path: &str) -> String {
        let is_said_whole = path.starts_with('/') || path == "~" || path.starts_with("~/");
        if is_said_whole || self.directory == self.base {
            return path.to_owned();
        }
        self.directory.join(path).to_string_lossy().into_owned()
    }
}

/// Puts `name = value` into the table under `key` of a mount, or in the place of what has that name there.
///
/// # Errors
/// When the key holds something else.
pub fn set_entry(mount: &mut dyn TableLike, key: &str, name: &str, value: Value) -> Result<(), String> {
    if !mount.contains_key(key) {
        mount.insert(key, Item::Value(Value::InlineTable(InlineTable::new())));
    }
    let item = mount.get_mut(key).ok_or_else(|| format!("{key}: it cannot be written"))?;
    put(item, name, value).ok_or_else(|| format!("{key}: expected a table there; edit the file by hand"))
}

/// Puts `name = value` into a table, however that is written.
pub fn put(table: &mut Item, name: &str, mut value: Value) -> Option<()> {
    if let Some(old) = table.as_table_like_mut()?.get_mut(name).and_then(Item::as_value_mut) {
        // What says the same stays as it is spelled; of what does not, white space and comments around it stay.
        if old.as_str().is_some_and(|old| Some(old) == value.as_str()) {
            return Some(());
        }
        *value.decor_mut() = old.decor().clone();
        *old = value;
        return Some(());
    }
    match table {
        Item::Value(Value::InlineTable(inline)) => {
            // What stood between the last value and the brace stands there still.
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

/// Takes `name` out of the table under `key` of a mount, and the key with the last of them.
///
/// # Errors
/// Names what is there when that is not.
pub fn remove_entry(mount: &mut dyn TableLike, key: &str, name: &str) -> Result<(), String> {
    let Some(table) = mount.get_mut(key).and_then(Item::as_table_like_mut) else { return Err(absent(key, name, &[])) };
    if table.get(name).is_none() {
        let names: Vec<&str> = table.iter().map(|(name, _)| name).collect();
        return Err(absent(key, name, &names));
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
        // What stood before the brace went with the one that was last: it stands there again.
        last.decor_mut().set_suffix(end.unwrap_or_default());
    }
    Ok(())
}

/// Says that a mount does not hold `name`, and what it holds of that kind.
pub(super) fn absent(key: &str, name: &str, there: &[&str]) -> String {
    let name = text::excerpt(name, 200);
    if there.is_empty() {
        return format!("it holds no {key} grant, so not \"{name}\" either");
    }
    let there: Vec<String> = there.iter().map(|name| format!("\"{}\"", text::excerpt(name, 200))).collect();
    format!("it holds no {key} \"{name}\"; it holds {}", there.join(", "))
}

#[cfg(test)]
mod tests {
    use toml_edit::DocumentMut;

    use super::*;

    /// Sets and removes an entry of `fs` in the mount `a`.
    fn both(source: &str, name: &str, value: &str) -> (String, String) {
        let mut doc: DocumentMut = source.parse().unwrap();
        set_entry(doc["mounts"]["a"].as_table_like_mut().unwrap(), "fs", name, value.into()).unwrap();
        let after = doc.to_string();
        remove_entry(doc["mounts"]["a"].as_table_like_mut().unwrap(), "fs", name).unwrap();
        (after, doc.to_string())
    }

    #[test]
    fn what_is_given_and_taken_leaves_no_trace() {
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
            let (after, back) = both(source, "/n", "x");
            assert_eq!(after, expected);
            assert_eq!(back, source);
        }
    }

    #[test]
    fn what_is_there_is_replaced_in_its_place() {
        let mut doc: DocumentMut = "[mounts.a]\nfs = { '/n' =  'y' , '/o' = 'z' } # why\n".parse().unwrap();
        set_entry(doc["mounts"]["a"].as_table_like_mut().unwrap(), "fs", "/n", "x".into()).unwrap();
        assert_eq!(doc.to_string(), "[mounts.a]\nfs = { '/n' =  \"x\" , '/o' = 'z' } # why\n");
        let why = remove_entry(doc["mounts"]["a"].as_table_like_mut().unwrap(), "fs", "/p").unwrap_err();
        assert_eq!(why, "it holds no fs \"/p\"; it holds \"/n\", \"/o\"");
        let why = remove_entry(doc["mounts"]["a"].as_table_like_mut().unwrap(), "env", "P").unwrap_err();
        assert_eq!(why, "it holds no env grant, so not \"P\" either");
    }

    #[test]
    fn relative_paths_mean_where_they_were_typed() {
        let here = |directory: &str| Here { directory: directory.into(), base: "/srv".into() };
        assert_eq!(here("/srv").written("notes"), "notes");
        assert_eq!(here("/tmp").written("notes"), "/tmp/notes");
        for whole in ["/a", "~", "~/a"] {
            assert_eq!(here("/tmp").written(whole), whole);
        }
    }
}
