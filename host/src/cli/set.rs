//! `belljar set`: changes settings of the configuration that are no grants. What it prints and writes is what `grant` does;
//! what a mount may do stays as it is.

use std::process::ExitCode;

use serde_json::json;
use toml_edit::{DocumentMut, InlineTable, Item, Table, Value};

use super::change::{self, Change};
use super::{Failure, Where, Yes};
use crate::config::Config;
use crate::grants::edit;
use crate::model::{command, text};

pub(super) fn run(at: &Where, lines: &[String], yes: Yes) -> Result<ExitCode, Failure> {
    super::log::start("warn");
    let settings = lines.iter().map(|line| read(line)).collect::<Result<Vec<_>, _>>().map_err(Failure::Misused)?;
    loop {
        let change = Change::draft(at, |document, _| {
            settings.iter().flatten().try_for_each(|(path, value)| put(document, path, value)).map_err(Failure::Misused)
        })?;
        if let Some(mount) = regranted(&change.old, &change.new) {
            return Err(Failure::Misused(format!(
                "nothing was changed: this would change what \"{mount}\" is granted; say that with: {}, or  revoke",
                command::line(["grant", &mount])
            )));
        }
        if change.is_empty() {
            super::say(yes.json, "the configuration says that already; nothing was changed\n")?;
            return told(yes, &change, false);
        }
        super::say(yes.json, &change.diff())?;
        if !change::agrees("Write this?", yes.yes)? {
            return Ok(ExitCode::FAILURE);
        }
        let turn = change.turn()?;
        if !change.write(&turn)? {
            super::say(yes.json, "the configuration changed meanwhile; once more\n")?;
            continue;
        }
        drop(turn);
        super::say(yes.json, &change.told(None))?;
        return told(yes, &change, true);
    }
}

fn told(yes: Yes, change: &Change, written: bool) -> Result<ExitCode, Failure> {
    if yes.json {
        super::print_json(&json!({ "written": written, "diff": change.diff() }))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A mount whose grants are other ones afterwards.
fn regranted(old: &Config, new: &Config) -> Option<String> {
    let grants = |config: &Config, name| {
        let own = config.mounts.get(name).filter(|own| own.needs_pin());
        own.map(|own| format!("{:?}", own.grants))
    };
    let mut names = old.mounts.keys().chain(new.mounts.keys());
    names.find(|name| grants(old, name) != grants(new, name)).map(ToString::to_string)
}

/// A setting: the keys that lead to it, and its value.
type Setting = (Vec<String>, Value);

/// Reads `KEY = VALUE`. What is no value of TOML is text without its quotes.
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

/// What a fragment sets: dotted keys lead there.
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

/// Puts a value where its keys lead, in tables that are made where there are none.
fn put(document: &mut DocumentMut, path: &[String], value: &Value) -> Result<(), String> {
    let Some((key, above)) = path.split_last() else { return Ok(()) };
    let odd = || format!("\"{}\": what is there is no table; edit the file by hand", path.join("."));
    let is_first = document.is_empty();
    let mut item = document.as_item_mut();
    for (depth, name) in above.iter().enumerate() {
        let is_last = depth + 1 == above.len();
        item = below(item, name, is_last, is_first).ok_or_else(odd)?;
    }
    if item.as_table().is_some_and(Table::is_implicit) && !above.is_empty() {
        item.as_table_mut().ok_or_else(odd)?.set_implicit(false);
    }
    edit::put(item, key, value.clone()).ok_or_else(odd)
}

/// The table of that name, made where there is none, in the way in which `item` is written.
fn below<'i>(item: &'i mut Item, name: &str, is_last: bool, is_first: bool) -> Option<&'i mut Item> {
    let (is_inline, is_dotted) = (item.is_inline_table(), item.as_table().is_some_and(Table::is_dotted));
    let is_there = item.as_table_like()?.contains_key(name);
    if !is_there && is_inline {
        edit::put(item, name, InlineTable::new().into())?;
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
    fn a_line_goes_where_its_keys_lead() {
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
    fn what_is_no_setting_is_refused() {
        for bad in ["", "time", "a = 1\nb = 2", "= 3", "[limits]", "a b = 3"] {
            assert!(read(bad).is_err(), "{bad}");
        }
        assert!(set("limits = 3\n", "limits.time = 5").unwrap_err().contains("by hand"));
    }
}
