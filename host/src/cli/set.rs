//! `belljar set`: changes settings of the configuration, except grants. It shows and writes a change as `grant` does.

use super::flags::WriteFlags;
use super::output;
use std::process::ExitCode;

use serde_json::json;
use toml_edit::{DocumentMut, InlineTable, Item, Table, Value};

use super::confirm;
use crate::config::Config;
use crate::grants::edit;
use crate::model::{command, text};
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::{edit::ConfigChange, log};

pub(super) fn run(at: &LocationArgs, lines: &[String], write: WriteFlags) -> Result<ExitCode, Failure> {
    log::start("warn");
    let settings = lines.iter().map(|line| read(line)).collect::<Result<Vec<_>, _>>().map_err(Failure::Misused)?;
    loop {
        let change = ConfigChange::draft(at, |document, _| {
            settings.iter().flatten().try_for_each(|(path, value)| put(document, path, value)).map_err(Failure::Misused)
        })?;
        if let Some(mount) = mount_with_changed_grants(&change.old, &change.new) {
            return Err(Failure::Misused(format!(
                "nothing was changed: this would change the grants of \"{mount}\"; to change grants, use: {}, or: {}",
                command::line(["grant", &mount]),
                command::line(["revoke", &mount])
            )));
        }
        if change.is_empty() {
            output::message(write.json, "the configuration already has these settings; nothing was changed\n")?;
            return report(write, &change, false);
        }
        output::message(write.json, &change.diff())?;
        if !confirm::ask("Write this?", write.yes)? {
            return Ok(ExitCode::FAILURE);
        }
        let write_lock = change.lock_for_writing()?;
        if !change.write(&write_lock)? {
            output::message(write.json, "another process changed the configuration in the meantime; trying again\n")?;
            continue;
        }
        drop(write_lock);
        output::message(write.json, &change.effect(None))?;
        return report(write, &change, true);
    }
}

