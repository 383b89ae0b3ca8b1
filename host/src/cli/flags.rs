//! Flags that several commands share. `grant` and `revoke` get theirs from the list of kinds of grants; nothing here names
//! a kind.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use super::host::HostArgs;
use crate::grants::edit::GrantArgs;
use crate::grants::{GrantKind, KINDS};
use crate::server::location::LocationArgs;

/// The flags that all commands with a confirmation have.
#[derive(Args, Clone, Copy)]
pub(super) struct WriteFlags {
    /// Write without asking for confirmation.
    #[arg(long)]
    pub(super) yes: bool,
    /// Print the change as JSON; the question goes to standard error.
    #[arg(long)]
    pub(super) json: bool,
}

/// The flag `--dev`: true if components are not compared with the lock.
#[derive(Args, Clone, Copy)]
pub(super) struct DevFlag {
    /// For developing providers only: ignore belljar.lock, neither compare components with it nor write it. Every
    /// component in the plugin directory can use the grants of its mount.
    #[arg(long)]
    pub(super) dev: bool,
}

/// The options of `login` and `logout`.
#[derive(Args)]
pub(super) struct MountArgs {
    #[command(flatten)]
    pub(super) at: LocationArgs,
    /// The name of the mount.
    #[arg(value_name = "MOUNT")]
    pub(super) mount: String,
}

/// The options of `tools` and `prompts`.
#[derive(Args)]
pub(super) struct DefinitionsArgs {
    #[command(flatten)]
    pub(super) at: LocationArgs,
    /// List only those of this mount.
    #[arg(long, value_name = "NAME")]
    pub(super) mount: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) dev: DevFlag,
}

/// The options of `call` and `prompt`, and the words after them.
#[derive(Args)]
pub(super) struct CallArgs {
    #[command(flatten)]
    pub(super) at: LocationArgs,
    /// Write the picture, the sound or the binary resource of the result to a file.
    #[arg(long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Print the whole result as JSON.
    #[arg(long, conflicts_with = "output")]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) dev: DevFlag,
    /// The name, and after it the arguments; --help after the name lists them.
    #[arg(value_names = ["NAME", "ARGUMENTS"], required = true, num_args = 1.., trailing_var_arg = true, allow_hyphen_values = true)]
    pub(super) words: Vec<String>,
}

impl DefinitionsArgs {
    pub(super) fn host(&self) -> HostArgs<'_> {
        HostArgs { at: &self.at, dev: self.dev.dev, output: None, asks: false }
    }
}

impl CallArgs {
    pub(super) fn host(&self) -> HostArgs<'_> {
        HostArgs { at: &self.at, dev: self.dev.dev, output: self.output.as_deref(), asks: true }
    }
}

/// The grants to add, in the order of the command line.
pub(super) struct GrantFlags(pub(super) Vec<(&'static GrantKind, GrantArgs)>);

/// The grants to remove, each by its kind and its key.
pub(super) struct RevokeFlags(pub(super) Vec<(&'static GrantKind, String)>);

fn argument(name: &'static str, value: &'static str, help: String) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help).action(ArgAction::Append)
}

/// The values of a flag, each with its index on the command line.
fn values<'m>(matches: &'m ArgMatches, flag: &str) -> impl Iterator<Item = (usize, &'m String)> {
    let indices = matches.indices_of(flag).into_iter().flatten();
    indices.zip(matches.get_many::<String>(flag).into_iter().flatten())
}

impl Args for GrantFlags {
    fn augment_args(mut command: Command) -> Command {
        // Several kinds may have the same further flag.
        let mut added = HashSet::new();
        for kind in KINDS {
            for flag in std::iter::once(&kind.flag).chain(kind.extra_flags) {
                if added.insert(flag.name) {
                    command = command.arg(argument(flag.name, flag.value, flag.help.to_owned()));
                }
            }
        }
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for GrantFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut all: BTreeMap<usize, (&'static GrantKind, GrantArgs)> = BTreeMap::new();
        for kind in KINDS {
            let own = values(matches, kind.flag.name);
            all.extend(own.map(|(at, what)| (at, (kind, GrantArgs { value: what.clone(), extra_flags: Vec::new() }))));
        }
        let names: BTreeSet<&'static str> =
            KINDS.iter().flat_map(|kind| kind.extra_flags).map(|flag| flag.name).collect();
        let mut more: Vec<_> = names
            .into_iter()
            .flat_map(|flag| values(matches, flag).map(move |(at, value)| (at, flag, value)))
            .collect();
        more.sort_unstable();
        for (at, flag, value) in more {
            let has_flag = |kind: &GrantKind| kind.extra_flags.iter().any(|own| own.name == flag);
            let fitting: Vec<usize> =
                all.iter().filter(|(_, (kind, _))| has_flag(kind)).map(|(place, _)| *place).collect();
            // With a single grant, its other flags may also stand before it.
            let place = match fitting.as_slice() {
                [only] => Some(*only),
                several => several.iter().rev().find(|place| **place < at).copied(),
            };
            let Some((_, grant)) = place.and_then(|place| all.get_mut(&place)) else {
                let kinds = KINDS.iter().filter(|kind| has_flag(kind)).map(|kind| format!("--{}", kind.flag.name));
                let kinds = kinds.collect::<Vec<_>>().join(" or a ");
                let why = format!("--{flag} belongs to a {kinds}; write it after the flag that it belongs to\n");
                return Err(clap::Error::raw(clap::error::ErrorKind::MissingRequiredArgument, why));
            };
            grant.extra_flags.push((flag, value.clone()));
        }
        Ok(Self(all.into_values().collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for RevokeFlags {
    fn augment_args(mut command: Command) -> Command {
        for kind in KINDS {
            let help = format!("Revoke the {} grant with this {}", kind.name, kind.revoke_placeholder);
            command = command.arg(argument(kind.flag.name, kind.revoke_placeholder, help));
        }
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for RevokeFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let all =
            KINDS.iter().flat_map(|kind| values(matches, kind.flag.name).map(move |(_, what)| (kind, what.clone())));
        Ok(Self(all.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(arguments: &[&str]) -> Result<Vec<(&'static str, String, String)>, String> {
        let command = GrantFlags::augment_args(Command::new("grant").no_binary_name(true));
        let matches = command.try_get_matches_from(arguments).map_err(|error| error.to_string())?;
        let grants = GrantFlags::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        let more = |grant: &GrantArgs| {
            grant.extra_flags.iter().map(|(flag, value)| format!("{flag}={value} ")).collect::<String>()
        };
        Ok(grants
            .0
            .into_iter()
            .map(|(kind, grant)| (kind.name, grant.value.clone(), more(&grant).trim_end().to_owned()))
            .collect())
    }

    #[test]
    fn an_additional_flag_belongs_to_the_grant_before_it() {
        let two = ["--http", "a", "--method", "GET", "--env", "A=b", "--http", "b", "--path", "/x", "--method", "PUT"];
        let is = |kind, what: &str, more: &str| (kind, what.to_owned(), more.to_owned());
        assert_eq!(
            grants(&two).unwrap(),
            [is("http", "a", "method=GET"), is("env", "A=b", ""), is("http", "b", "path=/x method=PUT")]
        );
        assert_eq!(grants(&["--method", "GET", "--http", "a"]).unwrap(), [is("http", "a", "method=GET")]);
        assert!(grants(&["--method", "GET", "--http", "a", "--http", "b"]).unwrap_err().contains("write it after"));
        assert!(grants(&["--method", "GET"]).unwrap_err().contains("--method belongs to a --http"));
        assert_eq!(grants(&[]).unwrap(), []);
    }
}
