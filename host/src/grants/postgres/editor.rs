//! Configuration text, flags and descriptions of `postgres` grants.

use toml_edit::{Array, ArrayOfTables, InlineTable, Item, Table, TableLike, Value};

use super::config::{DatabaseAddress, PostgresGrantConfig};
use super::name::{NAME, Postgres};
use crate::grants::edit::{EditDirectories, EditError, Flag, GrantArgs, TomlShape};
use crate::grants::editor::{GrantEditor, GrantSuggestion};
use crate::grants::kind_error::KindError;
use crate::grants::need::{Need, NeedSchema};
use crate::grants::secrets::SecretTemplate;
use crate::model::text;

/// A new grant needs a user and a password.
#[derive(Debug, thiserror::Error)]
#[error(
    "--postgres \"{0}\": write --user NAME and --password '${{secret:NAME}}' after it, and the secret under [secrets]"
)]
struct NoLogin(String);

/// The canonical form of a destination.
fn canonical(at: &str) -> Option<String> {
    DatabaseAddress::parse(at).ok().map(|address| address.to_string())
}

fn check_destination(at: &str) -> Result<String, KindError> {
    Ok(DatabaseAddress::parse(at)?.to_string())
}

/// True if the table is the grant of this database.
fn is_for(table: &dyn TableLike, at: &str) -> bool {
    let own = table.get("at").and_then(Item::as_str);
    own.is_some_and(|own| own == at || (canonical(own).is_some() && canonical(own) == canonical(at)))
}

/// Writes the values of the flags into the table of a database.
fn write(table: &mut dyn TableLike, args: &GrantArgs) -> Result<(), EditError> {
    let wrong_shape = || EditError::Occupied { key: format!("{NAME}.networks"), expected: TomlShape::List };
    for key in ["user", "password"] {
        if let Some(value) = args.flag_values(key).last() {
            table.insert(key, value.into());
        }
        if !table.contains_key(key) {
            return Err(EditError::Kind(NoLogin(text::excerpt(&args.value, 200)).into()));
        }
    }
    for network in args.flag_values("network") {
        let own = table.entry("networks").or_insert_with(|| Item::Value(Value::Array(Array::new())));
        let own = own.as_array_mut().ok_or_else(wrong_shape)?;
        if !own.iter().any(|known| known.as_str() == Some(network)) {
            own.push(network);
        }
    }
    Ok(())
}

