//! The parameters of a page of rows: which rows it has, and where the next one begins.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use belljar_guest::{Error, Result, reference};

/// The most rows on one page.
pub const MAX_ROWS: usize = 1000;

/// The rows of a page, unless the operator or the reference says otherwise.
const DEFAULT_ROWS: usize = 100;

/// A position between rows: after the row with a key, and after so many further rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Position {
    /// The key.
    pub after: Option<String>,
    /// The number of further rows.
    pub skip: u64,
}

/// Which rows of a table a page has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The filters, which all apply.
    pub filters: Vec<String>,
    /// The words of a full-text search.
    pub matching: Option<String>,
    /// The columns of the order.
    pub sort: Option<String>,
    /// The key before the first row.
    pub after: Option<String>,
    /// How many rows to leave out after that.
    pub skip: u64,
    /// The most rows.
    pub limit: Option<usize>,
}

impl Wanted {
    /// The query of the page that begins at another position.
    pub fn query_at(&self, position: &Position, limit: usize) -> String {
        let mut query = String::new();
        let mut add = |name: &str, value: &str| {
            let mark = if query.is_empty() { '?' } else { '&' };
            query.push(mark);
            query.push_str(name);
            query.push('=');
            query.push_str(&reference::encode_segment(value).replace('&', "%26"));
        };
        self.filters.iter().for_each(|filter| add("where", filter));
        let named = [("match", &self.matching), ("sort", &self.sort), ("after", &position.after)];
        named
            .iter()
            .filter_map(|(name, value)| Some((name, value.as_ref()?)))
            .for_each(|(name, value)| add(name, value));
        if position.skip > 0 {
            add("skip", &position.skip.to_string());
        }
        add("limit", &limit.to_string());
        query
    }
}

/// Takes the most rows of a page out of the parameters.
///
/// # Errors
/// If it is not a number from 1 to [`MAX_ROWS`].
pub fn limit(query: &mut BTreeMap<String, String>) -> Result<Option<usize>> {
    match query.remove("limit").filter(|limit| !limit.is_empty()) {
        None => Ok(None),
        Some(text) => rows(&text).map(Some).ok_or_else(|| {
            Error::invalid(format_args!("\"limit\" is \"{text}\": expected a number from 1 to {MAX_ROWS}"))
        }),
    }
}

/// The rows of a page without `limit`, as the operator's setting `ROWS` says.
///
/// # Errors
/// If the setting is not a number from 1 to [`MAX_ROWS`].
pub fn default_rows(setting: Option<&str>) -> Result<usize> {
    match setting {
        None => Ok(DEFAULT_ROWS),
        Some(text) => rows(text)
            .ok_or_else(|| Error::failed(format_args!("ROWS is \"{text}\": expected a number from 1 to {MAX_ROWS}"))),
    }
}

/// Parses a row count; `None` unless it is from 1 to [`MAX_ROWS`].
fn rows(text: &str) -> Option<usize> {
    text.parse().ok().filter(|rows| (1..=MAX_ROWS).contains(rows))
}

/// Takes a number out of the parameters. `unit` says of what, for the error.
///
/// # Errors
/// If it is not a number below 2^63.
pub fn number(query: &mut BTreeMap<String, String>, name: &str, unit: &str) -> Result<Option<u64>> {
    let Some(text) = query.remove(name).filter(|text| !text.is_empty()) else { return Ok(None) };
    // Databases count with 63 bits.
    let number = text.parse().ok().filter(|number| i64::try_from(*number).is_ok());
    let wrong = || Error::invalid(format_args!("\"{name}\" is \"{text}\": expected a number of {unit}"));
    number.map(Some).ok_or_else(wrong)
}

/// The parameters of a query, and the filters. Only filters may be given more than once.
///
/// # Errors
/// If a name or a value cannot be decoded, or another parameter is given twice.
pub fn parameters(query: &str) -> Result<(BTreeMap<String, String>, Vec<String>)> {
    let mut all = BTreeMap::new();
    let mut filters = Vec::new();
    for (name, value) in reference::pairs(query) {
        let (name, value) = (reference::decode(name)?, reference::decode(value)?);
        if name == "where" {
            // A client that fills in a template may leave a variable empty.
            filters.extend(Some(value).filter(|value| !value.is_empty()));
            continue;
        }
        match all.entry(name) {
            Entry::Vacant(entry) => drop(entry.insert(value)),
            Entry::Occupied(entry) => {
                return Err(Error::invalid(format_args!("\"{}\" is given twice", entry.key())));
            }
        }
    }
    Ok((all, filters))
}
