//! Configuration text, flags and descriptions of `postgres` grants.

use toml_edit::TableLike;

use super::config::{DatabaseAddress, PostgresGrantConfig};
use super::name::{NAME, Postgres};
use crate::grants::edit::{
    EditDirectories, EditError, Flag, GrantArgs, NETWORK_FLAG, TomlShape, add_to_list, edit_table, remove_table,
};
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

/// True if both are one database.
fn is_same(one: &str, other: &str) -> bool {
    one == other || (canonical(one).is_some() && canonical(one) == canonical(other))
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
        add_to_list(table, "networks", network).ok_or_else(wrong_shape)?;
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
        NETWORK_FLAG,
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
        edit_table(mount, NAME, ("at", &args.value), |own| is_same(own, &args.value), |table, _| write(table, args))
    }

    fn revoke(mount: &mut dyn TableLike, name: &str) -> Result<(), EditError> {
        remove_table(mount, NAME, ("at", name), |own| is_same(own, name))
    }
}
