//! Parses references. Does not open the repository: other modules decide whether a revision or a path exists.

use std::collections::BTreeMap;

use belljar_guest::{Error, Result, reference};

/// The most commits or references on one page.
pub(crate) const MAX_LIMIT: usize = 1000;

/// The most entries of a directory on one page.
pub(crate) const MAX_ENTRIES: usize = 5_000;

/// A parsed reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// The empty reference: the branch, the last commit, and the numbers of branches and tags.
    Overview,
    /// At most `limit` branches and tags after the full name `after`.
    References { after: String, limit: Option<usize> },
    /// The log from `revision`, or from the commits `from` at which a page begins.
    Log { revision: String, from: Option<Vec<String>>, limit: Option<usize>, query: Query },
    /// One commit, with the diffs of the paths after `after`.
    Commit { revision: String, after: Option<String>, renames: bool },
    /// The differences of two revisions.
    Diff(Diff),
    /// The commits of the lines of a file.
    Blame { revision: String, path: String },
    /// A file or a directory. `part` is the offset and the length of a part, in bytes.
    Tree {
        revision: String,
        path: String,
        after: Option<String>,
        limit: Option<usize>,
        part: Option<(u64, Option<u64>)>,
    },
}

/// The conditions of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) path: Option<String>,
    pub(crate) author: Option<String>,
    pub(crate) grep: Option<String>,
    /// Seconds since 1970.
    pub(crate) since: Option<i64>,
    pub(crate) until: Option<i64>,
}

/// The differences of two revisions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Diff {
    pub(crate) from: String,
    pub(crate) to: String,
    /// True for `A...B`: from the common ancestor.
    pub(crate) is_from_base: bool,
    pub(crate) path: Option<String>,
    pub(crate) after: Option<String>,
    /// True for numbers of lines, false for the lines.
    pub(crate) is_stat: bool,
    pub(crate) renames: bool,
}

impl Address {
    /// Parses a reference.
    pub(crate) fn parse(whole: &str) -> Result<Address> {
        let (path, query) = reference::split(whole);
        let mut query = reference::parameters(query)?;
        let path = path.trim_end_matches('/');
        let (first, rest) = path.split_once('/').map_or((path, None), |(first, rest)| (first, Some(rest)));
        let address = match (first, rest) {
            ("", None) => Address::Overview,
            ("refs", None) => Address::References {
                after: query.remove("after").unwrap_or_default(),
                limit: number(&mut query, "limit", MAX_LIMIT)?,
            },
            ("log", None) => Address::Log {
                revision: parameter(&mut query, "rev").unwrap_or_else(|| "HEAD".to_owned()),
                from: parameter(&mut query, "from").map(|from| from.split(',').map(str::to_owned).collect()),
                limit: number(&mut query, "limit", MAX_LIMIT)?,
                query: Query {
                    path: path_in(&mut query),
                    author: parameter(&mut query, "author"),
                    grep: parameter(&mut query, "grep"),
                    since: date(&mut query, "since")?,
                    until: date(&mut query, "until")?,
                },
            },
            ("commits", Some(revision)) => Address::Commit {
                revision: reference::decode(revision)?,
                after: parameter(&mut query, "after"),
                renames: choice(&mut query, "renames", ["no", "yes"])?,
            },
            ("diff", Some(rest)) => diff(rest, &mut query)?,
            ("blame", Some(rest)) => {
                let (revision, path) = rest.split_once('/').ok_or(Error::NotFound)?;
                Address::Blame { revision: reference::decode(revision)?, path: reference::decode(path)? }
            }
            ("tree", Some(rest)) => {
                let (revision, path) = rest.split_once('/').unwrap_or((rest, ""));
                let (offset, length) = (bytes(&mut query, "offset")?, bytes(&mut query, "length")?);
                Address::Tree {
                    revision: reference::decode(revision)?,
                    path: reference::decode(path)?,
                    after: parameter(&mut query, "after"),
                    limit: number(&mut query, "limit", MAX_ENTRIES)?,
                    part: (offset.is_some() || length.is_some()).then_some((offset.unwrap_or(0), length)),
                }
            }
            _ => return Err(Error::NotFound),
        };
        match query.keys().next() {
            Some(unknown) => Err(Error::invalid(format_args!("\"{unknown}\" is not a parameter of this resource"))),
            None => Ok(address),
        }
    }
}

/// Parses `A..B` or `A...B`. A side that is left out is `HEAD`.
fn diff(rest: &str, query: &mut BTreeMap<String, String>) -> Result<Address> {
    let expected = || Error::invalid(format_args!("\"{rest}\": expected two revisions, such as diff/v1.0..HEAD"));
    let (from, to) = rest.split_once("..").ok_or_else(expected)?;
    let (is_from_base, to) = to.strip_prefix('.').map_or((false, to), |to| (true, to));
    let side = |text: &str| match text {
        "" => Ok("HEAD".to_owned()),
        text => reference::decode(text),
    };
    Ok(Address::Diff(Diff {
        from: side(from)?,
        to: side(to)?,
        is_from_base,
        path: path_in(query),
        after: parameter(query, "after"),
        is_stat: choice(query, "format", ["patch", "stat"])?,
        renames: !choice(query, "renames", ["yes", "no"])?,
    }))
}

