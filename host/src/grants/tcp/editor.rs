//! Configuration text, flags and descriptions of `tcp` grants.

use toml_edit::{Array, InlineTable, Item, TableLike, Value};

use super::config::TcpGrantConfig;
use super::kind::parse;
use super::name::{NAME, Tcp};
use crate::grants::edit::{EditDirectories, EditError, Flag, GrantArgs, NETWORK_FLAG, TomlShape, add_to_list};
use crate::grants::editor::{GrantEditor, GrantSuggestion};
use crate::grants::kind_error::KindError;
use crate::grants::need::{Need, NeedSchema};
use crate::model::text;

/// The canonical form of a destination.
fn canonical(at: &str) -> Option<String> {
    let (host, port) = parse(at).ok()?;
    Some(format!("{host}:{port}"))
}

fn check_destination(at: &str) -> Result<String, KindError> {
    let (host, port) = parse(at)?;
    Ok(format!("{host}:{port}"))
}

/// The destination of one entry of the list: a text, or a table with `at`.
fn destination(entry: &Value) -> Option<&str> {
    entry.as_str().or_else(|| entry.as_inline_table()?.get("at")?.as_str())
}

/// The list of the mount. Makes an empty one if there is none.
fn list(mount: &mut dyn TableLike) -> Result<&mut Array, EditError> {
    let entries = mount.entry(NAME).or_insert_with(|| Item::Value(Value::Array(Array::new())));
    let wrong_shape = || EditError::Occupied { key: NAME.to_owned(), expected: TomlShape::List };
    // Sections in double brackets become a list of inline tables.
    if let Item::ArrayOfTables(tables) = entries {
        let tables = std::mem::take(tables);
        *entries = Item::Value(Value::Array(tables.into_array()));
    }
    entries.as_array_mut().ok_or_else(wrong_shape)
}

impl GrantEditor for Tcp {
    const EXAMPLE: &'static str = "tcp = [\"db.internal:5432\"]";
    const SUMMARY: &'static str =
        "TCP connections that the provider may open, by host and port. Without an entry every connection is refused.";
    const FLAG: Flag = Flag {
        name: NAME,
        value: "HOST:PORT",
        help: "Let the provider open TCP connections to HOST:PORT, such as db.internal:5432",
    };
    const EXTRA_FLAGS: &'static [Flag] = &[NETWORK_FLAG];
    const REVOKE_PLACEHOLDER: &'static str = "HOST:PORT";
    const NEED_SCHEMA: NeedSchema =
        NeedSchema { key: "at", check: check_destination, may_omit: true, accepts_any: true, accepts_example: false };

    fn describe(config: &Vec<TcpGrantConfig>) -> Vec<String> {
        let one = |written: &TcpGrantConfig| {
            let mut line = written.at.clone();
            if written.tls {
                line += " with TLS";
            }
            for network in &written.networks {
                line += &format!(", address in {network}");
            }
            text::excerpt(&line, 500)
        };
        config.iter().map(one).collect()
    }

    fn explain(config: &Vec<TcpGrantConfig>) -> Vec<String> {
        let one = |written: &TcpGrantConfig| {
            let mut words = format!("open TCP connections to {}, and send and receive anything there", written.at);
            if written.tls {
                words += "; belljar speaks TLS with the server";
            }
            for network in &written.networks {
                words += &format!("; the address may lie in {network}");
            }
            text::excerpt(&words, 500)
        };
        config.iter().map(one).collect()
    }

    fn meets(config: &Vec<TcpGrantConfig>, need: &Need) -> bool {
        match &need.name {
            Some(wanted) if !need.any => config.iter().any(|written| canonical(&written.at).as_ref() == Some(wanted)),
            _ => !config.is_empty(),
        }
    }

    fn suggest(_: &str, need: Option<&Need>) -> Option<GrantSuggestion> {
        let at = need.map_or(Some("db.internal:5432"), |need| need.name.as_deref())?;
        Some(GrantSuggestion {
            line: format!("tcp = [{}]", toml::Value::from(at)),
            flags: vec!["--tcp".to_owned(), at.to_owned()],
            prerequisite: None,
        })
    }

    fn grant(mount: &mut dyn TableLike, args: &GrantArgs, _: &EditDirectories) -> Result<(), EditError> {
        let wanted = check_destination(&args.value).map_err(EditError::Kind)?;
        let networks: Vec<&str> = args.flag_values("network").collect();
        let entries = list(mount)?;
        let known = entries.iter().position(|own| destination(own).and_then(canonical).as_ref() == Some(&wanted));
        let at = known.unwrap_or(entries.len());
        if known.is_none() {
            entries.push(args.value.as_str());
        }
        if networks.is_empty() {
            return Ok(());
        }
        let wrong_shape = || EditError::Occupied { key: NAME.to_owned(), expected: TomlShape::List };
        let entry = entries.get_mut(at).ok_or_else(wrong_shape)?;
        if let Some(text) = entry.as_str().map(str::to_owned) {
            let mut table = InlineTable::new();
            table.insert("at", text.into());
            let decor = entry.decor().clone();
            *entry = Value::InlineTable(table);
            *entry.decor_mut() = decor;
        }
        let table = entry.as_inline_table_mut().ok_or_else(wrong_shape)?;
        for network in networks {
            add_to_list(table, "networks", network).ok_or_else(wrong_shape)?;
        }
        Ok(())
    }

    fn revoke(mount: &mut dyn TableLike, name: &str) -> Result<(), EditError> {
        let absent = |there| EditError::Absent { key: NAME, name: name.to_owned(), there };
        if !mount.contains_key(NAME) {
            return Err(absent(Vec::new()));
        }
        let entries = list(mount)?;
        let is_it = |entry: &Value| {
            destination(entry)
                .is_some_and(|own| own == name || (canonical(own).is_some() && canonical(own) == canonical(name)))
        };
        let before = entries.len();
        let there = entries.iter().filter_map(destination).map(str::to_owned).collect();
        entries.retain(|entry| !is_it(entry));
        if entries.len() == before {
            return Err(absent(there));
        }
        if entries.is_empty() {
            mount.remove(NAME);
        }
        Ok(())
    }
}
