//! Configuration text, flags and descriptions of `fs` grants.

use toml_edit::{Item, TableLike};

use super::config::{self, FsConfig};
use super::name::Fs;
use crate::grants::edit::{self, EditDirectories, EditError, Flag, GrantArgs};
use crate::grants::editor::{GrantEditor, GrantSuggestion};
use crate::grants::grant::Grant;
use crate::grants::kind_error::KindError;
use crate::grants::need::{Need, NeedSchema};
use crate::model::text;

impl GrantEditor for Fs {
    const EXAMPLE: &'static str = "fs = { \"/data\" = \"DIR\" }";
    const SUMMARY: &'static str = "Directories that the provider may read. The key is the path that the provider sees; the value is the directory on this machine.";
    const FLAG: Flag = Flag {
        name: "fs",
        value: "GUEST=HOST",
        help: "Let the provider read the directory HOST, which it sees as GUEST. Without =HOST: grant GUEST permanently, without asking first",
    };
    const REVOKE_PLACEHOLDER: &'static str = "GUEST";
    const NEED_SCHEMA: NeedSchema =
        NeedSchema { key: "path", check: check_path, may_omit: false, accepts_any: true, accepts_example: false };
    const CONSENT_QUESTION: &'static str = "to read the directory that its operator calls";

    fn needs_consent(config: &FsConfig) -> bool {
        config.0.values().any(|granted| granted.ask)
    }

    fn describe(config: &FsConfig) -> Vec<String> {
        config.0.iter().map(|(guest, granted)| described(guest, granted, granted.ask)).collect()
    }

    fn consent_lines(config: &FsConfig) -> Vec<(String, String)> {
        let asked = config.0.iter().filter(|(_, granted)| granted.ask);
        asked.map(|(guest, granted)| (described(guest, granted, true), described(guest, granted, false))).collect()
    }

    fn explain(config: &FsConfig) -> Vec<String> {
        let shown = |text: &str| text::excerpt(text, 500);
        let one = |(guest, granted): (&String, &config::DirectoryConfig)| {
            let asked = if granted.ask { ", when a person allows it for a read" } else { "" };
            format!(
                "read every file below \"{}\", which it sees as \"{}\"{asked}; it cannot change anything there",
                shown(&granted.path.to_string_lossy()),
                shown(guest)
            )
        };
        config.0.iter().map(one).collect()
    }

    fn meets(config: &FsConfig, need: &Need) -> bool {
        let is_it = |guest: &String| need.any || need.name.as_deref().is_some_and(|path| same_path(guest, path));
        config.0.keys().any(is_it)
    }

    fn suggest(mount: &str, need: Option<&Need>) -> Option<GrantSuggestion> {
        let guest = need.and_then(|need| need.name.as_deref()).unwrap_or("/data");
        // Use the operator's name for the mount, never a provider's text: the path leads to a directory of the host.
        let host = format!("~/{mount}");
        Some(GrantSuggestion {
            line: format!("fs = {{ \"{guest}\" = \"{host}\" }}"),
            flags: vec!["--fs".to_owned(), format!("{guest}={host}")],
            prerequisite: Some(format!("mkdir -p {host}")),
        })
    }

    fn grant(mount: &mut dyn TableLike, args: &GrantArgs, directories: &EditDirectories) -> Result<(), EditError> {
        // Without a directory, make the directory that asks for consent a permanent grant.
        if !args.value.contains('=') && is_asked_for(mount, &args.value) {
            return Self::grant_permanently(mount, &args.value);
        }
        let (guest, host) = args.pair(&Self::FLAG)?;
        edit::set_entry(mount, Self::NAME, guest, directories.config_path(host).into())
    }

    fn grant_permanently(mount: &mut dyn TableLike, guest: &str) -> Result<(), EditError> {
        let granted = mount.get(Self::NAME).and_then(|all| all.get(guest));
        let path = granted.and_then(|granted| granted.get("path")).and_then(Item::as_str).map(str::to_owned);
        let path = path.ok_or_else(|| EditError::Kind(NotAsked(guest.to_owned()).into()))?;
        edit::set_entry(mount, Self::NAME, guest, path.into())
    }

    fn revoke(mount: &mut dyn TableLike, name: &str) -> Result<(), EditError> {
        edit::remove_entry(mount, Self::NAME, name)
    }

    fn advise_missing(mount: &str, held: &[&str]) -> Option<String> {
        let held: Vec<&str> = held.iter().filter_map(|line| line.split(" = ").next()).collect();
        Some(format!(
            "the mount was granted {}; if the provider's message names another path, grant a directory at that path, in fs of [mounts.{mount}]",
            held.join(", ")
        ))
    }
}

/// A permanent grant was requested for a guest path that does not ask for consent.
#[derive(Debug, thiserror::Error)]
#[error("fs: \"{0}\" does not ask for consent; write \"{0}=DIR\" to grant a directory")]
struct NotAsked(String);

/// Why a guest path is not allowed in a declaration.
#[derive(Debug, thiserror::Error)]
enum DeclaredPathError {
    /// The path is relative.
    #[error("expected a path that begins with \"/\"")]
    Relative,
    /// The path has characters that a command cannot show as they are.
    #[error("expected a path such as \"/data\": letters, digits, \".\", \"_\", \"-\"")]
    Shape,
}

/// One line for a directory, in the operator's words. `is_asked`: it asks for consent.
fn described(guest: &str, granted: &config::DirectoryConfig, is_asked: bool) -> String {
    let asked = if is_asked { ", asked for first" } else { "" };
    format!("{guest} = {} (read-only{asked})", granted.path.display())
}

/// True if the mount's table has `guest` in the long form, which asks for consent.
fn is_asked_for(mount: &dyn TableLike, guest: &str) -> bool {
    let granted = mount.get(Fs::NAME).and_then(|all| all.get(guest));
    granted.is_some_and(|granted| granted.get("path").is_some())
}

/// Checks the guest path of a declaration. Only plain segments are allowed, because suggested commands contain the path
/// unquoted.
fn check_path(path: &str) -> Result<String, KindError> {
    let is_plain = |segment: &str| {
        segment.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)) && !segment.starts_with(['.', '-'])
    };
    let below = path.strip_prefix('/').ok_or(DeclaredPathError::Relative)?;
    if path.len() > 200
        || (!below.is_empty() && below.split('/').any(|segment| segment.is_empty() || !is_plain(segment)))
    {
        return Err(DeclaredPathError::Shape.into());
    }
    Ok(path.to_owned())
}

/// True if both guest paths are equal, apart from slashes at the end.
fn same_path(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}