/// Removes a parameter from the query. `None` if it is absent or empty.
fn parameter(query: &mut BTreeMap<String, String>, name: &str) -> Option<String> {
    query.remove(name).filter(|value| !value.is_empty())
}

fn path_in(query: &mut BTreeMap<String, String>) -> Option<String> {
    parameter(query, "path").map(|path| path.trim_matches('/').to_owned()).filter(|path| !path.is_empty())
}

/// Removes one of two words from the query. False for the first word, which is also the default.
fn choice(query: &mut BTreeMap<String, String>, name: &str, words: [&str; 2]) -> Result<bool> {
    let [first, second] = words;
    match parameter(query, name) {
        None => Ok(false),
        Some(word) if word == first => Ok(false),
        Some(word) if word == second => Ok(true),
        Some(word) => {
            Err(Error::invalid(format_args!("\"{name}\" is \"{word}\": expected \"{first}\" or \"{second}\"")))
        }
    }
}

/// Removes a date from the query, as seconds since 1970.
fn date(query: &mut BTreeMap<String, String>, name: &str) -> Result<Option<i64>> {
    parameter(query, name).map(|text| seconds(name, &text)).transpose()
}

/// The date that a text means, as seconds since 1970.
pub(crate) fn seconds(name: &str, text: &str) -> Result<i64> {
    // The time of this moment is needed only for "2 weeks ago".
    let found = gix_date::parse(text, None).or_else(|_| gix_date::parse(text, Some(gix_date::Zoned::now())));
    found.map(|time| time.seconds).map_err(|_| {
        Error::invalid(format_args!(
            "\"{name}\" is \"{text}\": expected a date such as 2026-01-31, 2026-01-31T09:30:00Z or \"2 weeks ago\""
        ))
    })
}

/// Removes a number of bytes from the query.
fn bytes(query: &mut BTreeMap<String, String>, name: &str) -> Result<Option<u64>> {
    let wrong = |text: &str| Error::invalid(format_args!("\"{name}\" is \"{text}\": expected a number of bytes"));
    parameter(query, name).map(|text| text.parse().map_err(|_| wrong(&text))).transpose()
}

/// Removes a number of entries from the query.
fn number(query: &mut BTreeMap<String, String>, name: &str, most: usize) -> Result<Option<usize>> {
    let wrong =
        |text: &str| Error::invalid(format_args!("\"{name}\" is \"{text}\": expected a number from 1 to {most}"));
    let number =
        |text: String| text.parse().ok().filter(|number| (1..=most).contains(number)).ok_or_else(|| wrong(&text));
    parameter(query, name).map(number).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_may_contain_slashes() {
        let tree = |revision: &str, path: &str| {
            let (revision, path) = (revision.into(), path.into());
            Ok(Address::Tree { revision, path, after: None, limit: None, part: None })
        };
        assert_eq!(Address::parse("tree/feature%2Fx/src/a%20b.rs"), tree("feature/x", "src/a b.rs"));
        assert_eq!(Address::parse("tree/HEAD~3"), tree("HEAD~3", ""));
        assert_eq!(Address::parse("tree/HEAD/"), tree("HEAD", ""));
        let commit = |revision: &str| Ok(Address::Commit { revision: revision.into(), after: None, renames: false });
        assert_eq!(Address::parse("commits/feature/x%5E2"), commit("feature/x^2"));
    }

    #[test]
    fn a_diff_has_two_revisions() {
        let sides = |reference: &str| match Address::parse(reference) {
            Ok(Address::Diff(diff)) => (diff.from, diff.to, diff.is_from_base, diff.renames),
            other => panic!("{reference}: {other:?}"),
        };
        assert_eq!(sides("diff/v1.0..feature%2Fx"), ("v1.0".to_owned(), "feature/x".to_owned(), false, true));
        assert_eq!(sides("diff/main...?renames=no"), ("main".to_owned(), "HEAD".to_owned(), true, false));
        assert!(matches!(Address::parse("diff/main"), Err(Error::Invalid(_))));
    }

    #[test]
    fn invalid_parameters_are_refused() {
        for wrong in [
            "log?limit=0",
            "log?limit=1001",
            "log?page=2",
            "log?since=soon",
            "refs?limit=x",
            "tree/HEAD/a?offset=-1",
            "log?rev=a&rev=b",
            "diff/a..b?format=html",
        ] {
            assert!(matches!(Address::parse(wrong), Err(Error::Invalid(_))), "{wrong}");
        }
        assert_eq!(Address::parse("other"), Err(Error::NotFound));
    }

    #[test]
    fn dates_are_absolute_or_relative() {
        assert_eq!(seconds("since", "2026-01-31"), Ok(1_769_817_600));
        assert_eq!(seconds("since", "2026-01-31T01:00:00+01:00"), Ok(1_769_817_600));
        assert_eq!(seconds("since", "1769817600"), Ok(1_769_817_600));
        assert!(seconds("since", "2 weeks ago").unwrap() > 1_769_817_600);
    }
}
