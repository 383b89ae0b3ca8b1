//! Parses references. Does not open the repository: other modules decide whether a revision or a path exists.

use std::collections::BTreeMap;

use belljar_guest::{Error, Result, reference};

/// The most entries on one page.
pub(crate) const MAX_LIMIT: usize = 1000;

/// A parsed reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// The empty reference: the branch, the last commit, and the numbers of branches and tags.
    Overview,
    /// At most `limit` branches and tags after the full name `after`.
    References { after: String, limit: Option<usize> },
    /// The log from `revision`, or from the commits `from` at which a page begins.
    Log { revision: String, path: Option<String>, from: Option<Vec<String>>, limit: Option<usize> },
    /// One commit.
    Commit { revision: String },
    /// A file or a directory. `part` is the offset and the length of a part, in bytes.
    Tree { revision: String, path: String, part: Option<(u64, Option<u64>)> },
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
                limit: number(&mut query, "limit")?,
            },
            ("log", None) => {
                let revision = parameter(&mut query, "rev").unwrap_or_else(|| "HEAD".to_owned());
                let path = parameter(&mut query, "path").map(|path| path.trim_matches('/').to_owned());
                let from = parameter(&mut query, "from").map(|from| from.split(',').map(str::to_owned).collect());
                Address::Log { revision, path, from, limit: number(&mut query, "limit")? }
            }
            ("commits", Some(revision)) => Address::Commit { revision: reference::decode(revision)? },
            ("tree", Some(rest)) => {
                let (revision, path) = rest.split_once('/').unwrap_or((rest, ""));
                let (offset, length) = (bytes(&mut query, "offset")?, bytes(&mut query, "length")?);
                let part = (offset.is_some() || length.is_some()).then_some((offset.unwrap_or(0), length));
                Address::Tree { revision: reference::decode(revision)?, path: reference::decode(path)?, part }
            }
            _ => return Err(Error::NotFound),
        };
        match query.keys().next() {
            Some(unknown) => Err(Error::invalid(format_args!("\"{unknown}\" is not a parameter of this resource"))),
            None => Ok(address),
        }
    }
}

/// Removes a parameter from the query. `None` if it is absent or empty.
fn parameter(query: &mut BTreeMap<String, String>, name: &str) -> Option<String> {
    query.remove(name).filter(|value| !value.is_empty())
}

/// Removes a number of bytes from the query.
fn bytes(query: &mut BTreeMap<String, String>, name: &str) -> Result<Option<u64>> {
    let wrong = |text: &str| Error::invalid(format_args!("\"{name}\" is \"{text}\": expected a number of bytes"));
    parameter(query, name).map(|text| text.parse().map_err(|_| wrong(&text))).transpose()
}

/// Removes a number of entries from the query.
fn number(query: &mut BTreeMap<String, String>, name: &str) -> Result<Option<usize>> {
    let wrong =
        |text: &str| Error::invalid(format_args!("\"{name}\" is \"{text}\": expected a number from 1 to {MAX_LIMIT}"));
    let number =
        |text: String| text.parse().ok().filter(|number| (1..=MAX_LIMIT).contains(number)).ok_or_else(|| wrong(&text));
    parameter(query, name).map(number).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_may_contain_slashes() {
        let tree =
            |revision: &str, path: &str| Ok(Address::Tree { revision: revision.into(), path: path.into(), part: None });
        assert_eq!(Address::parse("tree/feature%2Fx/src/a%20b.rs"), tree("feature/x", "src/a b.rs"));
        assert_eq!(Address::parse("tree/HEAD~3"), tree("HEAD~3", ""));
        assert_eq!(Address::parse("tree/HEAD/"), tree("HEAD", ""));
        let commit = |revision: &str| Ok(Address::Commit { revision: revision.into() });
        assert_eq!(Address::parse("commits/feature/x%5E2"), commit("feature/x^2"));
    }

    #[test]
    fn invalid_parameters_are_refused() {
        for wrong in
            ["log?limit=0", "log?limit=1001", "log?page=2", "refs?limit=x", "tree/HEAD/a?offset=-1", "log?rev=a&rev=b"]
        {
            assert!(matches!(Address::parse(wrong), Err(Error::Invalid(_))), "{wrong}");
        }
        assert_eq!(Address::parse("other"), Err(Error::NotFound));
    }
}
