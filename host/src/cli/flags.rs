//! The flags of `grant` and `revoke`: those that the kinds of grants declare, and nothing that knows one of them by name.

use std::collections::BTreeMap;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use crate::grants::edit::Gift;
use crate::grants::{KINDS, Kind};

/// Things to be given.
pub(super) struct Gifts(pub(super) Vec<(&'static Kind, Gift)>);

/// Things to be taken away.
pub(super) struct Takings(pub(super) Vec<(&'static Kind, String)>);

fn argument(name: &'static str, value: &'static str, help: String) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help).action(ArgAction::Append)
}

/// The values of a flag, each with its place on the command line.
fn values<'m>(matches: &'m ArgMatches, flag: &str) -> impl Iterator<Item = (usize, &'m String)> {
    let places = matches.indices_of(flag).into_iter().flatten();
    places.zip(matches.get_many::<String>(flag).into_iter().flatten())
}

impl Args for Gifts {
    fn augment_args(mut command: Command) -> Command {
        for kind in KINDS {
            for flag in std::iter::once(&kind.flag).chain(kind.more) {
                command = command.arg(argument(flag.name, flag.value, flag.help.to_owned()));
            }
        }
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Gifts {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut all = BTreeMap::new();
        for kind in KINDS {
            let mut own: BTreeMap<usize, Gift> = BTreeMap::new();
            own.extend(
                values(matches, kind.flag.name).map(|(at, what)| (at, Gift { what: what.clone(), more: Vec::new() })),
            );
            let mut more: Vec<_> = kind
                .more
                .iter()
                .flat_map(|flag| values(matches, flag.name).map(|(at, value)| (at, flag.name, value)))
                .collect();
            more.sort_unstable();
            let is_one = own.len() == 1;
            for (at, flag, value) in more {
                // Beside a single one there is no other that it could be about.
                let about = if is_one {
                    own.values_mut().next()
                } else {
                    own.range_mut(..at).next_back().map(|(_, gift)| gift)
                };
                let Some(gift) = about else {
                    let why = format!(
                        "--{flag} says more about a --{}: write it behind the one that it is about\n",
                        kind.flag.name
                    );
                    return Err(clap::Error::raw(clap::error::ErrorKind::MissingRequiredArgument, why));
                };
                gift.more.push((flag, value.clone()));
            }
            all.extend(own.into_iter().map(|(at, gift)| (at, (kind, gift))));
        }
        Ok(Self(all.into_values().collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Takings {
    fn augment_args(mut command: Command) -> Command {
        for kind in KINDS {
            let help = format!("Take away the {} grant of this {}", kind.name, kind.thing);
            command = command.arg(argument(kind.flag.name, kind.thing, help));
        }
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Takings {
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

    fn gifts(arguments: &[&str]) -> Result<Vec<(&'static str, String, String)>, String> {
        let command = Gifts::augment_args(Command::new("grant").no_binary_name(true));
        let matches = command.try_get_matches_from(arguments).map_err(|error| error.to_string())?;
        let gifts = Gifts::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        let more = |gift: &Gift| gift.more.iter().map(|(flag, value)| format!("{flag}={value} ")).collect::<String>();
        Ok(gifts
            .0
            .into_iter()
            .map(|(kind, gift)| (kind.name, gift.what.clone(), more(&gift).trim_end().to_owned()))
            .collect())
    }

    #[test]
    fn what_says_more_belongs_to_what_stands_before_it() {
        let two = ["--http", "a", "--method", "GET", "--env", "A=b", "--http", "b", "--path", "/x", "--method", "PUT"];
        let is = |kind, what: &str, more: &str| (kind, what.to_owned(), more.to_owned());
        assert_eq!(
            gifts(&two).unwrap(),
            [is("http", "a", "method=GET"), is("env", "A=b", ""), is("http", "b", "path=/x method=PUT")]
        );
        assert_eq!(gifts(&["--method", "GET", "--http", "a"]).unwrap(), [is("http", "a", "method=GET")]);
        assert!(gifts(&["--method", "GET", "--http", "a", "--http", "b"]).unwrap_err().contains("behind the one"));
        assert!(gifts(&["--method", "GET"]).unwrap_err().contains("--method says more about a --http"));
        assert_eq!(gifts(&[]).unwrap(), []);
    }
}