fn report(write: WriteFlags, change: &ConfigChange, written: bool) -> Result<ExitCode, Failure> {
    if write.json {
        output::print_json(&json!({ "written": written, "diff": change.diff() }))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The first mount whose grants differ between the two configurations.
fn mount_with_changed_grants(old: &Config, new: &Config) -> Option<String> {
    let grants = |config: &Config, name| {
        let own = config.mounts.get(name).filter(|own| own.needs_pin());
        own.map(|own| format!("{:?}", own.grants))
    };
    let mut names = old.mounts.keys().chain(new.mounts.keys());
    names.find(|name| grants(old, name) != grants(new, name)).map(ToString::to_string)
}

/// A setting: the path of its keys, and its value.
type Setting = (Vec<String>, Value);

/// Parses `KEY = VALUE`. A value that is not valid TOML is taken as a string without quotes.
fn read(line: &str) -> Result<Vec<Setting>, String> {
    let shown = text::excerpt(line, 200);
    let expected = "expected KEY = VALUE, such as  mounts.notes.limits.time = \"10s\"";
    if line.contains(['\n', '\r']) {
        return Err(format!("\"{shown}\": expected one line"));
    }
    let parsed = line.parse::<DocumentMut>().or_else(|error| {
        let (key, value) = line.split_once('=').ok_or(error)?;
        format!("{key} = {}", Value::from(value.trim())).parse::<DocumentMut>()
    });
    let document = parsed.map_err(|error| format!("\"{shown}\": {expected} ({})", error.message()))?;
    let mut all = Vec::new();
    leaves(document.as_table(), &mut Vec::new(), &mut all);
    if all.is_empty() {
        return Err(format!("\"{shown}\": {expected}"));
    }
    Ok(all)
}

/// Collects the settings of a TOML fragment, each with the path of its keys.
fn leaves(table: &Table, path: &mut Vec<String>, all: &mut Vec<Setting>) {
    for (key, item) in table {
        path.push(key.to_owned());
        match item {
            Item::Table(inner) => leaves(inner, path, all),
            Item::Value(value) => {
                let mut value = value.clone();
                value.decor_mut().clear();
                all.push((path.clone(), value));
            }
            Item::None | Item::ArrayOfTables(_) => {}
        }
        path.pop();
    }
}

/// Sets the value at the path `path`, and creates missing tables on the way.
fn put(document: &mut DocumentMut, path: &[String], value: &Value) -> Result<(), String> {
    let Some((key, above)) = path.split_last() else { return Ok(()) };
    let odd = || format!("\"{}\": expected a table in the configuration there; edit the file by hand", path.join("."));
    let is_first = document.is_empty();
    let mut item = document.as_item_mut();
    for (depth, name) in above.iter().enumerate() {
        let is_last = depth + 1 == above.len();
        item = below(item, name, is_last, is_first).ok_or_else(odd)?;
    }
    if item.as_table().is_some_and(Table::is_implicit) && !above.is_empty() {
        item.as_table_mut().ok_or_else(odd)?.set_implicit(false);
    }
    edit::set_value(item, key, value.clone()).ok_or_else(odd)
}

/// The table `name` in `item`. A missing one is created in the style of `item`: inline, dotted or with a header.
fn below<'i>(item: &'i mut Item, name: &str, is_last: bool, is_first: bool) -> Option<&'i mut Item> {
    let (is_inline, is_dotted) = (item.is_inline_table(), item.as_table().is_some_and(Table::is_dotted));
    let is_there = item.as_table_like()?.contains_key(name);
    if !is_there && is_inline {
        edit::set_value(item, name, InlineTable::new().into())?;
    } else if !is_there {
        let mut new = Table::new();
        new.set_implicit(!is_last && !is_dotted);
        new.set_dotted(is_dotted);
        new.decor_mut().set_prefix(if is_first { "" } else { "\n" });
        item.as_table_like_mut()?.insert(name, Item::Table(new));
    }
    item.as_table_like_mut()?.get_mut(name).filter(|inner| inner.is_table_like())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(source: &str, line: &str) -> Result<String, String> {
        let mut document: DocumentMut = source.parse().unwrap();
        for (path, value) in read(line)? {
            put(&mut document, &path, &value)?;
        }
        let text = document.to_string();
        assert!(text.parse::<toml::Table>().is_ok(), "{text}");
        Ok(text)
    }

    #[test]
    fn a_setting_is_written_at_the_path_of_its_keys() {
        for (source, line, expected) in [
            ("", "list-time = \"5s\"", "list-time = \"5s\"\n"),
            ("", "list-time=5s", "list-time = \"5s\"\n"),
            ("# a\n[limits]\ntime = \"1s\" # b\n", "limits.time = '2s'", "# a\n[limits]\ntime = '2s' # b\n"),
            ("", "mounts.m.limits.fuel = 20", "[mounts.m.limits]\nfuel = 20\n"),
            (
                "[mounts.m]\nuri = 'm://' # x\n",
                "mounts.m.limits.fuel = 20",
                "[mounts.m]\nuri = 'm://' # x\n\n[mounts.m.limits]\nfuel = 20\n",
            ),
            (
                "mounts.m.uri = 'm://'\n",
                "mounts.m.limits.fuel = 20",
                "mounts.m.uri = 'm://'\nmounts.m.limits.fuel = 20\n",
            ),
            (
                "mounts.m = { uri = 'm://' } # x\n",
                "mounts.m.limits.fuel = 20",
                "mounts.m = { uri = 'm://', limits = { fuel = 20 } } # x\n",
            ),
            ("[secrets]\n", "secrets.x = { env = \"X\" }", "[secrets]\nx = { env = \"X\" }\n"),
        ] {
            assert_eq!(set(source, line).unwrap(), expected, "{source} {line}");
        }
    }

    #[test]
    fn a_malformed_setting_is_refused() {
        for bad in ["", "time", "a = 1\nb = 2", "= 3", "[limits]", "a b = 3"] {
            assert!(read(bad).is_err(), "{bad}");
        }
        assert!(set("limits = 3\n", "limits.time = 5").unwrap_err().contains("by hand"));
    }
}
