//! Finds columns by name, by spreadsheet letters or by number, and names columns without a name.

use std::collections::HashSet;

use belljar_guest::{Error, Result};

/// The most columns of a spreadsheet.
pub(crate) const MAX_COLUMNS: usize = 16_384;

/// The letters of a column, counted from 0: `A`, `Z`, `AA`.
pub(crate) fn letters(mut index: usize) -> String {
    let mut letters = Vec::new();
    loop {
        letters.push(b'A' + u8::try_from(index % 26).unwrap_or_default());
        match (index / 26).checked_sub(1) {
            Some(rest) => index = rest,
            None => break,
        }
    }
    letters.iter().rev().map(|letter| char::from(*letter)).collect()
}

/// The index of a column that is named by its letters, or by a number counted from 1. The result is counted from 0.
pub(crate) fn index(text: &str) -> Option<usize> {
    let index = if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse::<usize>().ok()?.checked_sub(1)?
    } else if text.len() <= 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        text.bytes().fold(0, |sum, byte| sum * 26 + usize::from(byte.to_ascii_uppercase() - b'A') + 1).checked_sub(1)?
    } else {
        return None;
    };
    (index < MAX_COLUMNS).then_some(index)
}

/// Unique names for `width` columns. A repeated name gets a suffix, a missing one becomes the column's letters.
pub(crate) fn names(header: &[String], width: usize) -> Vec<String> {
    let given: HashSet<&str> = header.iter().map(String::as_str).collect();
    let mut taken: HashSet<String> = HashSet::new();
    let width = width.max(header.len()).min(MAX_COLUMNS);
    let mut names = Vec::with_capacity(width);
    for at in 0..width {
        let name = header.get(at).map(|name| name.trim()).filter(|name| !name.is_empty());
        let mut name = name.map_or_else(|| letters(at), str::to_owned);
        if taken.contains(&name) {
            let free = |name: &String| !taken.contains(name) && !given.contains(name.as_str());
            name = (2..).map(|n| format!("{name}_{n}")).find(free).unwrap_or(name);
        }
        taken.insert(name.clone());
        names.push(name);
    }
    names
}

/// The selected columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selection {
    /// In the order of the reference, counted from 0.
    pub(crate) columns: Vec<usize>,
    /// True if more columns match than fit.
    pub(crate) is_cut: bool,
}

/// Selects at most `most` columns: those in `wanted`, or else the first ones. `wanted` is a list of names, letters,
/// numbers, and ranges of these with `:` or `-`.
pub(crate) fn select(wanted: Option<&str>, names: &[String], most: usize) -> Result<Selection> {
    let Some(wanted) = wanted else {
        return Ok(Selection { columns: (0..names.len().min(most)).collect(), is_cut: names.len() > most });
    };
    let mut columns = Vec::new();
    // A name may contain a comma.
    let parts = if find(wanted, names).is_some() { vec![wanted] } else { wanted.split(',').collect() };
    for part in parts.into_iter().map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = range(part, names).ok_or_else(|| unknown(part, names))?;
        // A row may have more cells than the header has names.
        columns.extend(first..=last.min(names.len().max(first).saturating_add(most)));
        columns.truncate(most + 1);
    }
    let is_cut = columns.len() > most;
    columns.truncate(most);
    Ok(Selection { columns, is_cut })
}

/// The column that a name, letters or a number name.
pub(crate) fn one(text: &str, names: &[String]) -> Result<usize> {
    find(text, names).ok_or_else(|| unknown(text, names))
}

fn unknown(text: &str, names: &[String]) -> Error {
    let some: Vec<&str> = names.iter().take(20).map(String::as_str).collect();
    let more = if names.len() > some.len() { ", ..." } else { "" };
    Error::invalid(format_args!(
        "no column \"{text}\": the columns are {}{more}; letters (B), numbers (2) and ranges (B:D, 2-4) also work",
        some.join(", ")
    ))
}

fn range(part: &str, names: &[String]) -> Option<(usize, usize)> {
    if let Some(one) = find(part, names) {
        return Some((one, one));
    }
    let (first, last) = part.split_once(':').or_else(|| part.split_once('-'))?;
    let (first, last) = (find(first.trim(), names)?, index(last.trim()).or_else(|| find(last.trim(), names))?);
    (first <= last).then_some((first, last))
}

/// Finds a column by exact name, by name without regard to case, then by letters or number.
fn find(text: &str, names: &[String]) -> Option<usize> {
    let same = |name: &String| name.to_lowercase() == text.to_lowercase();
    names
        .iter()
        .position(|name| name == text)
        .or_else(|| names.iter().position(same))
        // Numbers may exceed the header, because rows may have more cells. Letters beyond the header are refused: they are
        // more likely a misspelled name.
        .or_else(|| index(text).filter(|at| *at < names.len() || text.starts_with(|c: char| c.is_ascii_digit())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_numbers_name_the_same_columns() {
        for (at, name) in [(0, "A"), (25, "Z"), (26, "AA"), (701, "ZZ"), (702, "AAA"), (16_383, "XFD")] {
            assert_eq!((letters(at).as_str(), index(name)), (name, Some(at)));
            assert_eq!(index(&(at + 1).to_string()), Some(at));
        }
        assert_eq!([index("0"), index("XFE"), index(""), index("A1")], [None; 4]);
    }

    #[test]
    fn column_names_are_unique() {
        let header = ["a", "a", "", "a_2", " b ", "a"].map(str::to_owned);
        assert_eq!(names(&header, 7), ["a", "a_3", "C", "a_2", "b", "a_4", "G"]);
    }

    #[test]
    fn columns_are_selected_by_name_letters_or_number() {
        let all = ["id", "Name", "x,y", "d"].map(str::to_owned);
        let of = |wanted| select(Some(wanted), &all, 10).map(|selection| selection.columns);
        assert_eq!(of("name,id"), Ok(vec![1, 0]));
        assert_eq!(of("x,y"), Ok(vec![2]));
        assert_eq!(of("B:D"), Ok(vec![1, 2, 3]));
        assert_eq!(of("2-4"), Ok(vec![1, 2, 3]));
        assert_eq!(of("9"), Ok(vec![8]));
        assert_eq!(of("2-99").map(|all| all.len()), Ok(10));
        assert!(matches!(of("nope"), Err(Error::Invalid(why)) if why.contains("\"nope\"") && why.contains("id, Name")));
        assert!(of("D:B").is_err());
        assert_eq!(select(None, &all, 3), Ok(Selection { columns: vec![0, 1, 2], is_cut: true }));
    }
}