impl GrantEditor for Postgres {
    const EXAMPLE: &'static str =
        "postgres = [{ at = \"db.internal:5432/shop\", user = \"reader\", password = \"${secret:shop}\" }]";
    const SUMMARY: &'static str = "PostgreSQL databases that the provider may use. belljar logs in, so the provider never has the password, and holds the connection read-only.";
    const FLAG: Flag = Flag {
        name: NAME,
        value: "HOST:PORT/DATABASE",
        help: "Let the provider read a PostgreSQL database, such as db.internal:5432/shop; needs --user and --password",
    };
    const EXTRA_FLAGS: &'static [Flag] = &[
        Flag { name: "user", value: "NAME", help: "Log in to the preceding database as NAME" },
        Flag {
            name: "password",
            value: "${secret:NAME}",
            help: "Log in to the preceding database with this secret; the provider never has it",
        },
        Flag {
            name: "network",
            value: "ADDRESS|NETWORK",
            help: "Let the preceding origin or server have this address, or an address in this network, such as 10.0.0.0/8",
        },
    ];
    const REVOKE_PLACEHOLDER: &'static str = "HOST:PORT/DATABASE";
    const NEED_SCHEMA: NeedSchema =
        NeedSchema { key: "at", check: check_destination, may_omit: true, accepts_any: true, accepts_example: false };

    fn templates(config: &Vec<PostgresGrantConfig>) -> Vec<&SecretTemplate> {
        config.iter().map(|written| &written.password).collect()
    }

    fn describe(config: &Vec<PostgresGrantConfig>) -> Vec<String> {
        let one = |written: &PostgresGrantConfig| {
            let mode = if written.read_only { "read-only" } else { "reads and writes" };
            let tls = if written.tls { "" } else { ", without TLS" };
            let mut line = format!("{} as {}, {mode}{tls}", written.at, written.user);
            for network in &written.networks {
                line += &format!(", address in {network}");
            }
            text::excerpt(&line, 500)
        };
        config.iter().map(one).collect()
    }

    fn explain(config: &Vec<PostgresGrantConfig>) -> Vec<String> {
        let one = |written: &PostgresGrantConfig| {
            let verb = if written.read_only { "read" } else { "read and change" };
            let secrets = written.password.secret_names().join("\" and \"");
            let mut words = format!(
                "{verb} the database {} with the rights of the user \"{}\"; belljar logs in with the secret \"{secrets}\", which the component cannot see",
                written.at, written.user
            );
            for network in &written.networks {
                words += &format!("; the address may lie in {network}");
            }
            text::excerpt(&words, 500)
        };
        config.iter().map(one).collect()
    }

    fn meets(config: &Vec<PostgresGrantConfig>, need: &Need) -> bool {
        match &need.name {
            Some(wanted) if !need.any => config.iter().any(|written| canonical(&written.at).as_ref() == Some(wanted)),
            _ => !config.is_empty(),
        }
    }

    fn suggest(_: &str, need: Option<&Need>) -> Option<GrantSuggestion> {
        let at = need.map_or(Some("db.internal:5432/shop"), |need| need.name.as_deref())?;
        let database = at.rsplit_once('/').map_or("shop", |(_, database)| database);
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        let name = if database.bytes().all(is_plain) { database } else { "NAME" };
        let at_value = toml::Value::from(at);
        Some(GrantSuggestion {
            line: format!("postgres = [{{ at = {at_value}, user = \"reader\", password = \"${{secret:{name}}}\" }}]"),
            flags: ["--postgres", at, "--user", "reader", "--password", &format!("${{secret:{name}}}")]
                .map(str::to_owned)
                .into(),
            prerequisite: None,
        })
    }

    fn grant(mount: &mut dyn TableLike, args: &GrantArgs, _: &EditDirectories) -> Result<(), EditError> {
        check_destination(&args.value).map_err(EditError::Kind)?;
        let wrong_shape = || EditError::Occupied { key: NAME.to_owned(), expected: TomlShape::Tables };
        if !mount.contains_key(NAME) {
            mount.insert(NAME, Item::ArrayOfTables(ArrayOfTables::new()));
        }
        match mount.get_mut(NAME).ok_or_else(wrong_shape)? {
            Item::ArrayOfTables(tables) => {
                if let Some(table) = tables.iter_mut().find(|table| is_for(*table, &args.value)) {
                    return write(table, args);
                }
                let mut table = Table::new();
                table.insert("at", args.value.as_str().into());
                write(&mut table, args)?;
                tables.push(table);
            }
            Item::Value(Value::Array(array)) => {
                let is_it = |value: &Value| value.as_inline_table().is_some_and(|table| is_for(table, &args.value));
                let known = array.iter().position(is_it);
                if let Some(at) = known {
                    let table = array.get_mut(at).and_then(Value::as_inline_table_mut).ok_or_else(wrong_shape)?;
                    return write(table, args);
                }
                let mut table = InlineTable::new();
                table.insert("at", args.value.as_str().into());
                write(&mut table, args)?;
                array.push(table);
            }
            _ => return Err(wrong_shape()),
        }
        Ok(())
    }

    fn revoke(mount: &mut dyn TableLike, name: &str) -> Result<(), EditError> {
        let mut there: Vec<String> = Vec::new();
        let mut note = |table: &dyn TableLike| there.extend(table.get("at").and_then(Item::as_str).map(str::to_owned));
        let (before, left) = match mount.get_mut(NAME) {
            Some(Item::ArrayOfTables(tables)) => {
                tables.iter().for_each(|table| note(table));
                let before = tables.len();
                tables.retain(|table| !is_for(table, name));
                (before, tables.len())
            }
            Some(Item::Value(Value::Array(array))) => {
                array.iter().filter_map(Value::as_inline_table).for_each(|table| note(table));
                let before = array.len();
                array.retain(|value| !value.as_inline_table().is_some_and(|table| is_for(table, name)));
                (before, array.len())
            }
            _ => (0, 0),
        };
        if before == left {
            return Err(EditError::Absent { key: NAME, name: name.to_owned(), there });
        }
        if left == 0 {
            mount.remove(NAME);
        }
        Ok(())
    }
}
