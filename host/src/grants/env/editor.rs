//! Configuration text, flags and descriptions of `env` grants.

use toml_edit::TableLike;

use super::kind::Env;
use crate::grants::edit::{self, EditDirectories, EditError, Flag, GrantArgs};
use crate::grants::editor::{GrantEditor, GrantSuggestion};
use crate::grants::grant::Grant;
use crate::grants::kind_error::KindError;
use crate::grants::need::{Need, NeedSchema};
use crate::grants::secrets::SecretTemplate;
use crate::model::text;

impl GrantEditor for Env {
    const EXAMPLE: &'static str = "env = { NAME = \"value\" }";
    const SUMMARY: &'static str =
        "Environment variables that the provider sees. A value may contain secrets: \"Bearer ${secret:NAME}\".";
    const FLAG: Flag =
        Flag { name: "env", value: "NAME=VALUE", help: "Set an environment variable that the provider sees" };
    const REVOKE_PLACEHOLDER: &'static str = "NAME";
    const NEED_SCHEMA: NeedSchema =
        NeedSchema { key: "name", check: check_name, may_omit: false, accepts_any: false, accepts_example: true };

    fn templates(config: &Self::Config) -> Vec<&SecretTemplate> {
        config.values().collect()
    }

    fn describe(config: &Self::Config) -> Vec<String> {
        // Only the names: a value may be private.
        config.keys().cloned().collect()
    }

    fn explain(config: &Self::Config) -> Vec<String> {
        config.keys().map(|name| format!("see the environment variable \"{}\" and its value", shown(name))).collect()
    }

    fn meets(config: &Self::Config, need: &Need) -> bool {
        need.name.as_ref().is_some_and(|name| config.contains_key(name))
    }

    fn suggest(_: &str, need: Option<&Need>) -> Option<GrantSuggestion> {
        let name = need.and_then(|need| need.name.as_deref()).unwrap_or("NAME");
        let value = need.and_then(|need| need.example.as_deref()).unwrap_or("value");
        let line = format!("env = {{ {name} = {} }}", toml::Value::from(value));
        Some(GrantSuggestion { line, flags: vec!["--env".to_owned(), format!("{name}={value}")], prerequisite: None })
    }

    fn grant(mount: &mut dyn TableLike, args: &GrantArgs, _: &EditDirectories) -> Result<(), EditError> {
        let (name, value) = args.pair(&Self::FLAG)?;
        edit::set_entry(mount, Self::NAME, name, value.into())
    }

    fn revoke(mount: &mut dyn TableLike, name: &str) -> Result<(), EditError> {
        edit::remove_entry(mount, Self::NAME, name)
    }
}

/// The name is not allowed in a declaration.
#[derive(Debug, thiserror::Error)]
#[error("expected the name of a variable: letters, digits and \"_\", 64 at most")]
struct NotAName;

/// Checks the name in a declaration: every language and every shell must accept it.
fn check_name(name: &str) -> Result<String, KindError> {
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if name.len() > 64 || !name.bytes().all(is_name) || name.as_bytes().first().is_none_or(u8::is_ascii_digit) {
        return Err(NotAName.into());
    }
    Ok(name.to_owned())
}

fn shown(name: &str) -> String {
    text::excerpt(name, 200)
}
